// Access patterns whose sectors, lanes and bank passes are known by hand. One warp, 32 lanes, unless said otherwise.

extern "C" __global__ void strided(float* out, const float* in, int stride) {
  out[threadIdx.x] = in[threadIdx.x * stride];
}
extern "C" __global__ void shifted(float* out, const float* in, int first) {
  out[threadIdx.x] = in[threadIdx.x + first];
}
extern "C" __global__ void broadcast(float* out, const float* in) {
  out[threadIdx.x] = in[0];
}
extern "C" __global__ void vectors(float4* out, const float4* in) {
  out[threadIdx.x] = in[threadIdx.x];
}
extern "C" __global__ void first_half(float* out, const float* in) {
  if (threadIdx.x < 16) out[threadIdx.x] = in[threadIdx.x];
}
extern "C" __global__ void even_lanes(float* out, const float* in) {
  if (threadIdx.x % 2 == 0) out[threadIdx.x] = in[threadIdx.x];
}
extern "C" __global__ void adds_to(int* out, const int* bucket) {
  atomicAdd(&out[bucket[threadIdx.x]], 1);
}

// --- loops of different lengths
extern "C" __global__ void ragged(float* out, const float* in, const int* length) {
  float sum = 0;
  for (int i = 0; i < length[threadIdx.x]; ++i)
    sum += in[i * 32 + threadIdx.x];
  out[threadIdx.x] = sum;
}
extern "C" __global__ void nested(float* out, const float* in, const int* length) {
  float sum = 0;
  for (int j = 0; j < 4; ++j)
    for (int i = 0; i < length[threadIdx.x]; ++i)
      sum += in[(j * 16 + i) * 32 + threadIdx.x];
  out[threadIdx.x] = sum;
}
extern "C" __global__ void either_or(float* out, const float* in) {
  float value;
  if (threadIdx.x % 4 == 0)
    value = in[threadIdx.x] * 2;
  else
    value = in[threadIdx.x + 64] * 3;
  out[threadIdx.x] = value;
}
extern "C" __global__ void leaves_early(float* out, const float* in, int n) {
  if (threadIdx.x >= n) return;
  out[threadIdx.x] = in[threadIdx.x];
}
extern "C" __global__ void warp_sum(float* out, const float* in, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 32)
    sum += in[i];
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (threadIdx.x == 0)
    out[0] = sum;
}

// --- shared memory
template <typename T>
__global__ void banks(float* out, const int* place) {
  __shared__ T tile[1056];
  for (int i = threadIdx.x; i < 1056; i += 32) tile[i] = T();
  __syncthreads();
  const T value = tile[place[threadIdx.x]];
  out[threadIdx.x] = reinterpret_cast<const float&>(value);
}
