// Lockstep: the lanes of a warp run as the hardware runs them, so that the lanes of one request are known.
//
// Each lane stops before each access and at each basic block. Of the lanes that can go on, those at the lowest address
// go on together: lanes that left a loop wait, at a higher address, for those that are still in it. That is how
// branches reconverge when code lies in memory in the order of the source (the build keeps it so).
// Source: Collange, "Stack-less SIMT reconvergence at low cost" (2011), min-PC scheduling.
#include <algorithm>
#include <array>

#include "counts.h"
#include "machine.h"
#include "memory.h"

namespace host {
namespace {

bool same_step(const Event& a, const Event& b) {
  return a.pc == b.pc && a.bytes == b.bytes && a.write == b.write && is_shared(a.region) == is_shared(b.region);
}

// Lets the lanes at the lowest address go on to their next event. False when none can.
bool step(int number) {
  Machine& m = machine;
  const auto first = static_cast<std::size_t>(number) * warp_lanes;
  const std::size_t lanes = std::min<std::size_t>(warp_lanes, m.threads.size() - first);
  const Thread* lowest = nullptr;
  for (std::size_t i = 0; i < lanes; ++i) {
    const Thread& thread = m.threads[first + i];
    if (thread.state == State::ready && (!lowest || thread.next.pc < lowest->next.pc)) lowest = &thread;
  }
  if (!lowest) return false;
  std::array<Event, warp_lanes> events{};
  unsigned together = 0;
  for (std::size_t i = 0; i < lanes; ++i) {
    const Thread& thread = m.threads[first + i];
    if (thread.state != State::ready || !same_step(thread.next, lowest->next)) continue;
    events[i] = thread.next;
    together |= 1u << i;
  }
  if (lowest->next.bytes) count_request(events.data(), together, is_shared(lowest->next.region));
  for (unsigned rest = together; rest; rest &= rest - 1) {
    m.current = &m.threads[first + static_cast<std::size_t>(__builtin_ctz(rest))];
    enter(m.current->fiber);
    m.current = nullptr;
  }
  return true;
}

}  // namespace

void run_lockstep() {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t warp = 0; warp < machine.warps.size(); ++warp)
      while (step(static_cast<int>(warp))) moved = true;
  }
}

}  // namespace host
