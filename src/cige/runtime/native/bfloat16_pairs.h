/* Rows of floats as pairs of bfloat16 numbers, and sums of products of pairs (AVX512-BF16; BF16 of ARM). */

#ifndef CIGE_BFLOAT16_PAIRS_H
#define CIGE_BFLOAT16_PAIRS_H

#include "../../nn/native/bf16.h"
#include "../../nn/native/maxima.h"
#include "../../nn/native/processor.h"

#if defined(__AVX512BW__) && __has_include(<avx512bf16intrin.h>)
#include <avx512bf16intrin.h> /* see product_avxvnni.c */

#define HAS_BFLOAT16
#define BF16_TARGET __attribute__((target("avx512bf16"))) /* of functions that use the instructions */
#define BF16_INLINE static inline BF16_TARGET __attribute__((always_inline))

BF16_INLINE __mmask16 first_lanes(int64_t n) { return (__mmask16)(n < WIDTH ? (1u << n) - 1 : 0xffff); }

/* The n numbers that are there, and 0 behind them. */
BF16_INLINE vector_t up_to_end(const float *from, int64_t n) {
  return (vector_t)_mm512_maskz_loadu_ps(first_lanes(n), from);
}

BF16_INLINE void store_up_to_end(uint32_t *to, ints_t pairs, int64_t n) {
  _mm512_mask_storeu_epi32(to, first_lanes(n), (__m512i)pairs);
}

/* n numbers as pairs; the last is filled up with 0. */
BF16_INLINE void narrow_row(uint32_t *to, const float *from, int64_t n) {
  for (int64_t k = 0; k < n; k += 32) {
    const int64_t left = n - k < 32 ? n - k : 32;
    const __mmask32 mask = left == 32 ? 0xffffffff : (1u << left) - 1;
    const __m512 a = _mm512_maskz_loadu_ps((__mmask16)(mask & 0xffff), from + k);
    const __m512 b = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), from + k + 16);
    _mm512_mask_storeu_epi32(to + k / 2, (__mmask16)((1u << (left + 1) / 2) - 1), (__m512i)_mm512_cvtne2ps_pbh(b, a));
  }
}

BF16_INLINE ints_t paired(vector_t first, vector_t second) { /* first[0], second[0], first[1] ... */
  const ints_t lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const __m512i narrow = (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
  return (ints_t)_mm512_permutexvar_epi16((__m512i)(lane | (lane + 16) << 16), narrow);
}

BF16_INLINE vector_t add_pairs(vector_t sum, ints_t a, ints_t b) {
  return (vector_t)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}

BF16_INLINE vector_t add_pair(vector_t sum, ints_t pairs, uint32_t pair) { /* each of `pairs` with the same one */
  return add_pairs(sum, pairs, (ints_t)_mm512_set1_epi32((int)pair));
}

BF16_INLINE vector_t nearest_whole(vector_t x) {
  return (vector_t)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

BF16_INLINE vector_t times_power(vector_t x, vector_t whole) { /* x 2^whole */
  return (vector_t)_mm512_scalef_ps((__m512)x, (__m512)whole);
}

#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define HAS_BFLOAT16
#define BF16_TARGET
#define BF16_INLINE static inline __attribute__((always_inline))

BF16_INLINE vector_t up_to_end(const float *from, int64_t n) {
  vector_t x = {0};
  memcpy(&x, from, (size_t)(n < WIDTH ? n : WIDTH) * sizeof(float));
  return x;
}

BF16_INLINE void store_up_to_end(uint32_t *to, ints_t pairs, int64_t n) {
  memcpy(to, &pairs, (size_t)(n < WIDTH ? n : WIDTH) * sizeof(uint32_t));
}

BF16_INLINE ints_t two_vectors(vector_t first, vector_t second) { /* as neighbours of a row */
  return (ints_t)vcvtq_high_bf16_f32(vcvtq_low_bf16_f32((float32x4_t)first), (float32x4_t)second);
}

BF16_INLINE void narrow_row(uint32_t *to, const float *from, int64_t n) {
  int64_t k = 0;
  for (; k + 2 * WIDTH <= n; k += 2 * WIDTH)
    *(ints_t *)(to + k / 2) = two_vectors(*const_vectors(from + k), *const_vectors(from + k + WIDTH));
  if (k == n) return;
  const vector_t first = up_to_end(from + k, n - k);
  const vector_t second = up_to_end(from + k + WIDTH, n - k > WIDTH ? n - k - WIDTH : 0);
  store_up_to_end(to + k / 2, two_vectors(first, second), (n - k + 1) / 2);
}

BF16_INLINE ints_t paired(vector_t first, vector_t second) {
  const bfloat16x8_t a = vcvtq_low_bf16_f32((float32x4_t)first), b = vcvtq_low_bf16_f32((float32x4_t)second);
  return (ints_t)vzip1q_u16((uint16x8_t)a, (uint16x8_t)b);
}

BF16_INLINE vector_t add_pairs(vector_t sum, ints_t a, ints_t b) {
  return (vector_t)vbfdotq_f32((float32x4_t)sum, (bfloat16x8_t)a, (bfloat16x8_t)b);
}

BF16_INLINE vector_t add_pair(vector_t sum, ints_t pairs, uint32_t pair) {
  const bfloat16x4_t one = (bfloat16x4_t)(uint32x2_t){pair, 0};
  return (vector_t)vbfdotq_lane_f32((float32x4_t)sum, (bfloat16x8_t)pairs, one, 0);
}

BF16_INLINE vector_t nearest_whole(vector_t x) { return (vector_t)vrndnq_f32((float32x4_t)x); }

/* Below the smallest normal number, 0, as bfloat16 would have it. */
BF16_INLINE vector_t times_power(vector_t x, vector_t whole) {
  const ints_t exponent = ((ints_t)vcvtq_s32_f32((float32x4_t)whole) + 127) << 23;
  return (vector_t)((ints_t)(x * (vector_t)exponent) & ~(whole < -126.0f));
}
#endif

#endif
