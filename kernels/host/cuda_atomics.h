// Atomics: one call of the runtime each, so that a read-modify-write is one access of one thread.
#pragma once

#define atomic_spelling_add atomicAdd
#define atomic_spelling_sub atomicSub
#define atomic_spelling_max atomicMax
#define atomic_spelling_min atomicMin
#define atomic_spelling_exch atomicExch
#define atomic_spelling_and atomicAnd
#define atomic_spelling_or atomicOr
#define atomic_spelling_xor atomicXor
#define HOST_DEFINE_ATOMIC(OP, T, SUFFIX) \
  HOST_INLINE T atomic_spelling_##OP(T* address, T value) { return host_atomic_##OP##_##SUFFIX(address, value); }
HOST_ATOMICS(HOST_DEFINE_ATOMIC)
#undef HOST_DEFINE_ATOMIC

HOST_INLINE int atomicCAS(int* address, int compare, int value) { return host_atomic_cas_i32(address, compare, value); }
HOST_INLINE unsigned atomicCAS(unsigned* address, unsigned compare, unsigned value) {
  return host_atomic_cas_u32(address, compare, value);
}
HOST_INLINE unsigned long long atomicCAS(unsigned long long* address, unsigned long long compare,
                                         unsigned long long value) {
  return host_atomic_cas_u64(address, compare, value);
}
