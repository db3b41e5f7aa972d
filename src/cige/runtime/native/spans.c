/* From lattices to spans in one call: rows of the tables, FLAT, the chain. */

#include <stdlib.h>

#include "chain.h"
#include "flat.h"
#include "rows_of_tables.h"

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

/* sizes = {B, sum of n_words, threads, sum of n_chars, room in `spans`}; codes and matches as rows_of_lattices has them,
   is_closed, families, spans, n_spans and rules as read_chain, labels as Sentences or NULL. Returns what read_chain does, or
   MISSING if something of the model's tables is still to be made. */
int read_lattices(const Vocabulary *vocabulary, const Flat *flat, const Chain *chain, const uint8_t *is_known,
                  const int64_t *sizes, const int32_t *n_chars, const int32_t *n_words, const uint32_t *codes,
                  const int32_t *matches, const int32_t *labels, const uint8_t *is_closed,
                  const Families *families, ScoredSpan *spans, int32_t *n_spans, const Rules *rules) {
  const int64_t B = sizes[0], n_matches = sizes[1], total = sizes[3], step = flat->output.n_panels * PANEL;
  int32_t *rows = malloc((size_t)(3 * total + 3 * n_matches) * sizeof(int32_t) + in_bytes(total * step));
  if (!rows) return NO_MEMORY;
  int32_t *bigrams = rows + total, *tags = bigrams + total, *words = tags + total;
  int32_t *starts = words + n_matches, *ends = starts + n_matches;
  float *emissions = aligned(ends + n_matches);
  rows_of_lattices(vocabulary, B, n_chars, codes, n_matches, matches, rows, bigrams, words, starts, ends);
  const Sentences sentences = {.n_sentences = B, .n_chars = n_chars, .n_words = n_words, .chars = rows,
                               .bigrams = bigrams, .words = words, .starts = starts, .ends = ends, .labels = labels};
  int result = is_prepared(flat, &sentences, is_known, total, n_matches) ? DONE : MISSING;
  if (result == DONE) result = flat_emissions(flat, &sentences, sizes[2], emissions, NULL);
  const int64_t of_chain[] = {B, step, sizes[2], sizes[4]};
  if (result == DONE) result = read_chain(chain, of_chain, n_chars, emissions, is_closed, families, tags, spans, n_spans,
                                          rules);
  free(rows);
  return result;
}
