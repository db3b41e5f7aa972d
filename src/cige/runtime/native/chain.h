/* A linear chain over tags, and the spans that are read with it; runtime/native_chain.py and native_crf.py fill these. */

#ifndef CIGE_CHAIN_H
#define CIGE_CHAIN_H

#include "layout.h"

/* Transitions on one side of each block of tags, those alone that are allowed for one of its tags. */
#define TRANSITIONS(F, S)                                                                                             \
  F(S, const int32_t *, first) /* of block b: entries first[b] .. first[b + 1] - 1 */                                 \
  F(S, const int32_t *, place) /* of an entry: the tag on the other side */                                           \
  F(S, const double *, numbers) /* of an entry: [BLOCK], one for each tag of the block */
DEFINE(Transitions, TRANSITIONS);

/* `places` has those of each label's B, M or I, E, S; -1 where it has none; then of each set of copies those of B, M, E
   and of the M that leaves it. */
#define CHAIN(F, S)                                                                                                   \
  F(S, int64_t, n_tags) /* L */                                                                                       \
  F(S, int64_t, n_lanes) /* L in whole blocks */                                                                      \
  F(S, const double *, start) /* [n_lanes]; -inf where forbidden and beyond L */                                      \
  F(S, const double *, end)                                                                                           \
  F(S, const double *, scores) /* [L, n_lanes], from a tag (row) to a tag (column) */                                 \
  F(S, double, spread) /* the greatest difference of these scores where they are not forbidden */                     \
  F(S, const double *, into) /* its transpose, rows of n_lanes too */                                                 \
  F(S, Transitions, best) /* `scores` of what leads into each block */                                                \
  F(S, Transitions, forward) /* e to the power of them, of what leads into each block */                              \
  F(S, Transitions, backward) /* and of what it leads to */                                                           \
  F(S, const int32_t *, order) /* [L]: which tag stands at each place, or which place of `base` */                    \
  F(S, const int32_t *, prefix) /* [L]: 0 O, 1 B, 2 M or I, 3 E, 4 S */                                               \
  F(S, const int32_t *, label) /* [L]: number of the label, or -1 */                                                  \
  F(S, const int32_t *, places) /* [labels, 4 + 4 * n_slots], see below */                                            \
  F(S, const int32_t *, longest) /* [labels]: characters that a span of each may have */                              \
  F(S, int64_t, is_open) /* BIO: entities have no closing tag */                                                      \
  F(S, int64_t, n_labels)                                                                                             \
  F(S, int64_t, n_slots) /* sets of copies of tags, as tagging/blocking.py has them; 0 for a trained chain */         \
  F(S, int64_t, n_plain) /* lanes with the tags that are no copies, which come first; n_lanes without copies */       \
  F(S, const struct Chain *, base) /* the trained chain of one with copies */                                         \
  F(S, const int32_t *, slot) /* [L]: with copies, the set of each place or -1 */                                     \
  F(S, const int32_t *, part) /* [L]: with copies, 1 M, 2 the M that leaves, 4 E */
DEFINE(Chain, CHAIN);

/* Labels that are reported as one. */
#define FAMILIES(F, S)                                                                                                \
  F(S, int64_t, n_families)                                                                                           \
  F(S, const int32_t *, family) /* [labels]: of each, or -1 */                                                        \
  F(S, const double *, threshold) /* [families], above 0: all spans as probable are asked for; NULL: the best reading */
DEFINE(Families, FAMILIES);

/* What a user's words say of some sentences. `numbers` has of each such sentence {chain, n_forced, n_blocked, n_typed,
   n_groups, index in `typed`}, then its forced spans {start, end, label or -1 for any}, its blocked spans {start, end}
   in order, its typed spans {start, end}, and the groups of its blocked spans of several characters {slot, last,
   n_starts, n_ends, starts, ends that are not blocked}. */
#define RULES(F, S)                                                                                                   \
  F(S, const struct Chain *const *, chains) /* that these sentences are read with */                                  \
  F(S, const int32_t *, numbers)                                                                                      \
  F(S, const int32_t *, first) /* [B]: where the numbers of a sentence begin, or -1 */                                \
  F(S, double *, typed) /* is given the probability that each typed span is an entity, of whatever type */
DEFINE(Rules, RULES);

#define SCORED_SPAN(F, S)                                                                                             \
  F(S, int32_t, start) F(S, int32_t, end) F(S, int32_t, label) F(S, int32_t, unused) F(S, double, score)
DEFINE(ScoredSpan, SCORED_SPAN);

#define EMISSIONS(F, S)                                                                                               \
  F(S, int64_t, n_sentences) /* B */                                                                                  \
  F(S, int64_t, step) /* floats of a row */                                                                           \
  F(S, const int32_t *, n_chars) /* [B] */                                                                            \
  F(S, const float *, rows) /* [sum of n_chars, step] */                                                              \
  F(S, int32_t *, tags) /* [sum of n_chars] is given the best tags whatever the lengths of their spans, or NULL */
DEFINE(Emissions, EMISSIONS);

/* How sentences are to be read. `spans` is given those of each sentence in turn, n_spans[b] of them, none too long; the
   score of each is the sum over the labels of its family, where it has one. With thresholds it is given all candidates
   instead, with their families in place of labels. Spans that overlap forced ones are left out; typed ones are asked for
   with the best spans alone. */
#define READING(F, S)                                                                                                 \
  F(S, int64_t, n_threads)                                                                                            \
  F(S, const uint8_t *, is_closed) /* [sum of n_chars], whether no span may have a character, or NULL */              \
  F(S, const Families *, families) /* or NULL */                                                                      \
  F(S, const Rules *, rules) /* or NULL */                                                                            \
  F(S, int64_t, room) /* spans that `spans` has room for: at least one for each character */                          \
  F(S, ScoredSpan *, spans)                                                                                           \
  F(S, int32_t *, n_spans) /* [B] */
DEFINE(Reading, READING);

enum { DONE = 0, NO_MEMORY = 1, MISSING = 2, NO_ROOM = 3 };

/* Returns DONE, NO_MEMORY, or NO_ROOM where there are more candidates than room; then n_spans has their numbers. */
int read_chain(const Chain *chain, const Emissions *emissions, const Reading *reading);

#endif
