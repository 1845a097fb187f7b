// What an instrumented kernel calls: g++ puts these in for -fsanitize=thread and -fsanitize-coverage=trace-pc; the
// functions are ours, and no sanitizer library is linked.
#include <cstring>

#include "machine.h"
#include "memory.h"

namespace {

std::uint64_t number(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

}  // namespace

#define HERE host::call_site(__builtin_return_address(0))

extern "C" {

#define HOST_HOOKS(N)                                                                             \
  void __tsan_read##N(void* p) { host::check_access(number(p), N, false, false, HERE); }          \
  void __tsan_write##N(void* p) { host::check_access(number(p), N, true, false, HERE); }          \
  void __tsan_unaligned_read##N(void* p) { host::check_access(number(p), N, false, false, HERE); } \
  void __tsan_unaligned_write##N(void* p) { host::check_access(number(p), N, true, false, HERE); } \
  void __tsan_volatile_read##N(void* p) { host::check_access(number(p), N, false, false, HERE); }  \
  void __tsan_volatile_write##N(void* p) { host::check_access(number(p), N, true, false, HERE); }
HOST_HOOKS(1)
HOST_HOOKS(2)
HOST_HOOKS(4)
HOST_HOOKS(8)
HOST_HOOKS(16)

void __tsan_read_range(void* p, std::size_t n) {
  host::check_access(number(p), static_cast<std::uint32_t>(n), false, false, HERE);
}
void __tsan_write_range(void* p, std::size_t n) {
  host::check_access(number(p), static_cast<std::uint32_t>(n), true, false, HERE);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

// A basic block begins: in lockstep the lane stops here, so that loops and branches reconverge.
void __sanitizer_cov_trace_pc() {
  host::Machine& m = host::machine;
  if (m.order != host::Order::lockstep || !m.current) return;
  m.current->next = {HERE, 0, 0, false, false, -1};
  host::suspend();
}

void host_copy(void* to, const void* from, unsigned bytes) {
  const std::uint64_t pc = HERE;
  host::check_access(number(from), bytes, false, false, pc);
  host::check_access(number(to), bytes, true, false, pc);
  std::memcpy(to, from, bytes);
}
}
