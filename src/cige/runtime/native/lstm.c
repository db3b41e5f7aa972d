/* An LSTM layer in both directions over sentences that stand one behind the other.

   Sentences go forward together, a step each in turn, the longest first: then those that are still running at a step are
   the first rows of the state, and their products with the recurrent weights are one. A direction is a thread's. */

#include <stdlib.h>

#include "../../nn/native/threads.h"
#include "product.h"

typedef struct {
  int64_t n_sentences, width; /* width: of the state, in whole panels */
  const int32_t *first, *n_chars; /* of each sentence, the longest first: its first row, and how many it has */
  const Linear *recurrent;    /* [2]: from the state to the gates i, f, g, o, each of `width` numbers */
  const float *inputs;        /* [rows, 2, 4 width]: what the layer's input adds to the gates, biases included */
  float *out;                 /* [rows, 2, width] */
} Layer;

typedef struct {
  const Layer *layer;
  int64_t direction;
  int failed;
} Part;

static inline vector_t minus_magnitude(vector_t x) { return (vector_t)((ints_t)x | INT32_MIN); }

static inline vector_t choose(ints_t where, vector_t a, vector_t b) {
  return (vector_t)(((ints_t)a & where) | ((ints_t)b & ~where));
}

static inline vector_t sigmoid(vector_t x) {
  const vector_t small = exp_of(minus_magnitude(x)), high = 1 / (1 + small);
  return choose(x < 0, small * high, high);
}

static inline vector_t hyperbolic_tangent(vector_t x) {
  const vector_t small = exp_of(2 * minus_magnitude(x)), high = (1 - small) / (1 + small);
  return choose(x < 0, -high, high);
}

static void *one_direction(void *argument) {
  Part *part = argument;
  const Layer *l = part->layer;
  const int64_t B = l->n_sentences, width = l->width, direction = part->direction;
  void *memory = malloc(in_bytes(6 * B * width));
  if (!memory) {
    part->failed = 1;
    return NULL;
  }
  float *state = aligned(memory), *cell = state + B * width, *gates = cell + B * width;
  memset(state, 0, (size_t)(2 * B * width) * sizeof(float));
  for (int64_t t = 0, running = B;; t++) {
    while (running && l->n_chars[running - 1] <= t) running--;
    if (!running) break;
    for (int64_t b = 0; b < running; b++) {
      const int64_t row = l->first[b] + (direction ? l->n_chars[b] - 1 - t : t);
      memcpy(gates + b * 4 * width, l->inputs + (2 * row + direction) * 4 * width, (size_t)(4 * width) * sizeof(float));
    }
    const Linear *recurrent = l->recurrent + direction;
    product(recurrent, 0, recurrent->n_panels, state, width, running, gates, 4 * width, ADD);
    for (int64_t b = 0; b < running; b++) {
      const int64_t row = l->first[b] + (direction ? l->n_chars[b] - 1 - t : t);
      const vector_t *gate = const_vectors(gates + b * 4 * width);
      vector_t *c = vectors(cell + b * width), *h = vectors(state + b * width);
      vector_t *out = vectors(l->out + (2 * row + direction) * width);
      for (int64_t k = 0, n = width / WIDTH; k < n; k++) {
        c[k] = sigmoid(gate[n + k]) * c[k] + sigmoid(gate[k]) * hyperbolic_tangent(gate[2 * n + k]);
        out[k] = h[k] = sigmoid(gate[3 * n + k]) * hyperbolic_tangent(c[k]);
      }
    }
  }
  free(memory);
  return NULL;
}

/* sizes = {B, width, threads}; `recurrent` are the Linear of both directions. Returns 0, or 1 if memory ran out. */
int lstm_layer(const int64_t *sizes, const Linear *recurrent, const int32_t *first, const int32_t *n_chars,
               const float *inputs, float *out) {
  const Layer layer = {.n_sentences = sizes[0], .width = sizes[1], .first = first, .n_chars = n_chars,
                       .recurrent = recurrent, .inputs = inputs, .out = out};
  Part parts[2] = {{&layer, 0, 0}, {&layer, 1, 0}};
  if (usable_threads(sizes[2], 2) == 2) {
    in_threads(one_direction, parts, sizeof(Part), 2);
  } else {
    one_direction(parts);
    one_direction(parts + 1);
  }
  return parts[0].failed | parts[1].failed;
}
