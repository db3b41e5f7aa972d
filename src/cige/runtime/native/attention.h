/* What attention.c, attention_bf16.c and attention_int16.c share: a block of queries of one layer of one sentence. */

#ifndef CIGE_ATTENTION_H
#define CIGE_ATTENTION_H

#include "flat.h"
#include "integers16.h"

#define LANES (2 * WIDTH)
#define HIDDEN (-1e30f) /* the score of a pair that must not be seen; finite, so that no NaN comes of it */

typedef struct { /* numbers of the same sentence in 16 bits, two in 32 bits; a head takes P = (d + 1) / 2 pairs */
  int64_t n_pairs;    /* P */
  uint32_t *key;      /* [n][H * P] */
  uint32_t *value;    /* [(n + 1) / 2][D]: of two keys; in INT16 `step` words apart */
  uint32_t *query[2]; /* [H * P][LANES] */
  uint32_t *share;    /* [(n + 1) / 2][LANES]: of two keys */
  /* In INT16 there are scales too. */
  float *key_scale, *query_scale[2], *value_scale; /* [n], [LANES], [step] */
  uint32_t *row;                     /* [LANES][H * P], queries before they stand in lanes */
} Narrow;

typedef struct { /* what is the same for all blocks of queries of a sentence */
  const Flat *flat;
  const Layer *layer;
  const Nodes *nodes;
  int64_t n;                   /* keys */
  const float **key, **value;  /* rows of each key, at its first head */
  const float **relation;      /* of each key: the column of the table for the character at 0 */
  int64_t *head, *reach;
  float *row[2];               /* [LANES][H * d]: q + u, q + v */
  float *query[2];             /* [H * d][LANES] of the same */
  float *score;                /* [n][LANES] */
  float *out;                  /* [H * d][LANES] */
  float *by_pair;              /* [n][LANES][HP]: relation scores of queries that are words */
  Narrow narrow;               /* where flat->attention is not FLOAT32 */
} Work;

/* The steps of attention in bfloat16; scores and sums are float32. */

int64_t narrow_bytes(const Flat *flat, int64_t n); /* of memory that `narrow_keys` gets */
void narrow_keys(Work *work, void *memory);        /* keys and values, once for a sentence */
void narrow_queries(const Work *work, int64_t n_lanes);
void narrow_scores(const Work *work, int n_vectors, int64_t h, int64_t first_lane);
/* Turns scores to shares and adds up values; `factor` is what shares and sums still are to be multiplied by. */
void narrow_softmax_and_sums(const Work *work, int n_vectors, int64_t h, vector_t *factor);
float narrow_share(const Work *work, int64_t j, int64_t lane);

/* The same steps in INT16. */

#if defined(HAS_INTEGERS16)
int64_t int16_bytes(const Flat *flat, int64_t n);
void int16_keys(Work *work, void *memory);
void int16_queries(const Work *work, int64_t n_lanes);
void int16_scores(const Work *work, int n_vectors, int64_t h, int64_t first_lane);
void int16_softmax_and_sums(const Work *work, int n_vectors, int64_t h, vector_t *factor);
float int16_share(const Work *work, int64_t j, int64_t lane);
#else
static inline int64_t int16_bytes(const Flat *flat, int64_t n) { return (void)flat, (void)n, 0; }
static inline void int16_keys(Work *work, void *memory) { (void)work, (void)memory; }
static inline void int16_queries(const Work *work, int64_t n_lanes) { (void)work, (void)n_lanes; }
static inline void int16_scores(const Work *work, int n_vectors, int64_t h, int64_t first_lane) {
  (void)work, (void)n_vectors, (void)h, (void)first_lane;
}
static inline void int16_softmax_and_sums(const Work *work, int n_vectors, int64_t h, vector_t *factor) {
  (void)work, (void)n_vectors, (void)h, (void)factor;
}
static inline float int16_share(const Work *work, int64_t j, int64_t lane) {
  return (void)work, (void)j, (void)lane, 0.0f;
}
#endif

#endif
