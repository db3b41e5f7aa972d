/* Attention with queries, keys, values, relative spans and shares in bfloat16 (AVX512-BF16): attention.c's steps with
   two products at once, and half as much of the tables to read. */

#include "attention.h"

#include "../../nn/native/bf16.h"

#if defined(__AVX512BW__) && __has_include(<avx512bf16intrin.h>)
#include "transpose.h"

#define TARGET __attribute__((target("avx512bf16")))
#define INLINE static inline TARGET __attribute__((always_inline))
#define KEYS 6  /* at once */
#define SUMS 10 /* numbers of a head at once */

int64_t narrow_bytes(const Flat *f, int64_t n) {
  const int64_t in_head = (f->head_width + 1) / 2, n_words = f->n_heads * in_head;
  return 4 * (n * n_words + (n + 1) / 2 * (f->width + LANES) + 2 * n_words * LANES) + 64;
}

/* n numbers as pairs; the last is filled up with 0. */
static inline TARGET void narrow_row(uint32_t *to, const float *from, int64_t n) {
  for (int64_t k = 0; k < n; k += 32) {
    const int64_t left = n - k < 32 ? n - k : 32;
    const __mmask32 mask = left == 32 ? 0xffffffff : (1u << left) - 1;
    const __m512 a = _mm512_maskz_loadu_ps((__mmask16)(mask & 0xffff), from + k);
    const __m512 b = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), from + k + 16);
    _mm512_mask_storeu_epi32(to + k / 2, (__mmask16)((1u << (left + 1) / 2) - 1), (__m512i)_mm512_cvtne2ps_pbh(b, a));
  }
}

/* A row of all heads, each of whole pairs. */
static TARGET void narrow_heads(uint32_t *to, const float *from, const Flat *f) {
  const int64_t d = f->head_width;
  if (d % 2 == 0) return narrow_row(to, from, f->width);
  for (int64_t h = 0; h < f->n_heads; h++) narrow_row(to + h * ((d + 1) / 2), from + h * d, d);
}

INLINE __m512i paired(__m512 first, __m512 second) { /* first[0], second[0], first[1] ... */
  const ints_t lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return _mm512_permutexvar_epi16((__m512i)(lane | (lane + 16) << 16), (__m512i)_mm512_cvtne2ps_pbh(second, first));
}

TARGET void narrow_keys(Work *w, void *memory) {
  const Flat *f = w->flat;
  Narrow *to = &w->narrow;
  const int64_t n = w->n, D = f->width;
  to->n_pairs = (f->head_width + 1) / 2;
  const int64_t n_words = f->n_heads * to->n_pairs;
  to->query[0] = (uint32_t *)aligned(memory), to->query[1] = to->query[0] + n_words * LANES;
  to->share = to->query[1] + n_words * LANES, to->value = to->share + (n + 1) / 2 * LANES;
  to->key = to->value + (n + 1) / 2 * f->width;
  for (int64_t j = 0; j < n; j++) narrow_heads(to->key + j * n_words, w->key[j], f);
  for (int64_t j = 0; j < n; j += 2)
    for (int64_t k = 0; k < D; k += 16) {
      const __mmask16 mask = (__mmask16)(D - k < 16 ? (1u << (D - k)) - 1 : 0xffff);
      const __m512 first = _mm512_maskz_loadu_ps(mask, w->value[j] + k);
      const __m512 second = j + 1 < n ? _mm512_maskz_loadu_ps(mask, w->value[j + 1] + k) : _mm512_setzero_ps();
      _mm512_mask_storeu_epi32(to->value + j / 2 * f->width + k, mask, paired(first, second));
    }
}

TARGET void narrow_queries(const Work *w, int64_t n_lanes) {
  const int64_t n_words = w->flat->n_heads * w->narrow.n_pairs;
  for (int kind = 0; kind < 2; kind++) {
    uint32_t *rows = (uint32_t *)w->row[kind]; /* a row is narrowed in its own place */
    for (int64_t l = 0; l < n_lanes; l++) narrow_heads(rows + l * w->flat->step, w->row[kind] + l * w->flat->step, w->flat);
    transpose((float *)rows, w->flat->step, n_lanes, n_words, (float *)w->narrow.query[kind], LANES);
  }
}

INLINE __m512 add_pairs(__m512 sum, __m512i a, __m512i b) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }

INLINE void scores(const int n_keys, const int n_vectors, const Work *w, int64_t j, int64_t h, int64_t first_lane) {
  const Flat *f = w->flat;
  const int64_t P = w->narrow.n_pairs, step = f->relation_step;
  const uint32_t *query = w->narrow.query[0] + h * P * LANES, *row[KEYS];
  __m512 sum[KEYS][2];
#pragma GCC unroll 6
  for (int p = 0; p < n_keys; p++) {
    row[p] = w->narrow.key + (j + p) * f->n_heads * P + h * P;
    sum[p][0] = sum[p][1] = _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < P; k++, query += LANES)
#pragma GCC unroll 6
    for (int p = 0; p < n_keys; p++)
#pragma GCC unroll 2
      for (int v = 0; v < n_vectors; v++)
        sum[p][v] = add_pairs(sum[p][v], _mm512_loadu_si512(query + v * WIDTH), _mm512_set1_epi32((int)row[p][k]));
  if (first_lane >= 0 && f->is_bias) {
#pragma GCC unroll 6
    for (int p = 0; p < n_keys; p++)
#pragma GCC unroll 2
      for (int v = 0; v < n_vectors; v++)
        sum[p][v] += (__m512)const_vectors(w->relation[j + p] + first_lane + h * step)[v];
  } else if (first_lane >= 0) {
#pragma GCC unroll 6
    for (int p = 0; p < n_keys; p++) row[p] = (const uint32_t *)w->relation[j + p] + first_lane + h * P * step;
    query = w->narrow.query[1] + h * P * LANES;
    for (int64_t k = 0; k < P; k++, query += LANES)
#pragma GCC unroll 6
      for (int p = 0; p < n_keys; p++)
#pragma GCC unroll 2
        for (int v = 0; v < n_vectors; v++)
          sum[p][v] = add_pairs(sum[p][v], _mm512_loadu_si512(query + v * WIDTH),
                                _mm512_loadu_si512(row[p] + k * step + v * WIDTH));
  }
#pragma GCC unroll 6
  for (int p = 0; p < n_keys; p++)
#pragma GCC unroll 2
    for (int v = 0; v < n_vectors; v++) vectors(w->score + (j + p) * LANES)[v] = (vector_t)sum[p][v];
}

/* The last N - `by` lanes of `low`, then the first of what follows it. */
INLINE __m512i shifted(__m512i low, __m512i high, const int by) {
  switch (by) { /* the instruction's number is a constant */
    case 1: return _mm512_alignr_epi32(high, low, 1);
    case 2: return _mm512_alignr_epi32(high, low, 2);
    case 3: return _mm512_alignr_epi32(high, low, 3);
    case 4: return _mm512_alignr_epi32(high, low, 4);
    case 5: return _mm512_alignr_epi32(high, low, 5);
    default: return low;
  }
}

/* Scores of characters that stand side by side, which characters ask. Their columns of the table are the same but for
   one, so they are made of three vectors: most loads would be of two lines of the cache. */
INLINE void scores_of_neighbours(const int n_vectors, const Work *w, int64_t j, int64_t h, int64_t first_lane) {
  const int64_t P = w->narrow.n_pairs, step = w->flat->relation_step, key_step = w->flat->n_heads * P;
  const uint32_t *content = w->narrow.query[0] + h * P * LANES, *position = w->narrow.query[1] + h * P * LANES;
  const uint32_t *key = w->narrow.key + j * key_step + h * P;
  const uint32_t *column = (const uint32_t *)w->relation[j + KEYS - 1] + first_lane + h * P * step;
  __m512 sum[KEYS][2];
#pragma GCC unroll 6
  for (int p = 0; p < KEYS; p++) sum[p][0] = sum[p][1] = _mm512_setzero_ps();
  for (int64_t k = 0; k < P; k++, content += LANES, position += LANES, column += step) {
    __m512i part[3];
#pragma GCC unroll 3
    for (int v = 0; v <= n_vectors; v++) part[v] = _mm512_loadu_si512(column + v * WIDTH);
#pragma GCC unroll 6
    for (int p = 0; p < KEYS; p++)
#pragma GCC unroll 2
      for (int v = 0; v < n_vectors; v++) {
        const __m512i relation = shifted(part[v], part[v + 1], KEYS - 1 - p);
        sum[p][v] = add_pairs(sum[p][v], _mm512_loadu_si512(content + v * WIDTH), _mm512_set1_epi32((int)key[p * key_step + k]));
        sum[p][v] = add_pairs(sum[p][v], _mm512_loadu_si512(position + v * WIDTH), relation);
      }
  }
#pragma GCC unroll 6
  for (int p = 0; p < KEYS; p++)
#pragma GCC unroll 2
    for (int v = 0; v < n_vectors; v++) vectors(w->score + (j + p) * LANES)[v] = (vector_t)sum[p][v];
}

INLINE void all_scores(const int n_vectors, const Work *w, int64_t h, int64_t first_lane) {
  int64_t j = 0;
  for (; first_lane >= 0 && !w->flat->is_bias && j + KEYS <= w->nodes->n_chars; j += KEYS)
    scores_of_neighbours(n_vectors, w, j, h, first_lane);
  for (; j + KEYS <= w->n; j += KEYS) scores(KEYS, n_vectors, w, j, h, first_lane);
  switch (w->n - j) {
    case 1: scores(1, n_vectors, w, j, h, first_lane); break;
    case 2: scores(2, n_vectors, w, j, h, first_lane); break;
    case 3: scores(3, n_vectors, w, j, h, first_lane); break;
    case 4: scores(4, n_vectors, w, j, h, first_lane); break;
    case 5: scores(5, n_vectors, w, j, h, first_lane); break;
  }
}

TARGET void narrow_scores(const Work *w, int n_vectors, int64_t h, int64_t first_lane) {
  if (n_vectors == 2)
    all_scores(2, w, h, first_lane);
  else
    all_scores(1, w, h, first_lane);
}

/* 2^x for x <= 0 to 1e-4 of it, far less than what rounding to bfloat16 takes. */
INLINE __m512 power_of_two(__m512 x) {
  const __m512 whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), r = x - whole;
  return _mm512_scalef_ps(((r * 0.05500902f + 0.24221131f) * r + 0.69328296f) * r + 1, whole);
}

INLINE void sums(const int n_out, const int n_vectors, const Work *w, int64_t offset, const vector_t *factor) {
  __m512 sum[SUMS][2];
#pragma GCC unroll 10
  for (int k = 0; k < n_out; k++) sum[k][0] = sum[k][1] = _mm512_setzero_ps();
  const uint32_t *share = w->narrow.share, *value = w->narrow.value + offset;
  for (int64_t j = 0; j < w->n; j += 2, share += LANES, value += w->flat->width)
#pragma GCC unroll 10
    for (int k = 0; k < n_out; k++)
#pragma GCC unroll 2
      for (int v = 0; v < n_vectors; v++)
        sum[k][v] = add_pairs(sum[k][v], _mm512_loadu_si512(share + v * WIDTH), _mm512_set1_epi32((int)value[k]));
#pragma GCC unroll 10
  for (int k = 0; k < n_out; k++)
#pragma GCC unroll 2
    for (int v = 0; v < n_vectors; v++) vectors(w->out + (offset + k) * LANES)[v] = (vector_t)sum[k][v] * factor[v];
}

INLINE void softmax_and_sums(const int n_vectors, const Work *w, int64_t h, vector_t *factor) {
  const float to_base_2 = 1.44269504f;
  const int64_t d = w->flat->head_width, n = w->n;
  __m512 top[2], sum[2][2];
#pragma GCC unroll 2
  for (int v = 0; v < n_vectors; v++) top[v] = _mm512_set1_ps(-INFINITY), sum[v][0] = sum[v][1] = _mm512_setzero_ps();
  for (int64_t j = 0; j < n; j++)
#pragma GCC unroll 2
    for (int v = 0; v < n_vectors; v++) top[v] = _mm512_max_ps(_mm512_loadu_ps(w->score + j * LANES + v * WIDTH), top[v]);
  for (int64_t j = 0; j < n; j += 2)
#pragma GCC unroll 2
    for (int v = 0; v < n_vectors; v++) {
      const float *score = w->score + j * LANES + v * WIDTH;
      __m512 share[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
      share[0] = power_of_two((_mm512_loadu_ps(score) - top[v]) * to_base_2);
      if (j + 1 < n) share[1] = power_of_two((_mm512_loadu_ps(score + LANES) - top[v]) * to_base_2);
      sum[v][0] += share[0], sum[v][1] += share[1];
      _mm512_storeu_si512(w->narrow.share + j / 2 * LANES + v * WIDTH, paired(share[0], share[1]));
    }
#pragma GCC unroll 2
  for (int v = 0; v < n_vectors; v++) /* who sees nothing reads zeros */
    factor[v] = (vector_t)((ints_t)(1 / (sum[v][0] + sum[v][1])) & ~((vector_t)top[v] <= HIDDEN / 2));
  int64_t k = 0;
  for (; k + SUMS <= d; k += SUMS) sums(SUMS, n_vectors, w, h * d + k, factor);
  for (; k + 4 <= d; k += 4) sums(4, n_vectors, w, h * d + k, factor);
  for (; k < d; k++) sums(1, n_vectors, w, h * d + k, factor);
}

TARGET void narrow_softmax_and_sums(const Work *w, int n_vectors, int64_t h, vector_t *factor) {
  if (n_vectors == 2)
    softmax_and_sums(2, w, h, factor);
  else
    softmax_and_sums(1, w, h, factor);
}

float narrow_share(const Work *w, int64_t j, int64_t lane) {
  const uint32_t pair = w->narrow.share[j / 2 * LANES + lane];
  return widen_bf16((uint16_t)(j % 2 ? pair >> 16 : pair));
}

#else
int64_t narrow_bytes(const Flat *f, int64_t n) { return (void)f, (void)n, 0; }
void narrow_keys(Work *w, void *memory) { (void)w, (void)memory; }
void narrow_queries(const Work *w, int64_t n_lanes) { (void)w, (void)n_lanes; }
void narrow_scores(const Work *w, int n_vectors, int64_t h, int64_t first_lane) {
  (void)w, (void)n_vectors, (void)h, (void)first_lane;
}
void narrow_softmax_and_sums(const Work *w, int n_vectors, int64_t h, vector_t *factor) {
  (void)w, (void)n_vectors, (void)h, (void)factor;
}
float narrow_share(const Work *w, int64_t j, int64_t lane) { return (void)w, (void)j, (void)lane, 0.0f; }
#endif
