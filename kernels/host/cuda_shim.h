// The CUDA C that NVRTC knows without headers, for g++. Force-included before a kernel's source.
//
// No standard header comes in: what NVRTC lacks (INFINITY, int64_t, std::max) must not compile here either.
#pragma once
#include "abi.h"

using size_t = decltype(sizeof(0));
using ptrdiff_t = decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr));

#define HOST_INLINE inline __attribute__((always_inline))

// --- qualifiers. Device functions are always inlined: a warp in lockstep compares addresses within one function.
#define __global__ __attribute__((noinline))
#define __device__ __attribute__((always_inline))
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __constant__ static
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __grid_constant__
// `extern __shared__ T name[];` becomes this by the build: C++ has no extern static.
#define HOST_DYNAMIC_SHARED(T, name) T* const name = static_cast<T*>(host_dynamic_shared())

// --- indices
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
#define threadIdx host_thread_index()
#define blockIdx host_block_index()
#define blockDim host_block_size()
#define gridDim host_grid_size()
constexpr int warpSize = 32;

// --- barriers and fences
#define __syncthreads() static_cast<void>(host_barrier(host_barrier_plain, 0, __COUNTER__))
#define __syncthreads_count(p) host_barrier(host_barrier_count, (p) != 0, __COUNTER__)
#define __syncthreads_and(p) host_barrier(host_barrier_and, (p) != 0, __COUNTER__)
#define __syncthreads_or(p) host_barrier(host_barrier_or, (p) != 0, __COUNTER__)
HOST_INLINE void __threadfence() { host_fence(); }
HOST_INLINE void __threadfence_block() {}

#include "cuda_atomics.h"
#include "cuda_launch.h"
#include "cuda_math.h"
#include "cuda_vectors.h"
#include "cuda_warp.h"

// --- loads and stores with a cache hint
template <class T>
HOST_INLINE T __ldg(const T* p) {
  return *p;
}
template <class T>
HOST_INLINE T __ldcs(const T* p) {
  return *p;
}
template <class T>
HOST_INLINE T __ldcg(const T* p) {
  return *p;
}
template <class T>
HOST_INLINE void __stcs(T* p, T v) {
  *p = v;
}
template <class T>
HOST_INLINE void __stcg(T* p, T v) {
  *p = v;
}

extern "C" int printf(const char*, ...);
