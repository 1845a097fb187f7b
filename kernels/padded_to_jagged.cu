/* padded_to_jagged: rows of a (B, L, D) rectangle back into a jagged array; the inverse and the backward of jagged_to_padded.
   in   padded (B, L, D), offsets (B+1,) i64     out  values (T, D): the last L events of a row come from the rectangle,
        older ones, which have no slot, get the fill; any dtype, moved as units of 1, 2, 4, 8, 16 bytes
   grid ceil(T*D_units / 1024)  block 256        shared 8 bytes
   macros none; template UNIT, INDEX as in jagged_to_padded, of the units of the jagged array and of its last block
   idea four units of the output a thread, so that a wide rectangle costs no more than what is in it; two threads look
   in the offsets for the rows with which the block begins and ends, all others look between these alone
   bytes read sum(min(len, L))*D*itemsize + B*8, write T*D*itemsize; 2 log2(B) offsets a block, mostly from the cache
   reference labkit/reference/jagged.py:to_jagged */

#include "units.cuh"

constexpr int COPY_BLOCK = 256, TILE = 4 * COPY_BLOCK;  // units of a block

// The last of rows low .. high that begins at or before an event, so that it is not empty; row low does.
__device__ __forceinline__ int row_of(const long long* __restrict__ offsets, int low, int high, long long event) {
  while (low < high) {
    const int middle = high - (high - low) / 2;
    if (offsets[middle] <= event) low = middle; else high = middle - 1;
  }
  return low;
}

template <typename UNIT, typename INDEX>
__global__ void __launch_bounds__(COPY_BLOCK)
    padded_to_jagged(UNIT* __restrict__ values, const UNIT* __restrict__ padded, const long long* __restrict__ offsets,
                     unsigned long long fill, int rows, int width, int units) {
  __shared__ int ends[2];
  const long long start = offsets[0];
  const INDEX all = static_cast<INDEX>((offsets[rows] - start) * units);
  const INDEX first = static_cast<INDEX>(blockIdx.x) * TILE;
  if (threadIdx.x == 0) ends[0] = row_of(offsets, 0, rows - 1, start + first / units);
  if (threadIdx.x == 32) ends[1] = row_of(offsets, 0, rows - 1, start + (first + TILE - 1) / units);
  __syncthreads();
  for (INDEX at = first + threadIdx.x; at < first + TILE && at < all; at += COPY_BLOCK) {
    const long long event = start + at / units;
    const int row = row_of(offsets, ends[0], ends[1], event);
    const long long slot = event - max(offsets[row], offsets[row + 1] - width);
    UNIT value;
    set_fill(value, fill);
    if (slot >= 0) value = padded[(row * static_cast<long long>(width) + slot) * units + at % units];
    values[start * units + at] = value;
  }
}
