// main() of a kernel's program: reads one job from standard input, runs it, writes what was found to a file descriptor.
//
//   PROGRAM --describe      the kernels and their parameters, a line each
//   PROGRAM RESULT_FD       a launch; the lines of a job are those of `words` in run_job
// A program runs one launch: whatever a kernel breaks is gone with its process.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include "machine.h"
#include "memory.h"
#include "reports.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __asan_poison_memory_region(const volatile void* address, std::size_t size);
#endif

namespace host {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr unsigned char canary = 0xA5;

struct Buffer {
  std::string name;
  unsigned char* data;
  std::size_t bytes, mapped;
};

std::vector<Buffer> buffers;
struct Kept {
  int file;
  std::uint64_t address, bytes;
};
std::vector<Kept> kept;  // __device__ variables whose values go from launch to launch
std::vector<std::vector<unsigned char>> values;  // of the arguments, in order
unsigned char signal_stack[64 << 10];

std::size_t whole_pages(std::size_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(3);
}

// The buffer of a file descriptor, between two pages that nobody may touch; the rest of its last page holds a canary.
void map_buffer(int file, std::size_t bytes, bool writable, const std::string& name) {
  const std::size_t mapped = whole_pages(bytes ? bytes : 1);
  void* room = mmap(nullptr, mapped + 2 * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) fail("room for a buffer");
  auto* data = static_cast<unsigned char*>(room) + page_bytes;
  if (mmap(data, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, 0) == MAP_FAILED)
    fail("a buffer");
  std::memset(data + bytes, canary, mapped - bytes);
#if defined(__SANITIZE_ADDRESS__)
  // shadow memory has bytes for 8 addresses: poison from the end of the data
  __asan_poison_memory_region(data + bytes, mapped - bytes);
#endif
  buffers.push_back({name, data, bytes, mapped});
  add_region(reinterpret_cast<std::uint64_t>(data), bytes, false, writable, name);
  std::vector<unsigned char> pointer(sizeof data);
  std::memcpy(pointer.data(), &data, sizeof data);
  values.push_back(pointer);
}

__attribute__((no_sanitize("address"))) bool canary_lives(const Buffer& buffer) {
  for (std::size_t i = buffer.bytes; i < buffer.mapped; ++i)
    if (*static_cast<volatile unsigned char*>(buffer.data + i) != canary) return false;
  return true;
}

std::vector<unsigned char> bytes_of(const std::string& hexadecimal) {
  std::vector<unsigned char> bytes;
  for (std::size_t i = 0; i + 1 < hexadecimal.size(); i += 2)
    bytes.push_back(static_cast<unsigned char>(std::stoi(hexadecimal.substr(i, 2), nullptr, 16)));
  return bytes;
}

Order order_of(const std::string& name) {
  if (name == "forward") return Order::forward;
  if (name == "reverse") return Order::reverse;
  if (name == "random") return Order::random;
  if (name == "lockstep") return Order::lockstep;
  fail("an order");
}

void read_line(const std::string& line) {
  Machine& m = machine;
  std::istringstream words(line);
  std::string key, text;
  words >> key;
  if (key == "order") {
    words >> text;
    m.order = order_of(text);
  } else if (key == "seed") {
    words >> m.random;
    m.random = m.random * 2654435761u + 88172645463325252ull;
  } else if (key == "first_block") {
    words >> m.first_block;
  } else if (key == "grid") {
    words >> m.grid.x >> m.grid.y >> m.grid.z;
  } else if (key == "block") {
    words >> m.size.x >> m.size.y >> m.size.z;
  } else if (key == "shared_bytes") {
    words >> m.shared_bytes;
  } else if (key == "kernel") {
    std::size_t number = 0;
    words >> number;
    m.call = host_kernels[number].call;
  } else if (key == "variable") {
    std::uint64_t address = 0, bytes = 0;
    bool shared = false, writable = false;
    words >> std::hex >> address >> std::dec >> bytes >> shared >> writable;
    std::getline(words >> std::ws, text);
    add_region(address, bytes, shared, writable, text);
  } else if (key == "keep") {
    Kept one{};
    bool filled = false;
    words >> one.file >> filled >> std::hex >> one.address >> std::dec >> one.bytes;
    void* const place = reinterpret_cast<void*>(one.address);
    if (filled && pread(one.file, place, one.bytes, 0) != static_cast<ssize_t>(one.bytes)) fail("a kept variable");
    kept.push_back(one);
  } else if (key == "buffer") {
    int file = 0;
    std::size_t bytes = 0;
    bool writable = false;
    words >> file >> bytes >> writable;
    std::getline(words >> std::ws, text);
    map_buffer(file, bytes, writable, text);
  } else if (key == "value") {
    words >> text;
    values.push_back(bytes_of(text));
  } else {
    fail("a line of the job");
  }
}

void run_job() {
  for (std::string line; std::getline(std::cin, line);) read_line(line);
  Machine& m = machine;
  const std::size_t at_least_one = m.shared_bytes ? m.shared_bytes : 1;
  if (posix_memalign(reinterpret_cast<void**>(&m.dynamic_shared), 128, at_least_one)) fail("memory");
  if (m.shared_bytes)
    add_region(reinterpret_cast<std::uint64_t>(m.dynamic_shared), m.shared_bytes, true, true, "dynamic shared memory");
  std::vector<void*> pointers;
  for (auto& value : values) pointers.push_back(value.data());
  m.arguments = pointers.data();
  run_grid();
  for (const Kept& one : kept)
    if (pwrite(one.file, reinterpret_cast<void*>(one.address), one.bytes, 0) != static_cast<ssize_t>(one.bytes))
      fail("a kept variable");
  for (const Buffer& buffer : buffers)
    if (!canary_lives(buffer))
      report({"out_of_bounds", 0, 0, "bytes just behind " + buffer.name + " were overwritten"});
}

void on_signal(int number, siginfo_t* info, void*) {
  const std::string who = machine.current ? current_name() : "the runner";
  stop({"crash", 0, 0,
        who + format(" was ended by signal %d (%s) at address %p", number, strsignal(number), info->si_addr)});
}

// The time is up: where is the thread that runs? Known where every access and basic block calls the runtime. Nothing
// here is safe in a handler; should it hang, the program is killed a moment later, and no line is told.
void on_time_up(int) {
  if (!machine.current || !machine.last_pc) _exit(5);
  stop({"timeout", machine.last_pc, 0,
        "the kernel did not end within {time}: " + current_name() + " is at {pc}; a loop without end, or a launch too large"});
}

void catch_signals() {
  stack_t stack{};
  stack.ss_sp = signal_stack;
  stack.ss_size = sizeof signal_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(number, &action, nullptr);
  if (!host_checked) return;
  struct sigaction ending {};
  ending.sa_handler = on_time_up;
  ending.sa_flags = SA_ONSTACK | SA_RESETHAND;
  sigaction(SIGTERM, &ending, nullptr);
}

void describe() {
  for (const host_kernel* kernel = host_kernels; kernel->name; ++kernel) {
    std::printf("kernel\t%s\t%p\n", kernel->name, kernel->address());
    for (const host_parameter* p = kernel->parameters; p->base; ++p)
      std::printf("parameter\t%s\t%u\t%d\t%d\n", p->base, p->bytes, p->pointer, p->constant);
  }
}

}  // namespace
}  // namespace host

int main(int count, char** words) {
  if (count == 2 && !std::strcmp(words[1], "--describe")) {
    host::describe();
    return 0;
  }
  if (count != 2) {
    std::fputs("usage: PROGRAM --describe | PROGRAM RESULT_FD < job\n", stderr);
    return 2;
  }
  host::result_file = std::atoi(words[1]);
#if !defined(__SANITIZE_ADDRESS__)
  host::catch_signals();
#endif
  host::run_job();
  host::finish(true);
}
