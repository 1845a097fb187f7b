#include "fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if !defined(__x86_64__)
#error "the CPU runner switches fibers with x86-64 code: this processor is not supported"
#endif

#if defined(__SANITIZE_ADDRESS__)
extern "C" {
void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, std::size_t size);
void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, std::size_t* size);
void __asan_unpoison_memory_region(const volatile void* address, std::size_t size);
}
#endif

// Saves the registers that a call must preserve on the old stack, and takes them from the new one.
extern "C" void host_switch(void** from, void* to);
asm(R"(.text
.globl host_switch
.hidden host_switch
.type host_switch,@function
host_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

namespace host {
namespace {

constexpr int saved_registers = 6;
void* main_stack_pointer = nullptr;
const void* main_stack = nullptr;
std::size_t main_stack_bytes = 0;

void change(void** from, void* to, [[maybe_unused]] const void* bottom, [[maybe_unused]] std::size_t size) {
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, bottom, size);
  host_switch(from, to);
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#else
  host_switch(from, to);
#endif
}

}  // namespace

char* reserve_stacks(std::size_t fibers) {
  void* memory = mmap(nullptr, fibers * stack_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("stacks of the threads of a block");
    std::exit(3);
  }
  return static_cast<char*>(memory);
}

void prepare(Fiber& fiber, void (*entry)()) {
#if defined(__SANITIZE_ADDRESS__)
  // A thread that was here before ended inside yield(), whose frames near the top nobody has tidied up.
  constexpr std::size_t left_over_bytes = 8 << 10;
  __asan_unpoison_memory_region(fiber.stack + stack_bytes - left_over_bytes, left_over_bytes);
#endif
  auto* top = reinterpret_cast<std::uint64_t*>(fiber.stack + stack_bytes);
  *--top = 0;  // keeps the stack aligned as after a call
  *--top = reinterpret_cast<std::uint64_t>(entry);
  for (int i = 0; i < saved_registers; ++i) *--top = 0;
  fiber.stack_pointer = top;
}

void enter(Fiber& fiber) { change(&main_stack_pointer, fiber.stack_pointer, fiber.stack, stack_bytes); }

void yield(Fiber& fiber) { change(&fiber.stack_pointer, main_stack_pointer, main_stack, main_stack_bytes); }

void arrived() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &main_stack, &main_stack_bytes);
#endif
}

}  // namespace host
