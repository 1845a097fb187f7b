/* padded_to_jagged: rows of a (B, L, D) rectangle back into a jagged array; the inverse and the backward of jagged_to_padded.
   in   padded (B, L, D), offsets (B+1,) i64     out  values (T, D): the last L events of a row come from the rectangle,
        older ones, which have no slot, get the fill; any dtype, moved as units of 1, 2, 4, 8, 16 bytes
   grid ceil(B*L*D_units / 256)  block 256       shared 0
   macros none; template UNIT, INDEX as in jagged_to_padded
   idea a thread a unit of the rectangle, so no search for the row of an event; the L*D threads of a row stride over
   it, which only rows longer than L need a second time
   bytes read sum(min(len, L))*D*itemsize + B*16, write T*D*itemsize
   reference labkit/reference/jagged.py:to_jagged */

#include "units.cuh"

template <typename UNIT, typename INDEX>
__global__ void __launch_bounds__(256)
    padded_to_jagged(UNIT* __restrict__ values, const UNIT* __restrict__ padded, const long long* __restrict__ offsets,
                     unsigned long long fill, int rows, int width, int units) {
  const INDEX at = static_cast<INDEX>(blockIdx.x) * blockDim.x + threadIdx.x;
  const INDEX row_units = static_cast<INDEX>(width) * units;
  const INDEX row = at / row_units;
  if (row >= static_cast<INDEX>(rows)) return;
  const long long start = offsets[row], length = offsets[row + 1] - start;
  const long long cut = max(length - width, 0LL) * units;  // units of the events that have no slot
  const UNIT* slots = padded + row * static_cast<long long>(row_units);
  UNIT* events = values + start * units;
  for (long long unit = at - row * row_units; unit < length * units; unit += row_units) {
    UNIT value;
    set_fill(value, fill);
    if (unit >= cut) value = slots[unit - cut];
    events[unit] = value;
  }
}
