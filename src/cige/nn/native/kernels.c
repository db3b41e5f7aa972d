/* FLAT's attention (Eq. 11, Eq. 1) on the CPU, without padding and without any tensor of N * N * D.

   score[h,b,i,j] = query[h,b,i] . key[h,b,j]  +  relation_query[h,b,i] . relation[index[b,i,j]]
   probability    = softmax over j;   out[b,i,h] = sum_j probability[h,b,i,j] * value[h,b,j]

   query, key, value  float [H, B, N, d]   d = head width; the query holds q_i + u, already scaled
   relation_query     float [H, B, N, D]   W_kR^T (q_i + v), already scaled
   relation           float [U, D]         distinct rows of R (Eq. 8)
   index              int32 [B, N, N]      row of R for the pair (i, j)
   n_nodes            int64 [B]            nodes of each sentence; nothing at or beyond it is read or written
   hidden             uint8 [B, N, N]      1 where i may not see j; or NULL. An i that sees nothing reads zeros
   probability        float [H, B, N, N];  out float [B, N, H, d]; gradients have the shape of their tensor.
   Outputs must arrive zeroed. D must be a multiple of 16. Functions return 0, or 1 when memory ran out.

   A task is a sentence, or in the forward pass a block of its rows; threads take tasks from a counter. Work buffers hold
   rows as rows.h wants them: s = stride(n) floats, padded. */

#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "threads.h"

#define HEADS 8 /* heads share a float vector in the relation term */
#define PAIRS 8 /* key nodes handled together, so that one load of the query serves all of them */
#define ROWS 32 /* query rows of a forward task */
#define HIDDEN (-1e30f) /* finite: a row of nothing else is shared by all, and not NaN */

typedef float heads_t __attribute__((vector_size(HEADS * 4), aligned(4)));

typedef struct {
  int64_t H, B, N, d, D, U;
  const float *query, *key, *value, *relation_query, *relation;
  const int32_t *index;
  const int64_t *n_nodes;
  const uint8_t *hidden;
  float *probability, *out;
  const float *grad_out;
  float *grad_query, *grad_key, *grad_value, *grad_relation_query;
} Attention;

static int64_t in_groups(int64_t n) { return (n + HEADS - 1) / HEADS * HEADS; }

/* [n, d] rows -> [d, s], so that loops run over nodes. */
static void transpose(const float *rows, float *columns, int64_t n, int64_t d) {
  const int64_t s = stride(n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t k = 0; k < d; k++) columns[k * s + j] = rows[j * d + k];
  for (int64_t k = 0; k < d; k++) pad(columns + k * s, n, 0);
}

/* and back */
static void transpose_back(const float *columns, float *rows, int64_t n, int64_t d) {
  const int64_t s = stride(n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t k = 0; k < d; k++) rows[j * d + k] = columns[k * s + j];
}

/* ------------------------------------------------------------------------------------------------ forward */

/* score[h][j] += relation_query[h] . relation[index[j]] for all heads and the n keys of one query row. */
static void relation_scores(const Attention *a, const float *query, const int32_t *index, int64_t n, float *score,
                            heads_t *by_head) {
  const int64_t D = a->D, query_step = a->B * a->N * D, s = stride(n);
  for (int64_t h0 = 0; h0 < a->H; h0 += HEADS) {
    const int64_t n_heads = a->H - h0 < HEADS ? a->H - h0 : HEADS;
    memset(by_head, 0, D * sizeof(heads_t));
    for (int64_t h = 0; h < n_heads; h++)
      for (int64_t k = 0; k < D; k++) ((float *)(by_head + k))[h] = query[(h0 + h) * query_step + k];
    int64_t j = 0;
    for (; j + PAIRS <= n; j += PAIRS) {
      const float *row[PAIRS];
      heads_t sum[PAIRS] = {0};
      for (int p = 0; p < PAIRS; p++) row[p] = a->relation + (int64_t)index[j + p] * D;
      for (int64_t k = 0; k < D; k++) {
        const heads_t q = by_head[k];
        for (int p = 0; p < PAIRS; p++) sum[p] += q * row[p][k];
      }
      for (int64_t h = 0; h < n_heads; h++)
        for (int p = 0; p < PAIRS; p++) score[(h0 + h) * s + j + p] += sum[p][h];
    }
    for (; j < n; j++) {
      const float *row = a->relation + (int64_t)index[j] * D;
      heads_t sum = {0};
      for (int64_t k = 0; k < D; k++) sum += by_head[k] * row[k];
      for (int64_t h = 0; h < n_heads; h++) score[(h0 + h) * s + j] += sum[h];
    }
  }
}

static void softmax(float *score, int64_t n) {
  pad(score, n, -INFINITY);
  const float total = exponentials(score, highest(score, n), n);
  multiply(score, 1 / total, n);
}

static int forward_task(const Attention *a, int64_t task, float *unused) {
  (void)unused;
  const int64_t H = a->H, N = a->N, d = a->d, D = a->D, blocks = (N + ROWS - 1) / ROWS;
  const int64_t b = task / blocks, first = task % blocks * ROWS, n = a->n_nodes[b];
  const int64_t last = first + ROWS < n ? first + ROWS : n, s = stride(n);
  if (first >= n) return 0;
  void *memory = malloc(in_bytes(2 * H * d * s + H * s + D * HEADS));
  if (!memory) return 1;
  float *keys = aligned(memory), *values = keys + H * d * s, *score = values + H * d * s;
  heads_t *by_head = (heads_t *)(score + H * s);
  for (int64_t h = 0; h < H; h++) {
    transpose(a->key + (h * a->B + b) * N * d, keys + h * d * s, n, d);
    transpose(a->value + (h * a->B + b) * N * d, values + h * d * s, n, d);
  }
  for (int64_t i = first; i < last; i++) {
    memset(score, 0, H * s * sizeof(float));
    for (int64_t h = 0; h < H; h++) {
      const float *query = a->query + ((h * a->B + b) * N + i) * d;
      for (int64_t k = 0; k < d; k++) add_scaled(score + h * s, query[k], keys + (h * d + k) * s, n);
    }
    relation_scores(a, a->relation_query + (b * N + i) * D, a->index + (b * N + i) * N, n, score, by_head);
    for (int64_t h = 0; h < H; h++) {
      float *row = score + h * s;
      if (a->hidden) {
        const uint8_t *hidden = a->hidden + (b * N + i) * N;
        int64_t n_hidden = 0;
        for (int64_t j = 0; j < n; j++) n_hidden += hidden[j] != 0;
        if (n_hidden == n) break; /* i sees nothing: its outputs stay zero, for all heads */
        for (int64_t j = 0; j < n; j++) row[j] = hidden[j] ? HIDDEN : row[j];
      }
      softmax(row, n);
      memcpy(a->probability + ((h * a->B + b) * N + i) * N, row, n * sizeof(float));
      float *out = a->out + ((b * N + i) * H + h) * d;
      for (int64_t k = 0; k < d; k++) out[k] = dot(row, values + (h * d + k) * s, n);
    }
  }
  free(memory);
  return 0;
}

/* ----------------------------------------------------------------------------------------------- backward */

/* Gradients of the relation term for one query row, given grad_score[h][j] for all heads. */
static void relation_gradients(const Attention *a, int64_t b, int64_t i, int64_t n, const float *grad_score,
                               heads_t *by_node, float *grad_relation) {
  const int64_t D = a->D, query_step = a->B * a->N * D, row_start = (b * a->N + i) * D, s = stride(n);
  const int32_t *index = a->index + (b * a->N + i) * a->N;
  for (int64_t h0 = 0; h0 < a->H; h0 += HEADS) {
    const int64_t n_heads = a->H - h0 < HEADS ? a->H - h0 : HEADS;
    memset(by_node, 0, n * sizeof(heads_t));
    for (int64_t h = 0; h < n_heads; h++)
      for (int64_t j = 0; j < n; j++) ((float *)(by_node + j))[h] = grad_score[(h0 + h) * s + j];
    for (int64_t k = 0; k < D; k += WIDTH) {
      vector_t sum[HEADS] = {0}, query[HEADS] = {0};
      for (int64_t h = 0; h < n_heads; h++)
        query[h] = *(const vector_t *)(a->relation_query + (h0 + h) * query_step + row_start + k);
      for (int64_t j = 0; j < n; j++) {
        const int64_t place = (int64_t)index[j] * D + k;
        const vector_t relation = *(const vector_t *)(a->relation + place);
        vector_t gradient = *(vector_t *)(grad_relation + place);
        const heads_t by_head = by_node[j];
        for (int h = 0; h < HEADS; h++) {
          sum[h] += relation * by_head[h];
          gradient += query[h] * by_head[h];
        }
        *(vector_t *)(grad_relation + place) = gradient;
      }
      for (int64_t h = 0; h < n_heads; h++)
        *(vector_t *)(a->grad_relation_query + (h0 + h) * query_step + row_start + k) = sum[h];
    }
  }
}

static int backward_task(const Attention *a, int64_t b, float *grad_relation) {
  const int64_t H = a->H, N = a->N, d = a->d, n = a->n_nodes[b], s = stride(n), size = H * d * s;
  void *memory = calloc(in_bytes(4 * size + (in_groups(H) + 1) * s + HEADS * n), 1);
  if (!memory) return 1;
  float *keys = aligned(memory), *values = keys + size, *grad_keys = values + size, *grad_values = grad_keys + size;
  float *grad_score = grad_values + size, *probability = grad_score + in_groups(H) * s;
  heads_t *by_node = (heads_t *)(probability + s);
  for (int64_t h = 0; h < H; h++) {
    transpose(a->key + (h * a->B + b) * N * d, keys + h * d * s, n, d);
    transpose(a->value + (h * a->B + b) * N * d, values + h * d * s, n, d);
  }
  for (int64_t i = 0; i < n; i++) {
    for (int64_t h = 0; h < H; h++) {
      memcpy(probability, a->probability + ((h * a->B + b) * N + i) * N, n * sizeof(float)); /* its padding is 0 */
      const float *grad_out = a->grad_out + ((b * N + i) * H + h) * d;
      const float *query = a->query + ((h * a->B + b) * N + i) * d;
      float *grad_query = a->grad_query + ((h * a->B + b) * N + i) * d, *row = grad_score + h * s;
      memset(row, 0, s * sizeof(float));
      for (int64_t k = 0; k < d; k++) {
        add_scaled(row, grad_out[k], values + (h * d + k) * s, n);
        add_scaled(grad_values + (h * d + k) * s, grad_out[k], probability, n);
      }
      const float mean = dot(row, probability, n); /* the softmax's own term */
      for (int64_t j = 0; j < s; j++) row[j] = probability[j] * (row[j] - mean);
      for (int64_t k = 0; k < d; k++) {
        grad_query[k] = dot(row, keys + (h * d + k) * s, n);
        add_scaled(grad_keys + (h * d + k) * s, query[k], row, n);
      }
    }
    relation_gradients(a, b, i, n, grad_score, by_node, grad_relation);
  }
  for (int64_t h = 0; h < H; h++) {
    transpose_back(grad_keys + h * d * s, a->grad_key + (h * a->B + b) * N * d, n, d);
    transpose_back(grad_values + h * d * s, a->grad_value + (h * a->B + b) * N * d, n, d);
  }
  free(memory);
  return 0;
}

/* ------------------------------------------------------------------------------------------------ threads */

typedef struct {
  const Attention *attention;
  int (*task)(const Attention *, int64_t task, float *grad_relation);
  int64_t n_tasks;
  atomic_llong *next;
  float *grad_relation; /* private to a worker: rows of R are shared between pairs */
  int failed;
} Worker;

static void *work(void *argument) {
  Worker *worker = argument;
  for (int64_t task; (task = atomic_fetch_add(worker->next, 1)) < worker->n_tasks;)
    worker->failed |= worker->task(worker->attention, task, worker->grad_relation);
  return NULL;
}

static int run(Worker *workers, int64_t n_threads) {
  int failed = 0;
  in_threads(work, workers, sizeof(Worker), n_threads);
  for (int64_t t = 0; t < n_threads; t++) failed |= workers[t].failed;
  return failed;
}

/* sizes = {H, B, N, d, D, U, threads} in both functions. */
int span_attention_forward(const int64_t *sizes, const float *query, const float *relation_query, const float *key,
                           const float *value, const float *relation, const int32_t *index, const int64_t *n_nodes,
                           const uint8_t *hidden, float *probability, float *out) {
  const Attention attention = {
      .H = sizes[0], .B = sizes[1], .N = sizes[2], .d = sizes[3], .D = sizes[4], .U = sizes[5],
      .query = query, .relation_query = relation_query, .key = key, .value = value, .relation = relation,
      .index = index, .n_nodes = n_nodes, .hidden = hidden, .probability = probability, .out = out};
  const int64_t n_tasks = attention.B * ((attention.N + ROWS - 1) / ROWS);
  const int64_t n_threads = usable_threads(sizes[6], n_tasks);
  atomic_llong next = 0;
  Worker workers[MAX_THREADS];
  for (int64_t t = 0; t < n_threads; t++)
    workers[t] = (Worker){.attention = &attention, .task = forward_task, .n_tasks = n_tasks, .next = &next};
  return run(workers, n_threads);
}

int span_attention_backward(const int64_t *sizes, const float *query, const float *relation_query, const float *key,
                            const float *value, const float *relation, const int32_t *index, const int64_t *n_nodes,
                            const float *probability, const float *grad_out, float *grad_query,
                            float *grad_relation_query, float *grad_key, float *grad_value, float *grad_relation) {
  const Attention attention = {
      .H = sizes[0], .B = sizes[1], .N = sizes[2], .d = sizes[3], .D = sizes[4], .U = sizes[5],
      .query = query, .relation_query = relation_query, .key = key, .value = value, .relation = relation,
      .index = index, .n_nodes = n_nodes, .probability = (float *)probability, .grad_out = grad_out,
      .grad_query = grad_query, .grad_relation_query = grad_relation_query, .grad_key = grad_key,
      .grad_value = grad_value};
  const int64_t n_threads = usable_threads(sizes[6], attention.B), n_floats = attention.U * attention.D;
  atomic_llong next = 0;
  Worker workers[MAX_THREADS];
  int failed = 0;
  for (int64_t t = 0; t < n_threads; t++) {
    float *own = t ? calloc(n_floats, sizeof(float)) : grad_relation;
    workers[t] = (Worker){.attention = &attention, .task = backward_task, .n_tasks = attention.B, .next = &next,
                          .grad_relation = own};
    failed |= !own;
  }
  if (!failed) failed = run(workers, n_threads);
  for (int64_t t = 1; t < n_threads; t++) {
    if (!failed) add_scaled(grad_relation, 1, workers[t].grad_relation, n_floats); /* whole vectors: D is */
    free(workers[t].grad_relation);
  }
  return failed;
}
