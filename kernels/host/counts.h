// Memory requests of warps: what each place in the source asked for, in sectors, lanes and passes over the banks.
#pragma once
#include <string>

#include "machine.h"

namespace host {

// One request: the accesses that the lanes of `lanes` make together. Shared says which memory it is.
void count_request(const Event* events, unsigned lanes, bool shared);
std::string counts_text();

}  // namespace host
