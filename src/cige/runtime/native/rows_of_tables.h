/* The vocabulary of a model: which row of a table each character, bigram and word has. */

#ifndef CIGE_ROWS_OF_TABLES_H
#define CIGE_ROWS_OF_TABLES_H

#include "layout.h"

#define UNK_ROW 1 /* of data/vocabulary.py */

/* A hash table with linear probing; no key is 0. */
#define CODES(F, S)                                                                                                   \
  F(S, const uint64_t *, keys) /* code + 1, or 0 where the slot is empty */                                           \
  F(S, const int32_t *, rows)                                                                                         \
  F(S, int64_t, bits) /* there are 2^bits slots */
DEFINE(Codes, CODES);

/* Sorted codes, found by their first character and a search among those that share it. */
#define PAIRS(F, S)                                                                                                   \
  F(S, Codes, firsts)         /* to 2 + the place of a first character among all that there are */                    \
  F(S, int64_t, n_firsts)                                                                                             \
  F(S, const int32_t *, begin) /* [n_firsts + 1]: where the codes of each begin */                                    \
  F(S, int64_t, n_codes) F(S, const int64_t *, codes)                                                                 \
  F(S, const int32_t *, rows) /* of each code */
DEFINE(Pairs, PAIRS);

#define VOCABULARY(F, S)                                                                                              \
  F(S, Codes, chars) F(S, Pairs, bigrams) F(S, const int32_t *, word_rows)                                            \
  F(S, int64_t, n_base) /* words of the lexicon */
DEFINE(Vocabulary, VOCABULARY);

/* Some sentences and the words over them. */
#define LATTICES(F, S)                                                                                                \
  F(S, int64_t, n_sentences) F(S, int64_t, total_chars) F(S, int64_t, total_words) F(S, const int32_t *, n_chars)     \
  F(S, const int32_t *, n_words)                                                                                      \
  F(S, const uint32_t *, codes)  /* [total_chars], code points of the sentences one behind the other */               \
  F(S, const int32_t *, matches) /* [total_words][3]: start, end, word id */                                          \
  F(S, const int32_t *, labels)  /* [total_words], or NULL; see flat.h */
DEFINE(Lattices, LATTICES);

#define ROWS_OF_TABLES(F, S)                                                                                          \
  F(S, int32_t *, chars)   /* [total_chars] */                                                                        \
  F(S, int32_t *, bigrams)                                                                                            \
  F(S, int32_t *, words)   /* [total_words] */                                                                        \
  F(S, int32_t *, starts) F(S, int32_t *, ends)
DEFINE(RowsOfTables, ROWS_OF_TABLES);

void rows_of_lattices(const Vocabulary *vocabulary, const Lattices *lattices, const RowsOfTables *rows);

#endif
