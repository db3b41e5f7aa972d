/* FLAT with two layers, from rows of tables to emissions: attention of characters and words with relative spans. */

#include "../../src/cige/runtime/native/model.h"
#include "check.h"

typedef int64_t (*WidthOf)(void);
typedef __typeof__(&flat_emissions) FlatEmissions;
typedef __typeof__(&check_model) CheckModel;

enum { H = 2, HEAD = 20, D = H * HEAD, FF = 50, M = 32, REACHES = 3, N_LAYERS = 2, N_TAGS = 5 };
enum { N_CHAR_ROWS = 30, N_WORD_ROWS = 12, N_BIGRAM_ROWS = 9, WORD = 13, BIGRAM = 7, MOST_NODES = 64 };

typedef struct {
  int64_t n_out, n_in;
  float *weight, *bias; /* [n_out, n_in], rows in whole panels where a part of the output is padded */
} Plain;

static int64_t panel;
static int64_t whole(int64_t n) { return (n + panel - 1) / panel * panel; }

/* Outputs in n_parts parts of `width` numbers, each padded to whole panels with zeros. */
static Linear linear_of(int64_t n_parts, int64_t width, int64_t n_in, uint64_t *state, Plain *plain) {
  const int64_t n_out = n_parts * whole(width);
  plain->n_out = n_out, plain->n_in = n_in;
  plain->weight = floats(n_out * n_in), plain->bias = floats(n_out);
  float *panels = floats(n_out * n_in);
  for (int64_t o = 0; o < n_out; o++) {
    if (o % whole(width) >= width) continue;
    plain->bias[o] = 0.3f * number(state);
    for (int64_t k = 0; k < n_in; k++) {
      plain->weight[o * n_in + k] = 0.3f * number(state);
      panels[(o / panel * n_in + k) * panel + o % panel] = plain->weight[o * n_in + k];
    }
  }
  return (Linear){n_in, n_out / panel, panels, plain->bias, FLOAT32, NULL};
}

static void times(const Plain *p, const double *x, double *y, int adds) { /* adds: to y, without the bias */
  for (int64_t o = 0; o < p->n_out; o++) {
    double sum = adds ? y[o] : p->bias[o];
    for (int64_t k = 0; k < p->n_in; k++) sum += p->weight[o * p->n_in + k] * x[k];
    y[o] = sum;
  }
}

static void normalise(double *x, const float *weight, const float *bias) {
  double mean = 0, square = 0;
  for (int k = 0; k < D; k++) mean += x[k] / D;
  for (int k = 0; k < D; k++) square += (x[k] - mean) * (x[k] - mean) / D;
  for (int k = 0; k < D; k++) x[k] = (x[k] - mean) / sqrt(square + 1e-5) * weight[k] + bias[k];
}

typedef struct {
  const Flat *flat;
  const Layer *layers;
  Plain from_bigram, from_word, query_key_value[N_LAYERS], ff_in[N_LAYERS], ff_out[N_LAYERS], output;
} Reference;

/* R_ij for one number of one head. */
static double relation(const Flat *f, const Layer *layer, int i_is_char, int64_t head_i, int64_t reach_i,
                       int64_t head_j, int64_t reach_j, int64_t h, int64_t k) {
  const int64_t column = head_i - head_j + M - 1, HP = (H + panel / 2 - 1) / (panel / 2) * (panel / 2);
  if (i_is_char) return layer->relation[reach_j][(h * HEAD + k) * f->relation_step + column];
  return layer->word_relation[reach_i * REACHES + reach_j][(column * HEAD + k) * HP + h];
}

/* One sentence whose nodes begin with rows [x | q | k | v] of 4 * step numbers. */
static void read_plainly(const Reference *r, double *rows, int64_t n_chars, int64_t n_words, const int32_t *starts,
                         const int32_t *ends, double *emissions) {
  const Flat *f = r->flat;
  const int64_t step = f->step, n = n_chars + n_words;
  static double attended[MOST_NODES][256], hidden[256], changed[256];
  for (int l = 0; l < N_LAYERS; l++) {
    const Layer *layer = r->layers + l;
    for (int64_t i = 0; i < n && l; i++)
      times(r->query_key_value + l, rows + i * 4 * step, rows + i * 4 * step + step, 0);
    const int64_t n_asking = l + 1 < N_LAYERS ? n : n_chars;
    for (int64_t i = 0; i < n_asking; i++)
      for (int64_t h = 0; h < H; h++) {
        double score[MOST_NODES], top = -INFINITY, total = 0;
        const int64_t head_i = i < n_chars ? i : starts[i - n_chars];
        const int64_t reach_i = i < n_chars ? 0 : ends[i - n_chars] - 1 - head_i;
        const double *query = rows + i * 4 * step + step + h * HEAD;
        for (int64_t j = 0; j < n; j++) {
          const int64_t head_j = j < n_chars ? j : starts[j - n_chars];
          const int64_t reach_j = j < n_chars ? 0 : ends[j - n_chars] - 1 - head_j;
          const double *key = rows + j * 4 * step + 2 * step + h * HEAD;
          score[j] = 0;
          for (int64_t k = 0; k < HEAD; k++) {
            const double q = query[k] * f->scale;
            score[j] += (q + layer->u[h * HEAD + k]) * key[k] +
                        (q + layer->v[h * HEAD + k]) *
                            relation(f, layer, i < n_chars, head_i, reach_i, head_j, reach_j, h, k);
          }
          top = score[j] > top ? score[j] : top;
        }
        for (int64_t j = 0; j < n; j++) total += score[j] = exp(score[j] - top);
        for (int64_t k = 0; k < HEAD; k++) {
          double sum = 0;
          for (int64_t j = 0; j < n; j++) sum += score[j] / total * rows[j * 4 * step + 3 * step + h * HEAD + k];
          attended[i][h * HEAD + k] = sum;
        }
      }
    for (int64_t i = 0; i < n_asking; i++) {
      double *x = rows + i * 4 * step;
      for (int k = 0; k < D; k++) attended[i][k] += x[k];
      normalise(attended[i], layer->attention_norm.weight, layer->attention_norm.bias);
      times(r->ff_in + l, attended[i], hidden, 0);
      for (int64_t k = 0; k < r->ff_in[l].n_out; k++) hidden[k] = hidden[k] > 0 ? hidden[k] : 0;
      times(r->ff_out + l, hidden, changed, 0);
      for (int k = 0; k < D; k++) x[k] = changed[k] + attended[i][k];
      normalise(x, layer->ff_norm.weight, layer->ff_norm.bias);
    }
  }
  for (int64_t i = 0; i < n_chars; i++) times(&r->output, rows + i * 4 * step, emissions + i * r->output.n_out, 0);
}

static float *ones(uint64_t *state) {
  float *x = numbers(D, 0.3f, state);
  for (int k = 0; k < D; k++) x[k] += 1;
  return x;
}

void check_flat(void *library) {
  panel = ((WidthOf)function_of(library, "panel_width"))();
  const FlatEmissions emissions_of = (FlatEmissions)function_of(library, "flat_emissions");
  const int64_t step = whole(D), relation_step = 2 * M + 64, HP = (H + panel / 2 - 1) / (panel / 2) * (panel / 2);
  uint64_t state = 5;
  Layer layers[N_LAYERS];
  Reference r = {.layers = layers};
  for (int l = 0; l < N_LAYERS; l++) {
    const float **of_chars = room(REACHES, sizeof(float *)), **of_words = room(REACHES * REACHES, sizeof(float *));
    for (int k = 0; k < REACHES; k++) of_chars[k] = numbers(D * relation_step, 0.3f, &state);
    for (int k = 0; k < REACHES * REACHES; k++) of_words[k] = numbers((2 * M - 1) * HEAD * HP, 0.3f, &state);
    layers[l] = (Layer){.query_key_value = linear_of(3, D, D, &state, r.query_key_value + l),
                        .ff_in = linear_of(1, FF, D, &state, r.ff_in + l),
                        .attention_norm = {ones(&state), numbers(D, 0.3f, &state)},
                        .ff_norm = {ones(&state), numbers(D, 0.3f, &state)},
                        .u = numbers(D, 0.3f, &state), .v = numbers(D, 0.3f, &state),
                        .relation = of_chars, .word_relation = of_words};
    layers[l].ff_out = linear_of(1, D, FF, &state, r.ff_out + l);
  }
  const int64_t n_numbers = 4 * step + 2 * BIGRAM;
  float *char_rows = floats(N_CHAR_ROWS * n_numbers);
  for (int64_t c = 0; c < N_CHAR_ROWS; c++)
    for (int64_t k = 0; k < n_numbers; k++)
      if (k >= 4 * step || k % step < D) char_rows[c * n_numbers + k] = number(&state);
  const float *words = numbers(N_WORD_ROWS * WORD, 1, &state), *bigrams = numbers(N_BIGRAM_ROWS * BIGRAM, 1, &state);
  Flat flat = {.n_layers = N_LAYERS, .n_heads = H, .head_width = HEAD, .width = D, .ff_width = FF, .step = step,
               .relation_chars = M, .relation_step = relation_step, .n_reaches = REACHES, .residual = 1,
               .uses_words = 1, .attention = FLOAT32, .n_char_numbers = n_numbers, .scale = 0.25,
               .char_rows = char_rows,
               .bigram = {bigrams, bigrams + 4 * BIGRAM, NULL, 4, BIGRAM, 4},
               .word = {words, words + 5 * WORD, NULL, 5, WORD, 4},
               .has_bigrams = 1, .has_backoff = 1, .layers = layers};
  flat.from_bigram = linear_of(4, D, BIGRAM, &state, &r.from_bigram);
  flat.from_word = linear_of(4, D, WORD, &state, &r.from_word);
  flat.output = linear_of(1, N_TAGS, D, &state, &r.output);
  r.flat = &flat;

  Problem problem;
  const CheckModel check = (CheckModel)function_of(library, "check_model");
  expect("flat is accepted", check(&(Model){.flat = &flat}, &problem), 0);
  layers[1].ff_out.n_in++;
  expect("wrong width is refused", check(&(Model){.flat = &flat}, &problem), 1);
  expect("width is named", !strcmp(problem.inner, "ff_out") && problem.number == 1 && problem.most == FF, 1);
  layers[1].ff_out.n_in--;

  enum { B = 12 };
  int32_t n_chars[B], n_words[B], chars[B * M], of_pairs[B * M], of_words[B * 8], starts[B * 8], ends[B * 8];
  int64_t c = 0, w = 0;
  for (int b = 0; b < B; b++) {
    n_chars[b] = 9 + 23 * b % 24, n_words[b] = b % 8;
    for (int t = 0; t < n_chars[b]; t++, c++) {
      chars[c] = (int32_t)((number(&state) + 1) / 2 * N_CHAR_ROWS) % N_CHAR_ROWS;
      /* 1 is unknown: of two characters */
      of_pairs[c] = (int32_t)((number(&state) + 1) / 2 * N_BIGRAM_ROWS) % N_BIGRAM_ROWS;
    }
    for (int k = 0; k < n_words[b]; k++, w++)
      of_words[w] = (b + k) % N_WORD_ROWS, starts[w] = k, ends[w] = k + 2 + k % 2;
  }
  const Sentences sentences = {B, n_chars, n_words, chars, of_pairs, of_words, starts, ends, NULL};
  const int64_t n_out = r.output.n_out;
  float *emissions = floats(c * n_out);
  double *wanted = room((size_t)(c * n_out), sizeof(double));
  expect("flat", emissions_of(&flat, &sentences, 3, emissions, NULL), 0);
  c = w = 0;
  static double rows[MOST_NODES * 4 * 64];
  for (int b = 0; b < B; c += n_chars[b], w += n_words[b++]) {
    for (int64_t t = 0; t < n_chars[b]; t++) {
      double pair[BIGRAM], *row = rows + t * 4 * step;
      const float *own = char_rows + chars[c + t] * n_numbers;
      for (int64_t k = 0; k < 4 * step; k++) row[k] = own[k];
      for (int64_t k = 0; k < BIGRAM; k++) {
        const float *next = t + 1 < n_chars[b] ? char_rows + chars[c + t + 1] * n_numbers + 4 * step + BIGRAM : NULL;
        const int32_t of_pair = of_pairs[c + t];
        pair[k] = of_pair == 1 ? own[4 * step + k] + (next ? next[k] : 0) : bigrams[of_pair * BIGRAM + k];
      }
      times(&r.from_bigram, pair, row, 1);
    }
    for (int64_t k = 0; k < n_words[b]; k++) {
      double word[WORD];
      for (int64_t i = 0; i < WORD; i++) word[i] = words[of_words[w + k] * WORD + i];
      times(&r.from_word, word, rows + (n_chars[b] + k) * 4 * step, 0);
    }
    read_plainly(&r, rows, n_chars[b], n_words[b], starts + w, ends + w, wanted + c * n_out);
  }
  compare("emissions", emissions, wanted, c * n_out, 5e-4);
}
