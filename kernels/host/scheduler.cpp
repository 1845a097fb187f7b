// Runs the blocks of a grid one after another, and the threads of a block in the order that was asked for.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "machine.h"
#include "memory.h"
#include "reports.h"

namespace host {

Machine machine;

namespace {

constexpr unsigned char poison = 0xFF;  // as float, double or half: NaN

[[noreturn]] void thread_main() {
  arrived();
  machine.call(machine.arguments);
  leave(*machine.current);
  suspend();
  __builtin_unreachable();
}

int take_ready() {
  Machine& m = machine;
  if (m.head >= m.ready.size()) return -1;
  if (m.order == Order::reverse) {
    const int number = m.ready.back();
    m.ready.pop_back();
    return number;
  }
  if (m.order == Order::random) std::swap(m.ready[m.head], m.ready[m.head + m.draw() % (m.ready.size() - m.head)]);
  return m.ready[m.head++];
}

void run_freely() {
  Machine& m = machine;
  for (int number = take_ready(); number >= 0; number = take_ready()) {
    m.current = &m.threads[static_cast<std::size_t>(number)];
    enter(m.current->fiber);
    m.current = nullptr;
    if (m.head >= m.ready.size()) {
      m.ready.clear();
      m.head = 0;
    }
  }
}

void start_block(std::uint64_t number) {
  Machine& m = machine;
  const uint3 g = m.grid, s = m.size;
  const std::uint64_t plane = static_cast<std::uint64_t>(g.x) * g.y;
  m.block_number = number;
  m.block = {static_cast<unsigned>(number % g.x), static_cast<unsigned>(number / g.x % g.y),
             static_cast<unsigned>(number / plane)};
  m.live = static_cast<int>(m.threads.size());
  m.waiting = 0;
  m.epoch = 0;
  m.ready.clear();
  m.head = 0;
  std::memset(m.dynamic_shared, poison, m.shared_bytes);
  poison_shared(poison);
  for (std::size_t w = 0; w < m.warps.size(); ++w) {
    const int lanes = std::min(m.live - static_cast<int>(w) * warp_lanes, warp_lanes);
    m.warps[w] = Warp{};
    m.warps[w].live = lanes == warp_lanes ? ~0u : (1u << lanes) - 1;
  }
  for (Thread& thread : m.threads) {
    const auto n = static_cast<unsigned>(thread.number);
    thread.index = {n % s.x, n / s.x % s.y, n / (s.x * s.y)};
    thread.state = State::ready;
    thread.next = Event{};
    prepare(thread.fiber, &thread_main);
    m.ready.push_back(thread.number);
  }
}

void check_all_left() {
  Machine& m = machine;
  if (m.live == 0) return;
  std::string text = format("deadlock in block %llu: ", static_cast<unsigned long long>(m.block_number));
  int at_barrier = 0, at_warp = 0;
  const Thread* first = nullptr;
  for (const Thread& thread : m.threads) {
    at_barrier += thread.state == State::at_barrier;
    at_warp += thread.state == State::at_warp;
    if (!first && thread.state != State::done) first = &thread;
  }
  text += format("%d threads wait at a block barrier, %d at a warp operation, %d have exited; ", at_barrier, at_warp,
                 static_cast<int>(m.threads.size()) - m.live);
  stop({"deadlock", first->pc, 0, text + thread_name(first->number, m.block_number) + " waits at {pc}"});
}

}  // namespace

void wake(Thread& thread) {
  thread.state = State::ready;
  if (machine.order != Order::lockstep && &thread != machine.current) machine.ready.push_back(thread.number);
}

void suspend() { yield(machine.current->fiber); }

void run_grid() {
  Machine& m = machine;
  const std::size_t threads = static_cast<std::size_t>(m.size.x) * m.size.y * m.size.z;
  m.threads.assign(threads, Thread{});
  m.warps.assign((threads + warp_lanes - 1) / warp_lanes, Warp{});
  char* stacks = reserve_stacks(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    m.threads[i].number = static_cast<int>(i);
    m.threads[i].fiber.stack = stacks + i * stack_bytes;
  }
  std::vector<std::uint64_t> blocks(static_cast<std::uint64_t>(m.grid.x) * m.grid.y * m.grid.z - m.first_block);
  std::iota(blocks.begin(), blocks.end(), m.first_block);
  if (m.order == Order::reverse) std::reverse(blocks.begin(), blocks.end());
  if (m.order == Order::random)
    for (std::size_t i = blocks.size(); i > 1; --i) std::swap(blocks[i - 1], blocks[m.draw() % i]);
  for (const std::uint64_t block : blocks) {
    start_block(block);
    m.order == Order::lockstep ? run_lockstep() : run_freely();
    check_all_left();
  }
}

}  // namespace host

extern "C" {
uint3 host_thread_index() { return host::machine.current->index; }
uint3 host_block_index() { return host::machine.block; }
uint3 host_block_size() { return host::machine.size; }
uint3 host_grid_size() { return host::machine.grid; }
void* host_dynamic_shared() { return host::machine.dynamic_shared; }
}
