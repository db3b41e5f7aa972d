/* The softmax of a large vocabulary on the CPU, whose scores become the gradient of -log p(target) where they lie.

   scores   float or bfloat16 [S, V], read as scores, written as softmax - (1 at the target) in the same type
   targets  int64 [S], in [0, V)
   loss     float [S], -log p(target)
   right    uint8 [S], 1 where no score is higher than the target's
   bias     float [V], to which the gradients of all rows are added (before they are rounded); or NULL, and then
            scores stay as they are

   A row is passed over three times (highest, sum, gradient) and stays in the cache meanwhile, a block of it at a time
   in float; exponentials are computed twice, so that none of them has to be kept. Threads share the rows out. Functions
   return 0, or 1 when memory ran out. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "bf16.h"
#include "maxima.h"
#include "rows.h"
#include "threads.h"

#define BLOCK 1024

#define DEFINE_ROW(NAME, TYPE, WIDEN, NARROW)                                                               \
  static int64_t NAME##_block(const TYPE *score, int64_t first, int64_t n, float *block) {                  \
    const int64_t size = n - first < BLOCK ? n - first : BLOCK;                                             \
    for (int64_t j = 0; j < size; j++) block[j] = WIDEN(score[first + j]);                                  \
    pad(block, size, -INFINITY);                                                                            \
    return size;                                                                                            \
  }                                                                                                         \
  static float NAME(TYPE *score, int64_t n, int64_t target, uint8_t *right, float *bias) {                  \
    float block[BLOCK], top = -INFINITY, total = 0;                                                         \
    for (int64_t first = 0; first < n; first += BLOCK) {                                                    \
      const float best = highest(block, NAME##_block(score, first, n, block));                              \
      top = best > top ? best : top;                                                                        \
    }                                                                                                       \
    for (int64_t first = 0; first < n; first += BLOCK)                                                      \
      total += exponentials(block, top, NAME##_block(score, first, n, block));                              \
    const float own = WIDEN(score[target]), scale = 1 / total;                                              \
    *right = own == top;                                                                                    \
    if (bias) {                                                                                             \
      for (int64_t first = 0; first < n; first += BLOCK) {                                                  \
        const int64_t size = NAME##_block(score, first, n, block);                                          \
        exponentials(block, top, size);                                                                     \
        for (int64_t j = 0; j < size; j++) {                                                                \
          const float share = block[j] * scale;                                                             \
          bias[first + j] += share;                                                                         \
          score[first + j] = NARROW(share);                                                                 \
        }                                                                                                   \
      }                                                                                                     \
      bias[target] -= 1;                                                                                    \
      score[target] = NARROW(expf(own - top) * scale - 1);                                                  \
    }                                                                                                       \
    return logf(total) + top - own;                                                                         \
  }

DEFINE_ROW(row_bf16, uint16_t, widen_bf16, narrow_bf16)
DEFINE_ROW(row_float, float, same, same)

typedef struct {
  int64_t first, last, V, is_bf16;
  void *scores;
  const int64_t *targets;
  float *loss, *bias;
  uint8_t *right;
} Rows;

static void *work(void *argument) {
  const Rows *rows = argument;
  for (int64_t i = rows->first; i < rows->last; i++)
    rows->loss[i] = rows->is_bf16 ? row_bf16((uint16_t *)rows->scores + i * rows->V, rows->V, rows->targets[i],
                                             rows->right + i, rows->bias)
                                  : row_float((float *)rows->scores + i * rows->V, rows->V, rows->targets[i],
                                              rows->right + i, rows->bias);
  return NULL;
}

/* sizes = {S, V, 1 for bfloat16, threads}. */
int vocabulary_gradient(const int64_t *sizes, void *scores, const int64_t *targets, float *loss, uint8_t *right,
                        float *bias) {
  const int64_t S = sizes[0], V = sizes[1], n_threads = usable_threads(sizes[3], S);
  Rows rows[MAX_THREADS];
  int failed = 0;
  for (int64_t t = 0; t < n_threads; t++) {
    float *own = t && bias ? calloc((size_t)V, sizeof(float)) : bias; /* the first adds to what was given */
    rows[t] = (Rows){S * t / n_threads, S * (t + 1) / n_threads, V, sizes[2], scores, targets, loss, own, right};
    failed |= bias && !own;
  }
  if (!failed) in_threads(work, rows, sizeof(Rows), n_threads);
  for (int64_t t = 1; t < n_threads && bias; t++) {
    for (int64_t j = 0; j < V && !failed; j++) bias[j] += rows[t].bias[j];
    free(rows[t].bias);
  }
  return failed;
}
