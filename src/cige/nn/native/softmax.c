/* Softmax and dropout of attention on the CPU, in one pass over memory each way.

   forward    product  ->  probability = softmax over the row (where the product lay);  dropped = probability / (1 - p)
              where kept, 0 elsewhere
   backward   product's gradient = probability * (g - sum of g * probability), g = dropped's gradient / (1 - p) where
              kept, 0 elsewhere; what was kept is read from dropped, where only zeros of the softmax are 0 besides

   All are float or bfloat16 [rows, n]. Without dropout `dropped` is NULL, and the probabilities are what attends. -inf
    is a hidden key; a row of nothing else is zeros. A NaN makes its row NaN. Whether element (i, j) is kept depends on
    the seed, i and j alone, however many threads there are. Functions return 0, or 1 when memory ran out. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "bf16.h"
#include "maxima.h"
#include "rows.h"
#include "threads.h"

#define HIDDEN (-1e30f) /* takes the place of -infinity, so that a row of nothing else is not NaN */

typedef struct {
  int64_t first, last, n, is_bf16, seed;
  uint32_t threshold; /* an element whose random number is below is dropped */
  float scale;        /* 1 / (1 - p) */
  const void *from;   /* backward: gradients of dropped */
  void *probability, *dropped, *out;
  int failed;
} Rows;

static uint64_t mix(uint64_t x) { /* splitmix64 */
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

static inline uint32_t random_bits(uint64_t key, uint32_t j) { /* murmur3's last steps, a half of the key to each */
  uint32_t x = j * 0x9e3779b9 + (uint32_t)key;
  x = (x ^ x >> 16) * 0x85ebca6b + (uint32_t)(key >> 32);
  x = (x ^ x >> 13) * 0xc2b2ae35;
  return x ^ x >> 16;
}

#define DEFINE(NAME, TYPE, WIDEN, NARROW)                                                                     \
  static void forward_##NAME(TYPE *probability, TYPE *dropped, int64_t n, uint64_t key, const Rows *rows,     \
                             float *buffer) {                                                                 \
    const uint32_t threshold = rows->threshold;                                                               \
    for (int64_t j = 0; j < n; j++) {                                                                         \
      const float product = WIDEN(probability[j]);                                                            \
      buffer[j] = product == -INFINITY ? HIDDEN : product;                                                    \
    }                                                                                                         \
    pad(buffer, n, -INFINITY);                                                                                \
    const float top = highest(buffer, n), sum = exponentials(buffer, top, n);                                 \
    const float share = top == HIDDEN ? 0 : 1 / sum, scaled = share * rows->scale;                            \
    for (int64_t j = 0; j < n; j++) probability[j] = NARROW(buffer[j] * share);                               \
    if (dropped)                                                                                              \
      for (int64_t j = 0; j < n; j++)                                                                         \
        dropped[j] = NARROW(random_bits(key, (uint32_t)j) >= threshold ? buffer[j] * scaled : 0.0f);          \
  }                                                                                                           \
  static void backward_##NAME(const TYPE *probability, const TYPE *dropped, const TYPE *from, TYPE *out,      \
                              int64_t n, float scale, float *buffer) {                                        \
    float *wide = buffer + stride(n);                                                                         \
    for (int64_t j = 0; j < n; j++) {                                                                         \
      buffer[j] = WIDEN(from[j]) * scale;                                                                     \
      wide[j] = WIDEN(probability[j]);                                                                        \
    }                                                                                                         \
    if (dropped)                                                                                              \
      for (int64_t j = 0; j < n; j++) buffer[j] = WIDEN(dropped[j]) != 0 ? buffer[j] : 0.0f;                  \
    pad(buffer, n, 0);                                                                                        \
    pad(wide, n, 0);                                                                                          \
    const float mean = dot(buffer, wide, n);                                                                  \
    for (int64_t j = 0; j < n; j++) out[j] = NARROW(wide[j] * (buffer[j] - mean));                            \
  }

DEFINE(bf16, uint16_t, widen_bf16, narrow_bf16)
DEFINE(float, float, same, same)

#define AT(POINTER, TYPE) ((POINTER) ? (TYPE *)(POINTER) + i * n : NULL)

static void *work(void *argument) {
  Rows *rows = argument;
  const int64_t n = rows->n;
  void *memory = malloc(in_bytes(2 * stride(n)));
  float *buffer = aligned(memory);
  rows->failed = !memory;
  for (int64_t i = rows->first; i < rows->last && memory; i++) {
    const uint64_t key = mix(mix((uint64_t)rows->seed) + (uint64_t)i);
    if (rows->from && rows->is_bf16)
      backward_bf16(AT(rows->probability, uint16_t), AT(rows->dropped, uint16_t), AT(rows->from, uint16_t),
                    AT(rows->out, uint16_t), n, rows->scale, buffer);
    else if (rows->from)
      backward_float(AT(rows->probability, float), AT(rows->dropped, float), AT(rows->from, float),
                     AT(rows->out, float), n, rows->scale, buffer);
    else if (rows->is_bf16)
      forward_bf16(AT(rows->probability, uint16_t), AT(rows->dropped, uint16_t), n, key, rows, buffer);
    else
      forward_float(AT(rows->probability, float), AT(rows->dropped, float), n, key, rows, buffer);
  }
  free(memory);
  return NULL;
}

/* sizes = {rows, n, 1 for bfloat16, threads, seed}; prob is that of dropout. */
static int run(const int64_t *sizes, double prob, const void *from, void *probability, void *dropped, void *out) {
  const int64_t n_threads = usable_threads(sizes[3], sizes[0]);
  Rows rows[MAX_THREADS];
  int failed = 0;
  for (int64_t t = 0; t < n_threads; t++)
    rows[t] = (Rows){.first = sizes[0] * t / n_threads, .last = sizes[0] * (t + 1) / n_threads, .n = sizes[1],
                     .is_bf16 = sizes[2], .seed = sizes[4], .threshold = (uint32_t)(prob * 4294967296.0),
                     .scale = (float)(1 / (1 - prob)), .from = from, .probability = probability, .dropped = dropped,
                     .out = out};
  in_threads(work, rows, sizeof(Rows), n_threads);
  for (int64_t t = 0; t < n_threads; t++) failed |= rows[t].failed;
  return failed;
}

int softmax_dropout_forward(const int64_t *sizes, double prob, void *probability, void *dropped) {
  return run(sizes, prob, NULL, probability, dropped, NULL);
}

int softmax_dropout_backward(const int64_t *sizes, double prob, const void *probability, const void *dropped,
                             const void *from, void *out) {
  return run(sizes, prob, from, (void *)probability, (void *)dropped, out);
}
