// What an instrumented kernel calls: g++ puts these in for -fsanitize=thread and -fsanitize-coverage=trace-pc; the
// functions are ours, and no sanitizer library is linked.
#include "machine.h"
#include "memory.h"

namespace {

std::uint64_t number(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

// A struct that is copied whole, and is not one vector: the widest accesses that its size and place allow.
void check_pieces(const void* address, std::uint64_t bytes, std::uint64_t most, bool write, std::uint64_t pc) {
  std::uint64_t piece = most;
  while (number(address) % piece || bytes % piece) piece /= 2;
  for (std::uint64_t at = 0; at < bytes; at += piece)
    host::check_access(number(address) + at, static_cast<std::uint32_t>(piece), write, false, pc);
}

}  // namespace

#define HERE host::call_site(__builtin_return_address(0))

extern "C" {

// "Unaligned" is said of a type, not of an address: a struct of four floats without alignas is read float by float.
#define HOST_HOOKS(N)                                                                            \
  void __tsan_read##N(void* p) { host::check_access(number(p), N, false, false, HERE); }         \
  void __tsan_write##N(void* p) { host::check_access(number(p), N, true, false, HERE); }         \
  void __tsan_volatile_read##N(void* p) { host::check_access(number(p), N, false, false, HERE); } \
  void __tsan_volatile_write##N(void* p) { host::check_access(number(p), N, true, false, HERE); } \
  void __tsan_unaligned_read##N(void* p) { check_pieces(p, N, 4, false, HERE); }                 \
  void __tsan_unaligned_write##N(void* p) { check_pieces(p, N, 4, true, HERE); }
HOST_HOOKS(1)
HOST_HOOKS(2)
HOST_HOOKS(4)
HOST_HOOKS(8)
HOST_HOOKS(16)

void __tsan_read_range(void* p, std::size_t n) { check_pieces(p, n, 16, false, HERE); }
void __tsan_write_range(void* p, std::size_t n) { check_pieces(p, n, 16, true, HERE); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

// A basic block begins: in lockstep the lane stops here, so that loops and branches reconverge.
void __sanitizer_cov_trace_pc() {
  host::Machine& m = host::machine;
  m.last_pc = HERE;
  if (m.order != host::Order::lockstep || !m.current) return;
  m.current->next = host::Event{m.last_pc};
  host::suspend();
}
}
