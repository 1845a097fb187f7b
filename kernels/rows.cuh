/* rows.cuh: what the segmented kernels share: storage types, vectors along D, and who works on which row.

   A row is worked on by groups of lanes. A group is the least power of two of lanes, at most 32, that holds the vectors
   of one event (V features each), so that one event is one coalesced access of a group; more than 32 vectors are cut
   into tiles of 32, each a unit of work of its own. How many groups share a row is decided by its length (bin_rows.cu):
     short   one group a row, 32 / lanes rows a warp       medium  the groups of a warp
     long    the groups of a block                         giant   cut into pieces, a block each, combined afterwards
   One launch does all of them, the heaviest first: block -> unit of work from counts that lie on the device, so the host
   never waits. The grid is the worst case, and blocks without work return at once.

   bins  i32: giant rows, end of long, end of medium, pieces | first piece of each giant (giants + 1) | rows in order (B)
         the order is giant, long, medium, short; giants = the most giant rows that T events can hold */

constexpr int BLOCK = 256, WARPS = BLOCK / 32, HEADER = 4;
constexpr unsigned ALL_LANES = 0xffffffffu;
#define MINUS_INFINITY (-__int_as_float(0x7f800000))  // NVRTC has neither INFINITY nor NAN
#define NOT_A_NUMBER __int_as_float(0x7fffffff)

// ---- storage: 16-bit types without the toolkit's headers; arithmetic is always float32 ----------------------------

struct f16 { unsigned short bits; };
struct bf16 { unsigned short bits; };

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
__device__ __forceinline__ float to_float(f16 x) {
#ifdef __CUDACC__
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
#else  // the CPU runner
  return static_cast<float>(__builtin_bit_cast(_Float16, x.bits));
#endif
}

__device__ __forceinline__ void from_float(float& y, float x) { y = x; }
__device__ __forceinline__ void from_float(bf16& y, float x) {  // to nearest, ties to even; NaN stays NaN
  const unsigned bits = __float_as_uint(x);
  y.bits = static_cast<unsigned short>(x == x ? (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16 : 0x7fffu);
}
__device__ __forceinline__ void from_float(f16& y, float x) {
#ifdef __CUDACC__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
  y.bits = __builtin_bit_cast(unsigned short, static_cast<_Float16>(x));
#endif
}

// ---- vectors: V neighbouring features in one access ----------------------------------------------------------------

template <typename T, int V>
struct alignas(sizeof(T) * V) Pack { T x[V]; };

template <typename T, int V>
__device__ __forceinline__ void load(float (&x)[V], const T* __restrict__ from) {
  const Pack<T, V> pack = *reinterpret_cast<const Pack<T, V>*>(from);
#pragma unroll
  for (int i = 0; i < V; ++i) x[i] = to_float(pack.x[i]);
}

template <typename T, int V>
__device__ __forceinline__ void store(T* __restrict__ to, const float (&x)[V]) {
  Pack<T, V> pack;
#pragma unroll
  for (int i = 0; i < V; ++i) from_float(pack.x[i], x[i]);
  *reinterpret_cast<Pack<T, V>*>(to) = pack;
}

// ---- who works on which row -----------------------------------------------------------------------------------------

enum Sharing { GROUP, WARP, WHOLE_BLOCK };  // who shares a row; the same for all threads of a warp and, if it is
                                            // WHOLE_BLOCK, of the block

struct Share {
  int row;                // -1: nothing to do
  int piece;              // number among the pieces of all giant rows; -1: the row is whole
  int vector;             // this lane's; beyond the last one in surplus lanes of a group
  int lanes;              // of a group
  Sharing sharing;
  long long start, stop;  // events of the row
  long long next, last;   // of those this group takes next, next + step, ... below last
  int step;
};

__device__ __forceinline__ int group_lanes(int vectors) {
  return vectors >= 32 ? 32 : 1 << (32 - __clz(vectors - 1));
}

// Lanes of a group as a mask for shuffles: groups of a warp leave their loops at different times.
__device__ __forceinline__ unsigned group_mask(int lanes) {
  const unsigned low = lanes == 32 ? ALL_LANES : (1u << lanes) - 1u;
  return low << (threadIdx.x % 32 / lanes * lanes);
}

// Groups of the warp or block that share [first, last): where this one starts, and its step.
__device__ __forceinline__ void divide(Share& share, long long first, long long last) {
  const int per_warp = 32 / share.lanes, own = threadIdx.x % 32 / share.lanes;
  share.step = share.sharing == GROUP ? 1 : share.sharing == WARP ? per_warp : WARPS * per_warp;
  share.next = first + (share.sharing == GROUP ? 0 : share.sharing == WARP ? own : threadIdx.x / 32 * per_warp + own);
  share.last = last;
}

// The giant row that has a piece: the last one whose first piece is not above it.
__device__ __forceinline__ int giant_of(int piece, const int* __restrict__ first_piece, int giant_rows) {
  int low = 0, high = giant_rows;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (first_piece[middle] <= piece) low = middle; else high = middle;
  }
  return low;
}

/* The share of this thread's group. tiles: 1, or ceil(vectors / 32) if a lane keeps one vector in registers. */
__device__ __forceinline__ Share share_of(const long long* __restrict__ offsets, const int* __restrict__ bins, int rows,
                                          int vectors, int tiles, int giants, int piece_events) {
  const int giant_rows = bins[0], long_end = bins[1], medium_end = bins[2], pieces = bins[3];
  const int* first_piece = bins + HEADER;
  const int* order = first_piece + giants + 1;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Share share;
  share.row = share.piece = -1;
  share.lanes = group_lanes(vectors);
  const int per_warp = 32 / share.lanes;
  int unit = blockIdx.x, place = -1, item = unit;  // an item is a row or piece, times tile
  const int long_units = (long_end - giant_rows) * tiles, medium_items = (medium_end - long_end) * tiles;
  const int medium_units = (medium_items + WARPS - 1) / WARPS;
  if (unit < pieces * tiles) {
    share.sharing = WHOLE_BLOCK;
    share.piece = item / tiles;
    place = giant_of(share.piece, first_piece, giant_rows);
  } else if ((unit -= pieces * tiles) < long_units) {
    share.sharing = WHOLE_BLOCK;
    item = unit;
    place = giant_rows + item / tiles;
  } else if ((unit -= long_units) < medium_units) {
    share.sharing = WARP;
    item = unit * WARPS + warp;
    if (item < medium_items) place = long_end + item / tiles;
  } else {
    unit -= medium_units;
    share.sharing = GROUP;
    const int short_items = (rows - medium_end) * tiles, per_block = WARPS * per_warp;
    if (unit >= (short_items + per_block - 1) / per_block) return share;  // before item would leave an int
    item = (unit * WARPS + warp) * per_warp + lane / share.lanes;
    if (item < short_items) place = medium_end + item / tiles;
  }
  if (place < 0) return share;
  share.vector = item % tiles * 32 + lane % share.lanes;
  share.row = order[place];
  share.start = offsets[share.row];
  share.stop = offsets[share.row + 1];
  if (share.piece < 0) {
    divide(share, share.start, share.stop);
  } else {
    const long long first = share.start + static_cast<long long>(share.piece - first_piece[place]) * piece_events;
    divide(share, first, min(first + piece_events, share.stop));
  }
  return share;
}

/* The share of a block that combines a giant row: its pieces in place of events. Grid: giants * tiles. */
__device__ __forceinline__ Share share_of_pieces(const long long* __restrict__ offsets, const int* __restrict__ bins,
                                                 int vectors, int tiles, int giants) {
  const int* first_piece = bins + HEADER;
  const int giant = blockIdx.x / tiles;
  Share share;
  share.row = share.piece = -1;
  share.lanes = group_lanes(vectors);
  if (giant >= bins[0]) return share;
  share.sharing = WHOLE_BLOCK;
  share.vector = blockIdx.x % tiles * 32 + threadIdx.x % 32 % share.lanes;
  share.row = first_piece[giants + 1 + giant];
  share.start = offsets[share.row];
  share.stop = offsets[share.row + 1];
  divide(share, first_piece[giant], first_piece[giant + 1]);
  return share;
}

/* Bring together what the groups that share a row have: true in the lanes that then hold the whole.
   ACC has from_lane(distance), the same of the lane `distance` away, and merge(other); merging is commutative.
   All threads that share must call it. */
template <typename ACC>
__device__ __forceinline__ bool gather(ACC& own, const Share& share) {
  if (share.sharing == GROUP) return true;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int distance = share.lanes; distance < 32; distance *= 2) own.merge(own.from_lane(distance));
  if (share.sharing == WARP) return lane < share.lanes;
  __shared__ ACC parts[WARPS][32];
  if (lane < share.lanes) parts[warp][lane] = own;
  __syncthreads();
  if (warp > 0 || lane >= share.lanes) return false;
  for (int other = 1; other < WARPS; ++other) own.merge(parts[other][lane]);
  return true;
}

// Where a block leaves what it has of a giant row: an accumulator a piece and vector.
template <typename ACC>
__device__ __forceinline__ ACC& part_of(float* __restrict__ partial, const Share& share, int vectors) {
  return reinterpret_cast<ACC*>(partial)[static_cast<long long>(share.piece) * vectors + share.vector];
}

template <int V>
struct alignas(4 * V) Sum {
  float x[V];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < V; ++i) x[i] = 0.f;
  }
  __device__ __forceinline__ Sum from_lane(int distance) const {
    Sum other;
#pragma unroll
    for (int i = 0; i < V; ++i) other.x[i] = __shfl_xor_sync(ALL_LANES, x[i], distance);
    return other;
  }
  __device__ __forceinline__ void merge(const Sum& other) {
#pragma unroll
    for (int i = 0; i < V; ++i) x[i] += other.x[i];
  }
};

// A finished row, as it is or divided by its length; exactly 0 if it has no events.
template <typename T, int V>
__device__ __forceinline__ void store_sum(T* __restrict__ out, Sum<V>& sum, const Share& share, int vectors, int mean) {
  const float length = mean && share.stop > share.start ? static_cast<float>(share.stop - share.start) : 1.f;
#pragma unroll
  for (int i = 0; i < V; ++i) sum.x[i] /= length;
  store<T, V>(out + (static_cast<long long>(share.row) * vectors + share.vector) * V, sum.x);
}

/* A giant row from the sums of its pieces: one block a giant and tile. */
template <typename T, int V>
__device__ __forceinline__ void combine_sums(T* __restrict__ out, const float* __restrict__ partial,
                                             const long long* __restrict__ offsets, const int* __restrict__ bins,
                                             int vectors, int giants, int mean) {
  const Share share = share_of_pieces(offsets, bins, vectors, (vectors + 31) / 32, giants);
  if (share.row < 0) return;
  const bool active = share.vector < vectors;
  Sum<V> sum;
  sum.clear();
  if (active) {
    for (long long piece = share.next; piece < share.last; piece += share.step)
      sum.merge(reinterpret_cast<const Sum<V>*>(partial)[piece * vectors + share.vector]);
  }
  if (gather(sum, share) && active) store_sum<T, V>(out, sum, share, vectors, mean);
}

// Sum of one number over the lanes of a group, in all of them.
__device__ __forceinline__ float group_sum(float x, int lanes, unsigned mask) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(mask, x, distance);
  return x;
}
