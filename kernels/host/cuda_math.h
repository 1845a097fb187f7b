// Math that NVRTC knows without headers. Fast intrinsics (__expf) are the exact functions: the CPU shows the algorithm,
// not the last bits of a GPU's special function unit.
#pragma once

extern "C" {
float expf(float) noexcept;
float exp2f(float) noexcept;
float exp10f(float) noexcept;
float expm1f(float) noexcept;
float logf(float) noexcept;
float log2f(float) noexcept;
float log10f(float) noexcept;
float log1pf(float) noexcept;
float sqrtf(float) noexcept;
float cbrtf(float) noexcept;
float fabsf(float) noexcept;
float floorf(float) noexcept;
float ceilf(float) noexcept;
float truncf(float) noexcept;
float roundf(float) noexcept;
float rintf(float) noexcept;
float tanhf(float) noexcept;
float sinf(float) noexcept;
float cosf(float) noexcept;
float erff(float) noexcept;
float fminf(float, float) noexcept;
float fmaxf(float, float) noexcept;
float fmodf(float, float) noexcept;
float powf(float, float) noexcept;
float copysignf(float, float) noexcept;
float fmaf(float, float, float) noexcept;
double exp(double) noexcept;
double log(double) noexcept;
double sqrt(double) noexcept;
double fabs(double) noexcept;
double floor(double) noexcept;
double ceil(double) noexcept;
double pow(double, double) noexcept;
double fmin(double, double) noexcept;
double fmax(double, double) noexcept;
double fma(double, double, double) noexcept;
int abs(int) noexcept;
}

// CUDA overloads the double names for float.
HOST_INLINE float exp(float x) { return expf(x); }
HOST_INLINE float log(float x) { return logf(x); }
HOST_INLINE float sqrt(float x) { return sqrtf(x); }
HOST_INLINE float fabs(float x) { return fabsf(x); }
HOST_INLINE float floor(float x) { return floorf(x); }
HOST_INLINE float ceil(float x) { return ceilf(x); }
HOST_INLINE float pow(float x, float y) { return powf(x, y); }
HOST_INLINE float abs(float x) { return fabsf(x); }
HOST_INLINE double abs(double x) { return fabs(x); }
HOST_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
HOST_INLINE bool isnan(float x) { return __builtin_isnan(x); }
HOST_INLINE bool isinf(float x) { return __builtin_isinf(x); }
HOST_INLINE bool isfinite(float x) { return __builtin_isfinite(x); }

// min and max: exactly CUDA's overloads, so that a call that is ambiguous there is ambiguous here.
#define HOST_EXTREMA(R, A, B)                                                            \
  HOST_INLINE R max(A a, B b) { return static_cast<R>(a) > static_cast<R>(b) ? a : b; } \
  HOST_INLINE R min(A a, B b) { return static_cast<R>(a) < static_cast<R>(b) ? a : b; }
#define HOST_INTEGER_EXTREMA(S, U) \
  HOST_EXTREMA(S, S, S) HOST_EXTREMA(U, U, U) HOST_EXTREMA(U, S, U) HOST_EXTREMA(U, U, S)
HOST_INTEGER_EXTREMA(int, unsigned)
HOST_INTEGER_EXTREMA(long, unsigned long)
HOST_INTEGER_EXTREMA(long long, unsigned long long)
HOST_INLINE float max(float a, float b) { return fmaxf(a, b); }
HOST_INLINE float min(float a, float b) { return fminf(a, b); }
HOST_INLINE double max(double a, double b) { return fmax(a, b); }
HOST_INLINE double min(double a, double b) { return fmin(a, b); }
HOST_INLINE double max(float a, double b) { return fmax(a, b); }
HOST_INLINE double max(double a, float b) { return fmax(a, b); }
HOST_INLINE double min(float a, double b) { return fmin(a, b); }
HOST_INLINE double min(double a, float b) { return fmin(a, b); }

// --- intrinsics of one number
HOST_INLINE float __expf(float x) { return expf(x); }
HOST_INLINE float __exp10f(float x) { return exp10f(x); }
HOST_INLINE float __logf(float x) { return logf(x); }
HOST_INLINE float __log2f(float x) { return log2f(x); }
HOST_INLINE float __powf(float x, float y) { return powf(x, y); }
HOST_INLINE float __sinf(float x) { return sinf(x); }
HOST_INLINE float __cosf(float x) { return cosf(x); }
HOST_INLINE float rsqrtf(float x) { return 1.0f / sqrtf(x); }
HOST_INLINE float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
HOST_INLINE float __fsqrt_rn(float x) { return sqrtf(x); }
HOST_INLINE float __fdividef(float a, float b) { return a / b; }
HOST_INLINE float __fdiv_rn(float a, float b) { return a / b; }
HOST_INLINE float __frcp_rn(float a) { return 1.0f / a; }
HOST_INLINE float __fadd_rn(float a, float b) { return a + b; }
HOST_INLINE float __fsub_rn(float a, float b) { return a - b; }
HOST_INLINE float __fmul_rn(float a, float b) { return a * b; }
HOST_INLINE float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
HOST_INLINE float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
HOST_INLINE int __float2int_rz(float x) { return static_cast<int>(x); }
HOST_INLINE int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
HOST_INLINE float __int2float_rn(int x) { return static_cast<float>(x); }
HOST_INLINE float __ll2float_rn(long long x) { return static_cast<float>(x); }
HOST_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
HOST_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
HOST_INLINE int __ffs(int x) { return __builtin_ffs(x); }
HOST_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
HOST_INLINE int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
HOST_INLINE int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
HOST_INLINE unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}

// --- the same bits as another type
template <class To, class From>
HOST_INLINE To host_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}
HOST_INLINE float __int_as_float(int x) { return host_bits<float>(x); }
HOST_INLINE int __float_as_int(float x) { return host_bits<int>(x); }
HOST_INLINE float __uint_as_float(unsigned x) { return host_bits<float>(x); }
HOST_INLINE unsigned __float_as_uint(float x) { return host_bits<unsigned>(x); }
HOST_INLINE double __longlong_as_double(long long x) { return host_bits<double>(x); }
HOST_INLINE long long __double_as_longlong(double x) { return host_bits<long long>(x); }
