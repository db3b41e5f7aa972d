/* to[c * to_step + r] = from[r * from_step + c] for n_rows x n_columns numbers of 32 bits.

   Rows of `to` have room for whole vectors; what is behind n_rows in the last of them becomes 0. */

#ifndef CIGE_TRANSPOSE_H
#define CIGE_TRANSPOSE_H

#include "../../nn/native/maxima.h"

#if WIDTH == 16
/* One square of 16 x 16: squares of half the size change places above and below the diagonal, four times. */
static inline void transpose_square(const float *from, int64_t from_step, int64_t n_rows, int64_t n_columns, float *to,
                                    int64_t to_step) {
  const __mmask16 read = (__mmask16)(n_columns < 16 ? (1u << n_columns) - 1 : 0xffff);
  const ints_t lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  __m512i row[16];
UNROLL(16)
  for (int r = 0; r < 16; r++)
    row[r] = r < n_rows ? _mm512_maskz_loadu_epi32(read, from + r * from_step) : _mm512_setzero_si512();
UNROLL(4)
  for (int size = 8; size > 0; size /= 2) {
    const ints_t other = ((lane & size) != 0) & (16 - size); /* 16 + l is lane l of the second row */
    const ints_t upper = lane + other, lower = upper + size;
UNROLL(16)
    for (int r = 0; r < 16; r++)
      if (!(r & size)) {
        const __m512i a = row[r], b = row[r + size];
        row[r] = _mm512_permutex2var_epi32(a, (__m512i)upper, b);
        row[r + size] = _mm512_permutex2var_epi32(a, (__m512i)lower, b);
      }
  }
UNROLL(16)
  for (int c = 0; c < 16; c++)
    if (c < n_columns) _mm512_storeu_si512(to + c * to_step, row[c]);
}
#elif defined(__AVX2__)
/* One square of 8 x 8: pairs of rows, then pairs of pairs, then halves. */
static inline void transpose_square(const float *from, int64_t from_step, int64_t n_rows, int64_t n_columns, float *to,
                                    int64_t to_step) {
  const ints_t lane = {0, 1, 2, 3, 4, 5, 6, 7}, is_read = lane < (int32_t)(n_columns < 8 ? n_columns : 8);
  __m256 row[8], pair[8];
UNROLL(8)
  for (int r = 0; r < 8; r++)
    row[r] = r < n_rows ? _mm256_maskload_ps(from + r * from_step, (__m256i)is_read) : _mm256_setzero_ps();
UNROLL(4)
  for (int r = 0; r < 8; r += 2) {
    pair[r] = _mm256_unpacklo_ps(row[r], row[r + 1]);
    pair[r + 1] = _mm256_unpackhi_ps(row[r], row[r + 1]);
  }
UNROLL(2)
  for (int r = 0; r < 8; r += 4)
UNROLL(2)
    for (int i = 0; i < 2; i++) {
      row[r + 2 * i] = _mm256_shuffle_ps(pair[r + i], pair[r + i + 2], 0x44);
      row[r + 2 * i + 1] = _mm256_shuffle_ps(pair[r + i], pair[r + i + 2], 0xee);
    }
UNROLL(4)
  for (int c = 0; c < 4; c++) {
    if (c < n_columns) _mm256_storeu_ps(to + c * to_step, _mm256_permute2f128_ps(row[c], row[c + 4], 0x20));
    if (c + 4 < n_columns) _mm256_storeu_ps(to + (c + 4) * to_step, _mm256_permute2f128_ps(row[c], row[c + 4], 0x31));
  }
}
#elif defined(__aarch64__)
/* One square of 4 x 4: pairs of neighbours, then pairs of pairs. */
static inline void transpose_square(const float *from, int64_t from_step, int64_t n_rows, int64_t n_columns, float *to,
                                    int64_t to_step) {
  float32x4_t row[4];
  for (int r = 0; r < 4; r++) {
    row[r] = vdupq_n_f32(0);
    if (r < n_rows && n_columns >= 4) row[r] = vld1q_f32(from + r * from_step);
    else if (r < n_rows) memcpy(row + r, from + r * from_step, (size_t)n_columns * sizeof(float));
  }
  float64x2_t pair[4];
  for (int r = 0; r < 4; r += 2) {
    pair[r] = (float64x2_t)vtrn1q_f32(row[r], row[r + 1]);
    pair[r + 1] = (float64x2_t)vtrn2q_f32(row[r], row[r + 1]);
  }
  for (int c = 0; c < 4; c++)
    if (c < n_columns)
      vst1q_f32(to + c * to_step,
                (float32x4_t)(c < 2 ? vtrn1q_f64(pair[c], pair[c + 2]) : vtrn2q_f64(pair[c - 2], pair[c])));
}
#else
static inline void transpose_square(const float *from, int64_t from_step, int64_t n_rows, int64_t n_columns, float *to,
                                    int64_t to_step) {
  for (int64_t c = 0; c < WIDTH && c < n_columns; c++)
    for (int64_t r = 0; r < WIDTH; r++) to[c * to_step + r] = r < n_rows ? from[r * from_step + c] : 0;
}
#endif

static inline void transpose(const float *from, int64_t from_step, int64_t n_rows, int64_t n_columns, float *to,
                      int64_t to_step) {
  for (int64_t r = 0; r < n_rows; r += WIDTH)
    for (int64_t c = 0; c < n_columns; c += WIDTH)
      transpose_square(from + r * from_step + c, from_step, n_rows - r, n_columns - c, to + c * to_step + r, to_step);
}

#endif
