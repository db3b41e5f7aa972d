/* Numbers of 16 bits that kernels read and write; sums are in float. */

#ifndef CIGE_BF16_H
#define CIGE_BF16_H

#include <stdint.h>

typedef uint32_t __attribute__((may_alias)) bits_t;

static inline float widen_bf16(uint16_t x) {
  float wide;
  *(bits_t *)&wide = (uint32_t)x << 16;
  return wide;
}

static inline uint16_t narrow_bf16(float x) { /* to nearest, ties to even; rounded up, a NaN could become 0 */
  const uint32_t bits = *(bits_t *)&x;
  const int is_nan = (bits & 0x7fffffff) > 0x7f800000; /* by its bits: a loop of integers */
  return (uint16_t)(is_nan ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float same(float x) { return x; }

#endif
