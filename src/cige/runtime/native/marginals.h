/* What the parts of a chain share: vectors of doubles, and the work space of a sentence. */

#ifndef CIGE_MARGINALS_H
#define CIGE_MARGINALS_H

#include "../../nn/native/maxima.h"
#include "chain.h"

#define BLOCK 8             /* tags of a block */
#define DOUBLES (WIDTH / 2) /* of a vector */
#define VECTORS (BLOCK / DOUBLES) /* of a block */

typedef double doubles_t __attribute__((vector_size(WIDTH * 4), aligned(8), may_alias));
typedef int64_t longs_t __attribute__((vector_size(WIDTH * 4), aligned(8), may_alias));

static inline doubles_t larger(doubles_t a, doubles_t b) { /* as `higher` of maxima.h */
#if defined(__AVX512F__)
  return (doubles_t)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif defined(__AVX__)
  return (doubles_t)_mm256_max_pd((__m256d)a, (__m256d)b);
#elif defined(__SSE2__)
  return (doubles_t)_mm_max_pd((__m128d)a, (__m128d)b);
#else
  const longs_t above = a > b;
  return (doubles_t)(((longs_t)a & above) | ((longs_t)b & ~above));
#endif
}

typedef struct {
  double *unary, *best, *weight, *alpha, *beta; /* [n, n_lanes] */
  int64_t *alpha_power, *beta_power;            /* [n], powers of two, of all steps up to here */
  double *heights;                              /* [n + 1], sums of the highest emissions, which `weight` leaves out */
  double all;                                   /* log of the sum over all tag sequences */
  int32_t *path;
} Room;

typedef struct {
  int64_t n, room;
  ScoredSpan *spans; /* to be freed */
} Candidates;

/* alpha, beta and what scales them, from `unary`. */
void find_marginals(const Chain *chain, Room *room, int64_t n);

/* Of a span that has this label, or any that is reported with it. */
double probability(const Chain *chain, const Room *room, int64_t n, const Families *families, int64_t label,
                   int64_t start, int64_t end);

/* All spans of a sentence that reach the threshold of a family. Returns 0, or 1 if memory ran out. */
int find_candidates(const Chain *chain, const Room *room, int64_t n, const Families *families, Candidates *found);

/* Characters that an entity of this label may have: the most that any label allows that is reported with it. */
static inline int64_t longest_of(const Chain *chain, const Families *families, int64_t label) {
  int64_t longest = chain->longest[label];
  if (!families || families->family[label] < 0) return longest;
  for (int64_t other = 0; other < chain->n_labels; other++)
    if (families->family[other] == families->family[label] && chain->longest[other] > longest)
      longest = chain->longest[other];
  return longest;
}

/* The spans of the best well-formed tags with which none is too long. `best` is work space of [n, n_lanes]; spans has
   room for n. Returns how many there are. */
int64_t spans_within_lengths(const Chain *chain, const Families *families, const double *unary, int64_t n, double *best,
                             ScoredSpan *spans);

#endif
