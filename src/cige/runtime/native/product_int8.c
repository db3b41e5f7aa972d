/* Products of 8-bit numbers (INT8) and of 12-bit numbers (INT16) with sums in int32. Weights have a scale per output,
   and each row of x one of its own, the highest of its magnitudes as 127 or 2047. No sum overflows, so INT8 gives the
   same sums at every level.

   AVX512-VNNI takes weights without sign, so they are kept with 128 added, and each sum begins with minus what that
   adds; AVX-VNNI has the same for AVX2 (product_avxvnni.c). AVX2 alone has no such instruction: its products of 8-bit
   numbers saturate if both have 8 bits. So there numbers are kept in 16 bits, two in a group. This takes as long with
   12 bits as with 8, so AVX2 has INT16 too, as has WebAssembly, whose instructions are the same but half as wide.

   ARM has instructions for 8-bit numbers with sign: SDOT for four of them in each lane, and SMMLA for eight in each of
   four sums. It has none that multiplies more numbers of 16 bits at once than of float32 (SMLAL, four), so no INT16. */

#include "product.h"

#include "integers16.h"

#define PRODUCT product_int8

#if defined(__AVX512BW__) && __has_include(<avx512vnniintrin.h>)
#include "../../nn/native/maxima.h"
#include "../../nn/native/processor.h"
#include <avx512vnniintrin.h> /* see product_avxvnni.c */

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
  const uint32_t sum = (uint32_t)_mm512_reduce_add_epi32(total); /* see product_avxvnni.c */
  return (Factors){highest / 127, (int32_t)(0 - 128 * sum)};
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
int64_t whole_bytes(int64_t precision) { return precision == INT8; }
int64_t int8_offset(void) { return 128; }

#elif defined(HAS_INTEGERS16)

#define TARGET
#define GROUP 2
#if defined(__AVX2__)
#define SPARSE_PANELS 2
#endif
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
int64_t whole_bytes(int64_t precision) { return precision == INT8 && has_avxvnni() ? 1 : 2; }
int64_t int8_offset(void) { return 128; } /* of AVX-VNNI */

#elif defined(__ARM_FEATURE_DOTPROD)
#include "../../nn/native/maxima.h"

#define TARGET
#if defined(__ARM_FEATURE_MATMUL_INT8)
#define PAIRS
#define GROUP 8
#else
#define GROUP 4
#endif

typedef ints_t sums_t;
typedef struct {
  float scale;
} Factors;

static inline int8x16_t sixteen(const float *x, float factor) { /* to nearest, ties to even */
  int32x4_t wide[4];
UNROLL(4)
  for (int v = 0; v < 4; v++) wide[v] = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * v), factor));
  const int16x8_t low = vqmovn_high_s32(vqmovn_s32(wide[0]), wide[1]);
  return vqmovn_high_s16(vqmovn_s16(low), vqmovn_high_s32(vqmovn_s32(wide[2]), wide[3]));
}

static inline Factors narrow(void *groups, const float *x, int64_t n, const Linear *linear) {
  (void)linear;
  const int64_t whole = n / 16 * 16;
  float rest[16] = {0};
  memcpy(rest, x + whole, (size_t)(n - whole) * sizeof(float));
  float32x4_t top[2] = {vdupq_n_f32(0), vdupq_n_f32(0)};
  for (int64_t k = 0; k < whole; k += 8)
    for (int v = 0; v < 2; v++) top[v] = vmaxq_f32(top[v], vabsq_f32(vld1q_f32(x + k + 4 * v)));
  for (int v = 0; v < 4; v++) top[v % 2] = vmaxq_f32(top[v % 2], vabsq_f32(vld1q_f32(rest + 4 * v)));
  const float highest = vmaxvq_f32(vmaxq_f32(top[0], top[1])), factor = highest > 0 ? 127 / highest : 0;
  int8_t *to = groups;
  for (int64_t k = 0; k < whole; k += 16) vst1q_s8(to + k, sixteen(x + k, factor));
  if (n > whole) vst1q_s8(to + whole, sixteen(rest, factor));
  return (Factors){highest / 127};
}

#if defined(PAIRS)
static inline sums_t add_squares(sums_t sums, ints_t weights, ints_t groups) {
  return (sums_t)vmmlaq_s32((int32x4_t)sums, (int8x16_t)groups, (int8x16_t)weights);
}
#else
static inline sums_t first_sums(const Factors *factors) {
  (void)factors;
  return (sums_t){0};
}

static inline sums_t add_group(sums_t sums, ints_t weights, ints_t groups) {
  return (sums_t)vdotq_s32((int32x4_t)sums, (int8x16_t)weights, (int8x16_t)groups);
}

#define ADD_LANE(SUMS, WEIGHTS, GROUPS, LANE) \
  (sums_t) vdotq_laneq_s32((int32x4_t)(SUMS), (int8x16_t)(WEIGHTS), (int8x16_t)(GROUPS), LANE)
#endif

static inline vector_t finished(sums_t sums, const Factors *factors, vector_t start, const float *scales) {
  const float32x4_t product = vmulq_n_f32(vcvtq_f32_s32((int32x4_t)sums), factors->scale);
  return (vector_t)vfmaq_f32((float32x4_t)start, product, vld1q_f32(scales));
}

#include "product_narrow.h"

int has_int8(void) { return 1; }
int64_t whole_bytes(int64_t precision) { return precision == INT8; }
int64_t int8_offset(void) { return 0; }

#else
int has_int8(void) { return 0; }
int64_t whole_bytes(int64_t precision) { return (void)precision, 0; }
int64_t int8_offset(void) { return 0; }
NO_PRODUCT(product_int8)
#endif
