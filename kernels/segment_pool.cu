/* segment_pool: sum, mean and max over the events of each row, and their backward.
   in   values (T, D) f32|f16|bf16, offsets (B+1,) i64, bins i32 (rows.cuh)
   out  (B, D) in the type of values, exactly 0 for empty rows; max also says at (B, D) i32, the place in its row of the
        first greatest event, -1 for empty rows; a NaN makes its own feature of its own row NaN
   grid worst case of units of work (labkit/gpu/regimes.py); *_combine giants * tiles      block 256
   shared WARPS*32 accumulators (4 KiB, max 8 KiB)      macros none; template T storage, V features a lane (4, or 1)
   idea a group of lanes an event, as many groups a row as its length wants; giants through partial, one accumulator a
        piece and vector, combined by a second launch: no atomics, so a result does not depend on who came first
   bytes sum, mean: read T*D*s + B*12, write B*D*s (s = itemsize); max also writes B*D*4; giants write and read
        pieces*D*4 (max 8) more; backward: read B*D*s (max also B*D*4), write T*D*s
   reference labkit/reference/segments.py */

#include "rows.cuh"

template <int V>
struct alignas(4 * V) Max {  // of each feature the greatest value and where it is first
  float best[V];
  int at[V];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < V; ++i) best[i] = MINUS_INFINITY, at[i] = -1;
  }
  // NaN is greater than all; of equals the first wins, so merging is commutative.
  __device__ __forceinline__ void take(int i, float value, int place) {
    const bool nan = value != value, own_nan = best[i] != best[i];
    const bool greater = value > best[i] || (nan && !own_nan);
    const bool equal = value == best[i] || (nan && own_nan);
    if (place >= 0 && (at[i] < 0 || greater || (equal && place < at[i]))) best[i] = value, at[i] = place;
  }
  __device__ __forceinline__ Max from_lane(int distance) const {
    Max other;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      other.best[i] = __shfl_xor_sync(ALL_LANES, best[i], distance);
      other.at[i] = __shfl_xor_sync(ALL_LANES, at[i], distance);
    }
    return other;
  }
  __device__ __forceinline__ void merge(const Max& other) {
#pragma unroll
    for (int i = 0; i < V; ++i) take(i, other.best[i], other.at[i]);
  }
};

template <typename T, int V>
__global__ void __launch_bounds__(BLOCK)
    segment_sum(T* __restrict__ out, float* __restrict__ partial, const T* __restrict__ values,
                const long long* __restrict__ offsets, const int* __restrict__ bins, int rows, int vectors, int giants,
                int piece_events, int mean) {
  const Share share = share_of(offsets, bins, rows, vectors, (vectors + 31) / 32, giants, piece_events);
  if (share.row < 0) return;
  const bool active = share.vector < vectors;
  Sum<V> sum;
  sum.clear();
  if (active) {
#pragma unroll 4
    for (long long event = share.next; event < share.last; event += share.step) {
      Sum<V> value;
      load<T, V>(value.x, values + (event * vectors + share.vector) * V);
      sum.merge(value);
    }
  }
  if (!gather(sum, share) || !active) return;
  if (share.piece >= 0) part_of<Sum<V>>(partial, share, vectors) = sum;
  else store_sum<T, V>(out, sum, share, vectors, mean);
}

template <typename T, int V>
__global__ void __launch_bounds__(BLOCK)
    segment_sum_combine(T* __restrict__ out, const float* __restrict__ partial, const long long* __restrict__ offsets,
                        const int* __restrict__ bins, int vectors, int giants, int mean) {
  combine_sums<T, V>(out, partial, offsets, bins, vectors, giants, mean);
}

template <typename T, int V>
__device__ __forceinline__ void store_max(T* __restrict__ out, int* __restrict__ at, Max<V>& max, const Share& share,
                                          int vectors) {
  const long long place = (static_cast<long long>(share.row) * vectors + share.vector) * V;
  Pack<int, V> where;
#pragma unroll
  for (int i = 0; i < V; ++i) {
    where.x[i] = max.at[i];
    if (max.at[i] < 0) max.best[i] = 0.f;
  }
  store<T, V>(out + place, max.best);
  *reinterpret_cast<Pack<int, V>*>(at + place) = where;
}

template <typename T, int V>
__global__ void __launch_bounds__(BLOCK, 4)  // up to 64 registers: for sm_120 the compiler would rather spill above 40
    segment_max(T* __restrict__ out, int* __restrict__ at, float* __restrict__ partial, const T* __restrict__ values,
                const long long* __restrict__ offsets, const int* __restrict__ bins, int rows, int vectors, int giants,
                int piece_events) {
  const Share share = share_of(offsets, bins, rows, vectors, (vectors + 31) / 32, giants, piece_events);
  if (share.row < 0) return;
  const bool active = share.vector < vectors;
  Max<V> max;
  max.clear();
  if (active) {
#pragma unroll 2
    for (long long event = share.next; event < share.last; event += share.step) {
      float value[V];
      load<T, V>(value, values + (event * vectors + share.vector) * V);
#pragma unroll
      for (int i = 0; i < V; ++i) max.take(i, value[i], static_cast<int>(event - share.start));
    }
  }
  if (!gather(max, share) || !active) return;
  if (share.piece >= 0) part_of<Max<V>>(partial, share, vectors) = max;
  else store_max<T, V>(out, at, max, share, vectors);
}

template <typename T, int V>
__global__ void __launch_bounds__(BLOCK)
    segment_max_combine(T* __restrict__ out, int* __restrict__ at, const float* __restrict__ partial,
                        const long long* __restrict__ offsets, const int* __restrict__ bins, int vectors, int giants) {
  const Share share = share_of_pieces(offsets, bins, vectors, (vectors + 31) / 32, giants);
  if (share.row < 0) return;
  const bool active = share.vector < vectors;
  Max<V> max;
  max.clear();
  if (active) {
    for (long long piece = share.next; piece < share.last; piece += share.step)
      max.merge(reinterpret_cast<const Max<V>*>(partial)[piece * vectors + share.vector]);
  }
  if (gather(max, share) && active) store_max<T, V>(out, at, max, share, vectors);
}

template <typename T, int V>
__global__ void __launch_bounds__(BLOCK)
    segment_sum_backward(T* __restrict__ grad_values, const T* __restrict__ grad_out,
                         const long long* __restrict__ offsets, const int* __restrict__ bins, int rows, int vectors,
                         int giants, int piece_events, int mean) {
  const Share share = share_of(offsets, bins, rows, vectors, (vectors + 31) / 32, giants, piece_events);
  if (share.row < 0 || share.vector >= vectors || share.next >= share.last) return;
  float grad[V];
  load<T, V>(grad, grad_out + (static_cast<long long>(share.row) * vectors + share.vector) * V);
  const float length = mean ? static_cast<float>(share.stop - share.start) : 1.f;
#pragma unroll
  for (int i = 0; i < V; ++i) grad[i] /= length;
  for (long long event = share.next; event < share.last; event += share.step)
    store<T, V>(grad_values + (event * vectors + share.vector) * V, grad);
}

template <typename T, int V>
__global__ void __launch_bounds__(BLOCK)
    segment_max_backward(T* __restrict__ grad_values, const T* __restrict__ grad_out, const int* __restrict__ at,
                         const long long* __restrict__ offsets, const int* __restrict__ bins, int rows, int vectors,
                         int giants, int piece_events) {
  const Share share = share_of(offsets, bins, rows, vectors, (vectors + 31) / 32, giants, piece_events);
  if (share.row < 0 || share.vector >= vectors || share.next >= share.last) return;
  const long long own = (static_cast<long long>(share.row) * vectors + share.vector) * V;
  const Pack<int, V> where = *reinterpret_cast<const Pack<int, V>*>(at + own);
  float grad[V];
  load<T, V>(grad, grad_out + own);
  for (long long event = share.next; event < share.last; event += share.step) {
    float value[V];
#pragma unroll
    for (int i = 0; i < V; ++i) value[i] = where.x[i] == static_cast<int>(event - share.start) ? grad[i] : 0.f;
    store<T, V>(grad_values + (event * vectors + share.vector) * V, value);
  }
}
