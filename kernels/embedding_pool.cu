/* embedding_pool: rows of a table gathered by id and summed over the events of each row, without the (T, D) in between.
   in   table (V, D) f32|f16|bf16, ids (T,) i64, weights (T,) as table where WEIGHTED, offsets (B+1,) i64, bins i32
   out  (B, D) as table, exactly 0 for empty rows; an id outside of the table reads nothing and makes its row NaN
        backward to the weights (T,); backward to the table is embedding_pool itself, over the transposed rows: for each
        item the rows of the batch in which it is (labkit/gpu/ops/embedding_pool.py), so it has no atomics either
   grid worst case of units of work (labkit/gpu/regimes.py); *_combine giants * tiles      block 256
   shared 4 KiB      macros none; template T storage, V features a lane (4, or 1), WEIGHTED
   idea segment_pool with an indirection: a group of lanes an event, so a row of the table is one coalesced read
   bytes read T*D*s (less where the cache has it) + T*8 (+ T*s) + B*12, write B*D*s; weight_grad writes T*s more in
        place of B*D*s, which it reads
   reference labkit/reference/embedding.py */

#include "rows.cuh"

template <typename T, int V, bool WEIGHTED>
__global__ void __launch_bounds__(BLOCK)
    embedding_pool(T* __restrict__ out, float* __restrict__ partial, const T* __restrict__ table,
                   const long long* __restrict__ ids, const T* __restrict__ weights,
                   const long long* __restrict__ offsets, const int* __restrict__ bins, long long items, int rows,
                   int vectors, int giants, int piece_events, int mean) {
  const Share share = share_of(offsets, bins, rows, vectors, (vectors + 31) / 32, giants, piece_events);
  if (share.row < 0) return;
  const bool active = share.vector < vectors;
  Sum<V> sum;
  sum.clear();
  if (active) {
#pragma unroll 4
    for (long long event = share.next; event < share.last; event += share.step) {
      const long long id = ids[event];
      const bool known = id >= 0 && id < items;  // no branch, so that the reads of several events are under way at once
      const float weight = !known ? NOT_A_NUMBER : WEIGHTED ? to_float(weights[event]) : 1.f;
      float value[V];
      load<T, V>(value, table + ((known ? id : 0) * vectors + share.vector) * V);
#pragma unroll
      for (int i = 0; i < V; ++i) sum.x[i] += weight * value[i];
    }
  }
  if (!gather(sum, share) || !active) return;
  if (share.piece >= 0) part_of<Sum<V>>(partial, share, vectors) = sum;
  else store_sum<T, V>(out, sum, share, vectors, mean);
}

template <typename T, int V>
__global__ void __launch_bounds__(BLOCK)
    embedding_pool_combine(T* __restrict__ out, const float* __restrict__ partial,
                           const long long* __restrict__ offsets, const int* __restrict__ bins, int vectors, int giants,
                           int mean) {
  combine_sums<T, V>(out, partial, offsets, bins, vectors, giants, mean);
}

// Of each event the inner product of the gradient of its row and its entry of the table.
template <typename T, int V>
__global__ void __launch_bounds__(BLOCK)
    embedding_pool_weight_grad(T* __restrict__ grad_weights, const T* __restrict__ grad_out,
                               const T* __restrict__ table, const long long* __restrict__ ids,
                               const long long* __restrict__ offsets, const int* __restrict__ bins, long long items,
                               int rows, int vectors, int giants, int piece_events, int mean) {
  const Share share = share_of(offsets, bins, rows, vectors, 1, giants, piece_events);
  if (share.row < 0) return;
  const unsigned mask = group_mask(share.lanes);
  const float length = mean ? static_cast<float>(share.stop - share.start) : 1.f;
  const T* grad_row = grad_out + static_cast<long long>(share.row) * vectors * V;
  for (long long event = share.next; event < share.last; event += share.step) {
    const long long id = ids[event];
    const bool known = id >= 0 && id < items;
    float dot = known ? 0.f : NOT_A_NUMBER;
    if (known) {
      for (int vector = share.vector; vector < vectors; vector += share.lanes) {
        float grad[V], entry[V];
        load<T, V>(grad, grad_row + vector * V);
        load<T, V>(entry, table + (id * vectors + vector) * V);
#pragma unroll
        for (int i = 0; i < V; ++i) dot += grad[i] * entry[i];
      }
    }
    dot = group_sum(dot, share.lanes, mask) / length;
    if (share.vector == 0) from_float(grad_weights[event], dot);
  }
}
