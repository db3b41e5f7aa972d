/* The words of a hash trie in a text. */

#ifndef CIGE_TRIE_H
#define CIGE_TRIE_H

#include <stddef.h>
#include <stdint.h>

enum { N_SMALL = 1024, NO_MEMORY = 1, DAMAGED = 2 };

typedef struct { /* as matcher.py packs it; keys and numbers are addresses */
    uint64_t keys, numbers, n_slots, max_probes, n_words, max_chars;
} Trie;

typedef struct {
    int32_t start, end;
    uint32_t number; /* of the word; while a block is walked, its slot */
} Row;

typedef struct { /* rows are in `small` as long as there is room for them */
    Row *rows;
    size_t n, capacity;
    Row small[N_SMALL];
} RowList;

/* Every word in n_chars code points, as rows in order of start and length. `all` arrives with anything in it and is to be
   given to free_words in any case. Returns 0, NO_MEMORY, or DAMAGED where the trie names a word beyond its last. */
int find_words(const Trie *trie, const uint32_t *text, int64_t n_chars, RowList *all);

void free_words(RowList *list);

#endif
