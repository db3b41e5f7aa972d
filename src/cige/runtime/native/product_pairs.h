/* A block of product_narrow.h for instructions that multiply small matrices (ARM's SMMLA and BFMMLA): two rows' groups
   of 64 bits with those of two outputs, which gives a square of four sums.

   Two rows of x stand together, [n_groups][2] groups. The weights of a panel stand as for other instructions, and a
   vector of them holds the groups of two outputs. */

#define SQUARES (PANEL / 2)

/* Rows of x as groups; behind an odd last row stands one of zeros. */
static TARGET void narrow_pairs(group_t *groups, Factors *factors, const float *x, int64_t x_step, int64_t rows,
                                int64_t n, const Linear *linear) {
  group_t row[NARROW_DEPTH / GROUP];
  const int64_t n_groups = GROUPS(n);
  for (int64_t r = 0; r < rows; r++) {
    group_t *to = groups + r / 2 * 2 * (NARROW_DEPTH / GROUP) + r % 2;
    factors[r] = narrow(row, x + r * x_step, n, linear);
    for (int64_t k = 0; k < n_groups; k++) to[2 * k] = row[k];
    if (r + 1 == rows && rows % 2)
      for (int64_t k = 0; k < n_groups; k++) to[2 * k + 1] = 0;
  }
}

static inline sums_t first_row(const sums_t *square) { /* of two squares that stand side by side */
  return (sums_t)vzip1q_s64((int64x2_t)square[0], (int64x2_t)square[1]);
}

static inline sums_t second_row(const sums_t *square) {
  return (sums_t)vzip2q_s64((int64x2_t)square[0], (int64x2_t)square[1]);
}

INLINE void block(const int rows, const Block *b) {
  const int pairs = (rows + 1) / 2;
  sums_t sum[(AT_ONCE + 1) / 2][SQUARES];
UNROLL(6)
  for (int q = 0; q < pairs; q++)
UNROLL(4)
    for (int s = 0; s < SQUARES; s++) sum[q][s] = (sums_t){0};
  const group_t *x = b->x, *panel = b->panel;
  for (int64_t k = 0; k < b->n_groups; k++, panel += PANEL, x += 2) {
    ints_t group[(AT_ONCE + 1) / 2];
UNROLL(6)
    for (int q = 0; q < pairs; q++) group[q] = *(const ints_t *)(x + q * 2 * (NARROW_DEPTH / GROUP));
UNROLL(4)
    for (int s = 0; s < SQUARES; s++) {
      const ints_t weights = *(const ints_t *)(panel + 2 * s);
UNROLL(6)
      for (int q = 0; q < pairs; q++) sum[q][s] = add_squares(sum[q][s], weights, group[q]);
    }
  }
UNROLL(12)
  for (int r = 0; r < rows; r++) {
    sums_t sums[2];
UNROLL(2)
    for (int v = 0; v < 2; v++) {
      const sums_t *square = sum[r / 2] + 2 * v;
      sums[v] = r % 2 ? second_row(square) : first_row(square);
    }
    finish_row(b, r, 0, sums);
  }
}
