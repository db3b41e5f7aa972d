/* The kernels of training: FLAT's attention, softmax with dropout, and the softmax of a vocabulary, with gradients. */

#include "check.h"

typedef int (*Forward)(const int64_t *, const float *, const float *, const float *, const float *, const float *,
                       const int32_t *, const int64_t *, const int64_t *, const uint8_t *, float *, float *);
typedef int (*Backward)(const int64_t *, const float *, const float *, const float *, const float *, const float *,
                        const int32_t *, const int64_t *, const int64_t *, const float *, const float *, float *,
                        float *, float *, float *, float *);
typedef int (*Softmax)(const int64_t *, double, void *, void *);
typedef int (*SoftmaxBackward)(const int64_t *, double, const void *, const void *, const void *, void *);
typedef int (*Vocabulary)(const int64_t *, void *, const int64_t *, float *, uint8_t *, float *);

enum { H = 3, B = 2, N = 11, WIDTH = 9, P = 8, U = 6, THREADS = 2 };

static double *doubles(int64_t n) { return room((size_t)n, sizeof(double)); }

static void check_attention(void *library) {
  const Forward forward = (Forward)function_of(library, "span_attention_forward");
  const Backward backward = (Backward)function_of(library, "span_attention_backward");
  uint64_t state = 6;
  const int64_t sizes[] = {H, B, N, N, WIDTH, U, THREADS}, n_rows = H * B * N, n_nodes[] = {N, 7};
  float *query = numbers(n_rows * WIDTH, 1, &state), *key = numbers(n_rows * WIDTH, 1, &state);
  float *value = numbers(n_rows * WIDTH, 1, &state), *grad_out = numbers(n_rows * WIDTH, 1, &state);
  float *position = numbers(B * N * WIDTH * P, 1, &state), *table = numbers(U * WIDTH * P, 1, &state);
  for (int64_t k = 0; k < B * N * WIDTH * P; k++) position[k] = k % P < H ? position[k] : 0;
  for (int64_t k = 0; k < U * WIDTH * P; k++) table[k] = k % P < H ? table[k] : 0;
  int32_t index[B * N * N];
  for (int k = 0; k < B * N * N; k++) index[k] = k * 5 % U;
  float *probability = floats(n_rows * N), *out = floats(n_rows * WIDTH);
  int status = forward(sizes, query, position, key, value, table, index, n_nodes, n_nodes, NULL, probability, out);
  expect("attention", status, 0);
  float *g_query = floats(n_rows * WIDTH), *g_position = floats(B * N * WIDTH * P), *g_key = floats(n_rows * WIDTH);
  float *g_value = floats(n_rows * WIDTH), *g_table = floats(U * WIDTH * P);
  status = backward(sizes, query, position, key, value, table, index, n_nodes, n_nodes, probability, grad_out, g_query,
                    g_position, g_key, g_value, g_table);
  expect("attention's gradients", status, 0);
  double *w_out = doubles(n_rows * WIDTH), *w_query = doubles(n_rows * WIDTH), *w_key = doubles(n_rows * WIDTH);
  double *w_value = doubles(n_rows * WIDTH), *w_position = doubles(B * N * WIDTH * P);
  double *w_table = doubles(U * WIDTH * P);
  for (int64_t h = 0; h < H; h++)
    for (int64_t b = 0; b < B; b++)
      for (int64_t i = 0; i < n_nodes[b]; i++) {
        const int64_t row = (h * B + b) * N + i, to = ((b * N + i) * H + h) * WIDTH, n = n_nodes[b];
        double p[N], grad[N], top = -INFINITY, total = 0, mean = 0;
        for (int64_t j = 0; j < n; j++) {
          p[j] = 0;
          for (int64_t k = 0; k < WIDTH; k++) {
            const float of_table = table[(index[(b * N + i) * N + j] * WIDTH + k) * P + h];
            p[j] += query[row * WIDTH + k] * key[((h * B + b) * N + j) * WIDTH + k] +
                    position[((b * N + i) * WIDTH + k) * P + h] * of_table;
          }
          top = p[j] > top ? p[j] : top;
        }
        for (int64_t j = 0; j < n; j++) total += p[j] = exp(p[j] - top);
        for (int64_t j = 0; j < n; j++) {
          p[j] /= total, grad[j] = 0;
          for (int64_t k = 0; k < WIDTH; k++) {
            const int64_t at = ((h * B + b) * N + j) * WIDTH + k;
            w_out[to + k] += p[j] * value[at];
            grad[j] += grad_out[to + k] * value[at];
            w_value[at] += p[j] * grad_out[to + k];
          }
          mean += p[j] * grad[j];
        }
        for (int64_t j = 0; j < n; j++)
          for (int64_t k = 0; k < WIDTH; k++) {
            const int64_t at = ((h * B + b) * N + j) * WIDTH + k, of_pair = ((b * N + i) * WIDTH + k) * P + h;
            const int64_t of_table = (index[(b * N + i) * N + j] * WIDTH + k) * P + h;
            const double g = p[j] * (grad[j] - mean);
            w_query[row * WIDTH + k] += g * key[at];
            w_key[at] += g * query[row * WIDTH + k];
            w_position[of_pair] += g * table[of_table];
            w_table[of_table] += g * position[of_pair];
          }
      }
  compare("attention's sums", out, w_out, n_rows * WIDTH, 1e-5);
  compare("gradient of queries", g_query, w_query, n_rows * WIDTH, 1e-4);
  compare("gradient of keys", g_key, w_key, n_rows * WIDTH, 1e-4);
  compare("gradient of values", g_value, w_value, n_rows * WIDTH, 1e-4);
  compare("gradient of positions", g_position, w_position, B * N * WIDTH * P, 1e-4);
  compare("gradient of the table", g_table, w_table, U * WIDTH * P, 1e-4);
}

static void check_dropout(void *library) {
  const Softmax forward = (Softmax)function_of(library, "softmax_dropout_forward");
  const SoftmaxBackward backward = (SoftmaxBackward)function_of(library, "softmax_dropout_backward");
  enum { ROWS = 40, COLUMNS = 37 };
  const int64_t sizes[] = {ROWS, COLUMNS, 0, THREADS, 12345}, n = ROWS * COLUMNS;
  uint64_t state = 7;
  float *x = numbers(n, 4, &state), *dropped = floats(n), *from = numbers(n, 1, &state), *grad = floats(n);
  double *share = doubles(n), *wanted = doubles(n);
  for (int64_t r = 0; r < ROWS; r++) {
    double total = 0;
    for (int64_t j = 0; j < COLUMNS; j++) total += exp(x[r * COLUMNS + j]);
    for (int64_t j = 0; j < COLUMNS; j++) share[r * COLUMNS + j] = exp(x[r * COLUMNS + j]) / total;
  }
  expect("softmax", forward(sizes, 0.3, x, dropped), 0);
  compare("shares", x, share, n, 1e-6);
  int64_t n_dropped = 0;
  uint32_t places = 0; /* the same on every machine: chance is whole numbers */
  for (int64_t k = 0; k < n; k++) {
    n_dropped += dropped[k] == 0;
    places = places * 31 + (dropped[k] == 0);
    wanted[k] = dropped[k] == 0 ? 0 : share[k] / 0.7;
  }
  compare("shares after dropout", dropped, wanted, n, 1e-6);
  printf("  dropped: %lld, %08x\n", (long long)n_dropped, (unsigned)places);
  expect("softmax's gradient", backward(sizes, 0.3, x, dropped, from, grad), 0);
  for (int64_t r = 0; r < ROWS; r++) {
    double mean = 0;
    for (int64_t k = r * COLUMNS; k < (r + 1) * COLUMNS; k++) mean += dropped[k] != 0 ? from[k] / 0.7 * share[k] : 0;
    for (int64_t k = r * COLUMNS; k < (r + 1) * COLUMNS; k++)
      wanted[k] = share[k] * ((dropped[k] != 0 ? from[k] / 0.7 : 0) - mean);
  }
  compare("gradient of scores", grad, wanted, n, 1e-6);
}

static void check_vocabulary(void *library) {
  const Vocabulary gradient = (Vocabulary)function_of(library, "vocabulary_gradient");
  enum { S = 5, V = 2500 };
  const int64_t sizes[] = {S, V, 0, THREADS}, targets[] = {0, 17, 1024, 2499, 5};
  uint64_t state = 8;
  float *scores = numbers(S * V, 3, &state), loss[S], *bias = floats(V);
  double *wanted = doubles(S * V), *of_loss = doubles(S), *of_bias = doubles(V);
  uint8_t right[S];
  scores[4 * V + 5] = 10;
  for (int64_t r = 0; r < S; r++) {
    double total = 0;
    for (int64_t j = 0; j < V; j++) total += exp(scores[r * V + j]);
    of_loss[r] = log(total) - scores[r * V + targets[r]];
    for (int64_t j = 0; j < V; j++) {
      wanted[r * V + j] = exp(scores[r * V + j]) / total - (j == targets[r]);
      of_bias[j] += wanted[r * V + j];
    }
  }
  expect("vocabulary", gradient(sizes, scores, targets, loss, right, bias), 0);
  compare("losses", loss, of_loss, S, 1e-4);
  compare("gradient of the vocabulary", scores, wanted, S * V, 1e-5);
  compare("gradient of its bias", bias, of_bias, V, 1e-5);
  expect("a highest score", right[4], 1);
}

void check_training(void *library) {
  check_attention(library);
  check_dropout(library);
  check_vocabulary(library);
}
