/* jagged_to_padded: rows of a jagged array into a (B, L, D) rectangle, filled from the left, oldest events cut.
   in   values (T, D), offsets (B+1,) i64        out  padded (B, L, D), any dtype: moved as units of 1, 2, 4, 8, 16 bytes
   grid ceil(B*L*D_units / 256)  block 256       shared 0
   macros none; template UNIT (uint4, uint2, unsigned, unsigned short, unsigned char), INDEX (unsigned below 2^32
   units, else unsigned long long: a division in 32 bits costs a quarter of one in 64)
   idea one thread a unit of the output; where D*itemsize is a multiple of 16 bytes a unit is a float4
   bytes read sum(min(len, L))*D*itemsize + B*16, write B*L*D*itemsize
   reference labkit/reference/jagged.py:to_padded */

#include "units.cuh"

template <typename UNIT, typename INDEX>
__global__ void __launch_bounds__(256)
    jagged_to_padded(UNIT* __restrict__ padded, const UNIT* __restrict__ values, const long long* __restrict__ offsets,
                     unsigned long long fill, int rows, int width, int units) {
  const INDEX at = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x;
  const INDEX row_units = static_cast<INDEX>(width) * units;
  const INDEX row = at / row_units;
  if (row >= static_cast<INDEX>(rows)) return;
  const long long start = offsets[row], stop = offsets[row + 1];
  const long long length = stop - start, kept = min(length, static_cast<long long>(width));
  const long long unit = at - row * row_units;  // in the row of the rectangle, so also in the kept part of the row
  UNIT value;
  set_fill(value, fill);
  if (unit < kept * units) value = values[(stop - kept) * units + unit];
  padded[at] = value;
}
