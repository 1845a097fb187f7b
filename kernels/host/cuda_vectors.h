// Vector types with CUDA's alignment. In the checked build a copy of one is one access of its whole size, as on a GPU.
#pragma once

#ifdef HOST_CHECKED
#define HOST_VECTOR_COPIES(V)                                                 \
  V() = default;                                                              \
  HOST_INLINE V(const V& other) { host_copy(this, &other, sizeof(V)); }       \
  HOST_INLINE V& operator=(const V& other) {                                  \
    host_copy(this, &other, sizeof(V));                                       \
    return *this;                                                             \
  }
#define HOST_VECTOR_INIT(...) __VA_ARGS__
#else
#define HOST_VECTOR_COPIES(V)
#define HOST_VECTOR_INIT(...)
#endif

#define HOST_VECTORS(T, NAME, ALIGN2, ALIGN4)                                                    \
  struct alignas(ALIGN2) NAME##2 {                                                               \
    T x, y;                                                                                      \
    HOST_VECTOR_COPIES(NAME##2)                                                                  \
    HOST_VECTOR_INIT(HOST_INLINE NAME##2(T a, T b) : x(a), y(b) {})                              \
  };                                                                                             \
  struct NAME##3 {                                                                               \
    T x, y, z;                                                                                   \
  };                                                                                             \
  struct alignas(ALIGN4) NAME##4 {                                                               \
    T x, y, z, w;                                                                                \
    HOST_VECTOR_COPIES(NAME##4)                                                                  \
    HOST_VECTOR_INIT(HOST_INLINE NAME##4(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {})        \
  };                                                                                             \
  HOST_INLINE NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                                \
  HOST_INLINE NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }                        \
  HOST_INLINE NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }

#define uint3 host_uint3_of_vectors  // abi.h has it already, for the indices
HOST_VECTORS(unsigned, uint, 8, 16)
#undef uint3
HOST_VECTORS(signed char, char, 2, 4)
HOST_VECTORS(unsigned char, uchar, 2, 4)
HOST_VECTORS(short, short, 4, 8)
HOST_VECTORS(unsigned short, ushort, 4, 8)
HOST_VECTORS(int, int, 8, 16)
HOST_VECTORS(long long, longlong, 16, 16)
HOST_VECTORS(unsigned long long, ulonglong, 16, 16)
HOST_VECTORS(float, float, 8, 16)
HOST_VECTORS(double, double, 16, 16)
