// What the runner found: collected once for each place, written when the launch ends or cannot go on.
#pragma once
#include <cstdint>
#include <string>

namespace host {

struct Finding {
  const char* kind;
  std::uint64_t pc = 0, other_pc = 0;  // the addresses that the text calls {pc} and {other}
  std::string text;
};

void report(Finding finding);
// The same, and the launch ends here.
[[noreturn]] void stop(Finding finding);
// Writes everything to the result file and ends the process.
[[noreturn]] void finish(bool completed);
extern int result_file;

std::string thread_name(int number, std::uint64_t block);
std::string current_name();
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

}  // namespace host
