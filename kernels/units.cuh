/* units.cuh: what the two copies share. They move bytes, so they are written for units of 1, 2, 4, 8 and 16 bytes.
   A fill comes as 8 bytes, the pattern of an element repeated, whatever the unit. */

__device__ __forceinline__ void set_fill(uint4& unit, unsigned long long fill) {
  const unsigned low = static_cast<unsigned>(fill), high = static_cast<unsigned>(fill >> 32);
  unit = make_uint4(low, high, low, high);
}
__device__ __forceinline__ void set_fill(uint2& unit, unsigned long long fill) {
  unit = make_uint2(static_cast<unsigned>(fill), static_cast<unsigned>(fill >> 32));
}
template <typename UNIT>
__device__ __forceinline__ void set_fill(UNIT& unit, unsigned long long fill) {
  unit = static_cast<UNIT>(fill);
}
