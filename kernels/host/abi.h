// What a kernel compiled for the CPU asks of the runtime. Included by both sides, and so free of standard headers.
#pragma once

struct uint3 {
  unsigned x, y, z;
};

enum host_barrier_kind { host_barrier_plain, host_barrier_count, host_barrier_and, host_barrier_or };

enum host_warp_kind {
  host_warp_sync,
  host_warp_index,
  host_warp_up,
  host_warp_down,
  host_warp_xor,
  host_warp_ballot,
  host_warp_any,
  host_warp_all,
  host_warp_match
};

// One parameter of a kernel: its element type by name, and how it is passed.
struct host_parameter {
  const char* base;
  unsigned bytes;  // of one element, or of the value
  bool pointer, constant;
};

struct host_kernel {
  const char* name;
  const host_parameter* parameters;  // ends with base == nullptr
  void (*call)(void** arguments);
  const void* (*address)();
};

extern "C" {
// Written by the build for each program: one entry a name expression, the last with name == nullptr.
extern const host_kernel host_kernels[];
extern const bool host_checked;  // accesses are checked

// Constant while a thread runs, so that the compiler reads each once, as a register on a GPU.
__attribute__((const)) uint3 host_thread_index();
__attribute__((const)) uint3 host_block_index();
__attribute__((const)) uint3 host_block_size();
__attribute__((const)) uint3 host_grid_size();
__attribute__((const)) void* host_dynamic_shared();

// `site` numbers the places in the text, so that inlined or unrolled copies of one barrier stay one barrier.
int host_barrier(int kind, int predicate, int site);
unsigned long long host_warp(int kind, unsigned mask, unsigned long long value, int parameter, int width);
void host_fence();
}

// Atomics of each type in NVRTC's list; the runtime makes them, so that one call is one access.
#define HOST_ATOMICS(X)                                                                         \
  X(add, int, i32) X(add, unsigned, u32) X(add, unsigned long long, u64) X(add, float, f32)      \
  X(add, double, f64) X(sub, int, i32) X(sub, unsigned, u32) X(max, int, i32)                    \
  X(max, unsigned, u32) X(max, long long, i64) X(max, unsigned long long, u64) X(min, int, i32)  \
  X(min, unsigned, u32) X(min, long long, i64) X(min, unsigned long long, u64) X(exch, int, i32) \
  X(exch, unsigned, u32) X(exch, unsigned long long, u64) X(exch, float, f32) X(and, int, i32)   \
  X(and, unsigned, u32) X(and, unsigned long long, u64) X(or, int, i32) X(or, unsigned, u32)     \
  X(or, unsigned long long, u64) X(xor, int, i32) X(xor, unsigned, u32)                          \
  X(xor, unsigned long long, u64)

#define HOST_DECLARE_ATOMIC(OP, T, SUFFIX) extern "C" T host_atomic_##OP##_##SUFFIX(T* address, T value);
HOST_ATOMICS(HOST_DECLARE_ATOMIC)
#undef HOST_DECLARE_ATOMIC
extern "C" int host_atomic_cas_i32(int* address, int compare, int value);
extern "C" unsigned host_atomic_cas_u32(unsigned* address, unsigned compare, unsigned value);
extern "C" unsigned long long host_atomic_cas_u64(unsigned long long* address, unsigned long long compare,
                                                  unsigned long long value);
