/* Scores of attention with queries, keys and relative spans as whole numbers of 12 bits (AVX2, WebAssembly): two products
   at once, and half as much of the tables to read. Sums are exact. Each query, each key and each column of a table has a
   scale of its own, so that no text's scores depend on others. Softmax and values stay in float32, since whole numbers
   would save nothing there. */

#include "attention.h"

#if defined(HAS_INTEGERS16)
#include "transpose.h"

#define INLINE static inline __attribute__((always_inline))
#define KEYS 4 /* at once: of 16 registers, 8 hold sums */
#define SPARE 8 /* words behind a row that to_int16 may write to */

int64_t int16_bytes(const Flat *f, int64_t n) {
  const int64_t n_words = f->n_heads * ((f->head_width + 1) / 2);
  return 4 * ((n + LANES) * n_words + SPARE + 2 * n_words * LANES + 2 * LANES + n) + 64;
}

/* A row of all heads, each of whole pairs; what it is to be multiplied by is returned. */
static float narrow_heads(uint32_t *to, const float *from, const Flat *f) {
  const int64_t d = f->head_width, n_heads = d % 2 ? f->n_heads : 1, n = f->width / n_heads;
  const float highest = highest_magnitude(from, f->width), factor = highest > 0 ? MOST_INT16 / highest : 0;
  for (int64_t h = 0; h < n_heads; h++) to_int16((int16_t *)(to + h * ((n + 1) / 2)), from + h * n, n, factor);
  return highest / MOST_INT16;
}

void int16_keys(Work *w, void *memory) {
  const Flat *f = w->flat;
  Narrow *to = &w->narrow;
  to->n_pairs = (f->head_width + 1) / 2;
  const int64_t n_words = f->n_heads * to->n_pairs;
  to->query[0] = (uint32_t *)aligned(memory), to->query[1] = to->query[0] + n_words * LANES;
  to->query_scale[0] = (float *)to->query[1] + n_words * LANES, to->query_scale[1] = to->query_scale[0] + LANES;
  to->key_scale = to->query_scale[1] + LANES;
  to->key = (uint32_t *)to->key_scale + w->n, to->row = to->key + w->n * n_words;
  for (int64_t j = 0; j < w->n; j++) to->key_scale[j] = narrow_heads(to->key + j * n_words, w->key[j], f);
}

void int16_queries(const Work *w, int64_t n_lanes) {
  const int64_t n_words = w->flat->n_heads * w->narrow.n_pairs;
  for (int kind = 0; kind < 2; kind++) {
    float *scale = w->narrow.query_scale[kind];
    for (int64_t l = 0; l < n_lanes; l++)
      scale[l] = narrow_heads(w->narrow.row + l * n_words, w->row[kind] + l * w->flat->step, w->flat);
    for (int64_t l = n_lanes; l < LANES; l++) scale[l] = 0;
    transpose((float *)w->narrow.row, n_words, n_lanes, n_words, (float *)w->narrow.query[kind], LANES);
  }
}

INLINE void scores(const int n_keys, const int n_vectors, const Work *w, int64_t j, int64_t h, int64_t first_lane) {
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

INLINE void all_scores(const int n_vectors, const Work *w, int64_t h, int64_t first_lane) {
  int64_t j = 0;
  for (; j + KEYS <= w->n; j += KEYS) scores(KEYS, n_vectors, w, j, h, first_lane);
  switch (w->n - j) {
    case 1: scores(1, n_vectors, w, j, h, first_lane); break;
    case 2: scores(2, n_vectors, w, j, h, first_lane); break;
    case 3: scores(3, n_vectors, w, j, h, first_lane); break;
  }
}

void int16_scores(const Work *w, int n_vectors, int64_t h, int64_t first_lane) {
  if (n_vectors == 2)
    all_scores(2, w, h, first_lane);
  else
    all_scores(1, w, h, first_lane);
}

#endif
