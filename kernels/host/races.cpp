// Races and uninitialised shared memory: is this access ordered after the earlier ones to the same cell?
//
// Two accesses of one block are ordered by a block barrier between them, two of one warp by a __syncwarp that both
// lanes join. Blocks are ordered by nothing but fences and atomics, see published.cpp.
// Shuffles order no memory (CUDA C++ Programming Guide, "Warp Shuffle Functions").
#include <algorithm>

#include "memory.h"
#include "published.h"
#include "reports.h"

namespace host {
namespace {

// Of this block and epoch: is what `lane` of my warp did at `tick` visible to me?
bool knows_lane(const Thread& me, int lane, std::uint32_t tick) {
  return warp_around(me).known[static_cast<std::size_t>(lane_of(me))][static_cast<std::size_t>(lane)] > tick;
}

bool after_write(const Cell& cell, const Thread& me) {
  const int other = cell.write_thread;
  if (cell.write_block == block_id()) {
    if (other == me.number || cell.write_epoch != machine.epoch) return true;
    if (other / warp_lanes == warp_of(me) && knows_lane(me, other % warp_lanes, cell.write_tick)) return true;
  }
  return published({cell.write_block, cell.write_epoch, cell.write_tick, cell.write_fences, other}, me);
}

// All the lanes that read last are published to me; several warps can be only by a barrier of their block.
bool reads_published(const Cell& cell, const Thread& me) {
  const Access last{cell.read_block, cell.read_epoch, cell.read_tick, cell.read_fences, cell.read_thread};
  if (cell.read_warps & (cell.read_warps - 1)) {
    Access any = last;
    any.thread = all_threads;
    return published(any, me);
  }
  for (unsigned rest = cell.read_lanes; rest; rest &= rest - 1) {
    Access one = last;
    one.thread = last.thread / warp_lanes * warp_lanes + __builtin_ctz(rest);
    if (!published(one, me)) return false;
  }
  return true;
}

bool after_reads(const Cell& cell, const Thread& me) {
  if (cell.read_blocks) return false;
  if (cell.read_block != block_id()) return reads_published(cell, me);
  if (cell.read_epoch != machine.epoch) return true;
  if (cell.read_warps != 1u << warp_of(me)) return false;
  for (unsigned rest = cell.read_lanes; rest; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    if (lane != lane_of(me) && !knows_lane(me, lane, cell.read_tick)) return false;
  }
  return true;
}

void note_read(Cell& cell, const Thread& me, bool shared, std::uint32_t pc) {
  const std::uint32_t tick = warp_around(me).tick, warp = 1u << warp_of(me), lane = 1u << lane_of(me);
  const bool fresh = cell.read_block != block_id() || cell.read_epoch != machine.epoch;
  if (!shared && cell.read_block != 0 && cell.read_block != block_id()) cell.read_blocks = true;
  if (fresh) cell.read_warps = cell.read_lanes = 0;
  if (cell.read_warps & ~warp || !(cell.read_warps & warp)) cell.read_lanes = 0;
  unsigned unordered = 0;  // earlier readers that a writer after me must still be ordered with
  for (unsigned rest = cell.read_lanes; rest; rest &= rest - 1)
    if (!knows_lane(me, __builtin_ctz(rest), cell.read_tick)) unordered |= rest & -rest;
  cell.read_lanes = unordered | lane;
  cell.read_warps |= warp;
  cell.read_block = block_id();
  cell.read_epoch = machine.epoch;
  cell.read_tick = tick;
  cell.read_fences = fresh ? fences_of(me) : std::max(cell.read_fences, fences_of(me));
  cell.read_thread = static_cast<std::uint16_t>(me.number);
  cell.read_pc = pc;
}

void note_write(Cell& cell, const Thread& me, bool atomic, std::uint32_t pc) {
  cell.write_block = block_id();
  cell.write_epoch = machine.epoch;
  cell.write_tick = warp_around(me).tick;
  cell.write_fences = fences_of(me);
  cell.write_thread = static_cast<std::uint16_t>(me.number);
  cell.write_atomic = atomic;
  cell.write_pc = pc;
}

void race(const char* verbs, const Region& region, const Event& event, int other, std::uint32_t block,
          std::uint64_t other_pc) {
  report({"race", event.pc, other_pc,
          format("%s race on byte %llu of %s: ", verbs, static_cast<unsigned long long>(event.address - region.low),
                 region.name.c_str()) +
              current_name() + " at {pc}, " + thread_name(other, block - 1) +
              " at {other}, and nothing orders the two"});
}

void check_cell(Region& region, Cell& cell, const Event& event) {
  const Thread& me = *machine.current;
  // shared memory is new in each block
  const bool written = cell.write_block && (!region.shared || cell.write_block == block_id());
  const bool read = cell.read_block && (!region.shared || cell.read_block == block_id());
  if (region.shared && !written && (!event.write || event.atomic))
    report({"uninitialised", event.pc, 0,
            current_name() + format(" reads byte %llu of %s, which no thread of the block has written, at {pc}",
                                    static_cast<unsigned long long>(event.address - region.low), region.name.c_str())});
  if (written && !(cell.write_atomic && event.atomic) && !after_write(cell, me))
    race(event.write ? "write-write" : "read-write", region, event, cell.write_thread, cell.write_block, cell.write_pc);
  const auto pc = static_cast<std::uint32_t>(event.pc);
  if (event.write) {
    if (read && !after_reads(cell, me))
      race("write-read", region, event, cell.read_thread, cell.read_block, cell.read_pc);
    note_write(cell, me, event.atomic, pc);
  } else {
    note_read(cell, me, region.shared, pc);
  }
}

}  // namespace

void check_order(Region& region, const Event& event) {
  const std::uint64_t offset = event.address - region.low;
  std::uint64_t granule = region.shadow.granule();
  while (granule > 1 && (offset % granule || event.bytes % granule)) granule /= 2;
  if (granule != region.shadow.granule()) region.shadow.refine(granule);
  for (std::uint64_t cell = offset / granule; cell <= (offset + event.bytes - 1) / granule; ++cell)
    check_cell(region, region.shadow.at(cell), event);
}

}  // namespace host
