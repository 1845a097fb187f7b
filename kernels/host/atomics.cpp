// Atomics of the shim. Threads switch only where they wait, so a plain read-modify-write is one.
#include <algorithm>

#include "memory.h"

namespace {

template <class T>
T update_add(T old, T value) {
  return old + value;
}
template <class T>
T update_sub(T old, T value) {
  return old - value;
}
template <class T>
T update_max(T old, T value) {
  return std::max(old, value);
}
template <class T>
T update_min(T old, T value) {
  return std::min(old, value);
}
template <class T>
T update_exch(T, T value) {
  return value;
}
template <class T>
T update_and(T old, T value) {
  return old & value;
}
template <class T>
T update_or(T old, T value) {
  return old | value;
}
template <class T>
T update_xor(T old, T value) {
  return old ^ value;
}

void check(void* address, unsigned bytes, void* caller) {
  if (host_checked)
    host::check_access(reinterpret_cast<std::uint64_t>(address), bytes, true, true, host::call_site(caller));
}

}  // namespace

#define HOST_MAKE_ATOMIC(OP, T, SUFFIX)                                      \
  extern "C" T host_atomic_##OP##_##SUFFIX(T* address, T value) {            \
    check(address, sizeof(T), __builtin_return_address(0));                  \
    const T old = *address;                                                  \
    *address = update_##OP(old, value);                                      \
    return old;                                                              \
  }
HOST_ATOMICS(HOST_MAKE_ATOMIC)

#define HOST_MAKE_CAS(T, SUFFIX)                                                  \
  extern "C" T host_atomic_cas_##SUFFIX(T* address, T compare, T value) {         \
    check(address, sizeof(T), __builtin_return_address(0));                       \
    const T old = *address;                                                       \
    if (old == compare) *address = value;                                         \
    return old;                                                                   \
  }
HOST_MAKE_CAS(int, i32)
HOST_MAKE_CAS(unsigned, u32)
HOST_MAKE_CAS(unsigned long long, u64)
