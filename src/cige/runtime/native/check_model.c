/* Whether what Python and JavaScript filled is a model that the rest can read without looking. */

#include "marginals.h"
#include "model.h"

enum { MOST_LAYERS = 64, MOST_WIDTH = 1 << 16, MOST_BITS = 40, MOST_NUMBER = 1 << 30, MOST_SLOTS = 200 };
enum { MOST_INT16 = 512, BEHIND = 64 }; /* products that are added up; floats that are read behind a row of a table */

static int outside(Problem *p, const char *field, double given, double least, double most) {
  if (given >= least && given <= most) return 0;
  p->field = field, p->given = given, p->least = least, p->most = most;
  return 1;
}

static int is_null(Problem *p, const char *field, const void *pointer) {
  return !pointer && outside(p, field, NAN, 1, INFINITY);
}

static void begin(Problem *p, const char *part, int64_t number, const char *inner) {
  *p = (Problem){.part = part, .number = number, .inner = inner};
}

#define WITHIN(S, NAME, LEAST, MOST) outside(p, #NAME, (double)(S)->NAME, (double)(LEAST), (double)(MOST))
#define EQUAL(S, NAME, WANTED) WITHIN(S, NAME, WANTED, WANTED)
#define FLAG(S, NAME) WITHIN(S, NAME, 0, 1)
#define NEEDED(S, NAME) is_null(p, #NAME, (S)->NAME)

static int wrong_entries(Problem *p, const char *part, const int32_t *x, int64_t n, int64_t least, int64_t most) {
  for (int64_t k = 0; k < n; k++) {
    if (x[k] >= least && x[k] <= most) continue;
    begin(p, part, k, NULL);
    return outside(p, NULL, (double)x[k], (double)least, (double)most);
  }
  return 0;
}

/* Bounds of parts: they begin at 0, none is below the one before it or more than `step` above it, or above `most`. */
static int wrong_bounds(Problem *p, const char *part, const int32_t *x, int64_t n, int64_t step, int64_t most) {
  for (int64_t k = 0, last = 0, room = 0; k < n; last = x[k++], room = step) {
    const int64_t next = last + room < most ? last + room : most;
    if (wrong_entries(p, part, x + k, 1, last, next)) return p->number = k, 1;
  }
  return 0;
}

static int64_t rounded_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

static int64_t panels_of(int64_t n) { return rounded_up(n, PANEL) / PANEL; }

static int wrong_linear(Problem *p, const char *inner, const Linear *l, int64_t n_in, int64_t least, int64_t most) {
  p->inner = inner;
  return EQUAL(l, n_in, n_in) || WITHIN(l, n_panels, least, most) || NEEDED(l, panels) || NEEDED(l, bias) ||
         WITHIN(l, precision, FLOAT32, INT16) || (!has_precision(l->precision) && EQUAL(l, precision, FLOAT32)) ||
         (l->precision >= INT8 && NEEDED(l, scales));
}

static int wrong_table(Problem *p, const char *inner, const Table *t) {
  p->inner = inner;
  return NEEDED(t, tuned) || NEEDED(t, fixed) || WITHIN(t, n_tuned, 0, MOST_NUMBER) ||
         WITHIN(t, width, 1, MOST_WIDTH) || WITHIN(t, n_bytes, 1, 4) || (t->n_bytes == 3 && EQUAL(t, n_bytes, 4)) ||
         (t->n_bytes == 1 && NEEDED(t, scale));
}

static int wrong_norm(Problem *p, const char *inner, const Norm *norm) {
  p->inner = inner;
  return NEEDED(norm, weight) || NEEDED(norm, bias);
}

static int wrong_layer(Problem *p, const Flat *f, int64_t number) {
  const Layer *l = f->layers + number;
  const int64_t of_step = f->step / PANEL, of_ff = panels_of(f->ff_width);
  begin(p, "flat.layers", number, NULL);
  return NEEDED(l, u) || NEEDED(l, v) || NEEDED(l, relation) || NEEDED(l, word_relation) ||
         (number && wrong_linear(p, "query_key_value", &l->query_key_value, f->width, 3 * of_step, 3 * of_step)) ||
         wrong_linear(p, "ff_in", &l->ff_in, f->width, of_ff, of_ff) ||
         wrong_linear(p, "ff_out", &l->ff_out, f->ff_width, of_step, of_step) ||
         wrong_norm(p, "attention_norm", &l->attention_norm) || wrong_norm(p, "ff_norm", &l->ff_norm);
}

/* `n_tags` is how many columns of emissions are read. */
static int wrong_flat(Problem *p, const Flat *f, int64_t n_tags) {
  begin(p, "flat", -1, NULL);
  if (WITHIN(f, n_layers, 1, MOST_LAYERS) || WITHIN(f, n_heads, 1, MOST_WIDTH) ||
      WITHIN(f, head_width, 1, MOST_WIDTH) || EQUAL(f, width, f->n_heads * f->head_width) ||
      WITHIN(f, width, 1, MOST_WIDTH) || WITHIN(f, ff_width, 1, MOST_WIDTH) ||
      EQUAL(f, step, rounded_up(f->width, PANEL)) ||
      WITHIN(f, relation_chars, 1, MOST_NUMBER) || WITHIN(f, n_reaches, 1, MOST_NUMBER) ||
      WITHIN(f, relation_step, 2 * f->relation_chars - 1 + BEHIND, MOST_NUMBER) || FLAG(f, residual) ||
      FLAG(f, is_bias) || FLAG(f, uses_words) || FLAG(f, mask_self_matched) || FLAG(f, is_masked_by_distance) ||
      FLAG(f, has_bigrams) || WITHIN(f, has_backoff, 0, f->has_bigrams) ||
      WITHIN(f, max_distance, -MOST_NUMBER, MOST_NUMBER) ||
      WITHIN(f, attention, FLOAT32, INT16) || (f->attention == INT8 && EQUAL(f, attention, INT16)) ||
      (!has_precision(f->attention) && EQUAL(f, attention, FLOAT32)) ||
      (f->attention == INT16 && WITHIN(f, head_width, 1, MOST_INT16)) ||
      WITHIN(f, scale, 0, 1) || NEEDED(f, char_rows) || NEEDED(f, layers))
    return 1;
  const int64_t n_backoff = f->has_backoff ? 2 * f->bigram.width : 0, of_parts = 4 * f->step / PANEL;
  if (WITHIN(f, n_char_numbers, 4 * f->step + n_backoff, MOST_NUMBER)) return 1;
  if (f->has_bigrams && (wrong_table(p, "bigram", &f->bigram) ||
                         wrong_linear(p, "from_bigram", &f->from_bigram, f->bigram.width, of_parts, of_parts)))
    return 1;
  if (f->uses_words && (wrong_table(p, "word", &f->word) ||
                        wrong_linear(p, "from_word", &f->from_word, f->word.width, of_parts, of_parts)))
    return 1;
  if (wrong_linear(p, "output", &f->output, f->width, panels_of(n_tags), MOST_NUMBER / PANEL)) return 1;
  for (int64_t l = 0; l < f->n_layers; l++)
    if (wrong_layer(p, f, l)) return 1;
  return 0;
}

static int wrong_transitions(Problem *p, const char *of_first, const char *of_place, const Transitions *t,
                             const Chain *c) {
  if (NEEDED(t, first) || NEEDED(t, place) || NEEDED(t, numbers)) return 1;
  const int64_t n_blocks = c->n_lanes / BLOCK;
  return wrong_bounds(p, of_first, t->first, n_blocks + 1, c->n_tags, INT32_MAX) ||
         wrong_entries(p, of_place, t->place, t->first[n_blocks], 0, c->n_tags - 1);
}

#define SIDE(NAME) (begin(p, "chain." #NAME, -1, NULL), \
  wrong_transitions(p, "chain." #NAME ".first", "chain." #NAME ".place", &c->NAME, c))

static int wrong_chain(Problem *p, const Chain *c) {
  const int64_t n = c->n_tags, most = c->base ? c->base->n_tags - 1 : MOST_NUMBER;
  begin(p, "chain", -1, NULL);
  if (WITHIN(c, n_tags, 1, MOST_NUMBER) || EQUAL(c, n_lanes, rounded_up(n, BLOCK)) || NEEDED(c, start) ||
      NEEDED(c, end) || NEEDED(c, scores) || NEEDED(c, into) || NEEDED(c, order) || NEEDED(c, prefix) ||
      NEEDED(c, label) || NEEDED(c, places) || NEEDED(c, longest) || FLAG(c, is_open) ||
      WITHIN(c, n_labels, 0, MOST_NUMBER) || WITHIN(c, n_slots, 0, c->base ? MOST_SLOTS : 0) ||
      WITHIN(c, n_plain, c->n_slots ? BLOCK : c->n_lanes, c->n_lanes) ||
      EQUAL(c, n_plain, rounded_up(c->n_plain, BLOCK)) ||
      (c->base && (NEEDED(c, slot) || NEEDED(c, part))))
    return 1;
  return SIDE(best) || SIDE(forward) || SIDE(backward) ||
         wrong_entries(p, "chain.order", c->order, n, 0, most) ||
         wrong_entries(p, "chain.prefix", c->prefix, n, 0, 4) ||
         wrong_entries(p, "chain.label", c->label, n, -1, c->n_labels - 1) ||
         wrong_entries(p, "chain.places", c->places, c->n_labels * 4 * (1 + c->n_slots), -1, n - 1) ||
         wrong_entries(p, "chain.longest", c->longest, c->n_labels, 0, INT32_MAX) ||
         (c->base && wrong_entries(p, "chain.slot", c->slot, n, -1, c->n_slots - 1));
}

/* Each of the values is at most `most`, and a slot is empty, so that every search ends. */
static int wrong_codes(Problem *p, const char *part, const char *of_rows, const Codes *codes, int64_t most) {
  begin(p, part, -1, NULL);
  if (NEEDED(codes, keys) || NEEDED(codes, rows) || WITHIN(codes, bits, 1, MOST_BITS)) return 1;
  const int64_t n = (int64_t)1 << codes->bits;
  int64_t n_empty = 0;
  for (int64_t k = 0; k < n; k++) n_empty += !codes->keys[k];
  return outside(p, "keys", (double)(n - n_empty), 0, (double)(n - 1)) ||
         wrong_entries(p, of_rows, codes->rows, n, 0, most);
}

static int wrong_vocabulary(Problem *p, const Vocabulary *v) {
  const Pairs *pairs = &v->bigrams;
  begin(p, "vocabulary", -1, NULL);
  if (NEEDED(v, word_rows) || WITHIN(v, n_base, 0, INT32_MAX)) return 1;
  begin(p, "vocabulary.bigrams", -1, NULL);
  return NEEDED(pairs, begin) || NEEDED(pairs, codes) || NEEDED(pairs, rows) ||
         WITHIN(pairs, n_firsts, 0, MOST_NUMBER) || WITHIN(pairs, n_codes, 0, INT32_MAX) ||
         wrong_bounds(p, "vocabulary.bigrams.begin", pairs->begin, pairs->n_firsts + 1, INT32_MAX, pairs->n_codes) ||
         wrong_codes(p, "vocabulary.bigrams.firsts", "vocabulary.bigrams.firsts.rows", &pairs->firsts,
                     pairs->n_firsts + 1) ||
         wrong_codes(p, "vocabulary.chars", "vocabulary.chars.rows", &v->chars, INT32_MAX);
}

static int wrong_lstm(Problem *p, const Lstm *l) {
  begin(p, "lstm", -1, NULL);
  const int64_t n_panels = 4 * l->width / PANEL;
  return WITHIN(l, width, PANEL, MOST_WIDTH) || EQUAL(l, width, rounded_up(l->width, PANEL)) ||
         wrong_linear(p, "forward", &l->forward, l->width, n_panels, n_panels) ||
         wrong_linear(p, "backward", &l->backward, l->width, n_panels, n_panels);
}

int check_model(const Model *m, Problem *p) {
  int64_t n_columns = 1;
  const Chain *trained = m->chain && m->chain->base ? m->chain->base : m->chain;
  if ((m->vocabulary && wrong_vocabulary(p, m->vocabulary)) || (m->lstm && wrong_lstm(p, m->lstm)) ||
      (trained && wrong_chain(p, trained)) || (m->chain != trained && wrong_chain(p, m->chain)))
    return 1;
  for (int64_t i = 0; trained && i < trained->n_tags; i++)
    n_columns = trained->order[i] + 1 > n_columns ? trained->order[i] + 1 : n_columns;
  if (m->flat && wrong_flat(p, m->flat, n_columns)) return 1;
  begin(p, "model", -1, NULL);
  return m->flat && m->chain && (NEEDED(m, is_known) || NEEDED(m, vocabulary));
}
