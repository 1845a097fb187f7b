#include "reports.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <map>
#include <tuple>
#include <vector>

#include "counts.h"
#include "machine.h"

namespace host {

int result_file = -1;

namespace {

constexpr std::size_t most_findings = 100;
struct Counted {
  Finding finding;
  std::uint64_t count;
};
std::vector<Counted> findings;
std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, std::size_t> places;

void write_all(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(result_file, text.data() + done, text.size() - done);
    if (n <= 0) _exit(4);
    done += static_cast<std::size_t>(n);
  }
}

std::string index_text(uint3 i, uint3 size) {
  if (size.y == 1 && size.z == 1) return format("%u", i.x);
  return format("(%u, %u, %u)", i.x, i.y, i.z);
}

}  // namespace

std::string format(const char* pattern, ...) {
  char text[500];
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(text, sizeof text, pattern, values);
  va_end(values);
  return text;
}

std::string thread_name(int number, std::uint64_t block) {
  const uint3 s = machine.size, g = machine.grid;
  const auto n = static_cast<unsigned>(number);
  const auto b = [&](std::uint64_t at) { return static_cast<unsigned>(at); };
  const uint3 thread{n % s.x, n / s.x % s.y, n / (s.x * s.y)};
  const std::uint64_t plane = static_cast<std::uint64_t>(g.x) * g.y;
  const uint3 place{b(block % g.x), b(block / g.x % g.y), b(block / plane)};
  return "thread " + index_text(thread, s) + " of block " + index_text(place, g);
}

std::string current_name() { return thread_name(machine.current->number, machine.block_number); }

void report(Finding finding) {
  const auto key = std::make_tuple(std::string(finding.kind), finding.pc, finding.other_pc);
  const auto [place, added] = places.emplace(key, findings.size());
  if (!added) {
    if (place->second < findings.size()) ++findings[place->second].count;
    return;
  }
  if (findings.size() < most_findings) findings.push_back({std::move(finding), 1});
}

void stop(Finding finding) {
  report(std::move(finding));
  finish(false);
}

void finish(bool completed) {
  std::string text;
  for (const auto& [finding, count] : findings) {
    text += format("report\t%s\t%llx\t%llx\t%llu\t", finding.kind, static_cast<unsigned long long>(finding.pc),
                   static_cast<unsigned long long>(finding.other_pc), static_cast<unsigned long long>(count));
    text += finding.text + "\n";
  }
  text += counts_text() + (completed ? "end\n" : "stopped\n");
  write_all(text);
  std::fflush(stdout);
  _exit(0);
}

}  // namespace host
