/* din_attention: softmax of the scores within each row and the weighted sum of its values, in one pass over the history.
   in   scores (T,), values (T, D) f32|f16|bf16, offsets (B+1,) i64, bins i32; an MLP in torch has made the scores
   out  (B, D) as values; top, total (B,) f32, what the backward needs: greatest score, sum of exp(score - top)
        backward to scores (T,) and values (T, D)
   grid worst case of units of work (labkit/gpu/regimes.py); *_combine giants * tiles      block 256
   shared WARPS*32*(V+2)*4 = 6 KiB      macros none; template T storage, V features a lane (4, or 1)
   idea online softmax (Milakov and Gimelshein, "Online normalizer calculation for softmax"): each group keeps a maximum,
        a sum and a weighted sum, rescaled when the maximum grows; groups, warps and pieces of giants merge the same way
   masked: a score of -inf weighs nothing, its values are not looked at; rows with no other event, and empty ones, give
        exactly 0; a NaN or +inf score makes its own row NaN, as softmax does
   bytes forward read T*(D+1)*s + B*12, write B*(D*s + 8); giants write and read pieces*(V+2)*4*D/V more;
        backward read T*(D+1)*s + B*(2*D*s + 20), write T*(D+1)*s
   reference labkit/reference/attention.py */

#include "rows.cuh"

template <int V>
struct alignas(V == 4 ? 8 : 4) Softmax {
  float top, total, x[V];

  __device__ __forceinline__ void clear() {
    top = MINUS_INFINITY, total = 0.f;
#pragma unroll
    for (int i = 0; i < V; ++i) x[i] = 0.f;
  }
  __device__ __forceinline__ Softmax from_lane(int distance) const {
    Softmax other;
    other.top = __shfl_xor_sync(ALL_LANES, top, distance);
    other.total = __shfl_xor_sync(ALL_LANES, total, distance);
#pragma unroll
    for (int i = 0; i < V; ++i) other.x[i] = __shfl_xor_sync(ALL_LANES, x[i], distance);
    return other;
  }
  // Selects, not a branch, so that the reads of several events are under way at once; 0 * inf must not get in.
  __device__ __forceinline__ void take(float score, const float (&value)[V]) {
    const bool live = score != MINUS_INFINITY;
    const float both = fmaxf(top, score);
    const float keep = live ? expf(top - both) : 1.f, weight = live ? expf(score - both) : 0.f;
    top = both;
    total = total * keep + weight;
#pragma unroll
    for (int i = 0; i < V; ++i) x[i] = live ? x[i] * keep + weight * value[i] : x[i];
  }
  // Without the tests two empty parts would give exp(-inf + inf). A NaN is in total, which is then not 0.
  __device__ __forceinline__ void merge(const Softmax& other) {
    if (other.total == 0.f) return;
    const float both = fmaxf(top, other.top);
    const float keep = top == both ? 1.f : expf(top - both), take = other.top == both ? 1.f : expf(other.top - both);
    top = both;
    total = total * keep + other.total * take;
#pragma unroll
    for (int i = 0; i < V; ++i) x[i] = x[i] * keep + other.x[i] * take;
  }
};

template <typename T, int V>
__device__ __forceinline__ void store_attention(T* __restrict__ out, float* __restrict__ top, float* __restrict__ total,
                                                Softmax<V>& softmax, const Share& share, int vectors) {
  if (softmax.total != 0.f) {
#pragma unroll
    for (int i = 0; i < V; ++i) softmax.x[i] /= softmax.total;
  }
  store<T, V>(out + (static_cast<long long>(share.row) * vectors + share.vector) * V, softmax.x);
  if (share.vector == 0) {
    top[share.row] = softmax.top;
    total[share.row] = softmax.total;
  }
}

template <typename T, int V>
__global__ void __launch_bounds__(BLOCK)
    attention_pool(T* __restrict__ out, float* __restrict__ top, float* __restrict__ total,
                   float* __restrict__ partial, const T* __restrict__ scores, const T* __restrict__ values,
                   const long long* __restrict__ offsets, const int* __restrict__ bins, int rows, int vectors,
                   int giants, int piece_events) {
  const Share share = share_of(offsets, bins, rows, vectors, (vectors + 31) / 32, giants, piece_events);
  if (share.row < 0) return;
  const bool active = share.vector < vectors;
  Softmax<V> softmax;
  softmax.clear();
  if (active) {
#pragma unroll 4
    for (long long event = share.next; event < share.last; event += share.step) {
      const float score = to_float(scores[event]);
      float value[V];
      load<T, V>(value, values + (event * vectors + share.vector) * V);
      softmax.take(score, value);
    }
  }
  if (!gather(softmax, share) || !active) return;
  if (share.piece >= 0) part_of<Softmax<V>>(partial, share, vectors) = softmax;
  else store_attention<T, V>(out, top, total, softmax, share, vectors);
}

template <typename T, int V>
__global__ void __launch_bounds__(BLOCK)
    attention_pool_combine(T* __restrict__ out, float* __restrict__ top, float* __restrict__ total,
                           const float* __restrict__ partial, const long long* __restrict__ offsets,
                           const int* __restrict__ bins, int vectors, int giants) {
  const Share share = share_of_pieces(offsets, bins, vectors, (vectors + 31) / 32, giants);
  if (share.row < 0) return;
  const bool active = share.vector < vectors;
  Softmax<V> softmax;
  softmax.clear();
  if (active) {
    for (long long piece = share.next; piece < share.last; piece += share.step)
      softmax.merge(reinterpret_cast<const Softmax<V>*>(partial)[piece * vectors + share.vector]);
  }
  if (gather(softmax, share) && active) store_attention<T, V>(out, top, total, softmax, share, vectors);
}

/* With p = exp(score - top) / total:  grad_values = p * grad_out,  grad_score = p * (grad_out . value - grad_out . out).
   A lane takes vectors lane, lane + lanes, ...: the inner product needs the whole of D. */
template <typename T, int V>
__global__ void __launch_bounds__(BLOCK)
    attention_pool_backward(T* __restrict__ grad_scores, T* __restrict__ grad_values, const T* __restrict__ grad_out,
                            const T* __restrict__ out, const float* __restrict__ top, const float* __restrict__ total,
                            const T* __restrict__ scores, const T* __restrict__ values,
                            const long long* __restrict__ offsets, const int* __restrict__ bins, int rows, int vectors,
                            int giants, int piece_events) {
  const Share share = share_of(offsets, bins, rows, vectors, 1, giants, piece_events);
  if (share.row < 0 || share.next >= share.last) return;  // the same for all lanes of a group
  const unsigned mask = group_mask(share.lanes);
  const T* grad_row = grad_out + static_cast<long long>(share.row) * vectors * V;
  const T* out_row = out + static_cast<long long>(share.row) * vectors * V;
  const float row_top = top[share.row], row_total = total[share.row];
  float grad[V], value[V], own = 0.f;
  for (int vector = share.vector; vector < vectors; vector += share.lanes) {
    load<T, V>(grad, grad_row + vector * V);
    load<T, V>(value, out_row + vector * V);
#pragma unroll
    for (int i = 0; i < V; ++i) own += grad[i] * value[i];
  }
  own = group_sum(own, share.lanes, mask);
  for (long long event = share.next; event < share.last; event += share.step) {
    const float score = to_float(scores[event]);
    const bool masked = score == MINUS_INFINITY;
    const float weight = masked ? 0.f : expf(score - row_top) / row_total;
    float dot = 0.f;
    for (int vector = share.vector; vector < vectors; vector += share.lanes) {
      const long long place = (event * vectors + vector) * V;
      load<T, V>(grad, grad_row + vector * V);
      load<T, V>(value, values + place);
#pragma unroll
      for (int i = 0; i < V; ++i) {
        dot += grad[i] * value[i];
        grad[i] = masked ? 0.f : weight * grad[i];
      }
      store<T, V>(grad_values + place, grad);
    }
    dot = group_sum(dot, share.lanes, mask);
    if (share.vector == 0) from_float(grad_scores[event], masked ? 0.f : weight * (dot - own));
  }
}
