/* The vocabulary of a model: which row of a table each character, bigram and word has. */

#ifndef CIGE_ROWS_OF_TABLES_H
#define CIGE_ROWS_OF_TABLES_H

#include <stdint.h>

#define UNK_ROW 1 /* of data/vocabulary.py */

typedef struct {         /* a hash table with linear probing; no key is 0 */
  const uint64_t *keys;  /* code + 1, or 0 where the slot is empty */
  const int32_t *rows;
  int64_t bits;          /* there are 2^bits slots */
} Codes;

typedef struct {         /* sorted codes, found by their first character and a search among those that share it */
  Codes firsts;          /* to 2 + the place of a first character among all that there are */
  const int32_t *begin;  /* [first characters + 1]: where the codes of each begin */
  const int64_t *codes;
  const int32_t *rows;   /* of each code */
} Pairs;

typedef struct {
  Codes chars;
  Pairs bigrams;
  const int32_t *word_rows;
  int64_t n_base;
} Vocabulary;

void rows_of_lattices(const Vocabulary *vocabulary, int64_t n, const int32_t *n_chars, const uint32_t *codes,
                      int64_t n_matches, const int32_t *matches, int32_t *chars, int32_t *bigrams, int32_t *words,
                      int32_t *starts, int32_t *ends);

#endif
