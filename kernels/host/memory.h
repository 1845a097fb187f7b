// Memory that a kernel may touch, and what is checked at each access.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "machine.h"

namespace host {

// Who touched one cell (4 bytes, or fewer where a kernel uses smaller elements). Blocks count from 1; 0: nobody yet.
struct Cell {
  std::uint32_t write_block, write_epoch, write_tick, write_fences, write_pc;
  std::uint32_t read_block, read_epoch, read_tick, read_fences, read_pc;
  std::uint32_t read_lanes, read_warps;  // lanes of the last warp that read; all warps that did
  std::uint16_t write_thread, read_thread;
  bool write_atomic, read_blocks;  // read_blocks: several blocks read
};

class Shadow {
 public:
  void reset(std::uint64_t bytes, std::uint64_t granule);
  // Cells get smaller, each new one with the history of the old.
  void refine(std::uint64_t granule);
  std::uint64_t granule() const { return granule_; }
  Cell& at(std::uint64_t cell);

 private:
  std::uint64_t granule_ = 4, bytes_ = 0;
  std::vector<std::unique_ptr<Cell[]>> pages_;
};

struct Region {
  std::uint64_t low = 0, high = 0;
  bool shared = false, writable = true;
  std::string name;
  Shadow shadow;
};

void add_region(std::uint64_t address, std::uint64_t bytes, bool shared, bool writable, const std::string& name);
bool is_shared(int region);
void poison_shared(unsigned char value);
void fence();
// Everything that is checked about one access; in lockstep it is counted too.
void check_access(std::uint64_t address, std::uint32_t bytes, bool write, bool atomic, std::uint64_t pc);
// races.cpp
void check_order(Region& region, const Event& event);

}  // namespace host
