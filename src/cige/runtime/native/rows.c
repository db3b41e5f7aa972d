/* Which row of the tables a character, a bigram and a word have: data/vocabulary.py for a batch of lattices at once. */

#include "rows_of_tables.h"

#define END 0x1FFFFF /* stands after the last character of a sentence in its last bigram */
#define SHIFT 21
#define USER 2
#define AT_ONCE 16

static uint64_t home(uint64_t key, int64_t bits) { return key * 0x9E3779B97F4A7C15u >> (64 - bits); }

static int32_t row_of(const Codes *codes, uint64_t code) {
  const uint64_t mask = ((uint64_t)1 << codes->bits) - 1, key = code + 1;
  for (uint64_t slot = home(key, codes->bits);; slot = (slot + 1) & mask) {
    if (codes->keys[slot] == key) return codes->rows[slot];
    if (!codes->keys[slot]) return UNK_ROW;
  }
}

/* Rows of n bigrams, n <= AT_ONCE. Searches go on side by side, since each step waits for memory. */
static void rows_of_pairs(const Pairs *pairs, const uint64_t *firsts, const uint64_t *seconds, int64_t n, int32_t *rows) {
  int64_t low[AT_ONCE], left[AT_ONCE], most = 0; /* it is one of `left` codes from `low` on if it is there */
  for (int64_t k = 0; k < n; k++) {
    const int32_t place = row_of(&pairs->firsts, firsts[k]) - 2;
    low[k] = place < 0 ? 0 : pairs->begin[place];
    left[k] = place < 0 ? 0 : pairs->begin[place + 1] - low[k];
    most = left[k] > most ? left[k] : most;
  }
  for (; most > 1; most -= most / 2)
    for (int64_t k = 0; k < n; k++) {
      const int64_t half = left[k] / 2, code = (int64_t)(firsts[k] << SHIFT | seconds[k]);
      low[k] += half && pairs->codes[low[k] + half] <= code ? half : 0;
      left[k] -= half;
    }
  for (int64_t k = 0; k < n; k++) {
    const int64_t code = (int64_t)(firsts[k] << SHIFT | seconds[k]);
    rows[k] = left[k] && pairs->codes[low[k]] == code ? pairs->rows[low[k]] : UNK_ROW;
  }
}

/* codes int64 [n], rows int32 [n] -> keys, values of 2^bits slots, more than n; they arrive zeroed. */
void fill_codes(const int64_t *codes, const int32_t *rows, int64_t n, int64_t bits, uint64_t *keys, int32_t *values) {
  const uint64_t mask = ((uint64_t)1 << bits) - 1;
  for (int64_t k = 0; k < n; k++) {
    const uint64_t key = (uint64_t)codes[k] + 1;
    uint64_t slot = home(key, bits);
    while (keys[slot] && keys[slot] != key) slot = (slot + 1) & mask;
    keys[slot] = key;
    values[slot] = rows[k];
  }
}

void rows_of_lattices(const Vocabulary *vocabulary, const Lattices *lattices, const RowsOfTables *rows) {
  uint64_t firsts[AT_ONCE], seconds[AT_ONCE];
  const uint32_t *codes = lattices->codes;
  int32_t *chars = rows->chars, *bigrams = rows->bigrams;
  int64_t waiting = 0;
  for (int64_t b = 0; b < lattices->n_sentences; b++)
    for (int64_t left = lattices->n_chars[b]; left > 0; left--, codes++) {
      *chars++ = row_of(&vocabulary->chars, *codes);
      firsts[waiting] = *codes, seconds[waiting++] = left > 1 ? codes[1] : END;
      if (waiting < AT_ONCE) continue;
      rows_of_pairs(&vocabulary->bigrams, firsts, seconds, waiting, bigrams);
      bigrams += waiting, waiting = 0;
    }
  rows_of_pairs(&vocabulary->bigrams, firsts, seconds, waiting, bigrams);
  for (int64_t k = 0; k < lattices->total_words; k++) {
    const int32_t *match = lattices->matches + 3 * k, word = match[2];
    rows->starts[k] = match[0];
    rows->ends[k] = match[1];
    rows->words[k] = word < vocabulary->n_base ? vocabulary->word_rows[word] : USER;
  }
}
