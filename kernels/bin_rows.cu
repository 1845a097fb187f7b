/* bin_rows: a stable counting sort of the rows by class of length, heaviest first, into the bins of rows.cuh.
   in   offsets (B+1,) i64      out  bins (4 + giants + 1 + B,) i32      scratch counts (CLASSES * ceil(B / 1024),) i32
   launched in this order: count_rows grid ceil(B / 1024), start_classes grid 1, place_rows grid ceil(B / 1024),
        cut_giants grid 1 (only where giants > 0)      block 256      shared under 1 KiB      macros none
   idea counts stay on the device, so that the host never waits and a CUDA graph can capture it; within the short rows
        classes are powers of two, so that the rows of a warp end at about the same time
   bytes read 2*B*8, write B*4 (and the scratch, 16 entries per 1024 rows, four times)
   reference labkit/reference/segments.py:bin_rows */

#include "rows.cuh"

constexpr int CLASSES = 16, TILE = 4 * BLOCK;

// 0 giant, 1 long, 2 medium, 3 .. 15 short: 4096 events and more, .., 4 - 7, 2 - 3, 1, 0. Without room for giants they are long.
__device__ __forceinline__ int class_of(long long length, int short_max, int medium_max, int long_max, int giants) {
  if (length > long_max && giants > 0) return 0;
  if (length > medium_max) return 1;
  if (length > short_max) return 2;
  return CLASSES - 1 - min(32 - __clz(static_cast<int>(length)), CLASSES - 4);
}

__global__ void __launch_bounds__(BLOCK)
    count_rows(int* __restrict__ counts, const long long* __restrict__ offsets, int rows, int giants, int short_max,
               int medium_max, int long_max) {
  __shared__ int count[CLASSES];
  if (threadIdx.x < CLASSES) count[threadIdx.x] = 0;
  __syncthreads();
  const int first = blockIdx.x * TILE, stop = min(first + TILE, rows);
  for (int row = first + threadIdx.x; row < stop; row += BLOCK)
    atomicAdd(&count[class_of(offsets[row + 1] - offsets[row], short_max, medium_max, long_max, giants)], 1);
  __syncthreads();
  if (threadIdx.x < CLASSES) counts[threadIdx.x * gridDim.x + blockIdx.x] = count[threadIdx.x];
}

// What the threads before this one in the block have together, and in `total` what all have. All threads must call it.
__device__ __forceinline__ int sum_before(int own, int& total) {
  __shared__ int sums[WARPS];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int upto = own;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(ALL_LANES, upto, distance);
    if (lane >= distance) upto += other;
  }
  if (lane == 31) sums[warp] = upto;
  __syncthreads();
  int before = upto - own;
  total = 0;
#pragma unroll
  for (int other = 0; other < WARPS; ++other) {
    if (other < warp) before += sums[other];
    total += sums[other];
  }
  __syncthreads();  // sums are free for the next call
  return before;
}

// Counts become starts, class by class and tile by tile; the first class of each regime says where the one before ends.
__global__ void __launch_bounds__(BLOCK)
    start_classes(int* __restrict__ bins, int* __restrict__ counts, int tiles) {
  int start = 0;
  for (int first = 0; first < CLASSES * tiles; first += BLOCK) {
    const int at = first + threadIdx.x;
    int total;
    const int own = at < CLASSES * tiles ? counts[at] : 0;
    const int before = start + sum_before(own, total);
    if (at < CLASSES * tiles) {
      counts[at] = before;
      const int entry = at / tiles;
      if (at % tiles == 0 && entry >= 1 && entry <= 3) bins[entry - 1] = before;
    }
    start += total;
  }
  if (threadIdx.x == 0) bins[3] = bins[HEADER] = 0;  // no pieces, until cut_giants says how many
}

__global__ void __launch_bounds__(BLOCK)
    place_rows(int* __restrict__ bins, const int* __restrict__ starts, const long long* __restrict__ offsets, int rows,
               int giants, int short_max, int medium_max, int long_max) {
  __shared__ int next[CLASSES], count[WARPS][CLASSES];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int* order = bins + HEADER + giants + 1;
  if (threadIdx.x < CLASSES) next[threadIdx.x] = starts[threadIdx.x * gridDim.x + blockIdx.x];
  for (int turn = 0; turn < TILE; turn += BLOCK) {
    const int row = blockIdx.x * TILE + turn + threadIdx.x;
    const int own =
        row < rows ? class_of(offsets[row + 1] - offsets[row], short_max, medium_max, long_max, giants) : CLASSES;
    int before = 0;
    for (int entry = 0; entry < CLASSES; ++entry) {
      const unsigned same = __ballot_sync(ALL_LANES, own == entry);
      if (lane == 0) count[warp][entry] = __popc(same);
      if (own == entry) before = __popc(same & ((1u << lane) - 1u));
    }
    __syncthreads();
    if (own < CLASSES) {
      for (int other = 0; other < warp; ++other) before += count[other][own];
      order[next[own] + before] = row;
    }
    __syncthreads();
    if (threadIdx.x < CLASSES) {
      for (int other = 0; other < WARPS; ++other) next[threadIdx.x] += count[other][threadIdx.x];
    }
    __syncthreads();
  }
}

__global__ void __launch_bounds__(BLOCK)
    cut_giants(int* __restrict__ bins, const long long* __restrict__ offsets, int giants, int piece_events) {
  int* first_piece = bins + HEADER;
  const int* order = first_piece + giants + 1;
  const int giant_rows = bins[0];
  int start = 0;
  for (int first = 0; first < giant_rows; first += BLOCK) {
    const int giant = first + threadIdx.x;
    int pieces = 0, total;
    if (giant < giant_rows) {
      const int row = order[giant];
      pieces = static_cast<int>((offsets[row + 1] - offsets[row] + piece_events - 1) / piece_events);
    }
    const int before = start + sum_before(pieces, total);
    if (giant < giant_rows) first_piece[giant] = before;
    start += total;
  }
  if (threadIdx.x == 0) first_piece[giant_rows] = bins[3] = start;
}
