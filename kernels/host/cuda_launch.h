// From a kernel's type to an entry of host_kernels: what its parameters are, and how to call it with pointers to them.
#pragma once

// The name of a type as g++ writes it: "float", "long long int", "float4", "bf16".
template <class T>
constexpr const char* host_type_name() {
  return __PRETTY_FUNCTION__;
}

template <class T>
struct host_passed {
  static constexpr host_parameter parameter() { return {host_type_name<T>(), sizeof(T), false, true}; }
};
template <class T>
struct host_passed<T*> {
  static constexpr host_parameter parameter() { return {host_type_name<T>(), sizeof(T), true, false}; }
};
template <class T>
struct host_passed<const T*> {
  static constexpr host_parameter parameter() { return {host_type_name<T>(), sizeof(T), true, true}; }
};

template <class T>
struct host_passed<volatile T*> : host_passed<T*> {};
template <class T>
struct host_passed<const volatile T*> : host_passed<const T*> {};

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
  HOST_UNSEEN static const void* address() { return reinterpret_cast<const void*>(kernel); }
  HOST_UNSEEN static void call(void** arguments) {
    spread(arguments, host_indices<__integer_pack(sizeof...(A))...>{});
  }
};
#define HOST_KERNEL(TEXT, ...) \
  {TEXT, host_entry<&__VA_ARGS__>::parameters, &host_entry<&__VA_ARGS__>::call, &host_entry<&__VA_ARGS__>::address}
