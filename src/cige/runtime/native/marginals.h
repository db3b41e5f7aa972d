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
  int in_logs; /* alpha and beta are logarithms, all powers and heights 0 */
  int32_t *path;
  double *trained; /* [n, n_lanes], `unary` of the trained chain, where that of the sentence has copies */
  uint8_t *states; /* [n, n_slots + 2], where it has copies: 1 + the set of copies that an entity begins with or 0, whether
                      this character may not be an entity, and which `part`s of each set there are */
} Room;

/* Lanes that are not all impossible at character t. */
static inline int64_t lanes_at(const Chain *chain, const Room *room, int64_t t) {
  if (!chain->n_slots) return chain->n_lanes;
  const uint8_t *state = room->states + t * (chain->n_slots + 2);
  for (int64_t k = 0; k < chain->n_slots; k++)
    if (state[2 + k]) return chain->n_lanes;
  return state[0] ? chain->n_lanes : chain->n_plain;
}

typedef struct { /* the rules of a sentence, with nothing in them where it has none */
  const Chain *chain;
  int64_t n_forced, n_blocked, n_typed, n_groups, first_typed;
  const int32_t *forced, *blocked, *typed, *groups; /* as Rules has them */
} Held;

/* rules.c: what applies to sentence b; `chain` is that of sentences without rules. */
Held held_of(const Chain *chain, const Rules *rules, int64_t b);

/* Emissions of a trained chain with which each forced span is one entity (tagging/user_rules.py). */
void force_spans(const Chain *trained, const Held *held, int64_t n, double *unary);

/* The emissions of a chain with copies, from those of the trained one, and the states of the room. */
void fill_copies(const Held *held, int64_t n, Room *room);

/* Leaves out the spans that overlap forced ones; how many are left. */
int64_t without_forced(const Held *held, ScoredSpan *spans, int64_t n_spans);

static inline int is_exempt(const Held *held, int64_t start) { /* entities that begin here may be of any length */
  for (int64_t k = 0; k < held->n_forced; k++)
    if (start == (held->forced[3 * k] > 0 ? held->forced[3 * k] : 0)) return 1;
  return 0;
}

int is_blocked(const Held *held, int64_t start, int64_t end);

typedef struct {
  int64_t n, room;
  ScoredSpan *spans; /* to be freed */
} Candidates;

/* alpha up to `last_alpha`, beta from `first_beta` on, which is not behind it, and what scales them, from `unary`. */
void find_marginals(const Chain *chain, Room *room, int64_t n, int64_t first_beta, int64_t last_alpha);

/* Of a span that has this label, or any that is reported with it. */
double probability(const Chain *chain, const Room *room, int64_t n, const Families *families, int64_t label,
                   int64_t start, int64_t end);

/* That a span has any label. */
double probability_of_any(const Chain *chain, const Room *room, int64_t n, int64_t start, int64_t end);

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

/* The spans of the best well-formed tags of a trained chain with which none is too long, save those that begin where forced
   ones do, and none is blocked. `best` is work space of [n, n_lanes]; spans has room for n. Returns how many there are. */
int64_t spans_within_lengths(const Chain *chain, const Held *held, const Families *families, const double *unary,
                             int64_t n, double *best, ScoredSpan *spans);

#endif
