/* FLAT's attention in one layer of one sentence (Eq. 11, Eq. 2, Eq. 1).

   The lanes of a vector are queries that stand side by side, and a key is a row of scores. So for a key at head_j the
   part of the score that comes from R_ij is a row of a table that is read from column i - head_j on, whether the key is
   a character or a word: nothing is gathered. Softmax needs no sum across lanes either. */

#include <stdlib.h>

#include "attention.h"
#include "transpose.h"

#define INLINE static inline __attribute__((always_inline))
#define KEYS 6        /* key nodes at once */
INLINE void scores(const int n_keys, const int n_vectors, const Work *w, int64_t j, int64_t h, int64_t first_lane) {
  const Flat *f = w->flat;
  const int64_t d = f->head_width, step = f->relation_step;
  vector_t sum[KEYS][2] = {{{0}}};
  const float *row[KEYS];
UNROLL(6)
  for (int p = 0; p < n_keys; p++) row[p] = w->key[j + p] + h * d;
  const float *query = w->query[0] + h * d * LANES;
  for (int64_t k = 0; k < d; k++, query += LANES) {
    const vector_t *q = const_vectors(query);
UNROLL(6)
    for (int p = 0; p < n_keys; p++)
UNROLL(2)
      for (int v = 0; v < n_vectors; v++) sum[p][v] += q[v] * row[p][k];
  }
  if (first_lane >= 0) { /* queries are characters */
    if (f->is_bias) {
UNROLL(6)
      for (int p = 0; p < n_keys; p++)
UNROLL(2)
        for (int v = 0; v < n_vectors; v++)
          sum[p][v] += const_vectors(w->relation[j + p] + first_lane + h * step)[v];
    } else {
UNROLL(6)
      for (int p = 0; p < n_keys; p++) row[p] = w->relation[j + p] + first_lane + h * d * step;
      query = w->query[1] + h * d * LANES;
      for (int64_t k = 0; k < d; k++, query += LANES) {
        const vector_t *q = const_vectors(query);
UNROLL(6)
        for (int p = 0; p < n_keys; p++)
UNROLL(2)
          for (int v = 0; v < n_vectors; v++) sum[p][v] += q[v] * const_vectors(row[p] + k * step)[v];
      }
    }
  }
UNROLL(6)
  for (int p = 0; p < n_keys; p++)
UNROLL(2)
    for (int v = 0; v < n_vectors; v++) vectors(w->score + (j + p) * LANES)[v] = sum[p][v];
}

INLINE void wide_scores(const int n_vectors, const Work *w, int64_t h, int64_t first_lane) {
  int64_t j = 0;
  for (; j + KEYS <= w->n; j += KEYS) scores(KEYS, n_vectors, w, j, h, first_lane);
  BY_COUNT(scores, w->n - j, n_vectors, w, j, h, first_lane);
}

/* n_out numbers of all heads' from `offset` on, for all lanes. */
INLINE void sums(const int n_out, const int n_vectors, const Work *w, int64_t offset, const vector_t *factor) {
  vector_t sum[KEYS][2] = {{{0}}};
  const float *score = w->score;
  for (int64_t j = 0; j < w->n; j++, score += LANES) {
    const vector_t *p = const_vectors(score);
    const float *value = w->value[j] + offset;
UNROLL(6)
    for (int k = 0; k < n_out; k++)
UNROLL(2)
      for (int v = 0; v < n_vectors; v++) sum[k][v] += p[v] * value[k];
  }
UNROLL(6)
  for (int k = 0; k < n_out; k++)
UNROLL(2)
    for (int v = 0; v < n_vectors; v++) vectors(w->out + (offset + k) * LANES)[v] = sum[k][v] * factor[v];
}

INLINE void wide_softmax_and_sums(const int n_vectors, const Work *w, int64_t h, vector_t *factor) {
  const int64_t d = w->flat->head_width, n = w->n;
  vector_t top[2], sum[2] = {{0}};
UNROLL(2)
  for (int v = 0; v < n_vectors; v++) top[v] = const_vectors(w->score)[v];
  for (int64_t j = 1; j < n; j++)
UNROLL(2)
    for (int v = 0; v < n_vectors; v++) top[v] = higher(const_vectors(w->score + j * LANES)[v], top[v]);
  for (int64_t j = 0; j < n; j++)
UNROLL(2)
    for (int v = 0; v < n_vectors; v++) {
      vector_t *score = vectors(w->score + j * LANES) + v;
      sum[v] += *score = exp_of(*score - top[v]);
    }
UNROLL(2)
  for (int v = 0; v < n_vectors; v++) /* who sees nothing reads zeros */
    factor[v] = (vector_t)((ints_t)(1 / sum[v]) & ~(top[v] <= HIDDEN / 2));
  const int64_t parts = (d + KEYS - 1) / KEYS;
  for (int64_t t = 0, k = 0; t < parts; t++) {
    const int64_t n_out = (d - k + parts - t - 1) / (parts - t);
    BY_COUNT(sums, n_out, n_vectors, w, h * d + k, factor);
    k += n_out;
  }
}

static int64_t no_bytes(const Flat *f, int64_t n) { return (void)f, (void)n, 0; }

static void no_keys(Work *w, void *memory) { (void)w, (void)memory; } /* those of `key` and `value` are read */

static void no_queries(const Work *w, int64_t n_lanes) { (void)w, (void)n_lanes; }

static void float32_scores(const Work *w, int n_vectors, int64_t h, int64_t first_lane) {
  BY_VECTORS(wide_scores, n_vectors, w, h, first_lane);
}

static void float32_softmax_and_sums(const Work *w, int n_vectors, int64_t h, vector_t *factor) {
  BY_VECTORS(wide_softmax_and_sums, n_vectors, w, h, factor);
}

static float float32_share(const Work *w, int64_t j, int64_t lane) { return w->score[j * LANES + lane]; }

static const Steps float32_steps = {no_bytes, no_keys, no_queries, float32_scores, float32_softmax_and_sums, float32_share};

static void hide(const Work *w, int64_t first, int64_t n_lanes, int words_ask) {
  const Flat *f = w->flat;
  for (int64_t j = 0; j < w->n; j++) {
    const int64_t head_j = w->head[j], tail_j = head_j + w->reach[j];
    for (int64_t l = 0; l < n_lanes; l++) {
      const int64_t node = words_ask ? w->nodes->n_chars + first + l : first + l;
      const int64_t head_i = w->head[node], tail_i = head_i + w->reach[node];
      const int64_t gap = head_i - tail_j > head_j - tail_i ? head_i - tail_j : head_j - tail_i;
      const int contains = !words_ask && j >= w->nodes->n_chars && head_j <= head_i && tail_i <= tail_j;
      if ((f->is_masked_by_distance && gap > f->max_distance) || (f->mask_self_matched && contains))
        w->score[j * LANES + l] = HIDDEN;
    }
  }
}

/* by_pair[j][l][h] of the words first + l: (q + v) . relation, or the relation's bias. */
static void pair_scores(const Work *w, int64_t first, int64_t n_lanes) {
  const Flat *f = w->flat;
  const int64_t d = f->head_width, H = f->n_heads, HP = stride(H), n_rows = f->is_bias ? 1 : d;
  for (int64_t l = 0; l < n_lanes; l++) {
    const int64_t i = w->nodes->n_chars + first + l;
    float *query = w->score; /* [d][HP], free as yet */
    if (!f->is_bias)
      for (int64_t k = 0; k < d; k++)
        for (int64_t h = 0; h < HP; h++) query[k * HP + h] = h < H ? w->query[1][(h * d + k) * LANES + l] : 0;
    for (int64_t j = 0; j < w->n; j++) {
      const int64_t column = w->head[i] - w->head[j] + f->relation_chars - 1;
      const float *row = w->layer->word_relation[w->reach[i] * f->n_reaches + w->reach[j]] + column * n_rows * HP;
      float *to = w->by_pair + (j * LANES + l) * HP;
      if (f->is_bias) {
        memcpy(to, row, (size_t)HP * sizeof(float));
        continue;
      }
      for (int64_t h = 0; h < HP; h += WIDTH) {
        vector_t sum = {0};
        for (int64_t k = 0; k < d; k++) sum += *const_vectors(query + k * HP + h) * *const_vectors(row + k * HP + h);
        *vectors(to + h) = sum;
      }
    }
  }
}

/* q + u and q + v of the queries, in lanes. */
static void read_queries(const Work *w, const float *from, int64_t n_lanes, int words_ask) {
  const Flat *f = w->flat;
  const float scale = (float)f->scale, *added[2] = {w->layer->u, w->layer->v};
  for (int kind = 0; kind < 2; kind++) {
    for (int64_t l = 0; l < n_lanes; l++) {
      const float *query = from + l * WIDE(f->step);
      float *row = w->row[kind] + l * f->step;
      for (int64_t k = 0; k < f->width; k++) row[k] = query[k] * scale + added[kind][k];
    }
    if (f->attention == FLOAT32 || words_ask)
      transpose(w->row[kind], f->step, n_lanes, f->width, w->query[kind], LANES);
  }
  w->steps->queries(w, n_lanes);
}

/* What each character reads of each word, the mean of layers and heads. */
static void note_attention(const Work *w, int64_t first, int64_t n_lanes, const vector_t *factor) {
  const Nodes *nodes = w->nodes;
  for (int64_t j = nodes->n_chars; j < w->n; j++)
    for (int64_t l = 0; l < n_lanes; l++) {
      nodes->attention[(first + l) * nodes->n_words + j - nodes->n_chars] +=
          w->steps->share(w, j, l) * ((const float *)factor)[l] / (float)(w->flat->n_heads * w->flat->n_layers);
    }
}

/* Queries first .. first + n_lanes - 1, all of them characters or all of them words. */
static void attend_block(const Work *w, int64_t first, int64_t n_lanes, int words_ask) {
  const Flat *f = w->flat;
  const Nodes *nodes = w->nodes;
  const int64_t H = f->n_heads, HP = stride(H), first_lane = words_ask ? -1 : first;
  const int n_vectors = n_lanes > WIDTH ? 2 : 1, is_masked = f->mask_self_matched || f->is_masked_by_distance;
  read_queries(w, (words_ask ? nodes->words : nodes->chars) + first * WIDE(f->step) + f->step, n_lanes, words_ask);
  if (words_ask) pair_scores(w, first, n_lanes);
  for (int64_t h = 0; h < H; h++) {
    vector_t factor[2];
    w->steps->scores(w, n_vectors, h, first_lane);
    if (words_ask)
      for (int64_t j = 0; j < w->n; j++)
        for (int64_t l = 0; l < n_lanes; l++) w->score[j * LANES + l] += w->by_pair[(j * LANES + l) * HP + h];
    if (is_masked) hide(w, first, n_lanes, words_ask);
    w->steps->softmax_and_sums(w, n_vectors, h, factor);
    if (nodes->attention && !words_ask) note_attention(w, first, n_lanes, factor);
  }
  transpose(w->out, LANES, f->width, n_lanes, (words_ask ? nodes->to_words : nodes->to_chars) + first * f->step, f->step);
}

int attend(const Flat *f, const Layer *layer, const Nodes *nodes, int words_ask) {
  const int64_t T = nodes->n_chars, W = nodes->n_words, n = T + W, HP = stride(f->n_heads), size = f->step * LANES;
  const int64_t n_scores = n * LANES > f->head_width * HP ? n * LANES : f->head_width * HP;
  const int64_t n_floats = 5 * size + n_scores + (words_ask ? n * LANES * HP : 0);
  const size_t n_bytes = (size_t)n * (3 * sizeof(float *) + 2 * sizeof(int64_t)) + in_bytes(n_floats);
  const Steps *steps = f->attention == BFLOAT16 ? &bfloat16_steps : f->attention == INT16 ? &int16_steps : &float32_steps;
  char *memory = malloc(n_bytes + (size_t)steps->bytes(f, n));
  if (!memory) return 1;
  Work w = {.steps = steps, .flat = f, .layer = layer, .nodes = nodes, .n = n};
  w.key = (const float **)memory, w.value = w.key + n, w.relation = w.value + n;
  w.head = (int64_t *)(w.relation + n), w.reach = w.head + n;
  w.row[0] = aligned(w.reach + n), w.row[1] = w.row[0] + size;
  w.query[0] = w.row[1] + size, w.query[1] = w.query[0] + size;
  w.out = w.query[1] + size, w.score = w.out + size, w.by_pair = w.score + n_scores;
  for (int64_t j = 0; j < n; j++) {
    const int64_t word = j - T, is_char = j < T;
    const float *row = is_char ? nodes->chars + j * WIDE(f->step) : nodes->words + word * WIDE(f->step);
    w.key[j] = row + 2 * f->step, w.value[j] = row + 3 * f->step;
    w.head[j] = is_char ? j : nodes->starts[word];
    w.reach[j] = is_char ? 0 : nodes->ends[word] - 1 - nodes->starts[word];
    w.relation[j] = layer->relation[w.reach[j]] + f->relation_chars - 1 - w.head[j];
  }
  steps->keys(&w, memory + n_bytes);
  for (int64_t i = 0; i < T; i += LANES) attend_block(&w, i, T - i < LANES ? T - i : LANES, 0);
  if (words_ask)
    for (int64_t i = 0; i < W; i += LANES) attend_block(&w, i, W - i < LANES ? W - i : LANES, 1);
  free(memory);
  return 0;
}
