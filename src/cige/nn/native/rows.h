/* Sums and exponentials over rows of floats, in vectors as wide as the instruction set that is compiled for.

   Sums are kept in lanes and the exponential is a polynomial, so no -ffast-math is needed to vectorise them, and no
   vector library of the platform: NaN and infinity keep their meaning at every level and with every compiler.

   Rows are buffers of the kernels: `stride(n)` floats long, a whole number of vectors, with `pad` after the n real
   ones, so that no loop has a remainder. */

#ifndef CIGE_ROWS_H
#define CIGE_ROWS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "-ffast-math lets the compiler assume that no NaN and no infinity occurs; these kernels must pass them on"
#endif

#if defined(_WIN32) && defined(__AVX__) && !defined(__clang__)
#error "GCC does not align vectors of 32 and 64 bytes on the stack of Windows (its bug 54412): compile with Clang"
#endif

#if defined(__AVX512F__)
#define WIDTH 16 /* floats of a vector */
#elif defined(__AVX__)
#define WIDTH 8
#else
#define WIDTH 4 /* SSE2, NEON */
#endif
#define CHAINS 4 /* sums that go on side by side, since each addition waits for the one before it */

/* Before a loop of at most N rounds whose sums are to stay in registers. Clang does not know GCC's word for it, and without
   any it stores them in each round of the loop around. */
#if defined(__clang__)
#define UNROLL(N) _Pragma("clang loop unroll(full)")
#else
#define UNROLL(N) UNROLL_PRAGMA(GCC unroll N)
#define UNROLL_PRAGMA(TEXT) _Pragma(#TEXT)
#endif

typedef float vector_t __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));
typedef int32_t ints_t __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));

static inline vector_t *vectors(float *row) { return (vector_t *)row; }
static inline const vector_t *const_vectors(const float *row) { return (const vector_t *)row; }

/* Memory for n floats whose first stands at the begin of a cache line, as every row of stride(n) does then. */
static inline size_t in_bytes(int64_t n) { return (size_t)n * sizeof(float) + 63; }
static inline float *aligned(void *memory) { return (float *)(((uintptr_t)memory + 63) & ~(uintptr_t)63); }

static inline int64_t stride(int64_t n) { return (n + WIDTH - 1) / WIDTH * WIDTH; }

static inline void pad(float *row, int64_t n, float with) {
  for (int64_t j = n; j < stride(n); j++) row[j] = with;
}

static inline float sum_of_lanes(vector_t x) {
  float sum = x[0];
  for (int l = 1; l < WIDTH; l++) sum += x[l];
  return sum;
}

static inline float dot(const float *a, const float *b, int64_t n) { /* one of them padded with 0, the other finite */
  vector_t sums[CHAINS] = {0};
  const vector_t *x = const_vectors(a), *y = const_vectors(b), *end = x + stride(n) / WIDTH;
  for (; x + CHAINS <= end; x += CHAINS, y += CHAINS)
    for (int c = 0; c < CHAINS; c++) sums[c] += x[c] * y[c];
  for (; x < end; x++, y++) sums[0] += *x * *y;
  return sum_of_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

static inline void add_scaled(float *to, float scale, const float *from, int64_t n) {
  vector_t *x = vectors(to);
  const vector_t *y = const_vectors(from), *end = x + stride(n) / WIDTH;
  for (; x < end; x++, y++) *x += *y * scale;
}

/* e^x for x <= 0 and for NaN, to about one unit of the last place (Cephes' expf): x = k ln 2 + r, e^x = 2^k e^r. What
   would be below the smallest normal number becomes 0. */
static inline vector_t exp_of(vector_t x) {
  const float lowest = -87.33f, rounder = 12582912.0f; /* 1.5 * 2^23: what is added to it loses its fraction */
  const vector_t shifted = x * 1.44269504f + rounder, k = shifted - rounder;
  const vector_t r = x - k * 0.693359375f + k * 2.12194440e-4f;
  vector_t power = r * 1.9875691500e-4f + 1.3981999507e-3f;
  power = power * r + 8.3334519073e-3f;
  power = power * r + 4.1665795894e-2f;
  power = power * r + 1.6666665459e-1f;
  power = power * r + 5.0000001201e-1f;
  power = power * r * r + r + 1.0f;
  const ints_t exponent = ((ints_t)shifted + 127) << 23; /* the last bits of `shifted` are k, modulo 512 */
  const vector_t result = power * (vector_t)exponent;
  return (vector_t)((ints_t)result & ~(x < lowest)); /* a NaN is not below it and stays */
}

/* row[j] = e^(row[j] - top), whose sum is returned; padded with -infinity before and with 0 after. */
static inline float exponentials(float *row, float top, int64_t n) {
  vector_t sums[2] = {0};
  vector_t *x = vectors(row), *end = x + stride(n) / WIDTH;
  for (; x + 2 <= end; x += 2)
    for (int c = 0; c < 2; c++) sums[c] += x[c] = exp_of(x[c] - top);
  for (; x < end; x++) sums[0] += *x = exp_of(*x - top);
  return sum_of_lanes(sums[0] + sums[1]);
}

static inline void multiply(float *row, float factor, int64_t n) {
  for (vector_t *x = vectors(row), *end = x + stride(n) / WIDTH; x < end; x++) *x *= factor;
}

#endif
