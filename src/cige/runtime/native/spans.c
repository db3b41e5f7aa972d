/* From lattices to spans in one call: rows of the tables, FLAT, the chain. */

#include <stdlib.h>

#include "model.h"

#ifndef SOURCE_CHECKSUM
#define SOURCE_CHECKSUM 0
#endif

/* CRC-32 of these sources when they were compiled: runtime/native/__init__.py compares it with what lies beside it. */
uint32_t source_checksum(void) { return SOURCE_CHECKSUM; }

/* Whether all that was made of the weights so far is enough for these sentences. */
static int is_prepared(const Flat *f, const Sentences *s, const uint8_t *is_known, int64_t n_chars, int64_t n_words) {
  for (int64_t b = 0; b < s->n_sentences; b++)
    if (s->n_chars[b] > f->relation_chars) return 0;
  for (int64_t i = 0; i < n_chars; i++)
    if (!is_known[s->chars[i]]) return 0;
  uint8_t reaches[256] = {1}; /* of characters, then of the words that are there */
  for (int64_t w = 0; w < n_words && f->uses_words; w++) {
    const int64_t reach = s->ends[w] - 1 - s->starts[w];
    if (reach >= f->n_reaches || reach >= 256) return 0;
    reaches[reach] = 1;
  }
  const int64_t n = f->n_reaches < 256 ? f->n_reaches : 256;
  for (int64_t l = 0; l < f->n_layers; l++)
    for (int64_t r = 0; r < n; r++) {
      if (reaches[r] && !f->layers[l].relation[r]) return 0;
      for (int64_t q = 0; q < n && l + 1 < f->n_layers && n_words && f->uses_words; q++)
        if (reaches[q] && reaches[r] && q > 0 && !f->layers[l].word_relation[q * f->n_reaches + r]) return 0;
    }
  return 1;
}

int read_lattices(const Model *model, const Lattices *l, const Reading *reading) {
  const Flat *flat = model->flat;
  const int64_t total = l->total_chars, n_words = l->total_words, step = flat->output.n_panels * PANEL;
  int32_t *memory = malloc((size_t)(2 * total + 3 * n_words) * sizeof(int32_t) + in_bytes(total * step));
  if (!memory) return NO_MEMORY;
  int32_t *words = memory + 2 * total;
  const RowsOfTables rows = {memory, memory + total, words, words + n_words, words + 2 * n_words};
  float *emissions = aligned(words + 3 * n_words);
  rows_of_lattices(model->vocabulary, l, &rows);
  const Sentences sentences = {.n_sentences = l->n_sentences, .n_chars = l->n_chars, .n_words = l->n_words,
                               .chars = rows.chars, .bigrams = rows.bigrams, .words = rows.words,
                               .starts = rows.starts, .ends = rows.ends, .labels = l->labels};
  int result = is_prepared(flat, &sentences, model->is_known, total, n_words) ? DONE : MISSING;
  if (result == DONE) result = flat_emissions(flat, &sentences, reading->n_threads, emissions, NULL);
  const Emissions of_chain = {.n_sentences = l->n_sentences, .step = step, .n_chars = l->n_chars, .rows = emissions};
  if (result == DONE) result = read_chain(model->chain, &of_chain, reading);
  free(memory);
  return result;
}
