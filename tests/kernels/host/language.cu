// What CUDA C says about intrinsics, a kernel a group; the test has the same in NumPy.

extern "C" __global__ void indices(int* out) {
  const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const int at = block * blockDim.x * blockDim.y * blockDim.z + thread;
  out[at] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x + 10000 * blockIdx.y +
            100000 * blockIdx.z;
}

extern "C" __global__ void shuffles(int* out, int by, int width) {
  const int lane = threadIdx.x;
  out[lane] = __shfl_sync(0xffffffffu, lane, by, width);
  out[32 + lane] = __shfl_up_sync(0xffffffffu, lane, by, width);
  out[64 + lane] = __shfl_down_sync(0xffffffffu, lane, by, width);
  out[96 + lane] = __shfl_xor_sync(0xffffffffu, lane, by, width);
}

extern "C" __global__ void wide_shuffles(double* doubles, long long* longs) {
  doubles[threadIdx.x] = __shfl_xor_sync(0xffffffffu, threadIdx.x + 0.25, 1);
  longs[threadIdx.x] = __shfl_xor_sync(0xffffffffu, (1ll << 40) + threadIdx.x, 1);
}

extern "C" __global__ void votes(unsigned* out, const int* value) {
  const int v = value[threadIdx.x];
  out[threadIdx.x] = __ballot_sync(0xffffffffu, v > 0);
  out[32 + threadIdx.x] = __any_sync(0xffffffffu, v > 0);
  out[64 + threadIdx.x] = __all_sync(0xffffffffu, v > 0);
  out[96 + threadIdx.x] = __match_any_sync(0xffffffffu, v);
}

extern "C" __global__ void block_votes(int* out, const int* value) {
  const int v = value[threadIdx.x];
  const int count = __syncthreads_count(v > 0), all = __syncthreads_and(v > 0), any = __syncthreads_or(v > 0);
  out[threadIdx.x] = count + 1000 * (all != 0) + 2000 * (any != 0);
}

template <typename T>
__global__ void atomics(T* out, T* old, T value) {
  atomicAdd(out, value);
  atomicSub(out + 1, value);
  atomicMax(out + 2, static_cast<T>(value * threadIdx.x));
  atomicMin(out + 3, static_cast<T>(value * threadIdx.x));
  atomicOr(out + 4, static_cast<T>(1) << threadIdx.x % 8);
  atomicAnd(out + 5, ~(static_cast<T>(1) << threadIdx.x % 8));
  atomicXor(out + 6, static_cast<T>(1) << threadIdx.x % 8);
  if (atomicCAS(out + 7, static_cast<T>(0), static_cast<T>(threadIdx.x + 1)) == 0) atomicAdd(out + 8, value);
  old[threadIdx.x] = atomicExch(out + 9, static_cast<T>(threadIdx.x));
}

extern "C" __global__ void bits(int* out, int x, float f) {
  out[0] = __popc(x);
  out[1] = __clz(x);
  out[2] = __ffs(x);
  out[3] = __float_as_int(f);
  out[4] = __int_as_float(__float_as_int(f)) == f;
  out[5] = __umulhi(0x80000000u, 6u);
  out[6] = __float2int_rn(f);
  out[7] = __float2int_rz(f);
  out[8] = warpSize;
}

extern "C" __global__ void math(float* out, float x, float y) {
  out[0] = __expf(x);
  out[1] = fminf(x, y);
  out[2] = fmaxf(x, __int_as_float(0x7fc00000));  // the other one where one is NaN
  out[3] = rsqrtf(y);
  out[4] = __fdividef(x, y);
  out[5] = fmaf(x, y, 1.0f);
  out[6] = max(x, y);
  out[7] = exp(x);
  out[8] = __saturatef(x);
  out[9] = isnan(x - __int_as_float(0x7f800000) + __int_as_float(0x7f800000));
}

__constant__ float table[4] = {1, 2, 4, 8};
__device__ float scaled(float x);
__device__ float scaled(float x) { return 2 * x; }

extern "C" __global__ void vectors(float4* out, const float4* in, const int2* places) {
  const int2 place = places[threadIdx.x];
  float4 v = __ldg(in + place.x);
  v.x += table[place.y];
  v = make_float4(v.w, v.z, v.y, scaled(v.x));
  out[threadIdx.x] = v;
}

struct f16 {
  unsigned short bits;
};
struct bf16 {
  unsigned short bits;
};
extern "C" __global__ void halves(unsigned short* out, const f16* a, const bf16* b) {
  out[2 * threadIdx.x] = a[threadIdx.x].bits;
  out[2 * threadIdx.x + 1] = b[threadIdx.x].bits;
}
extern "C" __global__ void null_or_not(int* out, const float* maybe) { out[threadIdx.x] = maybe == nullptr; }
extern "C" __global__ void says(int n) { printf("thread %d of %d\n", static_cast<int>(threadIdx.x), n); }
