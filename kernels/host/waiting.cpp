// Where threads wait for each other: block barriers and warp operations.
#include <algorithm>

#include "machine.h"
#include "memory.h"
#include "reports.h"

namespace host {
namespace {

bool takes_part(const Thread& thread, unsigned mask, int kind) {
  return thread.state == State::at_warp && thread.kind == kind && thread.mask == mask;
}

// The lane that `thread` reads from; its own where the distance leads out of its group of `width` lanes.
int source_lane(const Thread& thread) {
  const int lane = lane_of(thread), width = thread.width, group = lane & ~(width - 1), by = thread.parameter;
  switch (thread.kind) {
    case host_warp_index: return group + (by & (width - 1));
    case host_warp_up: return lane - by < group ? lane : lane - by;
    case host_warp_down: return lane + by >= group + width ? lane : lane + by;
    default: return (lane ^ by) >= group + width ? lane : lane ^ by;
  }
}

void shuffle(Thread* lanes, Thread& thread, unsigned present) {
  constexpr std::uint64_t nonsense = 0x7fc0dead7fc0deadull;  // NaN as float and as double
  const int from = source_lane(thread);
  if (present >> from & 1) {
    thread.result = lanes[from].value;
    return;
  }
  thread.result = nonsense;
  report({"shuffle", thread.pc, 0,
          thread_name(thread.number, machine.block_number) +
              format(" reads lane %d, which does not take part, in the shuffle with mask 0x%08x at {pc}", from,
                     thread.mask)});
}

std::uint64_t vote(int kind, unsigned ballot, unsigned present) {
  if (kind == host_warp_ballot) return ballot;
  return kind == host_warp_any ? ballot != 0 : ballot == present;
}

unsigned equal_lanes(const Thread* lanes, unsigned present, std::uint64_t value) {
  unsigned equal = 0;
  for (unsigned rest = present; rest; rest &= rest - 1)
    if (lanes[__builtin_ctz(rest)].value == value) equal |= rest & -rest;
  return equal;
}

// All that one of these lanes did before is visible to each of them afterwards.
void order_memory(Warp& warp, unsigned present) {
  ++warp.tick;
  std::array<std::uint32_t, warp_lanes> joint{};
  for (unsigned rest = present; rest; rest &= rest - 1) {
    const auto& known = warp.known[static_cast<std::size_t>(__builtin_ctz(rest))];
    for (int i = 0; i < warp_lanes; ++i) joint[i] = std::max(joint[i], known[i]);
  }
  for (std::size_t i = 0; i < warp_lanes; ++i)
    if (present >> i & 1) joint[i] = warp.tick;
  for (std::size_t i = 0; i < warp_lanes; ++i)
    if (present >> i & 1) warp.known[i] = joint;
}

void check_divergence() {
  const Machine& m = machine;
  const Thread* first = nullptr;
  for (const Thread& thread : m.threads) {
    if (thread.state != State::at_barrier) continue;
    if (!first) first = &thread;
    if (thread.site == first->site) continue;
    report({"divergent_barrier", first->pc, thread.pc,
            thread_name(first->number, m.block_number) + " waits at the barrier at {pc}, " +
                thread_name(thread.number, m.block_number) + " at another one, at {other}"});
    return;
  }
  if (m.live < static_cast<int>(m.threads.size()))
    report({"divergent_barrier", first->pc, 0,
            format("%d of %d threads of block %llu have exited when the others meet at the barrier at {pc}",
                   static_cast<int>(m.threads.size()) - m.live, static_cast<int>(m.threads.size()),
                   static_cast<unsigned long long>(m.block_number))});
}

}  // namespace

void release_barrier() {
  Machine& m = machine;
  if (m.live == 0 || m.waiting < m.live) return;
  check_divergence();
  int count = 0;
  for (const Thread& thread : m.threads) count += thread.state == State::at_barrier && thread.parameter != 0;
  const int live = m.live;
  m.waiting = 0;
  ++m.epoch;
  for (Thread& thread : m.threads) {
    if (thread.state != State::at_barrier) continue;
    switch (thread.kind) {
      case host_barrier_and: thread.result = count == live; break;
      case host_barrier_or: thread.result = count > 0; break;
      default: thread.result = static_cast<std::uint64_t>(count);
    }
    wake(thread);
  }
}

bool resolve_warp(int number, unsigned mask, int kind) {
  Machine& m = machine;
  Warp& warp = m.warps[static_cast<std::size_t>(number)];
  Thread* lanes = &m.threads[static_cast<std::size_t>(number) * warp_lanes];
  const unsigned present = mask & warp.live;
  if (present == 0 || (warp.waiting & present) != present) return false;
  unsigned ballot = 0;
  for (unsigned rest = present; rest; rest &= rest - 1) {
    const Thread& thread = lanes[__builtin_ctz(rest)];
    if (!takes_part(thread, mask, kind)) return false;
    if (thread.value) ballot |= rest & -rest;
  }
  warp.waiting &= ~present;
  if (kind == host_warp_sync) order_memory(warp, present);
  for (unsigned rest = present; rest; rest &= rest - 1) {
    Thread& thread = lanes[__builtin_ctz(rest)];
    if (kind >= host_warp_index && kind <= host_warp_xor) shuffle(lanes, thread, present);
    else if (kind == host_warp_match) thread.result = equal_lanes(lanes, present, thread.value);
    else thread.result = vote(kind, ballot, present);
  }
  for (unsigned rest = present; rest; rest &= rest - 1) wake(lanes[__builtin_ctz(rest)]);
  return true;
}

// A thread returns from the kernel: what waited for it alone may go on.
void leave(Thread& thread) {
  Machine& m = machine;
  thread.state = State::done;
  --m.live;
  const int number = warp_of(thread);
  warp_around(thread).live &= ~(1u << lane_of(thread));
  release_barrier();
  const int first = number * warp_lanes, last = std::min(first + warp_lanes, static_cast<int>(m.threads.size()));
  for (int i = first; i < last; ++i) {
    const Thread& other = m.threads[static_cast<std::size_t>(i)];
    if (other.state == State::at_warp) resolve_warp(number, other.mask, other.kind);
  }
}

}  // namespace host

using namespace host;

extern "C" int host_barrier(int kind, int predicate, int site) {
  Thread& me = *machine.current;
  me.pc = call_site(__builtin_return_address(0));
  me.next = Event{me.pc};  // where lockstep finds it when it wakes
  me.state = State::at_barrier;
  me.kind = kind;
  me.parameter = predicate;
  me.site = site;
  ++machine.waiting;
  release_barrier();
  if (me.state == State::at_barrier) suspend();
  return static_cast<int>(me.result);
}

extern "C" unsigned long long host_warp(int kind, unsigned mask, unsigned long long value, int parameter, int width) {
  Thread& me = *machine.current;
  me.pc = call_site(__builtin_return_address(0));
  if (!(mask >> lane_of(me) & 1))
    stop({"mask", me.pc, 0,
          current_name() + format(" calls a warp operation with mask 0x%08x, in which its lane %d is missing, at {pc}",
                                  mask, lane_of(me))});
  if (width < 1 || width > warp_lanes || (width & (width - 1)))
    stop({"mask", me.pc, 0, format("the width of a shuffle must be a power of two up to 32, got %d, at {pc}", width)});
  me.next = Event{me.pc};
  me.state = State::at_warp;
  warp_around(me).waiting |= 1u << lane_of(me);
  me.kind = kind;
  me.mask = mask;
  me.value = value;
  me.parameter = parameter;
  me.width = width;
  if (!resolve_warp(warp_of(me), mask, kind)) suspend();
  return me.result;
}

extern "C" void host_fence() { fence(); }
