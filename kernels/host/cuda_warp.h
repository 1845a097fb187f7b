// Warp intrinsics: each hands its value to the runtime, which answers when all lanes of the mask have come.
#pragma once

template <class T>
HOST_INLINE T host_shuffle(int kind, unsigned mask, T value, int parameter, int width) {
  static_assert(__is_trivially_copyable(T) && sizeof(T) <= 8, "shuffles move at most 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = host_warp(kind, mask, bits, parameter, width);
  T result;
  __builtin_memcpy(&result, &bits, sizeof(T));
  return result;
}
template <class T>
HOST_INLINE T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  return host_shuffle(host_warp_index, mask, value, lane, width);
}
template <class T>
HOST_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return host_shuffle(host_warp_up, mask, value, static_cast<int>(delta), width);
}
template <class T>
HOST_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return host_shuffle(host_warp_down, mask, value, static_cast<int>(delta), width);
}
template <class T>
HOST_INLINE T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  return host_shuffle(host_warp_xor, mask, value, lanes, width);
}
template <class T>
HOST_INLINE unsigned __match_any_sync(unsigned mask, T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "__match_any_sync compares 4 or 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return static_cast<unsigned>(host_warp(host_warp_match, mask, bits, 0, 32));
}
HOST_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { host_warp(host_warp_sync, mask, 0, 0, 32); }
HOST_INLINE unsigned __ballot_sync(unsigned mask, int predicate) {
  return static_cast<unsigned>(host_warp(host_warp_ballot, mask, predicate != 0, 0, 32));
}
HOST_INLINE int __any_sync(unsigned mask, int predicate) {
  return static_cast<int>(host_warp(host_warp_any, mask, predicate != 0, 0, 32));
}
HOST_INLINE int __all_sync(unsigned mask, int predicate) {
  return static_cast<int>(host_warp(host_warp_all, mask, predicate != 0, 0, 32));
}
