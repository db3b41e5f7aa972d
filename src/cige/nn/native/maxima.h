/* Maxima over rows of floats, and what else needs a processor's intrinsics: compilers take longer to read their header than
   to translate most files, so rows.h goes without. */

#ifndef CIGE_MAXIMA_H
#define CIGE_MAXIMA_H

#include "rows.h"

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

static inline vector_t higher(vector_t a, vector_t b) { /* a > b ? a : b; compilers do not see that it is one step */
#if defined(__AVX512F__)
  return (vector_t)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX__)
  return (vector_t)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE__)
  return (vector_t)_mm_max_ps((__m128)a, (__m128)b);
#else
  const ints_t above = a > b;
  return (vector_t)(((ints_t)a & above) | ((ints_t)b & ~above));
#endif
}

/* The highest of the row, padded with -infinity. Where a NaN is in it, the result is a NaN or the highest of the rest;
   the sum of the exponentials is a NaN in either case. */
static inline float highest(const float *row, int64_t n) {
  vector_t best[CHAINS];
  const vector_t *x = const_vectors(row), *end = x + stride(n) / WIDTH;
  for (int c = 0; c < CHAINS; c++) best[c] = *x;
  for (; x + CHAINS <= end; x += CHAINS)
    for (int c = 0; c < CHAINS; c++) best[c] = higher(x[c], best[c]);
  for (; x < end; x++) best[0] = higher(*x, best[0]);
  for (int c = 1; c < CHAINS; c++) best[0] = higher(best[c], best[0]);
  float top = best[0][0];
  for (int l = 1; l < WIDTH; l++) top = best[0][l] > top ? best[0][l] : top;
  return top;
}

#endif
