#include "counts.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "reports.h"

namespace host {
namespace {

constexpr std::uint64_t word_bytes = 4, sector_bytes = 32, bank_count = 32;
constexpr std::uint64_t words_per_sector = sector_bytes / word_bytes;

struct Totals {
  std::uint64_t requests = 0, lanes = 0, sectors = 0, ideal_sectors = 0, passes = 0;
};
// by address of the code, bytes of an access, write, atomic, shared
using Place = std::tuple<std::uint64_t, std::uint32_t, bool, bool, bool>;
std::map<Place, Totals> totals;

// The distinct 4-byte words that some lanes touch, in order.
class Words {
 public:
  void add(const Event& event) {
    for (std::uint64_t w = event.address / word_bytes; w <= (event.address + event.bytes - 1) / word_bytes; ++w)
      if (count_ < words_.size()) words_[count_++] = w;
  }
  void sort() {
    if (!std::is_sorted(begin(), end())) std::sort(begin(), end());
    count_ = static_cast<std::size_t>(std::unique(begin(), end()) - begin());
  }
  std::uint64_t* begin() { return words_.data(); }
  std::uint64_t* end() { return words_.data() + count_; }
  std::size_t size() const { return count_; }

 private:
  std::array<std::uint64_t, 128> words_{};  // 32 lanes of 16 bytes
  std::size_t count_ = 0;
};

std::uint64_t sectors_of(Words& words) {
  std::uint64_t sectors = 0, last = ~0ull;
  for (const std::uint64_t word : words)
    if (word / words_per_sector != last) {
      last = word / words_per_sector;
      ++sectors;
    }
  return sectors;
}

// Passes over the banks: 8-byte accesses are served in halves of a warp, 16-byte ones in quarters; in each, the bank
// with most distinct words decides. Source: CUDA C++ Programming Guide, "Shared Memory", bank conflicts.
std::uint64_t passes_of(const Event* events, unsigned lanes, std::uint32_t bytes) {
  const int part = warp_lanes / std::clamp<int>(static_cast<int>(bytes / word_bytes), 1, 4);
  std::uint64_t passes = 0;
  for (int first = 0; first < warp_lanes; first += part) {
    Words words;
    for (int lane = first; lane < first + part; ++lane)
      if (lanes >> lane & 1) words.add(events[lane]);
    words.sort();
    std::array<int, bank_count> banks{};
    int most = 0;
    for (const std::uint64_t word : words) most = std::max(most, ++banks[word % bank_count]);
    passes += static_cast<std::uint64_t>(most);
  }
  return passes;
}

}  // namespace

void count_request(const Event* events, unsigned lanes, bool shared) {
  const Event& first = events[__builtin_ctz(lanes)];
  Totals& sum = totals[{first.pc, first.bytes, first.write, first.atomic, shared}];
  ++sum.requests;
  sum.lanes += static_cast<std::uint64_t>(__builtin_popcount(lanes));
  if (shared) {
    sum.passes += passes_of(events, lanes, first.bytes);
    return;
  }
  Words words;
  for (unsigned rest = lanes; rest; rest &= rest - 1) words.add(events[__builtin_ctz(rest)]);
  words.sort();
  sum.sectors += sectors_of(words);
  sum.ideal_sectors += (words.size() + words_per_sector - 1) / words_per_sector;
}

std::string counts_text() {
  std::string text;
  for (const auto& [place, sum] : totals) {
    const auto& [pc, bytes, write, atomic, shared] = place;
    const char* kind = atomic ? "atomic" : write ? "store" : "load";
    text += format("count\t%llx\t%s\t%s\t%u\t%llu\t%llu\t%llu\t%llu\t%llu\n", static_cast<unsigned long long>(pc), kind,
                   shared ? "shared" : "global", bytes, static_cast<unsigned long long>(sum.requests),
                   static_cast<unsigned long long>(sum.lanes), static_cast<unsigned long long>(sum.sectors),
                   static_cast<unsigned long long>(sum.ideal_sectors), static_cast<unsigned long long>(sum.passes));
  }
  return text;
}

}  // namespace host
