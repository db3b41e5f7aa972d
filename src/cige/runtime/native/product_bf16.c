/* Products of bfloat16 numbers with sums in float32 (AVX512-BF16; BFMMLA of ARM). Weights and numbers of rows are
   rounded to nearest, ties to even; subnormal ones count as 0. */

#include "product.h"

#include "bfloat16_pairs.h"

#if defined(HAS_BFLOAT16)
#define TARGET BF16_TARGET
#define PRODUCT product_bf16

typedef vector_t sums_t;
typedef struct { /* nothing */
  char none;
} Factors;

#if WIDTH == 16
#define GROUP 2
#else
#define PAIRS
#define GROUP 4
#endif

static inline TARGET Factors narrow(void *groups, const float *x, int64_t n, const Linear *linear) {
  (void)linear;
  uint32_t *pairs = groups;
  if (GROUP == 4 && (n + 1) / 2 % 2) pairs[(n + 1) / 2] = 0;
  narrow_row(pairs, x, n);
  return (Factors){0};
}

#if WIDTH == 16
static inline TARGET sums_t first_sums(const Factors *factors) {
  (void)factors;
  return (sums_t){0};
}

static inline TARGET sums_t add_group(sums_t sums, ints_t weights, ints_t groups) {
  return add_pairs(sums, weights, groups);
}
#else
static inline sums_t add_squares(sums_t sums, ints_t weights, ints_t groups) {
  return (sums_t)vbfmmlaq_f32((float32x4_t)sums, (bfloat16x8_t)groups, (bfloat16x8_t)weights);
}
#endif

static inline TARGET vector_t finished(sums_t sums, const Factors *factors, vector_t start, const float *scales) {
  (void)factors, (void)scales;
  return sums + start;
}

#include "product_narrow.h"

#if WIDTH == 16
int has_bf16(void) { return processor_has_bf16(); }
#else
int has_bf16(void) { return 1; }
#endif

#else
int has_bf16(void) { return 0; }
NO_PRODUCT(product_bf16)
#endif
