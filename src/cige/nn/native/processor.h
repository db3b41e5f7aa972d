/* What an x86-64 processor and its operating system can do, from the instructions cpuid and xgetbv. GCC and Clang have
   __builtin_cpu_supports for it, which needs a library that clang-cl does not link on Windows. */

#ifndef CIGE_PROCESSOR_H
#define CIGE_PROCESSOR_H

#if defined(__x86_64__)
#include <stdint.h>

#define BIT(N) (UINT32_C(1) << (N))

typedef struct {
  uint32_t a, b, c, d;
} Registers;

static inline Registers cpuid(uint32_t leaf, uint32_t part) { /* zeros where the processor has no such leaf */
  Registers r;
  __asm__ volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "0"(leaf & BIT(31)), "2"(0));
  if (r.a < leaf) return (Registers){0, 0, 0, 0};
  __asm__ volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "0"(leaf), "2"(part));
  return r;
}

static inline int has_all(uint32_t bits, uint32_t asked) { return (bits & asked) == asked; }

/* Whether the operating system saves these registers, which are bits of XCR0, when it changes threads. */
static inline int saves(uint32_t registers) {
  if (!has_all(cpuid(1, 0).c, BIT(27))) return 0; /* OSXSAVE: there is xgetbv */
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return has_all(low, registers);
}

static inline int processor_has_avx2(void) {
  const uint32_t fma = BIT(12), avx = BIT(28), avx2 = BIT(5);
  return has_all(cpuid(1, 0).c, fma | avx) && has_all(cpuid(7, 0).b, avx2) && saves(0x6);
}

static inline int processor_has_avx512(void) {
  const uint32_t f = BIT(16), dq = BIT(17), bw = BIT(30), vl = BIT(31);
#if defined(__APPLE__)
  const uint32_t registers = 0x6; /* macOS saves the wide ones from a thread's first use on, and only then says so */
#else
  const uint32_t registers = 0xe6;
#endif
  return processor_has_avx2() && has_all(cpuid(7, 0).b, f | dq | bw | vl) && saves(registers);
}

/* What avx512 may have besides. */
static inline int processor_has_vnni(void) { return processor_has_avx512() && has_all(cpuid(7, 0).c, BIT(11)); }
static inline int processor_has_bf16(void) {
  return processor_has_avx512() && cpuid(7, 0).a >= 1 && has_all(cpuid(7, 1).a, BIT(5));
}

/* What avx2 may have besides. */
static inline int processor_has_avxvnni(void) {
  return processor_has_avx2() && cpuid(7, 0).a >= 1 && has_all(cpuid(7, 1).a, BIT(4));
}

#endif
#endif
