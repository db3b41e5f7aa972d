/* Attention with queries, keys, values, relative spans and shares in bfloat16 (AVX512-BF16; BF16 of ARM): attention.c's
   steps with two products at once, and half as much of the tables to read. */

#include "attention.h"

#include "bfloat16_pairs.h"

#if defined(HAS_BFLOAT16)
#include "transpose.h"

#define TARGET BF16_TARGET
#define INLINE BF16_INLINE
#define KEYS 6  /* at once */
#define SUMS 10 /* numbers of a head at once */

static int64_t bytes(const Flat *f, int64_t n) {
  const int64_t in_head = (f->head_width + 1) / 2, n_words = f->n_heads * in_head;
  return 4 * (n * n_words + (n + 1) / 2 * (f->width + LANES) + 2 * n_words * LANES) + 64;
}

/* A row of all heads, each of whole pairs. */
static TARGET void narrow_heads(uint32_t *to, const float *from, const Flat *f) {
  const int64_t d = f->head_width;
  if (d % 2 == 0) return narrow_row(to, from, f->width);
  for (int64_t h = 0; h < f->n_heads; h++) narrow_row(to + h * ((d + 1) / 2), from + h * d, d);
}

static TARGET void keys(Work *w, void *memory) {
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
    for (int64_t k = 0; k < D; k += WIDTH) {
      const vector_t first = up_to_end(w->value[j] + k, D - k);
      const vector_t second = j + 1 < n ? up_to_end(w->value[j + 1] + k, D - k) : (vector_t){0};
      store_up_to_end(to->value + j / 2 * f->width + k, paired(first, second), D - k);
    }
}

static TARGET void queries(const Work *w, int64_t n_lanes) {
  const int64_t n_words = w->flat->n_heads * w->narrow.n_pairs;
  for (int kind = 0; kind < 2; kind++) {
    uint32_t *rows = (uint32_t *)w->row[kind]; /* a row is narrowed in its own place */
    for (int64_t l = 0; l < n_lanes; l++) narrow_heads(rows + l * w->flat->step, w->row[kind] + l * w->flat->step, w->flat);
    transpose((float *)rows, w->flat->step, n_lanes, n_words, (float *)w->narrow.query[kind], LANES);
  }
}

INLINE ints_t pairs_at(const uint32_t *from) { return *(const ints_t *)from; }

INLINE void scores_of_keys(const int n_keys, const int n_vectors, const Work *w, int64_t j, int64_t h, int64_t first_lane) {
  const Flat *f = w->flat;
  const int64_t P = w->narrow.n_pairs, step = f->relation_step;
  const uint32_t *query = w->narrow.query[0] + h * P * LANES, *row[KEYS];
  vector_t sum[KEYS][2];
UNROLL(6)
  for (int p = 0; p < n_keys; p++) {
    row[p] = w->narrow.key + (j + p) * f->n_heads * P + h * P;
    sum[p][0] = sum[p][1] = (vector_t){0};
  }
  for (int64_t k = 0; k < P; k++, query += LANES)
UNROLL(6)
    for (int p = 0; p < n_keys; p++)
UNROLL(2)
      for (int v = 0; v < n_vectors; v++)
        sum[p][v] = add_pair(sum[p][v], pairs_at(query + v * WIDTH), row[p][k]);
  if (first_lane >= 0 && f->is_bias) {
UNROLL(6)
    for (int p = 0; p < n_keys; p++)
UNROLL(2)
      for (int v = 0; v < n_vectors; v++)
        sum[p][v] += const_vectors(w->relation[j + p] + first_lane + h * step)[v];
  } else if (first_lane >= 0) {
UNROLL(6)
    for (int p = 0; p < n_keys; p++) row[p] = (const uint32_t *)w->relation[j + p] + first_lane + h * P * step;
    query = w->narrow.query[1] + h * P * LANES;
    for (int64_t k = 0; k < P; k++, query += LANES)
UNROLL(6)
      for (int p = 0; p < n_keys; p++)
UNROLL(2)
        for (int v = 0; v < n_vectors; v++)
          sum[p][v] = add_pairs(sum[p][v], pairs_at(query + v * WIDTH),
                                pairs_at(row[p] + k * step + v * WIDTH));
  }
UNROLL(6)
  for (int p = 0; p < n_keys; p++)
UNROLL(2)
    for (int v = 0; v < n_vectors; v++) vectors(w->score + (j + p) * LANES)[v] = sum[p][v];
}

#if WIDTH == 16
/* The last N - `by` lanes of `low`, then the first of what follows it. */
INLINE ints_t shifted(ints_t low, ints_t high, const int by) {
  switch (by) { /* the instruction's number is a constant */
    case 1: return (ints_t)_mm512_alignr_epi32((__m512i)high, (__m512i)low, 1);
    case 2: return (ints_t)_mm512_alignr_epi32((__m512i)high, (__m512i)low, 2);
    case 3: return (ints_t)_mm512_alignr_epi32((__m512i)high, (__m512i)low, 3);
    case 4: return (ints_t)_mm512_alignr_epi32((__m512i)high, (__m512i)low, 4);
    case 5: return (ints_t)_mm512_alignr_epi32((__m512i)high, (__m512i)low, 5);
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
  vector_t sum[KEYS][2];
UNROLL(6)
  for (int p = 0; p < KEYS; p++) sum[p][0] = sum[p][1] = (vector_t){0};
  for (int64_t k = 0; k < P; k++, content += LANES, position += LANES, column += step) {
    ints_t part[3];
UNROLL(3)
    for (int v = 0; v <= n_vectors; v++) part[v] = pairs_at(column + v * WIDTH);
UNROLL(6)
    for (int p = 0; p < KEYS; p++)
UNROLL(2)
      for (int v = 0; v < n_vectors; v++) {
        const ints_t relation = shifted(part[v], part[v + 1], KEYS - 1 - p);
        sum[p][v] = add_pair(sum[p][v], pairs_at(content + v * WIDTH), key[p * key_step + k]);
        sum[p][v] = add_pairs(sum[p][v], pairs_at(position + v * WIDTH), relation);
      }
  }
UNROLL(6)
  for (int p = 0; p < KEYS; p++)
UNROLL(2)
    for (int v = 0; v < n_vectors; v++) vectors(w->score + (j + p) * LANES)[v] = sum[p][v];
}

#endif

INLINE void scores_of_head(const int n_vectors, const Work *w, int64_t h, int64_t first_lane) {
  int64_t j = 0;
#if WIDTH == 16
  for (; first_lane >= 0 && !w->flat->is_bias && j + KEYS <= w->nodes->n_chars; j += KEYS)
    scores_of_neighbours(n_vectors, w, j, h, first_lane);
#endif
  for (; j + KEYS <= w->n; j += KEYS) scores_of_keys(KEYS, n_vectors, w, j, h, first_lane);
  BY_COUNT(scores_of_keys, w->n - j, n_vectors, w, j, h, first_lane);
}

static TARGET void scores(const Work *w, int n_vectors, int64_t h, int64_t first_lane) {
  BY_VECTORS(scores_of_head, n_vectors, w, h, first_lane);
}

/* 2^x for x <= 0 to 1e-4 of it, far less than what rounding to bfloat16 takes. */
INLINE vector_t power_of_two(vector_t x) {
  const vector_t whole = nearest_whole(x), r = x - whole;
  return times_power(((r * 0.05500902f + 0.24221131f) * r + 0.69328296f) * r + 1, whole);
}

INLINE void sums(const int n_out, const int n_vectors, const Work *w, int64_t offset, const vector_t *factor) {
  vector_t sum[SUMS][2];
UNROLL(10)
  for (int k = 0; k < n_out; k++) sum[k][0] = sum[k][1] = (vector_t){0};
  const uint32_t *share = w->narrow.share, *value = w->narrow.value + offset;
  for (int64_t j = 0; j < w->n; j += 2, share += LANES, value += w->flat->width)
UNROLL(10)
    for (int k = 0; k < n_out; k++)
UNROLL(2)
      for (int v = 0; v < n_vectors; v++)
        sum[k][v] = add_pair(sum[k][v], pairs_at(share + v * WIDTH), value[k]);
UNROLL(10)
  for (int k = 0; k < n_out; k++)
UNROLL(2)
    for (int v = 0; v < n_vectors; v++) vectors(w->out + (offset + k) * LANES)[v] = sum[k][v] * factor[v];
}

INLINE void softmax_and_sums_of_head(const int n_vectors, const Work *w, int64_t h, vector_t *factor) {
  const float to_base_2 = 1.44269504f;
  const int64_t d = w->flat->head_width, n = w->n;
  vector_t top[2], sum[2][2];
UNROLL(2)
  for (int v = 0; v < n_vectors; v++) top[v] = (vector_t){0} - INFINITY, sum[v][0] = sum[v][1] = (vector_t){0};
  for (int64_t j = 0; j < n; j++)
UNROLL(2)
    for (int v = 0; v < n_vectors; v++) top[v] = higher(*const_vectors(w->score + j * LANES + v * WIDTH), top[v]);
  for (int64_t j = 0; j < n; j += 2)
UNROLL(2)
    for (int v = 0; v < n_vectors; v++) {
      const float *score = w->score + j * LANES + v * WIDTH;
      vector_t share[2] = {(vector_t){0}, (vector_t){0}};
      share[0] = power_of_two((*const_vectors(score) - top[v]) * to_base_2);
      if (j + 1 < n) share[1] = power_of_two((*const_vectors(score + LANES) - top[v]) * to_base_2);
      sum[v][0] += share[0], sum[v][1] += share[1];
      *(ints_t *)(w->narrow.share + j / 2 * LANES + v * WIDTH) = paired(share[0], share[1]);
    }
UNROLL(2)
  for (int v = 0; v < n_vectors; v++) /* who sees nothing reads zeros */
    factor[v] = (vector_t)((ints_t)(1 / (sum[v][0] + sum[v][1])) & ~(top[v] <= HIDDEN / 2));
  int64_t k = 0;
  for (; k + SUMS <= d; k += SUMS) sums(SUMS, n_vectors, w, h * d + k, factor);
  for (; k + 4 <= d; k += 4) sums(4, n_vectors, w, h * d + k, factor);
  for (; k < d; k++) sums(1, n_vectors, w, h * d + k, factor);
}

static TARGET void softmax_and_sums(const Work *w, int n_vectors, int64_t h, vector_t *factor) {
  BY_VECTORS(softmax_and_sums_of_head, n_vectors, w, h, factor);
}

static float share(const Work *w, int64_t j, int64_t lane) {
  const uint32_t pair = w->narrow.share[j / 2 * LANES + lane];
  return widen_bf16((uint16_t)(j % 2 ? pair >> 16 : pair));
}

const Steps bfloat16_steps = {bytes, keys, queries, scores, softmax_and_sums, share};
#else
const Steps bfloat16_steps = {0};
#endif
