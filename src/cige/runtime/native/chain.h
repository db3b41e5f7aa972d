/* A linear chain over tags, and the spans that are read with it; runtime/native_crf.py fills the structure. */

#ifndef CIGE_CHAIN_H
#define CIGE_CHAIN_H

#include <stdint.h>

typedef struct { /* transitions on one side of each block of tags, those alone that are allowed for one of its tags */
  const int32_t *first;  /* of block b: entries first[b] .. first[b + 1] - 1 */
  const int32_t *place;  /* of an entry: the tag on the other side */
  const double *numbers; /* of an entry: [BLOCK], one for each tag of the block */
} Transitions;

typedef struct Chain {
  int64_t n_tags, n_lanes;     /* L, and L in whole blocks */
  const double *start, *end;   /* [n_lanes]; -inf where forbidden and beyond L */
  const double *scores;        /* [L, n_lanes], from a tag (row) to a tag (column) */
  const double *into;          /* its transpose, rows of n_lanes too */
  Transitions best;            /* `scores` of what leads into each block */
  Transitions forward, backward; /* e to the power of them, of what leads into each block and of what it leads to */
  const int32_t *order;        /* [L]: which tag stands at each place, or which place of `base` */
  const int32_t *prefix, *label; /* [L]: 0 O, 1 B, 2 M or I, 3 E, 4 S; number of the label */
  const int32_t *places;       /* [labels, 4 + 4 * n_slots]: of each label the places of B, M or I, E, S; -1 where it has
                                  none; then of each set of copies those of B, M, E and of the M that leaves it */
  const int32_t *longest;      /* [labels]: characters that a span of each may have */
  int64_t is_open;             /* BIO: entities have no closing tag */
  int64_t n_labels;
  int64_t n_slots;             /* sets of copies of tags, as tagging/blocking.py has them; 0 for a trained chain */
  int64_t n_plain;             /* lanes with the tags that are no copies, which come first; n_lanes without copies */
  const struct Chain *base;    /* the trained chain of one with copies */
  const int32_t *slot, *part;  /* [L]: with copies, the set of each place or -1, and 1 M, 2 the M that leaves, 4 E */
} Chain;

typedef struct { /* labels that are reported as one */
  int64_t n_families;
  const int32_t *family;   /* [labels]: of each, or -1 */
  const double *threshold; /* [families], above 0: all spans that are as probable are asked for; NULL: the best reading */
} Families;

typedef struct { /* what a user's words say of some sentences; runtime/native_rules.py fills it */
  const int64_t *chains;  /* addresses of the chains that these sentences are read with */
  const int32_t *numbers; /* of each such sentence {chain, n_forced, n_blocked, n_typed, n_groups, index in `typed`}, then
                             its forced spans {start, end, label or -1 for any}, its blocked spans {start, end} in order,
                             its typed spans {start, end}, and the groups of its blocked spans of several characters
                             {slot, last, n_starts, n_ends, starts, ends that are not blocked} */
  const int32_t *first;   /* [B]: where the numbers of a sentence begin, or -1 */
  double *typed;          /* is given the probability that each typed span is an entity, of whatever type */
} Rules;

typedef struct {
  int32_t start, end, label, unused;
  double score;
} ScoredSpan;

enum { DONE = 0, NO_MEMORY = 1, MISSING = 2, NO_ROOM = 3 };

int read_chain(const Chain *chain, const int64_t *sizes, const int32_t *n_chars, const float *emissions,
               const uint8_t *is_closed, const Families *families, int32_t *tags, ScoredSpan *spans, int32_t *n_spans,
               const Rules *rules);

#endif
