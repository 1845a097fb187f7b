// The state of one launch: threads, warps, the block that runs. Each .cpp beside it does one job on it.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "abi.h"
#include "fiber.h"

namespace host {

constexpr int warp_lanes = 32;
constexpr int max_threads = 1024;

// The first three say in which order threads that can run do so; lockstep runs each warp instruction by instruction.
enum class Order { forward, reverse, random, lockstep };
enum class State : std::uint8_t { ready, at_barrier, at_warp, done };

// What a thread in lockstep is about to do.
struct Event {
  std::uint64_t pc = 0;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;  // 0: a new basic block, no access
  bool write = false, atomic = false;
  int region = -1;
};

struct Thread {
  Fiber fiber;
  uint3 index{};
  int number = 0;  // x + y * size.x + ...
  State state = State::ready;
  int kind = 0, parameter = 0, width = 0, site = 0;  // of the barrier or warp operation at which it waits
  unsigned mask = 0;
  std::uint64_t value = 0, result = 0, pc = 0;
  Event next;
};

struct Warp {
  unsigned live = 0;     // lanes that have not exited
  unsigned waiting = 0;  // lanes at a warp operation
  // Memory order inside a warp: ticks count its __syncwarp; known[i][j] is the tick before which all that lane j did is
  // visible to lane i.
  std::uint32_t tick = 0;
  std::array<std::array<std::uint32_t, warp_lanes>, warp_lanes> known{};
};

struct Machine {
  // the launch
  void (*call)(void**) = nullptr;
  void** arguments = nullptr;
  uint3 grid{1, 1, 1}, size{1, 1, 1};
  Order order = Order::forward;
  std::uint64_t random = 1;
  std::uint64_t first_block = 0;  // those before it are left out
  std::size_t shared_bytes = 0;
  // the block that runs
  uint3 block{};
  std::uint64_t block_number = 0;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<int> ready;
  std::size_t head = 0;
  int live = 0, waiting = 0;
  std::uint32_t epoch = 0;  // barriers that the block has passed
  Thread* current = nullptr;
  std::uint64_t last_pc = 0;  // of the last access or basic block, in checked mode
  char* dynamic_shared = nullptr;

  std::uint64_t draw() {  // xorshift64
    random ^= random << 13;
    random ^= random >> 7;
    return random ^= random << 17;
  }
};

extern Machine machine;

inline int lane_of(const Thread& thread) { return thread.number % warp_lanes; }
inline int warp_of(const Thread& thread) { return thread.number / warp_lanes; }
inline Warp& warp_around(const Thread& thread) { return machine.warps[warp_of(thread)]; }

// Where a runtime function was called from, given its __builtin_return_address(0): an address inside the call.
inline std::uint64_t call_site(void* return_address) {
  return reinterpret_cast<std::uint64_t>(__builtin_extract_return_addr(return_address)) - 1;
}

// scheduler.cpp
void run_grid();
void wake(Thread& thread);
void suspend();
// waiting.cpp
void release_barrier();
bool resolve_warp(int warp, unsigned mask, int kind);
void leave(Thread& thread);
// lockstep.cpp
void run_lockstep();

}  // namespace host
