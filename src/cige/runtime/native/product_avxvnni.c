/* Products of 8-bit numbers by AVX-VNNI, for the level avx2.

   Intel's processors without AVX-512 have it since 2021, and AMD's since 2024. It is AVX512-VNNI of product_int8.c with
   vectors half as wide; the other form of INT8 at this level takes two instructions for half as many products. */

#include "product.h"

#include "../../nn/native/processor.h"
#include "integers16.h"

#if defined(HAS_INTEGERS16) && defined(__x86_64__) && __has_include(<avxvnniintrin.h>)
#include <avxvnniintrin.h> /* immintrin.h of older versions of clang-cl leaves it out */

#define TARGET __attribute__((target("avxvnni")))
#define GROUP 4
#define PRODUCT product_avxvnni

typedef ints_t sums_t;
typedef struct {
  float scale;
  int32_t first; /* -128 times the sum of the row's numbers, since 128 was added to the weights */
} Factors;

static inline TARGET __m256i whole(const float *x, int64_t k, int64_t n, float factor, __m256i *total) {
  const __m256i numbers = _mm256_cvtps_epi32(up_to_end(x, k, n) * factor); /* to nearest, even */
  *total = _mm256_add_epi32(*total, numbers);
  return numbers;
}

static inline TARGET Factors narrow(uint32_t *groups, const float *x, int64_t n, const Linear *linear) {
  (void)linear;
  const float highest = highest_magnitude(x, n), factor = highest > 0 ? 127 / highest : 0;
  __m256i total = _mm256_setzero_si256();
  for (int64_t k = 0; k < n; k += 4 * WIDTH) {
    const __m256i low = _mm256_packs_epi32(whole(x, k, n, factor, &total), whole(x, k + WIDTH, n, factor, &total));
    const __m256i high = _mm256_packs_epi32(whole(x, k + 2 * WIDTH, n, factor, &total),
                                            whole(x, k + 3 * WIDTH, n, factor, &total));
    /* In each half of a packed vector stand four of each of the four. */
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
    _mm256_storeu_si256((__m256i *)(groups + k / GROUP), bytes);
  }
  uint32_t sum = 0; /* without sign: NaN and infinity become -2^31, with which int32_t would overflow */
  for (int l = 0; l < WIDTH; l++) sum += (uint32_t)((ints_t)total)[l];
  return (Factors){highest / 127, (int32_t)(0 - 128 * sum)};
}

static inline TARGET sums_t first_sums(const Factors *factors) { return (sums_t){0} + factors->first; }

static inline TARGET sums_t add_group(sums_t sums, ints_t weights, ints_t groups) {
  return (sums_t)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)weights, (__m256i)groups);
}

static inline TARGET vector_t finished(sums_t sums, const Factors *factors, vector_t start, const float *scales) {
  return add_product(start, floats_of(sums) * factors->scale, *const_vectors(scales));
}

#include "product_narrow.h"

int has_avxvnni(void) {
  static int answer = -1; /* the instruction that asks takes long, above all in virtual machines */
  int found = __atomic_load_n(&answer, __ATOMIC_RELAXED); /* several threads may be the first to ask */
  if (found < 0) __atomic_store_n(&answer, found = processor_has_avxvnni(), __ATOMIC_RELAXED);
  return found;
}

#else
int has_avxvnni(void) { return 0; }
NO_PRODUCT(product_avxvnni)
#endif
