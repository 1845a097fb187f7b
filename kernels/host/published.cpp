// Fences and atomics. An atomic publishes, at its address, what fences have covered: what its thread did before a fence
// of its own; what its block did before the last barrier ahead of that fence; what a neighbour did before a fence of the
// neighbour's and then a barrier with it; the same within a warp by __syncwarp. Whoever updates the address later knows
// it, and so does its block after the next barrier, and its warp after a __syncwarp. So the "last block" pattern needs
// the barrier between what the threads write and the ticket: fences alone publish nothing of the neighbours'.
#include "published.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>

namespace host {
namespace {

struct Fence {
  std::uint32_t count = 0, epoch = 0;
  std::array<std::uint32_t, warp_lanes> known{};  // of the lanes of its warp when it fenced, see Warp
};
using Lanes = std::array<std::uint32_t, warp_lanes>;
struct Release {
  std::uint32_t block, epoch;
  int thread;
  Fence fence;                                               // the last of the thread
  std::shared_ptr<const std::vector<std::uint32_t>> counts;  // fences of each thread of the block at the last barrier
  Lanes known, lane_counts;                                  // the same of its warp, now
};
struct Log;
// The first releases of a log: those that came before an atomic.
struct View {
  const Log* log;
  std::size_t length;
};
// Releases at one address, in order.
struct Log {
  std::vector<Release> releases;
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> of_block;
  std::map<std::pair<std::uint32_t, int>, std::array<std::uint32_t, 3>> last;  // fences, epoch, tick of a thread's last
  std::vector<std::pair<std::size_t, View>> behind;  // what the thread of a release knew from other addresses
  std::map<const Log*, std::size_t> longest_behind;
};
std::unordered_map<std::uint64_t, Log> logs;

// What the block that runs has acquired; that of earlier epochs is known to all its threads.
std::uint32_t running = 0;
std::vector<Fence> fences;
std::map<const Log*, std::size_t> joint;
std::map<std::tuple<int, std::uint32_t, const Log*>, std::size_t> alone;  // by thread and tick
std::uint32_t seen_epoch = 0;
bool any_fence = false;
std::shared_ptr<const std::vector<std::uint32_t>> at_barrier;

void enter_block() {
  if (running != block_id()) {
    running = block_id();
    fences.assign(machine.threads.size(), Fence{});
    joint.clear();
    alone.clear();
    any_fence = false;
    seen_epoch = 0;
    at_barrier = std::make_shared<std::vector<std::uint32_t>>(machine.threads.size(), 0);
  }
  if (seen_epoch == machine.epoch) return;
  for (const auto& [key, length] : alone) {
    std::size_t& known = joint[std::get<2>(key)];
    known = std::max(known, length);
  }
  alone.clear();
  seen_epoch = machine.epoch;
  if (!any_fence) return;
  std::vector<std::uint32_t> counts;  // nobody has fenced since the barrier: that comes through here first
  for (const Fence& fence : fences) counts.push_back(fence.count);
  at_barrier = std::make_shared<const std::vector<std::uint32_t>>(std::move(counts));
}

std::vector<View> views_of(const Thread& me) {
  std::vector<View> views;
  for (const auto& [log, length] : joint) views.push_back({log, length});
  for (const auto& [key, length] : alone) {
    const auto& [thread, tick, log] = key;
    const bool mine = thread == me.number;
    if (mine || (thread / warp_lanes == warp_of(me) &&
                 warp_around(me).known[static_cast<std::size_t>(lane_of(me))]
                                      [static_cast<std::size_t>(thread % warp_lanes)] > tick))
      views.push_back({log, length});
  }
  return views;
}

bool covers(const Release& release, const Access& access) {
  if (access.epoch < release.fence.epoch) return true;
  const std::vector<std::uint32_t>& counts = *release.counts;
  if (access.thread == all_threads)
    return access.epoch < release.epoch && *std::min_element(counts.begin(), counts.end()) > access.fences;
  if (access.epoch < release.epoch && counts[static_cast<std::size_t>(access.thread)] > access.fences) return true;
  if (access.thread == release.thread) return access.fences < release.fence.count;
  if (access.thread / warp_lanes != release.thread / warp_lanes) return false;
  const auto lane = static_cast<std::size_t>(access.thread % warp_lanes);
  return release.fence.known[lane] > access.tick ||
         (release.known[lane] > access.tick && release.lane_counts[lane] > access.fences);
}

bool holds(const View& view, const Access& access, std::map<const Log*, std::size_t>& searched) {
  std::size_t& done = searched[view.log];
  if (done >= view.length) return false;
  done = view.length;
  const auto found = view.log->of_block.find(access.block);
  if (found != view.log->of_block.end())
    for (const std::size_t at : found->second)
      if (at < view.length && covers(view.log->releases[at], access)) return true;
  for (const auto& [at, other] : view.log->behind)
    if (at < view.length && holds(other, access, searched)) return true;
  return false;
}

void release(Log& log, const Thread& me) {
  const Fence& fence = fences[static_cast<std::size_t>(me.number)];
  const Warp& warp = warp_around(me);
  const std::array<std::uint32_t, 3> now{fence.count, machine.epoch, warp.tick};
  const auto [last, first] = log.last.try_emplace({block_id(), me.number}, now);
  if (!first && last->second == now) return;  // the same was published before
  last->second = now;
  Lanes lane_counts{};
  const auto lowest = static_cast<std::size_t>(warp_of(me)) * warp_lanes;
  for (std::size_t i = 0; i < warp_lanes && lowest + i < fences.size(); ++i) lane_counts[i] = fences[lowest + i].count;
  const std::size_t at = log.releases.size();
  for (const View& view : views_of(me)) {
    if (view.log == &log) continue;
    std::size_t& longest = log.longest_behind[view.log];
    if (longest >= view.length) continue;
    longest = view.length;
    log.behind.push_back({at, view});
  }
  log.of_block[block_id()].push_back(at);
  log.releases.push_back({block_id(), machine.epoch, me.number, fence, at_barrier,
                          warp.known[static_cast<std::size_t>(lane_of(me))], lane_counts});
}

}  // namespace

std::uint32_t block_id() { return static_cast<std::uint32_t>(machine.block_number) + 1; }

std::uint32_t fences_of(const Thread& thread) {
  return running == block_id() ? fences[static_cast<std::size_t>(thread.number)].count : 0;
}

void fence_thread() {
  enter_block();
  const Thread& me = *machine.current;
  Fence& fence = fences[static_cast<std::size_t>(me.number)];
  any_fence = true;
  ++fence.count;
  fence.epoch = machine.epoch;
  fence.known = warp_around(me).known[static_cast<std::size_t>(lane_of(me))];
}

void acquire_release(std::uint64_t address) {
  enter_block();
  const Thread& me = *machine.current;
  const auto found = logs.find(address);
  if (found == logs.end() && !any_fence) return;
  Log& log = found == logs.end() ? logs[address] : found->second;
  if (!log.releases.empty()) alone[{me.number, warp_around(me).tick, &log}] = log.releases.size();
  if (any_fence) release(log, me);
}

bool published(const Access& access, const Thread& me) {
  enter_block();
  std::map<const Log*, std::size_t> searched;
  for (const View& view : views_of(me))
    if (holds(view, access, searched)) return true;
  return false;
}

}  // namespace host
