// Threads of a block as fibers: each has its own stack, and one runs at a time. x86-64 Linux only.
#pragma once
#include <cstddef>

namespace host {

constexpr std::size_t stack_bytes = 256 << 10;

struct Fiber {
  void* stack_pointer = nullptr;
  char* stack = nullptr;
};

// Memory for the stacks of a block; pages cost nothing until they are used.
char* reserve_stacks(std::size_t fibers);
// Lets the fiber start at `entry`, which must never return.
void prepare(Fiber& fiber, void (*entry)());
// Runs the fiber until it calls yield().
void enter(Fiber& fiber);
// Back to whoever entered the fiber.
void yield(Fiber& fiber);
// First thing that an entry function does.
void arrived();

}  // namespace host
