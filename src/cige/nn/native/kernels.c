/* FLAT's attention (Eq. 11, Eq. 1) on the CPU, without padding and without any tensor of N * N * D.

   score[h,b,i,j] = query[h,b,i] . key[h,b,j]  +  sum_k position[b,i,k,h] * table[index[b,i,j],k,h]
   probability    = softmax over j;   out[b,i,h] = sum_j probability[h,b,i,j] * value[h,b,j]

   query         float [H, B, Q, d]   d = head width, Q the nodes that ask; it holds q_i + u, already scaled
   key, value    float [H, B, N, d]
   position      float [B, Q, d, P]   q_i + v, already scaled; P = heads, filled up to a multiple of 8 with zeros
   table         float [U, d, P]      W_kR R for the distinct rows of R (Eq. 8): a pair costs D products, not H * D
   index         int32 [B, Q, N]      row of the table for the pair (i, j)
   n_queries, n_nodes  int64 [B]      of each sentence; nothing at or beyond them is read or written
   hidden        uint8 [B, Q, N]      1 where i may not see j; or NULL. An i that sees nothing reads zeros
   probability   float [H, B, Q, N];  out float [B, Q, H, d]; gradients have the shape of their tensor.
   Outputs must arrive zeroed. Functions return 0, or 1 when memory ran out.

   A task is a sentence, or in the forward pass a block of its rows; threads take tasks from a counter. Work buffers hold
   rows as rows.h wants them: s = stride(n) floats, padded. */

#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "maxima.h"
#include "rows.h"
#include "threads.h"

#define HEADS 8 /* heads share a float vector in the position term */
#define PAIRS 8 /* key nodes handled together, so that one load of the query serves all of them */
#define COLUMNS 4 /* numbers of a head whose gradients are summed side by side */
#define ROWS 32 /* query rows of a forward task */
#define HIDDEN (-1e30f) /* finite: a row of nothing else is shared by all, and not NaN */

typedef float heads_t __attribute__((vector_size(HEADS * 4), aligned(4)));

typedef struct {
  int64_t H, B, Q, N, d, U;
  const float *query, *key, *value, *position, *table;
  const int32_t *index;
  const int64_t *n_queries, *n_nodes;
  const uint8_t *hidden;
  float *probability, *out;
  const float *grad_out;
  float *grad_query, *grad_key, *grad_value, *grad_position;
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

/* score[h][j] += position . table[index[j]] for all heads and the n keys of one query row. */
static void position_scores(const Attention *a, const float *position, const int32_t *index, int64_t n, float *score) {
  const int64_t d = a->d, n_groups = in_groups(a->H) / HEADS, s = stride(n);
  for (int64_t g = 0; g < n_groups; g++) {
    const int64_t h0 = g * HEADS, n_heads = a->H - h0 < HEADS ? a->H - h0 : HEADS;
    const heads_t *query = (const heads_t *)position + g;
    int64_t j = 0;
    for (; j + PAIRS <= n; j += PAIRS) {
      const heads_t *row[PAIRS];
      heads_t sum[PAIRS] = {0};
      for (int p = 0; p < PAIRS; p++) row[p] = (const heads_t *)a->table + index[j + p] * d * n_groups + g;
      for (int64_t k = 0; k < d; k++) {
        const heads_t q = query[k * n_groups];
        for (int p = 0; p < PAIRS; p++) sum[p] += q * row[p][k * n_groups];
      }
      for (int64_t h = 0; h < n_heads; h++)
        for (int p = 0; p < PAIRS; p++) score[(h0 + h) * s + j + p] += sum[p][h];
    }
    for (; j < n; j++) {
      const heads_t *row = (const heads_t *)a->table + index[j] * d * n_groups + g;
      heads_t sum = {0};
      for (int64_t k = 0; k < d; k++) sum += query[k * n_groups] * row[k * n_groups];
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
  const int64_t H = a->H, Q = a->Q, N = a->N, d = a->d, blocks = (Q + ROWS - 1) / ROWS;
  const int64_t b = task / blocks, first = task % blocks * ROWS, n = a->n_nodes[b], n_queries = a->n_queries[b];
  const int64_t last = first + ROWS < n_queries ? first + ROWS : n_queries, s = stride(n);
  if (first >= last) return 0;
  void *memory = malloc(in_bytes(2 * H * d * s + H * s));
  if (!memory) return 1;
  float *keys = aligned(memory), *values = keys + H * d * s, *score = values + H * d * s;
  for (int64_t h = 0; h < H; h++) {
    transpose(a->key + (h * a->B + b) * N * d, keys + h * d * s, n, d);
    transpose(a->value + (h * a->B + b) * N * d, values + h * d * s, n, d);
  }
  for (int64_t i = first; i < last; i++) {
    const int64_t asking = b * Q + i;
    memset(score, 0, (size_t)(H * s) * sizeof(float));
    for (int64_t h = 0; h < H; h++) {
      const float *query = a->query + ((h * a->B + b) * Q + i) * d;
      for (int64_t k = 0; k < d; k++) add_scaled(score + h * s, query[k], keys + (h * d + k) * s, n);
    }
    position_scores(a, a->position + asking * d * in_groups(H), a->index + asking * N, n, score);
    for (int64_t h = 0; h < H; h++) {
      float *row = score + h * s;
      if (a->hidden) {
        const uint8_t *hidden = a->hidden + asking * N;
        int64_t n_hidden = 0;
        for (int64_t j = 0; j < n; j++) n_hidden += hidden[j] != 0;
        if (n_hidden == n) break; /* i sees nothing: its outputs stay zero, for all heads */
        for (int64_t j = 0; j < n; j++) row[j] = hidden[j] ? HIDDEN : row[j];
      }
      softmax(row, n);
      memcpy(a->probability + ((h * a->B + b) * Q + i) * N, row, (size_t)n * sizeof(float));
      float *out = a->out + (asking * H + h) * d;
      for (int64_t k = 0; k < d; k++) out[k] = dot(row, values + (h * d + k) * s, n);
    }
  }
  free(memory);
  return 0;
}

/* ----------------------------------------------------------------------------------------------- backward */

/* The gradients of COLUMNS or fewer columns k of one query row and of the table, for one group of heads. */
static inline void column_gradients(const heads_t *query, const heads_t *table, const int32_t *index,
                                    const heads_t *by_node, int64_t n, int64_t row_size, int64_t step,
                                    const int n_columns, heads_t *grad_query, heads_t *grad_table) {
  heads_t sum[COLUMNS] = {0}, q[COLUMNS];
  for (int k = 0; k < n_columns; k++) q[k] = query[k * step];
  for (int64_t j = 0; j < n; j++) {
    const int64_t place = index[j] * row_size;
    const heads_t gradient = by_node[j];
    for (int k = 0; k < n_columns; k++) {
      sum[k] += gradient * table[place + k * step];
      grad_table[place + k * step] += gradient * q[k];
    }
  }
  for (int k = 0; k < n_columns; k++) grad_query[k * step] = sum[k];
}

/* Gradients of the position term for one query row, given grad_score[h][j] for all heads. */
static void position_gradients(const Attention *a, int64_t asking, int64_t n, const float *grad_score,
                               heads_t *by_node, float *grad_table) {
  const int64_t d = a->d, n_groups = in_groups(a->H) / HEADS, s = stride(n), row_size = d * n_groups;
  const int32_t *index = a->index + asking * a->N;
  for (int64_t g = 0; g < n_groups; g++) {
    const int64_t h0 = g * HEADS, n_heads = a->H - h0 < HEADS ? a->H - h0 : HEADS;
    memset(by_node, 0, (size_t)n * sizeof(heads_t));
    for (int64_t h = 0; h < n_heads; h++)
      for (int64_t j = 0; j < n; j++) ((float *)(by_node + j))[h] = grad_score[(h0 + h) * s + j];
    const heads_t *query = (const heads_t *)a->position + asking * row_size + g;
    const heads_t *table = (const heads_t *)a->table + g;
    heads_t *grad_query = (heads_t *)a->grad_position + asking * row_size + g, *of_table = (heads_t *)grad_table + g;
    int64_t k = 0;
    for (; k + COLUMNS <= d; k += COLUMNS)
      column_gradients(query + k * n_groups, table + k * n_groups, index, by_node, n, row_size, n_groups, COLUMNS,
                       grad_query + k * n_groups, of_table + k * n_groups);
    for (; k < d; k++)
      column_gradients(query + k * n_groups, table + k * n_groups, index, by_node, n, row_size, n_groups, 1,
                       grad_query + k * n_groups, of_table + k * n_groups);
  }
}

static int backward_task(const Attention *a, int64_t b, float *grad_table) {
  const int64_t H = a->H, Q = a->Q, N = a->N, d = a->d, n = a->n_nodes[b], s = stride(n), size = H * d * s;
  void *memory = calloc(in_bytes(4 * size + (in_groups(H) + 1) * s + HEADS * n), 1);
  if (!memory) return 1;
  float *keys = aligned(memory), *values = keys + size, *grad_keys = values + size, *grad_values = grad_keys + size;
  float *grad_score = grad_values + size, *probability = grad_score + in_groups(H) * s;
  heads_t *by_node = (heads_t *)(probability + s);
  for (int64_t h = 0; h < H; h++) {
    transpose(a->key + (h * a->B + b) * N * d, keys + h * d * s, n, d);
    transpose(a->value + (h * a->B + b) * N * d, values + h * d * s, n, d);
  }
  for (int64_t i = 0; i < a->n_queries[b]; i++) {
    const int64_t asking = b * Q + i;
    for (int64_t h = 0; h < H; h++) {
      const int64_t of_head = (h * a->B + b) * Q + i;
      memcpy(probability, a->probability + of_head * N, (size_t)n * sizeof(float)); /* its padding is 0 */
      const float *grad_out = a->grad_out + (asking * H + h) * d, *query = a->query + of_head * d;
      float *grad_query = a->grad_query + of_head * d, *row = grad_score + h * s;
      memset(row, 0, (size_t)s * sizeof(float));
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
    position_gradients(a, asking, n, grad_score, by_node, grad_table);
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
  int (*task)(const Attention *, int64_t task, float *grad_table);
  int64_t n_tasks;
  atomic_llong *next;
  float *grad_table; /* private to a worker: rows of the table are shared between pairs */
  int failed;
} Worker;

static void *work(void *argument) {
  Worker *worker = argument;
  for (int64_t task; (task = atomic_fetch_add(worker->next, 1)) < worker->n_tasks;)
    worker->failed |= worker->task(worker->attention, task, worker->grad_table);
  return NULL;
}

static int run(Worker *workers, int64_t n_threads) {
  int failed = 0;
  in_threads(work, workers, sizeof(Worker), n_threads);
  for (int64_t t = 0; t < n_threads; t++) failed |= workers[t].failed;
  return failed;
}

/* sizes = {H, B, Q, N, d, U, threads} in both functions. */
int span_attention_forward(const int64_t *sizes, const float *query, const float *position, const float *key,
                           const float *value, const float *table, const int32_t *index, const int64_t *n_queries,
                           const int64_t *n_nodes, const uint8_t *hidden, float *probability, float *out) {
  const Attention attention = {
      .H = sizes[0], .B = sizes[1], .Q = sizes[2], .N = sizes[3], .d = sizes[4], .U = sizes[5],
      .query = query, .position = position, .key = key, .value = value, .table = table, .index = index,
      .n_queries = n_queries, .n_nodes = n_nodes, .hidden = hidden, .probability = probability, .out = out};
  const int64_t n_tasks = attention.B * ((attention.Q + ROWS - 1) / ROWS);
  const int64_t n_threads = usable_threads(sizes[6], n_tasks);
  atomic_llong next = 0;
  Worker workers[MAX_THREADS];
  for (int64_t t = 0; t < n_threads; t++)
    workers[t] = (Worker){.attention = &attention, .task = forward_task, .n_tasks = n_tasks, .next = &next};
  return run(workers, n_threads);
}

int span_attention_backward(const int64_t *sizes, const float *query, const float *position, const float *key,
                            const float *value, const float *table, const int32_t *index, const int64_t *n_queries,
                            const int64_t *n_nodes, const float *probability, const float *grad_out,
                            float *grad_query, float *grad_position, float *grad_key, float *grad_value,
                            float *grad_table) {
  const Attention attention = {
      .H = sizes[0], .B = sizes[1], .Q = sizes[2], .N = sizes[3], .d = sizes[4], .U = sizes[5],
      .query = query, .position = position, .key = key, .value = value, .table = table, .index = index,
      .n_queries = n_queries, .n_nodes = n_nodes, .probability = (float *)probability, .grad_out = grad_out,
      .grad_query = grad_query, .grad_position = grad_position, .grad_key = grad_key, .grad_value = grad_value};
  const int64_t n_threads = usable_threads(sizes[6], attention.B);
  const int64_t n_floats = attention.U * attention.d * in_groups(attention.H);
  atomic_llong next = 0;
  Worker workers[MAX_THREADS];
  int failed = 0;
  for (int64_t t = 0; t < n_threads; t++) {
    float *own = t ? calloc((size_t)stride(n_floats), sizeof(float)) : grad_table;
    workers[t] = (Worker){.attention = &attention, .task = backward_task, .n_tasks = attention.B, .next = &next,
                          .grad_table = own};
    failed |= !own;
  }
  if (!failed) failed = run(workers, n_threads);
  for (int64_t t = 1; t < n_threads; t++) {
    if (!failed)
      for (int64_t k = 0; k < n_floats; k++) grad_table[k] += workers[t].grad_table[k];
    free(workers[t].grad_table);
  }
  return failed;
}
