/* Attention with queries, keys, relative spans and values as whole numbers of 12 bits, and shares of 13 (AVX2,
   WebAssembly): two products at once, and half as much of the tables to read. Sums are exact. Each query, each key, each
   column of a table and each column of a sentence's values has a scale of its own, so that no text's scores depend on
   others. */

#include "attention.h"

#if defined(HAS_INTEGERS16)
#include "transpose.h"

#define INLINE static inline __attribute__((always_inline))
#define KEYS 4 /* at once: of 16 registers, 8 hold sums */
#define SUMS 6 /* numbers of a head at once: with the shares, they take 14 registers of 16 */
#define SPARE 8 /* words behind a row that to_int16 may write to */
#define SHARE_BITS 13 /* a share of 1 is 2^13; in the sum of 128 products with values, there is no overflow */
#define PAIRS_AT_ONCE 64

static int64_t bytes(const Flat *f, int64_t n) {
  const int64_t n_words = f->n_heads * ((f->head_width + 1) / 2), n_pairs = (n + 1) / 2;
  const int64_t of_scores = (n + LANES) * n_words + SPARE + 2 * n_words * LANES + 2 * LANES + n;
  return 4 * (of_scores + n_pairs * (LANES + f->step) + f->step) + 2 * 64;
}

/* A row of all heads, each of whole pairs; what it is to be multiplied by is returned. */
static float narrow_heads(uint32_t *to, const float *from, const Flat *f) {
  const int64_t d = f->head_width, n_heads = d % 2 ? f->n_heads : 1, n = f->width / n_heads;
  const float highest = highest_magnitude(from, f->width), factor = highest > 0 ? MOST_INT16 / highest : 0;
  for (int64_t h = 0; h < n_heads; h++) to_int16((int16_t *)(to + h * ((n + 1) / 2)), from + h * n, n, factor);
  return highest / MOST_INT16;
}

/* Columns behind the width are narrowed too, since the rows have room for whole panels. */
static void narrow_values(const Work *w) {
  const int64_t n = w->n, step = w->flat->step;
  for (int64_t k = 0; k < step; k += WIDTH) {
    vector_t most = {0};
    for (int64_t j = 0; j < n; j++) {
      const vector_t value = *const_vectors(w->value[j] + k);
      most = higher(higher(value, -value), most);
    }
    const vector_t used = higher(most, (vector_t){0} + 1e-30f), factor = MOST_INT16 / used;
    *vectors(w->narrow.value_scale + k) = used * (1 / MOST_INT16);
    for (int64_t j = 0; j < n; j += 2) {
      const vector_t second = j + 1 < n ? *const_vectors(w->value[j + 1] + k) : (vector_t){0};
      const ints_t pair = pairs_of(*const_vectors(w->value[j] + k) * factor, second * factor);
      *(ints_t *)(w->narrow.value + j / 2 * step + k) = pair;
    }
  }
}

static void keys(Work *w, void *memory) {
  const Flat *f = w->flat;
  Narrow *to = &w->narrow;
  to->n_pairs = (f->head_width + 1) / 2;
  const int64_t n_words = f->n_heads * to->n_pairs;
  to->query[0] = (uint32_t *)aligned(memory), to->query[1] = to->query[0] + n_words * LANES;
  to->query_scale[0] = (float *)to->query[1] + n_words * LANES, to->query_scale[1] = to->query_scale[0] + LANES;
  to->key_scale = to->query_scale[1] + LANES;
  to->key = (uint32_t *)to->key_scale + w->n, to->row = to->key + w->n * n_words;
  for (int64_t j = 0; j < w->n; j++) to->key_scale[j] = narrow_heads(to->key + j * n_words, w->key[j], f);
  to->share = (uint32_t *)aligned(to->row + LANES * n_words + SPARE);
  to->value = to->share + (w->n + 1) / 2 * LANES, to->value_scale = (float *)to->value + (w->n + 1) / 2 * f->step;
  narrow_values(w);
}

static void queries(const Work *w, int64_t n_lanes) {
  const int64_t n_words = w->flat->n_heads * w->narrow.n_pairs;
  for (int kind = 0; kind < 2; kind++) {
    float *scale = w->narrow.query_scale[kind];
    for (int64_t l = 0; l < n_lanes; l++)
      scale[l] = narrow_heads(w->narrow.row + l * n_words, w->row[kind] + l * w->flat->step, w->flat);
    for (int64_t l = n_lanes; l < LANES; l++) scale[l] = 0;
    transpose((float *)w->narrow.row, n_words, n_lanes, n_words, (float *)w->narrow.query[kind], LANES);
  }
}

INLINE void scores_of_keys(const int n_keys, const int n_vectors, const Work *w, int64_t j, int64_t h, int64_t first_lane) {
  const Flat *f = w->flat;
  const int64_t P = w->narrow.n_pairs, step = f->relation_step, key_step = f->n_heads * P;
  const uint32_t *query = w->narrow.query[0] + h * P * LANES, *row[KEYS];
  ints_t sum[KEYS][2] = {{{0}}};
UNROLL(4)
  for (int p = 0; p < n_keys; p++) row[p] = w->narrow.key + (j + p) * key_step + h * P;
  for (int64_t k = 0; k < P; k++, query += LANES)
UNROLL(4)
    for (int p = 0; p < n_keys; p++)
UNROLL(2)
      for (int v = 0; v < n_vectors; v++)
        sum[p][v] = add_pairs(sum[p][v], *(const ints_t *)(query + v * WIDTH), (ints_t){0} + (int32_t)row[p][k]);
UNROLL(4)
  for (int p = 0; p < n_keys; p++)
UNROLL(2)
    for (int v = 0; v < n_vectors; v++) {
      const vector_t product = floats_of(sum[p][v]) * const_vectors(w->narrow.query_scale[0])[v];
      vectors(w->score + (j + p) * LANES)[v] = product * w->narrow.key_scale[j + p];
      sum[p][v] = (ints_t){0};
    }
  if (first_lane < 0) return; /* queries are words */
  if (f->is_bias) {
UNROLL(4)
    for (int p = 0; p < n_keys; p++)
UNROLL(2)
      for (int v = 0; v < n_vectors; v++)
        vectors(w->score + (j + p) * LANES)[v] += const_vectors(w->relation[j + p] + first_lane + h * step)[v];
    return;
  }
UNROLL(4)
  for (int p = 0; p < n_keys; p++) row[p] = (const uint32_t *)w->relation[j + p] + first_lane + h * P * step;
  query = w->narrow.query[1] + h * P * LANES;
  for (int64_t k = 0; k < P; k++, query += LANES)
UNROLL(4)
    for (int p = 0; p < n_keys; p++)
UNROLL(2)
      for (int v = 0; v < n_vectors; v++)
        sum[p][v] = add_pairs(sum[p][v], *(const ints_t *)(query + v * WIDTH),
                              *(const ints_t *)(row[p] + k * step + v * WIDTH));
UNROLL(4)
  for (int p = 0; p < n_keys; p++)
UNROLL(2)
    for (int v = 0; v < n_vectors; v++) {
      vector_t *score = vectors(w->score + (j + p) * LANES) + v;
      const vector_t scale = const_vectors(w->relation[j + p] + first_lane + key_step * step)[v]; /* of each column */
      *score = add_product(*score, floats_of(sum[p][v]) * scale, const_vectors(w->narrow.query_scale[1])[v]);
    }
}

INLINE void scores_of_head(const int n_vectors, const Work *w, int64_t h, int64_t first_lane) {
  int64_t j = 0;
  for (; j + KEYS <= w->n; j += KEYS) scores_of_keys(KEYS, n_vectors, w, j, h, first_lane);
  switch (w->n - j) {
    case 1: scores_of_keys(1, n_vectors, w, j, h, first_lane); break;
    case 2: scores_of_keys(2, n_vectors, w, j, h, first_lane); break;
    case 3: scores_of_keys(3, n_vectors, w, j, h, first_lane); break;
  }
}

static void scores(const Work *w, int n_vectors, int64_t h, int64_t first_lane) {
  BY_VECTORS(scores_of_head, n_vectors, w, h, first_lane);
}

/* 2^x as a number of 2^13, for x <= 0: to 1e-4 of it, which is less than what rounding takes, and exactly for 0, so that
   no share is above 2^13. What is no share becomes 0. */
INLINE vector_t share_of(vector_t x) {
  const float nearest = 12582912.0f + SHARE_BITS; /* a sum with it has no fraction; its lowest bits are those of power */
  const vector_t y = higher(x, (vector_t){0} - 126.0f), shifted = y + nearest, r = y - (shifted - nearest);
  const vector_t power = ((r * 0.05500902f + 0.24221131f) * r + 0.69328296f) * r + 1.0f;
  return (vector_t)((ints_t)power + ((ints_t)shifted << 23));
}

/* n_out numbers of all heads' from `offset` on, for all lanes. */
INLINE void sums(const int n_out, const int n_vectors, const Work *w, int64_t offset, const vector_t *factor) {
  const int64_t step = w->flat->step, n_pairs = (w->n + 1) / 2;
  for (int64_t first = 0; first < n_pairs; first += PAIRS_AT_ONCE) {
    const int64_t end = first + PAIRS_AT_ONCE < n_pairs ? first + PAIRS_AT_ONCE : n_pairs;
    const uint32_t *share = w->narrow.share + first * LANES, *value = w->narrow.value + first * step + offset;
    ints_t sum[SUMS][2] = {{{0}}};
    for (int64_t j = first; j < end; j++, share += LANES, value += step)
UNROLL(6)
      for (int k = 0; k < n_out; k++)
UNROLL(2)
        for (int v = 0; v < n_vectors; v++)
          sum[k][v] = add_pairs(sum[k][v], *(const ints_t *)(share + v * WIDTH), (ints_t){0} + (int32_t)value[k]);
UNROLL(6)
    for (int k = 0; k < n_out; k++)
UNROLL(2)
      for (int v = 0; v < n_vectors; v++) {
        vector_t *out = vectors(w->out + (offset + k) * LANES) + v;
        if (!first) *out = (vector_t){0};
        *out = add_product(*out, floats_of(sum[k][v]), factor[v] * w->narrow.value_scale[offset + k]);
      }
  }
}

INLINE void softmax_and_sums_of_head(const int n_vectors, const Work *w, int64_t h, vector_t *factor) {
  const float to_base_2 = 1.44269504f;
  const int64_t d = w->flat->head_width, n = w->n;
  vector_t top[2] = {{0}};
  ints_t sum[2] = {{0}};
UNROLL(2)
  for (int v = 0; v < n_vectors; v++) top[v] = const_vectors(w->score)[v];
  for (int64_t j = 1; j < n; j++)
UNROLL(2)
    for (int v = 0; v < n_vectors; v++) top[v] = higher(const_vectors(w->score + j * LANES)[v], top[v]);
  for (int64_t j = 0; j < n; j += 2)
UNROLL(2)
    for (int v = 0; v < n_vectors; v++) {
      const float *score = w->score + j * LANES + v * WIDTH;
      const vector_t first = share_of((*const_vectors(score) - top[v]) * to_base_2);
      vector_t next = (vector_t){0} - INFINITY; /* behind an odd number of keys */
      if (j + 1 < n) next = *const_vectors(score + LANES);
      const vector_t second = share_of((next - top[v]) * to_base_2);
      const ints_t pair = pairs_of(first, second);
      sum[v] = add_pairs(sum[v], pair, (ints_t){0} + 0x10001); /* of rounded shares: they have a sum of 1 */
      *(ints_t *)(w->narrow.share + j / 2 * LANES + v * WIDTH) = pair;
    }
UNROLL(2)
  for (int v = 0; v < n_vectors; v++) /* who sees nothing reads zeros */
    factor[v] = (vector_t)((ints_t)(1 / floats_of(sum[v])) & ~(top[v] <= HIDDEN / 2));
  const int64_t parts = (d + SUMS - 1) / SUMS;
  for (int64_t t = 0, k = 0; t < parts; t++) {
    const int64_t n_out = (d - k + parts - t - 1) / (parts - t);
    BY_COUNT(sums, n_out, n_vectors, w, h * d + k, factor);
    k += n_out;
  }
}

static void softmax_and_sums(const Work *w, int n_vectors, int64_t h, vector_t *factor) {
  BY_VECTORS(softmax_and_sums_of_head, n_vectors, w, h, factor);
}

static float share(const Work *w, int64_t j, int64_t lane) {
  const uint32_t pair = w->narrow.share[j / 2 * LANES + lane];
  return (float)(j % 2 ? pair >> 16 : pair & 0xffff);
}

const Steps int16_steps = {bytes, keys, queries, scores, softmax_and_sums, share};
#else
const Steps int16_steps = {0};
#endif
