// What fences and atomics order: who may rely on what another thread did, beyond barriers and warps.
#pragma once
#include <cstdint>

#include "machine.h"

namespace host {

constexpr int all_threads = -1;

// When an access was made; by all threads of the block: what is asked must hold for each. Blocks count from 1.
struct Access {
  std::uint32_t block, epoch, tick, fences;
  int thread;
};

std::uint32_t block_id();
// __threadfence calls of a thread so far.
std::uint32_t fences_of(const Thread& thread);
// The thread that runs calls __threadfence.
void fence_thread();
// The thread that runs updates a cell of global memory atomically.
void acquire_release(std::uint64_t address);
// An atomic of `me`, or one that it knows of, came after an atomic that published this access.
bool published(const Access& access, const Thread& me);

}  // namespace host
