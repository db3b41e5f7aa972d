/* What FLAT's parts share: the weights of a model, and sentences one behind the other. runtime/flat_weights.py and
   flat_native.py fill these structures; every pointer is the caller's, nothing here is written to but what a function
   says it gives. */

#ifndef CIGE_FLAT_H
#define CIGE_FLAT_H

#include "product.h"

/* Floats from a row [x | q | k | v] to the next: a cache line more than it has, so that the rows' beginnings do not fall
   on a few places of the cache. */
#define WIDE(STEP) (4 * (STEP) + 16)

/* Rows of an embedding table, as SplitEmbedding keeps them. */
#define TABLE(F, S)                                                                                                   \
  F(S, const float *, tuned) /* [n_tuned, width] */                                                                   \
  F(S, const void *, fixed) /* the rows from n_tuned on: int8, float16 or float32 */                                  \
  F(S, const uint16_t *, scale) /* float16, one for each row of int8 */                                               \
  F(S, int64_t, n_tuned) F(S, int64_t, width)                                                                         \
  F(S, int64_t, n_bytes) /* of a number of `fixed` */
DEFINE(Table, TABLE);

#define NORM(F, S)                                                                                                    \
  F(S, const float *, weight) /* [D] */                                                                               \
  F(S, const float *, bias)
DEFINE(Norm, NORM);

/* The part of a pair's score that its relative span decides is in tables. A query that is a character: relation[reach of
   the key], float [D, relation_step] with column head_i - head_j + M - 1; in the form "bias" float [H, relation_step]. A
   query that is a word: word_relation[reach_i * n_reaches + reach_j], float [2M - 1, d, HP], heads last, HP = stride(H);
   in the form "bias" float [2M - 1, 1, HP]. In narrow attention `relation` has pairs of 16 bits where it is not the form
   "bias": [H * P, relation_step] of 32 bits, P = (d + 1) / 2; in INT16, then a row of the columns' scales. */
#define LAYER(F, S)                                                                                                   \
  F(S, Linear, query_key_value) /* x -> [q | k | v]; unused in layer 0, which has them from the input tables at once */ \
  F(S, Linear, ff_in) F(S, Linear, ff_out) F(S, Norm, attention_norm) F(S, Norm, ff_norm)                             \
  F(S, const float *, u) /* [D], scaled; so is v */                                                                   \
  F(S, const float *, v) F(S, const float *const *, relation) F(S, const float *const *, word_relation)
DEFINE(Layer, LAYER);

#define FLAT(F, S)                                                                                                    \
  F(S, int64_t, n_layers) F(S, int64_t, n_heads) F(S, int64_t, head_width) F(S, int64_t, width)                       \
  F(S, int64_t, ff_width)                                                                                             \
  F(S, int64_t, step) /* floats of a row of width D in the work buffers: whole panels */                              \
  F(S, int64_t, relation_chars) /* M, as above */                                                                     \
  F(S, int64_t, relation_step) F(S, int64_t, n_reaches) F(S, int64_t, residual) F(S, int64_t, is_bias)                \
  F(S, int64_t, uses_words) F(S, int64_t, mask_self_matched) F(S, int64_t, max_distance)                              \
  F(S, int64_t, is_masked_by_distance)                                                                                \
  F(S, int64_t, attention) /* its precision: FLOAT32, BFLOAT16 or INT16 */                                            \
  F(S, int64_t, n_char_numbers) /* of a row of char_rows */                                                           \
  F(S, double, scale)                                                                                                 \
  F(S, const float *, char_rows) /* [n, n_char_numbers]: [x | q | k | v] of each, then its two backoff parts */       \
  F(S, const float *, label_rows) /* [n_labels, 4 * step]: the same of the labels of words, or NULL */                \
  F(S, Table, bigram) F(S, Table, word)                                                                               \
  F(S, Linear, from_bigram) /* to [x | q | k | v] */                                                                  \
  F(S, Linear, from_word) F(S, int64_t, has_bigrams) F(S, int64_t, has_backoff) F(S, Linear, output)                  \
  F(S, const Layer *, layers)
DEFINE(Flat, FLAT);

#define SENTENCES(F, S)                                                                                               \
  F(S, int64_t, n_sentences)                                                                                          \
  F(S, const int32_t *, n_chars) /* [B] */                                                                            \
  F(S, const int32_t *, n_words)                                                                                      \
  F(S, const int32_t *, chars) /* [sum of n_chars], rows of the tables */                                             \
  F(S, const int32_t *, bigrams)                                                                                      \
  F(S, const int32_t *, words) /* [sum of n_words] */                                                                 \
  F(S, const int32_t *, starts) F(S, const int32_t *, ends)                                                           \
  F(S, const int32_t *, labels) /* [sum of n_words], or NULL */
DEFINE(Sentences, SENTENCES);

typedef struct { /* the nodes of one sentence: its characters, then its words */
  int64_t n_chars, n_words;
  const int32_t *starts, *ends;
  const float *chars, *words; /* rows [x | q | k | v], WIDE floats apart, of its first character and its first word */
  float *to_chars, *to_words; /* rows of width `step` that attention gives them */
  float *attention;           /* float [n_chars, n_words] to add the share of each word to, or NULL */
} Nodes;

void look_up_rows(const Table *table, const int32_t *rows, int64_t n, float *to, int64_t step);

/* Attention from all characters, and from all words too if `words_ask`, to all nodes. Returns 0, or 1 without memory. */
int attend(const Flat *flat, const Layer *layer, const Nodes *nodes, int words_ask);

/* Emissions float [sum of n_chars, whole panels], and attention to words if it is asked for. Returns 0, 1 if memory ran
   out, or 2 if the tables of relations are too small for a sentence. */
int flat_emissions(const Flat *flat, const Sentences *sentences, int64_t n_threads, float *emissions, float *attention);

#endif
