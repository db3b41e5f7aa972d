/* What attention.c, attention_bf16.c and attention_int16.c share: a block of queries of one layer of one sentence, and
   the steps by which each of them reads it in one precision. */

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

typedef struct Steps Steps;

typedef struct { /* what is the same for all blocks of queries of a sentence */
  const Steps *steps;
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

/* Attention in one precision; scores and sums are float32 in each. */
struct Steps {
  int64_t (*bytes)(const Flat *flat, int64_t n); /* of memory that `keys` gets */
  void (*keys)(Work *work, void *memory);        /* keys and values, once for a sentence */
  void (*queries)(const Work *work, int64_t n_lanes);
  void (*scores)(const Work *work, int n_vectors, int64_t h, int64_t first_lane);
  /* Turns scores to shares and adds up values; `factor` is what shares and sums still are to be multiplied by. */
  void (*softmax_and_sums)(const Work *work, int n_vectors, int64_t h, vector_t *factor);
  float (*share)(const Work *work, int64_t j, int64_t lane);
};

extern const Steps bfloat16_steps, int16_steps; /* empty at levels without the instructions, where none are called */

/* A function whose first argument is a constant in each of its forms. */
#define BY_VECTORS(FUNCTION, N, ...) ((N) == 2 ? FUNCTION(2, __VA_ARGS__) : FUNCTION(1, __VA_ARGS__))
#define BY_COUNT(FUNCTION, N, ...)           \
  switch (N) {                               \
    case 1: FUNCTION(1, __VA_ARGS__); break; \
    case 2: FUNCTION(2, __VA_ARGS__); break; \
    case 3: FUNCTION(3, __VA_ARGS__); break; \
    case 4: FUNCTION(4, __VA_ARGS__); break; \
    case 5: FUNCTION(5, __VA_ARGS__); break; \
    case 6: FUNCTION(6, __VA_ARGS__); break; \
  }

#endif
