/* thread_per_sequence: the sum of each row, a thread a row: what the segmented kernels are compared with.
   in   values (T,) f32, offsets (B+1,) i64      out  (B,) f32, exactly 0 for empty rows
   grid ceil(B / 256)  block 256  shared 0       macros none
   One feature. For D of them the same lanes do the same loop D times, so its use of lanes is that of any D.
   bytes read T*4 + B*16, write B*4              reference labkit/reference/segments.py:segment_sum */

extern "C" __global__ void thread_per_sequence(float* __restrict__ out, const float* __restrict__ values,
                                               const long long* __restrict__ offsets, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.f;
  for (long long event = offsets[row]; event < offsets[row + 1]; ++event) sum += values[event];
  out[row] = sum;
}
