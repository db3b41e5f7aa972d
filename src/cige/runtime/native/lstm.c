/* An LSTM layer in both directions over sentences that stand one behind the other.

   Sentences go forward together, a step each in turn, the longest first: then those that are still running at a step are
   the first rows of the state, and their products with the recurrent weights are one. A direction is a thread's. */

#include <stdlib.h>

#include "../../nn/native/threads.h"
#include "lstm.h"

typedef struct {
  const Lstm *lstm;
  const LstmRun *run;
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
  const LstmRun *l = part->run;
  const int64_t B = l->n_sentences, width = part->lstm->width, direction = part->direction;
  const Linear *recurrent = direction ? &part->lstm->backward : &part->lstm->forward;
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

int lstm_layer(const Lstm *lstm, const LstmRun *run) {
  Part parts[2] = {{lstm, run, 0, 0}, {lstm, run, 1, 0}};
  if (usable_threads(run->n_threads, 2) == 2) {
    in_threads(one_direction, parts, sizeof(Part), 2);
  } else {
    one_direction(parts);
    one_direction(parts + 1);
  }
  return parts[0].failed | parts[1].failed;
}
