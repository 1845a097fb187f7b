// Small programs whose answers are known by hand: each defect beside the right program, which must stay silent.
#define BLOCKS_OF(n) (((n) + 31) / 32)

// --- ordering in a block: a thread reads what its neighbour wrote
extern "C" __global__ void barrier_missing(float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
extern "C" __global__ void barrier_there(float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
// The next round overwrites what others still read.
extern "C" __global__ void second_barrier_missing(float* out) {
  __shared__ float tile[64];
  for (int round = 0; round < 2; ++round) {
    tile[threadIdx.x] = threadIdx.x + round;
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x];
  }
}
extern "C" __global__ void second_barrier_there(float* out) {
  __shared__ float tile[64];
  for (int round = 0; round < 2; ++round) {
    tile[threadIdx.x] = threadIdx.x + round;
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x];
    __syncthreads();
  }
}
extern "C" __global__ void same_cell(float* out) { out[0] = threadIdx.x; }
extern "C" __global__ void own_cell(float* out) { out[threadIdx.x] = threadIdx.x; }

// --- ordering in a warp
extern "C" __global__ void warp_unordered(float* out) {
  __shared__ float tile[32];
  tile[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = tile[31 - threadIdx.x];
}
extern "C" __global__ void warp_ordered(float* out) {
  __shared__ float tile[32];
  tile[threadIdx.x] = threadIdx.x;
  __syncwarp();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}
// A shuffle makes lanes meet and orders no memory.
extern "C" __global__ void shuffle_is_no_barrier(float* out) {
  __shared__ float tile[32];
  tile[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0f, 0) + tile[31 - threadIdx.x];
}
// Two halves meet apart from each other; the second half reads what the first wrote.
extern "C" __global__ void halves_ordered_apart(float* out) {
  __shared__ float tile[32];
  const unsigned half = threadIdx.x < 16 ? 0x0000ffffu : 0xffff0000u;
  tile[threadIdx.x] = threadIdx.x;
  __syncwarp(half);
  out[threadIdx.x] = tile[(threadIdx.x + 16) % 32];
}
extern "C" __global__ void halves_ordered_inside(float* out) {
  __shared__ float tile[32];
  const unsigned half = threadIdx.x < 16 ? 0x0000ffffu : 0xffff0000u;
  tile[threadIdx.x] = threadIdx.x;
  __syncwarp(half);
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

// --- ordering between blocks
extern "C" __global__ void blocks_add(float* out) {
  if (threadIdx.x == 0) out[0] += 1.0f;
}
extern "C" __global__ void blocks_add_atomically(float* out) {
  if (threadIdx.x == 0) atomicAdd(out, 1.0f);
}
template <bool FENCE>
__global__ void last_block_sums(float* out, float* parts, unsigned* arrived) {
  parts[blockIdx.x] = blockIdx.x + 1;
  if (FENCE) __threadfence();
  if (atomicAdd(arrived, 1u) != gridDim.x - 1) return;
  float sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += parts[i];
  out[0] = sum;
}
// Every thread writes; then the first one of the block takes the ticket. The barrier between the two is what counts.
template <bool FENCE, bool BARRIER, bool FENCE_AGAIN>
__global__ void last_block_adds(float* out, float* parts, unsigned* arrived) {
  __shared__ bool last;
  parts[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
  if (FENCE) __threadfence();
  if (BARRIER) __syncthreads();
  if (threadIdx.x == 0) {
    if (FENCE_AGAIN) __threadfence();
    last = atomicAdd(arrived, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  float sum = 0;
  for (unsigned i = 0; i < gridDim.x * blockDim.x; ++i) sum += parts[i];
  out[threadIdx.x] = sum;
}
// Each thread takes a ticket of its own.
extern "C" __global__ void last_thread_adds(float* out, float* parts, unsigned* arrived) {
  const unsigned threads = gridDim.x * blockDim.x;
  parts[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
  __threadfence();
  if (atomicAdd(arrived, 1u) != threads - 1) return;
  float sum = 0;
  for (unsigned i = 0; i < threads; ++i) sum += parts[i];
  out[0] = sum;
}

// --- bounds and alignment
extern "C" __global__ void reads_one_beyond(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i + 1];
}
extern "C" __global__ void writes_one_beyond(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) out[i] = i < n ? in[i] : 0.0f;
}
extern "C" __global__ void reads_in_bounds(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}
extern "C" __global__ void writes_far_away(float* out) { out[1ll << 40] = 1.0f; }
extern "C" __global__ void shared_beyond(float* out) {
  __shared__ float tile[32];
  tile[threadIdx.x + 1] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}
template <int N>
__global__ void shared_into_the_next(float* out, int beyond) {
  __shared__ float first[N], second[N], third[N];
  third[threadIdx.x] = first[threadIdx.x] = 0.0f;
  second[threadIdx.x + beyond] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x] + third[threadIdx.x];
}
extern "C" __global__ void dynamic_shared(float* out) {
  extern __shared__ float tile[];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}
extern "C" __global__ void vector_from(float* out, const float* in, int first) {
  const float4 v = *reinterpret_cast<const float4*>(in + first + 4 * threadIdx.x);
  out[threadIdx.x] = v.x + v.y + v.z + v.w;
}
extern "C" __global__ void writes_const(const float* in) { const_cast<float*>(in)[threadIdx.x] = 0.0f; }
extern "C" __global__ void index_in_int(float* out, const float* in, int rows, int width) {
  const int at = (rows - 1) * width + threadIdx.x;  // wraps where rows * width passes 2^31
  out[threadIdx.x] = in[at];
}
extern "C" __global__ void index_in_long(float* out, const float* in, int rows, int width) {
  const long long at = static_cast<long long>(rows - 1) * width + threadIdx.x;
  out[threadIdx.x] = in[at];
}

// --- shared memory that nobody wrote
extern "C" __global__ void reads_unwritten(float* out) {
  __shared__ float tile[32];
  if (threadIdx.x != 7) tile[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void reads_written(float* out) {
  __shared__ float tile[32];
  tile[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

// --- waiting
extern "C" __global__ void barriers_in_branches(float* out) {
  if (threadIdx.x < 16) {
    __syncthreads();
    out[threadIdx.x] = 1.0f;
  } else {
    __syncthreads();
    out[threadIdx.x] = 2.0f;
  }
}
extern "C" __global__ void barrier_after_return(float* out, int n) {
  if (threadIdx.x >= n) return;
  __syncthreads();
  out[threadIdx.x] = 1.0f;
}
extern "C" __global__ void barrier_and_shuffle(float* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
  else __syncthreads();
}
extern "C" __global__ void shuffle_of_all(float* out) {
  out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, static_cast<float>(threadIdx.x), 1);
}
extern "C" __global__ void mask_without_caller(float* out) {
  out[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, static_cast<float>(threadIdx.x), 1);
}
extern "C" __global__ void shuffle_of_exited(float* out, int n) {
  if (threadIdx.x >= n) return;
  out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, static_cast<float>(threadIdx.x), 16);
}
extern "C" __global__ void never_ends(volatile float* out) {
  while (out[0] == 0.0f) {
  }
}

extern "C" __global__ void prints_forever(volatile float* out) {
  while (out[0] == 0.0f) printf("thread %d of a kernel that was not meant to print\n", threadIdx.x);
}

// --- variables of the module
__device__ unsigned calls = 40;
__device__ float table[4] = {1, 2, 3, 4};
extern "C" __global__ void counts_its_calls(float* out) {
  if (threadIdx.x == 0) out[0] = atomicAdd(&calls, 1u);
  table[threadIdx.x] += 1;
  out[threadIdx.x + 1] = table[threadIdx.x];
}
