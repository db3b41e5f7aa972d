/* Products of 8-bit numbers (INT8) and of 12-bit numbers (INT16) with sums in int32. Weights have a scale per output,
   and each row of x one of its own, the highest of its magnitudes as 127 or 2047. No sum overflows, so INT8 gives the
   same sums at every level.

   AVX512-VNNI takes weights without sign, so they are kept with 128 added, and the sum begins with what that is too
   much. AVX2 has no such instruction: its products of 8-bit numbers saturate if both have 8 bits. So there numbers are
   kept in 16 bits, two in a group. This takes as long with 12 bits as with 8, so only AVX2 has INT16, and WebAssembly, whose
   instructions are the same but half as wide. */

#include "product.h"

#include "integers16.h"

#if defined(__AVX512BW__) && __has_include(<avx512vnniintrin.h>)
#include "../../nn/native/maxima.h"
#include "../../nn/native/processor.h"

#define TARGET __attribute__((target("avx512vnni")))
#define GROUP 4

typedef ints_t sums_t;
typedef struct {
  float scale;
  int32_t first; /* -128 times the sum of the row's numbers */
} Factors;

static inline TARGET Factors narrow(uint32_t *groups, const float *x, int64_t n, const Linear *linear) {
  (void)linear;
  __m512 top = _mm512_setzero_ps();
  for (int64_t k = 0; k < n; k += WIDTH) {
    const __mmask16 mask = (__mmask16)(n - k < WIDTH ? (1u << (n - k)) - 1 : 0xffff);
    top = _mm512_max_ps(top, _mm512_abs_ps(_mm512_maskz_loadu_ps(mask, x + k)));
  }
  const float highest = _mm512_reduce_max_ps(top), factor = highest > 0 ? 127 / highest : 0;
  __m512i total = _mm512_setzero_si512();
  for (int64_t k = 0; k < n; k += WIDTH) {
    const __mmask16 mask = (__mmask16)(n - k < WIDTH ? (1u << (n - k)) - 1 : 0xffff);
    const __m512i wide = _mm512_cvtps_epi32(_mm512_maskz_loadu_ps(mask, x + k) * factor); /* to nearest, even */
    total = _mm512_add_epi32(total, wide);
    _mm_storeu_si128((__m128i *)(groups + k / GROUP), _mm512_cvtsepi32_epi8(wide));
  }
  return (Factors){highest / 127, -128 * _mm512_reduce_add_epi32(total)};
}

static inline TARGET sums_t first_sums(const Factors *factors) { return (sums_t)_mm512_set1_epi32(factors->first); }

static inline TARGET sums_t add_group(sums_t sums, ints_t weights, ints_t groups) {
  return (sums_t)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)weights, (__m512i)groups);
}

static inline TARGET vector_t finished(sums_t sums, const Factors *factors, vector_t start, const float *scales) {
  return (vector_t)_mm512_cvtepi32_ps((__m512i)sums) * factors->scale * *const_vectors(scales) + start;
}

#include "product_narrow.h"

int has_int8(void) { return processor_has_vnni(); }
int64_t int8_bytes(void) { return 1; }

#elif defined(HAS_INTEGERS16)

#define TARGET
#define GROUP 2
#define AT_ONCE 4 /* two instructions and a register between them for each product; more rows are not faster */

typedef ints_t sums_t;
typedef struct {
  float scale;
} Factors;

static inline Factors narrow(uint32_t *groups, const float *x, int64_t n, const Linear *linear) {
  const float highest = highest_magnitude(x, n);
  const float most = linear->precision == INT16 ? MOST_INT16 : 127;
  to_int16((int16_t *)groups, x, n, highest > 0 ? most / highest : 0);
  return (Factors){highest / most};
}

static inline sums_t first_sums(const Factors *factors) {
  (void)factors;
  return (sums_t){0};
}

static inline sums_t add_group(sums_t sums, ints_t weights, ints_t groups) { return add_pairs(sums, weights, groups); }

static inline vector_t finished(sums_t sums, const Factors *factors, vector_t start, const float *scales) {
  return add_product(start, floats_of(sums) * factors->scale, *const_vectors(scales));
}

#include "product_narrow.h"

int has_int8(void) { return 1; }
int64_t int8_bytes(void) { return 2; }

#else
#define NO_INT8
int has_int8(void) { return 0; }
int64_t int8_bytes(void) { return 0; }
#endif

void product_int8(const Linear *linear, int64_t first, int64_t last, const float *x, int64_t x_step, int64_t m,
                  float *y, int64_t y_step, int mode) {
#ifdef NO_INT8
  (void)linear, (void)first, (void)last, (void)x, (void)x_step, (void)m, (void)y, (void)y_step, (void)mode;
#else
  product_narrow(linear, first, last, x, x_step, m, y, y_step, mode);
#endif
}
