#include "product.h"

#include "../../nn/native/maxima.h"

#define INLINE static inline __attribute__((always_inline))

typedef struct {
  const float *x, *panel, *start; /* start: of the sums, or NULL where y has them */
  float *y;
  int64_t x_step, y_step, n;
  int relu;
} Block;

INLINE void block(const int rows, const Block *b) {
  vector_t sum[ROWS][2];
  const float *x = b->x;
  const int64_t x_step = b->x_step;
UNROLL(12)
  for (int r = 0; r < rows; r++) {
    const vector_t *from = const_vectors(b->start ? b->start : b->y + r * b->y_step);
    sum[r][0] = from[0], sum[r][1] = from[1];
  }
  const vector_t *panel = const_vectors(b->panel);
  int64_t k = 0;
#if defined(__aarch64__) /* NEON multiplies by a lane of a vector, so four numbers of a row are one load */
  for (; k + WIDTH <= b->n; k += WIDTH) {
    vector_t four[ROWS];
UNROLL(8)
    for (int r = 0; r < rows; r++) four[r] = *const_vectors(x + r * x_step + k);
UNROLL(4)
    for (int l = 0; l < WIDTH; l++, panel += 2) {
      const vector_t left = panel[0], right = panel[1];
UNROLL(8)
      for (int r = 0; r < rows; r++) {
        sum[r][0] += left * four[r][l];
        sum[r][1] += right * four[r][l];
      }
    }
  }
#endif
  for (; k < b->n; k++, panel += 2) {
    const vector_t left = panel[0], right = panel[1];
UNROLL(12)
    for (int r = 0; r < rows; r++) {
      const float factor = x[r * x_step + k];
      sum[r][0] += left * factor;
      sum[r][1] += right * factor;
    }
  }
UNROLL(12)
  for (int r = 0; r < rows; r++) {
    vector_t *to = vectors(b->y + r * b->y_step);
    const vector_t zero = {0};
    to[0] = b->relu ? higher(sum[r][0], zero) : sum[r][0];
    to[1] = b->relu ? higher(sum[r][1], zero) : sum[r][1];
  }
}

static void rows_of_block(int64_t rows, const Block *b) {
  switch (rows) {
    case 1: block(1, b); break;
    case 2: block(2, b); break;
    case 3: block(3, b); break;
    case 4: block(4, b); break;
    case 5: block(5, b); break;
    case 6: block(6, b); break;
#if ROWS > 6
    case 7: block(7, b); break;
    case 8: block(8, b); break;
#endif
#if ROWS > 8
    case 9: block(9, b); break;
    case 10: block(10, b); break;
    case 11: block(11, b); break;
    case 12: block(12, b); break;
#endif
  }
}

void product(const Linear *linear, int64_t first, int64_t last, const float *x, int64_t x_step, int64_t m, float *y,
             int64_t y_step, int mode) {
  if (linear->precision == BFLOAT16) return product_bf16(linear, first, last, x, x_step, m, y, y_step, mode);
  if (linear->precision == INT8 && has_avxvnni())
    return product_avxvnni(linear, first, last, x, x_step, m, y, y_step, mode);
  if (linear->precision >= INT8) return product_int8(linear, first, last, x, x_step, m, y, y_step, mode);
  const int64_t n_in = linear->n_in, n_blocks = (m + ROWS - 1) / ROWS;
  for (int64_t p = first; p < last; p++) {
    float *column = y + (p - first) * PANEL;
    for (int64_t k = 0; k < n_in || k == 0; k += DEPTH) {
      const int64_t n = n_in - k < DEPTH ? n_in - k : DEPTH;
      const int is_first = k == 0 && !(mode & ADD), is_last = k + DEPTH >= n_in;
      Block b = {.panel = (const float *)linear->panels + (p * n_in + k) * PANEL, .x_step = x_step, .y_step = y_step,
                 .start = is_first ? linear->bias + p * PANEL : NULL, .n = n, .relu = is_last && (mode & RELU)};
      for (int64_t t = 0, done = 0; t < n_blocks; t++) { /* blocks of nearly the same number of rows */
        const int64_t rows = (m - done + n_blocks - t - 1) / (n_blocks - t);
        b.x = x + done * x_step + k, b.y = column + done * y_step;
        rows_of_block(rows, &b);
        done += rows;
      }
    }
  }
}

int64_t panel_width(void) { return PANEL; }

int64_t group_bytes(void) {
#if defined(__ARM_FEATURE_MATMUL_INT8) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  return 8;
#else
  return 4;
#endif
}

int64_t has_precision(int64_t precision) {
  return precision == FLOAT32 || (precision == BFLOAT16 && has_bf16()) || (precision == INT8 && has_int8()) ||
         (precision == INT16 && whole_bytes(INT16));
}

void one_product(const Linear *linear, const float *x, int64_t m, float *y, int64_t mode) {
  product(linear, 0, linear->n_panels, x, linear->n_in, m, y, linear->n_panels * PANEL, (int)mode);
}
