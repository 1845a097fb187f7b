#include "memory.h"

#include <cstring>

#include "published.h"
#include "reports.h"

namespace host {
namespace {

constexpr std::uint64_t cells_per_page = 1024;
std::vector<Region> regions;
std::size_t last_hit = 0;

int region_of(std::uint64_t address, std::uint32_t bytes) {
  const auto holds = [&](const Region& r) { return address >= r.low && address + bytes <= r.high; };
  if (last_hit < regions.size() && holds(regions[last_hit])) return static_cast<int>(last_hit);
  for (std::size_t i = 0; i < regions.size(); ++i)
    if (holds(regions[i])) {
      last_hit = i;
      return static_cast<int>(i);
    }
  return -1;
}

// How far an address is from a region, in words for people.
std::string place_near(std::uint64_t address, std::uint32_t bytes) {
  const Region* nearest = nullptr;
  std::uint64_t least = ~0ull;
  for (const Region& r : regions) {
    const std::uint64_t distance = address < r.low ? r.low - address : address + bytes - r.high;
    if (distance < least) least = distance, nearest = &r;
  }
  constexpr std::uint64_t nearby = 1ull << 32;
  if (!nearest || least > nearby)
    return format("address 0x%llx, which is in no buffer", static_cast<unsigned long long>(address));
  const auto from = static_cast<long long>(address - nearest->low);
  return format("byte %lld of %s, which has %llu bytes", from, nearest->name.c_str(),
                static_cast<unsigned long long>(nearest->high - nearest->low));
}

bool on_own_stack(std::uint64_t address) {
  return address - reinterpret_cast<std::uint64_t>(machine.current->fiber.stack) < stack_bytes;
}

}  // namespace

void Shadow::reset(std::uint64_t bytes, std::uint64_t granule) {
  granule_ = granule;
  bytes_ = bytes;
  pages_.clear();
  pages_.resize((bytes / granule + cells_per_page) / cells_per_page);
}

Cell& Shadow::at(std::uint64_t cell) {
  auto& page = pages_[cell / cells_per_page];
  if (!page) page = std::make_unique<Cell[]>(cells_per_page);
  return page[cell % cells_per_page];
}

void Shadow::refine(std::uint64_t granule) {
  const std::uint64_t parts = granule_ / granule;
  auto old = std::move(pages_);
  reset(bytes_, granule);
  for (std::uint64_t page = 0; page < old.size(); ++page) {
    if (!old[page]) continue;
    for (std::uint64_t i = 0; i < cells_per_page; ++i)
      for (std::uint64_t part = 0; part < parts; ++part) {
        const std::uint64_t cell = (page * cells_per_page + i) * parts + part;
        if (cell * granule < bytes_) at(cell) = old[page][i];
      }
  }
}

void add_region(std::uint64_t address, std::uint64_t bytes, bool shared, bool writable, const std::string& name) {
  Region region;
  region.low = address;
  region.high = address + bytes;
  region.shared = shared;
  region.writable = writable;
  region.name = name;
  region.shadow.reset(bytes, 4);
  regions.push_back(std::move(region));
}

bool is_shared(int region) { return region >= 0 && regions[static_cast<std::size_t>(region)].shared; }

void poison_shared(unsigned char value) {
  for (const Region& r : regions)
    if (r.shared) std::memset(reinterpret_cast<void*>(r.low), value, r.high - r.low);
}

void fence() { fence_thread(); }

void check_access(std::uint64_t address, std::uint32_t bytes, bool write, bool atomic, std::uint64_t pc) {
  machine.last_pc = pc;
  if (!machine.current || on_own_stack(address)) return;
  const char* verb = atomic ? "updates" : write ? "writes" : "reads";
  const int found = region_of(address, bytes);
  if (found < 0)
    stop({"out_of_bounds", pc, 0,
          current_name() + format(" %s %u bytes at ", verb, bytes) + place_near(address, bytes) + ", at {pc}"});
  Region& region = regions[static_cast<std::size_t>(found)];
  const std::uint64_t offset = address - region.low;
  if (bytes <= 16 && !(bytes & (bytes - 1)) && address % bytes)
    stop({"misaligned", pc, 0,
          current_name() + format(" %s %u bytes at byte %llu of %s, which is no multiple of %u, at {pc}", verb, bytes,
                                  static_cast<unsigned long long>(offset), region.name.c_str(), bytes)});
  if (write && !region.writable)
    report({"const_write", pc, 0, current_name() + " writes to " + region.name + ", which is const, at {pc}"});
  const Event event{pc, address, bytes, write, atomic, found};
  if (machine.order == Order::lockstep) {
    machine.current->next = event;
    suspend();
  }
  if (atomic && !region.shared) acquire_release(address);
  check_order(region, event);
}

}  // namespace host
