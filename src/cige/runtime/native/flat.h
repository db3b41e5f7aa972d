/* What FLAT's parts share: the weights of a model, and sentences one behind the other. runtime/flat_native.py fills
   these structures; every pointer is the caller's, nothing here is written to but what a function says it gives. */

#ifndef CIGE_FLAT_H
#define CIGE_FLAT_H

#include "product.h"

/* Floats from a row [x | q | k | v] to the next: a cache line more than it has, so that the rows' beginnings do not fall
   on a few places of the cache. */
#define WIDE(STEP) (4 * (STEP) + 16)

typedef struct {         /* rows of an embedding table, as SplitEmbedding keeps them */
  const float *tuned;    /* float [n_tuned, width] */
  const void *fixed;     /* the rows from n_tuned on: int8, float16 or float32 */
  const uint16_t *scale; /* float16, one for each row of int8 */
  int64_t n_tuned, width, n_bytes;
} Table;

typedef struct {
  Linear query_key_value; /* x -> [q | k | v]; unused in layer 0, which has them from the input tables at once */
  Linear ff_in, ff_out;
  const float *norm_weight[2], *norm_bias[2]; /* after attention, after the feed-forward network */
  const float *u, *v;                         /* float [D], scaled */
  /* The part of a pair's score that its relative span decides. A query that is a character: relation[reach of the key],
     float [D, relation_step] with column head_i - head_j + M - 1; in the form "bias" float [H, relation_step]. A query
     that is a word: word_relation[reach_i * n_reaches + reach_j], float [2M - 1, d, HP], heads last, HP = stride(H);
     in the form "bias" float [2M - 1, 1, HP]. In narrow attention `relation` has pairs of 16 bits where it is not the
     form "bias": [H * P, relation_step] of 32 bits, P = (d + 1) / 2; in INT16, then a row of the columns' scales. */
  const float *const *relation, *const *word_relation;
} Layer;

typedef struct {
  int64_t n_layers, n_heads, head_width, width, ff_width;
  int64_t step; /* floats of a row of width D in the work buffers: whole panels */
  int64_t relation_chars, relation_step, n_reaches; /* M, as above */
  int64_t residual, is_bias, uses_words, mask_self_matched, max_distance, is_masked_by_distance;
  int64_t attention; /* its precision: FLOAT32, BFLOAT16 or INT16 */
  int64_t n_char_numbers; /* of a row of char_rows */
  double scale;
  const float *char_rows; /* float [n, n_char_numbers]: [x | q | k | v] of each character, then its two backoff parts */
  const float *label_rows; /* float [n_labels, 4 * step]: the same of the labels of words, or NULL */
  Table bigram, word;
  Linear from_bigram, from_word; /* to [x | q | k | v] */
  int64_t has_bigrams, has_backoff;
  Linear output;
  const Layer *layers;
} Flat;

typedef struct {
  int64_t n_sentences;
  const int32_t *n_chars, *n_words;       /* [B] */
  const int32_t *chars, *bigrams;         /* [sum of n_chars], rows of the tables */
  const int32_t *words, *starts, *ends;   /* [sum of n_words] */
  const int32_t *labels;                  /* [sum of n_words], or NULL */
} Sentences;

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
