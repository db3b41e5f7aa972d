/* Products in every precision, an LSTM, the rows of a vocabulary, and the words of a trie. */

#include "../../src/cige/lexicon/trie.h"
#include "../../src/cige/runtime/native/lstm.h"
#include "../../src/cige/runtime/native/rows_of_tables.h"
#include "check.h"

typedef int64_t (*WidthOf)(void);
typedef int64_t (*HasPrecision)(int64_t);
typedef __typeof__(&one_product) OneProduct;
typedef __typeof__(&lstm_layer) LstmLayer;
typedef void (*FillCodes)(const int64_t *, const int32_t *, int64_t, int64_t, uint64_t *, int32_t *);
typedef __typeof__(&rows_of_lattices) RowsOfLattices;

/* weight [n_out, n_in] as product.h packs it; n_out in whole panels. */
static float *packed(const float *weight, int64_t n_out, int64_t n_in, int64_t panel) {
  float *panels = floats(n_out * n_in);
  for (int64_t o = 0; o < n_out; o++)
    for (int64_t k = 0; k < n_in; k++) panels[(o / panel * n_in + k) * panel + o % panel] = weight[o * n_in + k];
  return panels;
}

/* How a library packs narrow weights: bytes of a group, those of a whole number, and what is added to one of a byte. */
typedef struct {
  int64_t group;
  HasPrecision whole;
  int64_t added;
} Packing;

/* The same in groups: bfloat16 numbers, or whole numbers of 16 or 8 bits. `rounded` is given the weights that they
   stand for. */
static uint8_t *narrowed(const float *weight, int64_t n_out, int64_t n_in, int64_t panel, int64_t precision, Packing in,
                         float *scales, double *rounded) {
  const int64_t bytes = precision == BFLOAT16 ? 2 : in.whole(precision), of_group = in.group / bytes;
  const int64_t n_groups = (n_in + of_group - 1) / of_group, added = bytes == 1 ? in.added : 0;
  uint8_t *panels = room((size_t)(n_out * n_groups), (size_t)in.group);
  for (int64_t o = 0; o < n_out; o++) {
    float top = 0;
    for (int64_t k = 0; k < n_in; k++) top = fabsf(weight[o * n_in + k]) > top ? fabsf(weight[o * n_in + k]) : top;
    scales[o] = top / (precision == INT16 ? 2047 : 127);
    for (int64_t k = 0; k < n_groups * of_group; k++) {
      uint32_t code = (uint32_t)added;
      if (k < n_in && precision == BFLOAT16) {
        uint32_t bits;
        memcpy(&bits, weight + o * n_in + k, 4);
        code = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        bits = code << 16;
        float wide;
        memcpy(&wide, &bits, 4);
        rounded[o * n_in + k] = wide;
      } else if (k < n_in) {
        const int32_t whole = (int32_t)lrintf(weight[o * n_in + k] / scales[o]);
        code = (uint32_t)(whole + added);
        rounded[o * n_in + k] = (double)whole * scales[o];
      }
      const int64_t group = (o / panel * n_groups + k / of_group) * panel + o % panel;
      memcpy(panels + group * in.group + k % of_group * bytes, &code, (size_t)bytes); /* little-endian */
    }
  }
  return panels;
}

void check_product(void *library) {
  const int64_t panel = ((WidthOf)function_of(library, "panel_width"))();
  const HasPrecision has_precision = (HasPrecision)function_of(library, "has_precision");
  const OneProduct multiply = (OneProduct)function_of(library, "one_product");
  const Packing packing = {((WidthOf)function_of(library, "group_bytes"))(),
                           (HasPrecision)function_of(library, "whole_bytes"),
                           ((WidthOf)function_of(library, "int8_offset"))()};
  const char *const names[] = {"float32", "bfloat16", "int8", "int16"};
  const double least[] = {1e-4, 0.1, 0.3, 0.02};
  const int64_t m = 53, n_in = 317, n_out = 3 * panel; /* more than one block of rows, and of DEPTH */
  uint64_t state = 1;
  float *x = numbers(m * n_in, 1, &state), *weight = numbers(n_out * n_in, 1, &state);
  float *bias = numbers(n_out, 1, &state), *y = floats(m * n_out), *scales = floats(n_out);
  float *some = floats(m * n_in), *sparse = floats(m * n_out);
  double *wanted = room((size_t)(m * n_out), sizeof(double)), *rounded = room((size_t)(n_out * n_in), sizeof(double));
  for (int64_t precision = FLOAT32; precision <= INT16; precision++) {
    if (!has_precision(precision)) {
      printf("  product in %s: not at this level\n", names[precision]);
      continue;
    }
    const void *panels = packed(weight, n_out, n_in, panel);
    for (int64_t k = 0; k < n_out * n_in; k++) rounded[k] = weight[k];
    const int is_whole = precision == INT8 || precision == INT16;
    if (precision) panels = narrowed(weight, n_out, n_in, panel, precision, packing, scales, rounded);
    const Linear linear = {n_in, n_out / panel, panels, bias, precision, is_whole ? scales : NULL};
    for (int64_t i = 0; i < m; i++)
      for (int64_t o = 0; o < n_out; o++) {
        double sum = bias[o];
        for (int64_t k = 0; k < n_in; k++) sum += x[i * n_in + k] * rounded[o * n_in + k];
        wanted[i * n_out + o] = sum > 0 ? sum : 0;
      }
    char what[64];
    multiply(&linear, x, m, y, RELU);
    snprintf(what, sizeof what, "product in %s", names[precision]);
    compare(what, y, wanted, m * n_out, least[precision]);
    for (int64_t k = 0; k < m * n_in; k++) some[k] = k % 7 > 1 ? 0 : x[k];
    multiply(&linear, some, m, y, RELU);
    multiply(&linear, some, m, sparse, RELU | SPARSE);
    for (int64_t k = 0; k < m * n_out; k++) wanted[k] = y[k];
    snprintf(what, sizeof what, "sparse product in %s", names[precision]);
    compare(what, sparse, wanted, m * n_out, 0);
  }
}

static double sigmoid_of(double x) { return 1 / (1 + exp(-x)); }

void check_lstm(void *library) {
  const int64_t panel = ((WidthOf)function_of(library, "panel_width"))();
  const LstmLayer layer = (LstmLayer)function_of(library, "lstm_layer");
  const int64_t B = 3, W = panel, n_rows = 20;
  const int32_t n_chars[] = {11, 7, 2}, first[] = {0, 13, 11}; /* the longest first, wherever they stand */
  uint64_t state = 2;
  float *inputs = numbers(n_rows * 2 * 4 * W, 1, &state), *out = floats(n_rows * 2 * W), *none = floats(4 * W);
  double *wanted = room((size_t)(n_rows * 2 * W), sizeof(double));
  float *weights[2] = {numbers(4 * W * W, 0.3f, &state), numbers(4 * W * W, 0.3f, &state)};
  Linear recurrent[2];
  for (int d = 0; d < 2; d++)
    recurrent[d] = (Linear){W, 4 * W / panel, packed(weights[d], 4 * W, W, panel), none, 0, NULL};
  for (int64_t b = 0; b < B; b++)
    for (int d = 0; d < 2; d++) {
      double h[64] = {0}, c[64] = {0}, gates[256];
      for (int64_t t = 0; t < n_chars[b]; t++) {
        const int64_t row = first[b] + (d ? n_chars[b] - 1 - t : t);
        for (int64_t g = 0; g < 4 * W; g++) {
          gates[g] = inputs[(2 * row + d) * 4 * W + g];
          for (int64_t k = 0; k < W; k++) gates[g] += weights[d][g * W + k] * h[k];
        }
        for (int64_t k = 0; k < W; k++) {
          c[k] = sigmoid_of(gates[W + k]) * c[k] + sigmoid_of(gates[k]) * tanh(gates[2 * W + k]);
          h[k] = sigmoid_of(gates[3 * W + k]) * tanh(c[k]);
          wanted[(2 * row + d) * W + k] = h[k];
        }
      }
    }
  const Lstm lstm = {W, recurrent[0], recurrent[1]};
  const LstmRun run = {.n_sentences = B, .n_threads = 2, .first = first, .n_chars = n_chars, .inputs = inputs, .out = out};
  expect("lstm", layer(&lstm, &run), 0);
  compare("states of the lstm", out, wanted, n_rows * 2 * W, 1e-5);
}

static Codes table_of(FillCodes fill_codes, const int64_t *codes, const int32_t *rows, int64_t n) {
  uint64_t *keys = room(64, sizeof(uint64_t));
  int32_t *values = room(64, sizeof(int32_t));
  fill_codes(codes, rows, n, 6, keys, values);
  return (Codes){keys, values, 6};
}

void check_rows(void *library) {
  const FillCodes fill_codes = (FillCodes)function_of(library, "fill_codes");
  const RowsOfLattices rows_of = (RowsOfLattices)function_of(library, "rows_of_lattices");
  const int64_t chars[] = {0x4e00, 0x4e01, 0x4e2d, 0x56fd, 0x1f600}, firsts[] = {0x4e00, 0x4e2d};
  const int32_t char_rows[] = {7, 8, 9, 10, 11}, places[] = {2, 3}, begin[] = {0, 2, 4};
  const int32_t bigram_rows[] = {20, 21, 22, 23};
  const int64_t pairs[] = {(int64_t)0x4e00 << 21 | 0x4e01, (int64_t)0x4e00 << 21 | 0x4e2d,
                           (int64_t)0x4e2d << 21 | 0x56fd, (int64_t)0x4e2d << 21 | 0x1fffff};
  const int32_t word_rows[] = {30, 31, 32};
  const Vocabulary vocabulary = {table_of(fill_codes, chars, char_rows, 5),
                                 {table_of(fill_codes, firsts, places, 2), 2, begin, 4, pairs, bigram_rows},
                                 word_rows, 3};
  const uint32_t text[] = {0x4e00, 0x4e2d, 0x56fd, 0x4e2d, 0x1f600, 0x9999};
  const int32_t n_chars[] = {4, 2}, matches[] = {0, 2, 1, 1, 3, 2, 0, 2, 3};
  int32_t rows[6], bigrams[6], words[3], starts[3], ends[3];
  const Lattices lattices = {.n_sentences = 2, .total_chars = 6, .total_words = 3, .n_chars = n_chars, .codes = text,
                             .matches = matches};
  const RowsOfTables of_tables = {rows, bigrams, words, starts, ends};
  rows_of(&vocabulary, &lattices, &of_tables);
  const int32_t wanted[] = {7, 9, 10, 9, 11, 1}, of_bigrams[] = {21, 22, 1, 23, 1, 1}, of_words[] = {31, 32, 2};
  expect("rows of characters", memcmp(rows, wanted, sizeof wanted) == 0, 1);
  expect("rows of bigrams", memcmp(bigrams, of_bigrams, sizeof of_bigrams) == 0, 1);
  expect("rows of words", memcmp(words, of_words, sizeof of_words) == 0 && starts[1] == 1 && ends[1] == 3, 1);
}

enum { N_SLOTS = 128, FIRST_STATE = 0x110000 };

/* A trie of hash_trie.py, a word at a time. */
static void insert(uint64_t *keys, uint32_t *values, const uint32_t *word, int n, uint32_t number) {
  uint64_t state = word[0];
  for (int k = 1; k < n; k++) {
    const uint64_t key = state << 21 | word[k];
    uint64_t slot = (key * 0x9E3779B97F4A7C15u >> 32) * N_SLOTS >> 32;
    while (keys[slot] && keys[slot] >> 2 != key) slot = (slot + 1) % N_SLOTS;
    keys[slot] |= key << 2 | (k + 1 == n ? 1 : 2);
    if (k + 1 == n) values[slot] = number;
    state = FIRST_STATE + slot;
  }
}

void check_words(void) {
  static uint64_t keys[N_SLOTS];
  static uint32_t values[N_SLOTS], text[3000];
  const uint32_t words[][3] = {{1, 2, 0}, {1, 2, 3}, {2, 3, 0}, {9, 9, 9}};
  const int lengths[] = {2, 3, 2, 3};
  for (uint32_t w = 0; w < 4; w++) insert(keys, values, words[w], lengths[w], w);
  uint64_t state = 3;
  for (int k = 0; k < 3000; k++) text[k] = (uint32_t)(1 + (number(&state) + 1) * 2); /* 1 to 4, now and then */
  const Trie trie = {(uint64_t)(uintptr_t)keys, (uint64_t)(uintptr_t)values, N_SLOTS, N_SLOTS, 4, 3};
  RowList all;
  expect("search for words", find_words(&trie, text, 3000, &all), 0);
  size_t n = 0, n_equal = 0;
  for (int32_t begin = 0; begin < 3000; begin++)
    for (uint32_t w = 0; w < 4; w++) {
      int is_here = begin + lengths[w] <= 3000;
      for (int k = 0; k < lengths[w] && is_here; k++) is_here = text[begin + k] == words[w][k];
      if (!is_here) continue;
      const Row *row = all.rows + n;
      n_equal += n < all.n && row->start == begin && row->end == begin + lengths[w] && row->number == w;
      n++;
    }
  expect("words", (int64_t)all.n, (int64_t)n);
  expect("words where they are", (int64_t)n_equal, (int64_t)n);
  free_words(&all);
}
