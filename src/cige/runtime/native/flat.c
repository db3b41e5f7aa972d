/* FLAT from rows of tables to emissions: models/flat.py in the form that takes the least work for given weights.

   Sentences stand one behind the other, none is padded. In the last layer only characters ask, since nobody reads what
   words would be told. Layer 0 has queries, keys and values straight from the input tables: they are linear in them. */

#include "flat.h"
#include "rows_of_tables.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "../../nn/native/threads.h"

#define AHEAD 8  /* rows of a table that are fetched before they are read */
#define GROUP 96 /* characters that go through all steps together, so that what is between stays in the cache */

static float from_half(uint16_t half) {
  union {
    uint32_t bits;
    float number;
  } x = {(uint32_t)(half & 0x7fff) << 13}, sign = {(uint32_t)(half & 0x8000) << 16};
  x.number *= 0x1p112f; /* the exponents' bias; right for subnormal numbers too. No table holds infinity */
  sign.bits |= x.bits;
  return sign.number;
}

void look_up_rows(const Table *table, const int32_t *rows, int64_t n, float *to, int64_t step) {
  const int64_t width = table->width;
  for (int64_t r = 0; r < n; r++, to += step) {
    const int64_t row = rows[r] - table->n_tuned, later = r + AHEAD < n ? rows[r + AHEAD] - table->n_tuned : -1;
    if (later >= 0) {
      __builtin_prefetch((const char *)table->fixed + later * width * table->n_bytes);
      if (table->n_bytes == 1) __builtin_prefetch(table->scale + later);
    }
    if (row < 0) {
      memcpy(to, table->tuned + rows[r] * width, (size_t)width * sizeof(float));
    } else if (table->n_bytes == 1) {
      const int8_t *from = (const int8_t *)table->fixed + row * width;
      const float scale = from_half(table->scale[row]);
      for (int64_t k = 0; k < width; k++) to[k] = (float)from[k] * scale;
    } else if (table->n_bytes == 2) {
      const uint16_t *from = (const uint16_t *)table->fixed + row * width;
      for (int64_t k = 0; k < width; k++) to[k] = from_half(from[k]);
    } else {
      memcpy(to, (const float *)table->fixed + row * width, (size_t)width * sizeof(float));
    }
  }
}

/* to = normalised (a + b), a row of n numbers; the rest of the row, up to whole vectors, becomes 0. */
static void norm(float *to, const float *a, const float *b, int64_t n, const float *weight, const float *bias) {
  vector_t total = {0}, squares = {0};
  const int64_t whole = n / WIDTH * WIDTH;
  float sum = 0, square = 0;
  for (int64_t k = 0; k < whole; k += WIDTH) {
    const vector_t x = *const_vectors(a + k) + *const_vectors(b + k);
    *vectors(to + k) = x;
    total += x;
  }
  for (int64_t k = whole; k < n; k++) sum += to[k] = a[k] + b[k];
  const float mean = (sum + sum_of_lanes(total)) / (float)n;
  for (int64_t k = 0; k < whole; k += WIDTH) {
    const vector_t x = *const_vectors(to + k) - mean;
    squares += x * x;
  }
  for (int64_t k = whole; k < n; k++) square += (to[k] - mean) * (to[k] - mean);
  const float factor = 1 / sqrtf((square + sum_of_lanes(squares)) / (float)n + 1e-5f);
  for (int64_t k = 0; k < whole; k += WIDTH)
    *vectors(to + k) = (*const_vectors(to + k) - mean) * factor * *const_vectors(weight + k) + *const_vectors(bias + k);
  for (int64_t k = whole; k < n; k++) to[k] = (to[k] - mean) * factor * weight[k] + bias[k];
  pad(to, n, 0);
}

typedef struct { /* what all threads share */
  const Flat *flat;
  const Sentences *sentences;
  float *emissions; /* [sum of n_chars, output panels] */
  float *attention; /* sentence by sentence [n_chars, n_words], zeroed, or NULL */
  const int64_t *group;  /* first sentence of each group, and one behind the last */
  const int64_t *before; /* [B + 1][3]: characters, words, pairs of both before each sentence */
  int64_t n_groups;
  atomic_llong next;
  atomic_int failed;
} Job;

/* [x | q | k | v] of the group's characters and words. */
static void read_input(const Flat *f, const Sentences *s, int64_t b0, int64_t b1, const int64_t *before, float *nodes,
                       float *vectors_of, float *spare) {
  const int64_t step = WIDE(f->step), n_parts = 4 * f->step, c0 = before[3 * b0], w0 = before[3 * b0 + 1];
  const int64_t n_chars = before[3 * b1] - c0, n_words = f->uses_words ? before[3 * b1 + 1] - w0 : 0;
  const int64_t per_panel = f->step / PANEL, width = f->bigram.width;
  for (int64_t i = 0; i < n_chars; i++)
    memcpy(nodes + i * step, f->char_rows + s->chars[c0 + i] * f->n_char_numbers, (size_t)n_parts * sizeof(float));
  if (f->has_bigrams) {
    look_up_rows(&f->bigram, s->bigrams + c0, n_chars, vectors_of, width);
    if (f->has_backoff)
      for (int64_t b = b0, i = 0; b < b1; b++)
        for (int64_t t = 0; t < s->n_chars[b]; t++, i++) {
          if (s->bigrams[c0 + i] != UNK_ROW) continue; /* made of its two characters */
          const float *own = f->char_rows + s->chars[c0 + i] * f->n_char_numbers + n_parts;
          const float *next = t + 1 < s->n_chars[b]
                                  ? f->char_rows + s->chars[c0 + i + 1] * f->n_char_numbers + n_parts + width
                                  : NULL;
          for (int64_t k = 0; k < width; k++) vectors_of[i * width + k] = own[k] + (next ? next[k] : 0);
        }
    product(&f->from_bigram, 0, 4 * per_panel, vectors_of, width, n_chars, nodes, step, ADD);
  }
  if (n_words) {
    float *words = nodes + n_chars * step;
    const int64_t first = f->n_layers == 1 ? 2 * per_panel : 0; /* keys and values alone */
    look_up_rows(&f->word, s->words + w0, n_words, spare, f->word.width);
    product(&f->from_word, first, 4 * per_panel, spare, f->word.width, n_words, words + first * PANEL, step, PLAIN);
    if (s->labels && f->label_rows)
      for (int64_t w = 0; w < n_words; w++) {
        const float *label = f->label_rows + s->labels[w0 + w] * n_parts;
        for (int64_t k = first * PANEL; k < n_parts; k++) words[w * step + k] += label[k];
      }
  }
}

static int read_group(const Job *job, int64_t b0, int64_t b1) {
  const Flat *f = job->flat;
  const Sentences *s = job->sentences;
  const int64_t *before = job->before;
  const int64_t n_chars = before[3 * b1] - before[3 * b0], step = f->step, wide = WIDE(step);
  const int64_t n_words = f->uses_words ? before[3 * b1 + 1] - before[3 * b0 + 1] : 0, n = n_chars + n_words;
  const int64_t ff_step = f->layers->ff_in.n_panels * PANEL, n_tags = f->output.n_panels * PANEL;
  if (!n_chars) return 0;
  const int64_t n_vectors = n_chars * f->bigram.width + n_words * f->word.width;
  const int64_t n_hidden = n * ff_step > n_vectors ? n * ff_step : n_vectors;
  void *memory = malloc(in_bytes(n * wide + n * step + n * step + n_hidden + 64));
  if (!memory) return 1;
  float *nodes = aligned(memory), *attended = nodes + n * wide, *changed = attended + n * step;
  float *hidden = changed + n * step;
  read_input(f, s, b0, b1, before, nodes, hidden, hidden + n_chars * f->bigram.width);
  int failed = 0;
  for (int64_t l = 0; l < f->n_layers && !failed; l++) {
    const Layer *layer = f->layers + l;
    const int64_t words_ask = l + 1 < f->n_layers && n_words, per_panel = step / PANEL;
    const int64_t n_asking = words_ask ? n : n_chars;
    if (l > 0) {
      product(&layer->query_key_value, 0, 3 * per_panel, nodes, wide, n_asking, nodes + step, wide, PLAIN);
      if (n_asking < n) /* words are asked alone */
        product(&layer->query_key_value, per_panel, 3 * per_panel, nodes + n_chars * wide, wide, n_words,
                nodes + n_chars * wide + 2 * step, wide, PLAIN);
    }
    for (int64_t b = b0; b < b1; b++) {
      const int64_t c = before[3 * b] - before[3 * b0], w = before[3 * b + 1] - before[3 * b0 + 1];
      const Nodes own = {
          .n_chars = s->n_chars[b], .n_words = f->uses_words ? s->n_words[b] : 0,
          .starts = s->starts + before[3 * b + 1], .ends = s->ends + before[3 * b + 1],
          .chars = nodes + c * wide, .words = nodes + (n_chars + w) * wide,
          .to_chars = attended + c * step, .to_words = attended + (n_chars + w) * step,
          .attention = job->attention ? job->attention + before[3 * b + 2] : NULL};
      if (own.n_chars) failed |= attend(f, layer, &own, words_ask != 0);
    }
    for (int64_t i = 0; i < n_asking; i++) {
      float *row = attended + i * step;
      norm(row, row, f->residual ? nodes + i * wide : row, f->width, layer->attention_norm.weight,
           layer->attention_norm.bias);
    }
    product(&layer->ff_in, 0, layer->ff_in.n_panels, attended, step, n_asking, hidden, ff_step, RELU);
    product(&layer->ff_out, 0, layer->ff_out.n_panels, hidden, ff_step, n_asking, changed, step, SPARSE);
    for (int64_t i = 0; i < n_asking; i++) {
      const float *row = changed + i * step;
      norm(nodes + i * wide, row, f->residual ? attended + i * step : row, f->width, layer->ff_norm.weight,
           layer->ff_norm.bias);
    }
  }
  product(&f->output, 0, f->output.n_panels, nodes, wide, n_chars, job->emissions + before[3 * b0] * n_tags, n_tags,
          PLAIN);
  free(memory);
  return failed;
}

static void *work(void *argument) {
  Job *job = argument;
  for (int64_t g; (g = atomic_fetch_add(&job->next, 1)) < job->n_groups;)
    job->failed |= read_group(job, job->group[g], job->group[g + 1]);
  return NULL;
}

int flat_emissions(const Flat *flat, const Sentences *sentences, int64_t n_threads, float *emissions, float *attention) {
  const int64_t B = sentences->n_sentences;
  int64_t *before = malloc((size_t)(3 * (B + 1) + B + 1) * sizeof(int64_t)), n_groups = 0;
  int64_t *group = before + 3 * (B + 1);
  if (!before) return 1;
  before[0] = before[1] = before[2] = 0;
  int failed = 0;
  for (int64_t b = 0, first = 0; b < B; b++) {
    const int64_t n_chars = sentences->n_chars[b], n_words = sentences->n_words[b];
    before[3 * b + 3] = before[3 * b] + n_chars;
    before[3 * b + 4] = before[3 * b + 1] + n_words;
    before[3 * b + 5] = before[3 * b + 2] + n_chars * n_words;
    if (n_chars > flat->relation_chars) failed = 2;
    if (b == 0) group[n_groups++] = 0;
    else if (before[3 * b + 3] - before[3 * first] > GROUP) group[n_groups++] = first = b;
  }
  group[n_groups] = B;
  if (!failed && B) {
    Job job = {.flat = flat, .sentences = sentences, .emissions = emissions, .attention = attention,
               .group = group, .before = before, .n_groups = n_groups};
    in_threads(work, &job, 0, usable_threads(n_threads, n_groups));
    failed = job.failed;
  }
  free(before);
  return failed;
}
