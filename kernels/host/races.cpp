// Races and uninitialised shared memory: is this access ordered after the earlier ones to the same cell?
//
// Two accesses of one block are ordered by a block barrier between them, two of one warp by a __syncwarp that both
// lanes join. Blocks are ordered by nothing but a fence and an atomic: a block that fences what it wrote and then
// updates a cell atomically is ordered before each block that updates that cell later (the "last block" pattern).
// Shuffles order no memory (CUDA C++ Programming Guide, "Warp Shuffle Functions").
#include <set>
#include <unordered_map>

#include "memory.h"
#include "reports.h"

namespace host {
namespace {

std::unordered_map<std::uint64_t, std::set<std::uint32_t>> released;  // by address of the atomic
std::unordered_map<std::uint32_t, std::set<std::uint32_t>> acquired;  // by block
std::uint32_t fenced_block = 0;                                      // block whose global writes are all fenced

std::uint32_t block_id() { return static_cast<std::uint32_t>(machine.block_number) + 1; }

bool knows_block(std::uint32_t other) {
  const auto mine = acquired.find(block_id());
  return mine != acquired.end() && mine->second.count(other);
}

// Of this block and epoch: is what `lane` of my warp did at `tick` visible to me?
bool knows_lane(const Thread& me, int lane, std::uint32_t tick) {
  return warp_around(me).known[static_cast<std::size_t>(lane_of(me))][static_cast<std::size_t>(lane)] > tick;
}

bool after_write(const Cell& cell, const Thread& me) {
  if (cell.write_block != block_id()) return knows_block(cell.write_block);
  if (cell.write_thread == me.number || cell.write_epoch != machine.epoch) return true;
  const int other = cell.write_thread;
  return other / warp_lanes == warp_of(me) && knows_lane(me, other % warp_lanes, cell.write_tick);
}

bool after_reads(const Cell& cell, const Thread& me) {
  if (cell.read_blocks) return false;
  if (cell.read_block != block_id()) return knows_block(cell.read_block);
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
  cell.read_thread = static_cast<std::uint16_t>(me.number);
  cell.read_pc = pc;
}

void note_write(Cell& cell, const Thread& me, bool atomic, std::uint32_t pc) {
  cell.write_block = block_id();
  cell.write_epoch = machine.epoch;
  cell.write_tick = warp_around(me).tick;
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

void fence_block() { fenced_block = block_id(); }

void acquire_release(std::uint64_t address) {
  std::set<std::uint32_t>& before = released[address];
  std::set<std::uint32_t>& mine = acquired[block_id()];
  mine.insert(before.begin(), before.end());
  if (fenced_block != block_id()) return;
  before.insert(block_id());
  before.insert(mine.begin(), mine.end());
}

void check_order(Region& region, const Event& event) {
  if (event.write && !event.atomic && !region.shared && fenced_block == block_id()) fenced_block = 0;
  const std::uint64_t offset = event.address - region.low;
  std::uint64_t granule = region.shadow.granule();
  while (granule > 1 && (offset % granule || event.bytes % granule)) granule /= 2;
  if (granule != region.shadow.granule()) region.shadow.refine(granule);
  for (std::uint64_t cell = offset / granule; cell <= (offset + event.bytes - 1) / granule; ++cell)
    check_cell(region, region.shadow.at(cell), event);
}

}  // namespace host
