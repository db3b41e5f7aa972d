/* Rows of floats as whole numbers of 16 bits, and sums of products of pairs of them (AVX2, and SIMD of WebAssembly). */

#ifndef CIGE_INTEGERS16_H
#define CIGE_INTEGERS16_H

#include "../../nn/native/maxima.h"

#if defined(__wasm_simd128__) || (defined(__AVX2__) && !defined(__AVX512F__))
#define HAS_INTEGERS16
#define MOST_INT16 2047.0f /* the highest magnitude of INT16: so the sum of 512 products stays below 2^31 */
#endif

#if defined(__wasm_simd128__)
#include <wasm_simd128.h>

static inline v128_t up_to_end(const float *x, int64_t k, int64_t n) {
  if (n - k >= WIDTH) return wasm_v128_load(x + k);
  float rest[WIDTH] = {0};
  for (int64_t i = 0; k + i < n; i++) rest[i] = x[k + i];
  return wasm_v128_load(rest);
}

static inline float highest_magnitude(const float *x, int64_t n) {
  v128_t top = wasm_f32x4_splat(0), other = top;
  int64_t k = 0;
  for (; k + 2 * WIDTH <= n; k += 2 * WIDTH) {
    top = wasm_f32x4_pmax(top, wasm_f32x4_abs(wasm_v128_load(x + k)));
    other = wasm_f32x4_pmax(other, wasm_f32x4_abs(wasm_v128_load(x + k + WIDTH)));
  }
  for (; k < n; k += WIDTH) other = wasm_f32x4_pmax(other, wasm_f32x4_abs(up_to_end(x, k, n)));
  const vector_t most = (vector_t)wasm_f32x4_pmax(top, other);
  const float left = most[0] > most[1] ? most[0] : most[1], right = most[2] > most[3] ? most[2] : most[3];
  return left > right ? left : right;
}

/* No instruction rounds to whole numbers, but a sum of this size has no fraction; magnitudes here are below 2^22. */
static inline v128_t whole_of(v128_t x) {
  const v128_t rounder = wasm_f32x4_splat(12582912.0f); /* 1.5 * 2^23, whose lowest bits are those of the number */
  return wasm_i32x4_sub(wasm_f32x4_add(x, rounder), rounder);
}

/* to[k] = x[k] * factor, to nearest, ties to even; behind the row, zeros up to a whole number of 8. */
static inline void to_int16(int16_t *to, const float *x, int64_t n, float factor) {
  const v128_t by = wasm_f32x4_splat(factor);
  for (int64_t k = 0; k < n; k += 2 * WIDTH) {
    const v128_t low = whole_of(wasm_f32x4_mul(up_to_end(x, k, n), by));
    const v128_t high = k + WIDTH < n ? whole_of(wasm_f32x4_mul(up_to_end(x, k + WIDTH, n), by)) : wasm_f32x4_splat(0);
    wasm_v128_store(to + k, wasm_i16x8_narrow_i32x4(low, high));
  }
}

/* The pairs (low[l], high[l]) as whole numbers, to nearest, ties to even; magnitudes are below 2^15. */
static inline ints_t pairs_of(vector_t low, vector_t high) {
  return ((ints_t)whole_of((v128_t)low) & 0xffff) | ((ints_t)whole_of((v128_t)high) << 16);
}

static inline ints_t add_pairs(ints_t sums, ints_t a, ints_t b) {
  return sums + (ints_t)wasm_i32x4_dot_i16x8((v128_t)a, (v128_t)b);
}

static inline vector_t add_product(vector_t sum, vector_t a, vector_t b) { return sum + a * b; } /* in two steps always */

static inline vector_t floats_of(ints_t whole) { return (vector_t)wasm_f32x4_convert_i32x4((v128_t)whole); }

#elif defined(HAS_INTEGERS16)

/* x + k for the numbers of a row that are there, and 0 behind them. */
static inline __m256 up_to_end(const float *x, int64_t k, int64_t n) {
  if (n - k >= WIDTH) return _mm256_loadu_ps(x + k);
  const ints_t lane = {0, 1, 2, 3, 4, 5, 6, 7};
  return _mm256_maskload_ps(x + k, (__m256i)(lane < (int32_t)(n - k)));
}

static inline __m256 magnitude(__m256 x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }

static inline float highest_magnitude(const float *x, int64_t n) {
  __m256 top = _mm256_setzero_ps(), other = top;
  int64_t k = 0;
  for (; k + 2 * WIDTH <= n; k += 2 * WIDTH) {
    top = _mm256_max_ps(top, magnitude(_mm256_loadu_ps(x + k)));
    other = _mm256_max_ps(other, magnitude(_mm256_loadu_ps(x + k + WIDTH)));
  }
  for (; k < n; k += WIDTH) other = _mm256_max_ps(other, magnitude(up_to_end(x, k, n)));
  top = _mm256_max_ps(top, other);
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(top), _mm256_extractf128_ps(top, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

static inline void store_int16(int16_t *to, __m256 low, __m256 high) {
  /* In each half of a packed vector stand four of the one and four of the other. */
  const __m256i both = _mm256_packs_epi32(_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high));
  _mm256_storeu_si256((__m256i *)to, _mm256_permute4x64_epi64(both, 0xd8));
}

/* to[k] = x[k] * factor, to nearest, ties to even; behind the row, zeros up to a whole number of 16. */
static inline void to_int16(int16_t *to, const float *x, int64_t n, float factor) {
  int64_t k = 0;
  for (; k + 2 * WIDTH <= n; k += 2 * WIDTH)
    store_int16(to + k, _mm256_loadu_ps(x + k) * factor, _mm256_loadu_ps(x + k + WIDTH) * factor);
  if (k < n)
    store_int16(to + k, up_to_end(x, k, n) * factor, up_to_end(x, k + WIDTH, n) * factor);
}

/* The pairs (low[l], high[l]) as whole numbers, to nearest, ties to even; magnitudes are below 2^15. */
static inline ints_t pairs_of(vector_t low, vector_t high) {
  const __m256i first = _mm256_cvtps_epi32((__m256)low), second = _mm256_cvtps_epi32((__m256)high);
  return (ints_t)_mm256_blend_epi16(first, _mm256_slli_epi32(second, 16), 0xaa);
}

static inline ints_t add_pairs(ints_t sums, ints_t a, ints_t b) {
  return (ints_t)_mm256_add_epi32((__m256i)sums, _mm256_madd_epi16((__m256i)a, (__m256i)b));
}

/* By name, since a compiler may take one instruction for one number of rows and two for another, which round twice. */
static inline vector_t add_product(vector_t sum, vector_t a, vector_t b) {
  return (vector_t)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
}

static inline vector_t floats_of(ints_t whole) { return (vector_t)_mm256_cvtepi32_ps((__m256i)whole); }

#endif
#endif
