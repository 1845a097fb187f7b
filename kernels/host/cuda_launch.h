// From a kernel's type to an entry of host_kernels: what its parameters are, and how to call it with pointers to them.
#pragma once

template <class T>
struct host_base {
  static_assert(sizeof(T) == 0, "the CPU runner does not know this type of kernel parameter");
};
#define HOST_BASE(T)                       \
  template <>                              \
  struct host_base<T> {                    \
    static constexpr const char* name = #T; \
  };
HOST_BASE(bool)
HOST_BASE(signed char)
HOST_BASE(char)
HOST_BASE(unsigned char)
HOST_BASE(short)
HOST_BASE(unsigned short)
HOST_BASE(int)
HOST_BASE(unsigned int)
HOST_BASE(long)
HOST_BASE(unsigned long)
HOST_BASE(long long)
HOST_BASE(unsigned long long)
HOST_BASE(float)
HOST_BASE(double)
// Vectors are declared here and defined in cuda_vectors.h; their sizes are taken where they are complete.
#define HOST_VECTOR_BASES(NAME) \
  struct NAME##2;               \
  struct NAME##4;               \
  HOST_BASE(NAME##2)            \
  HOST_BASE(NAME##4)
HOST_VECTOR_BASES(char)
HOST_VECTOR_BASES(uchar)
HOST_VECTOR_BASES(short)
HOST_VECTOR_BASES(ushort)
HOST_VECTOR_BASES(int)
HOST_VECTOR_BASES(uint)
HOST_VECTOR_BASES(longlong)
HOST_VECTOR_BASES(ulonglong)
HOST_VECTOR_BASES(float)
HOST_VECTOR_BASES(double)

template <class T>
struct host_passed {
  static constexpr host_parameter parameter() { return {host_base<T>::name, sizeof(T), false, true}; }
};
template <class T>
struct host_passed<T*> {
  static constexpr host_parameter parameter() { return {host_base<T>::name, sizeof(T), true, false}; }
};
template <class T>
struct host_passed<const T*> {
  static constexpr host_parameter parameter() { return {host_base<T>::name, sizeof(T), true, true}; }
};

template <size_t... I>
struct host_indices {};

// Not instrumented: the arguments lie in the runtime's own memory.
#define HOST_UNSEEN __attribute__((no_sanitize("thread"), no_sanitize_coverage, noinline))

template <auto kernel, class F = decltype(kernel)>
struct host_entry;
template <auto kernel, class... A>
struct host_entry<kernel, void (*)(A...)> {
  static constexpr host_parameter parameters[] = {host_passed<A>::parameter()..., {nullptr, 0, false, false}};
  template <size_t... I>
  HOST_UNSEEN static void spread(void** arguments, host_indices<I...>) {
    kernel(*static_cast<A*>(arguments[I])...);
  }
  HOST_UNSEEN static void call(void** arguments) {
    spread(arguments, host_indices<__integer_pack(sizeof...(A))...>{});
  }
};
#define HOST_KERNEL(TEXT, ...) {TEXT, host_entry<&__VA_ARGS__>::parameters, &host_entry<&__VA_ARGS__>::call}
