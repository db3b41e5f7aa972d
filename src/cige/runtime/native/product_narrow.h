/* product() where a number takes less than 32 bits: the loops that product_bf16.c, product_int8.c and product_avxvnni.c
   share.

   The instructions multiply what fills 32 bits with as many weights and add all of it to a sum: a *group*, GROUP
   neighbouring numbers of a row. The weights of a panel stand as [n_groups][PANEL] groups. Rows of x are narrowed here,
   some rows and NARROW_DEPTH numbers at a time, and stay in the first cache while all panels read them.

   Whoever includes this defines
     PRODUCT   the name of the product
     GROUP     how many numbers a group has
     TARGET    the attribute of functions that use the instructions
     sums_t    a vector of sums
     Factors   what is to be known of a narrowed row besides its groups
     narrow(groups, x, n, linear) -> Factors   a row's groups; a last one that is not full is filled up with zeros
     first_sums(factors) -> sums_t
     add_group(sums, weights, groups) -> sums_t
     finished(sums, factors, start, scales) -> vector_t   the result, added to `start`
   and may define
     AT_ONCE         rows whose sums stay in registers, if these are not ROWS
     ADD_LANE(sums, weights, groups, lane)   add_group with one of four groups, so that these are one load
     SPARSE_PANELS   panels at a time where most groups may be zeros, with the loops of product_sparse.h
     PAIRS           groups fill 64 bits, and in place of first_sums and add_group there is
     add_squares(sums, weights, groups) -> sums_t   groups of two rows with those of two outputs; see product_pairs.h */

#include "product.h"

#define INLINE static inline TARGET __attribute__((always_inline))
#define NARROW_DEPTH (2 * DEPTH) /* numbers of a row of x at once */
#define NARROW_ROWS (4 * ROWS)
#ifndef AT_ONCE
#define AT_ONCE ROWS
#endif
#define GROUPS(N) (((N) + GROUP - 1) / GROUP)
#ifdef PAIRS
typedef uint64_t group_t;
#define TOGETHER 2 /* rows whose groups stand side by side */
#else
typedef uint32_t group_t;
#define TOGETHER 1
#endif

typedef struct {
  const group_t *x, *panel; /* x: NARROW_DEPTH / GROUP groups lie between rows */
  const Factors *factors;    /* of the rows */
  const float *start, *scales; /* start: of the results, or NULL where y has them */
  float *y;
  int64_t y_step, n_groups;
  int relu;
} Block;

/* The results of a row and a panel of the block. */
INLINE void finish_row(const Block *b, int64_t row, int64_t panel, const sums_t *sums) {
UNROLL(2)
  for (int v = 0; v < 2; v++) {
    const int64_t at = panel * PANEL + v * WIDTH;
    vector_t *to = vectors(b->y + row * b->y_step + at);
    const vector_t zero = {0}, start = b->start ? *const_vectors(b->start + at) : *to;
    const vector_t y = finished(sums[v], b->factors + row, start, b->scales ? b->scales + at : NULL);
    *to = b->relu ? higher(y, zero) : y;
  }
}

#ifdef PAIRS
#include "product_pairs.h"
#else
INLINE void block(const int rows, const Block *b) {
  sums_t sum[AT_ONCE][2];
UNROLL(12)
  for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = first_sums(b->factors + r);
  const group_t *panel = b->panel;
  int64_t k = 0;
#ifdef ADD_LANE
#define FOURTH(LANE)                                                                             \
  {                                                                                              \
    const ints_t left = *(const ints_t *)panel, right = *(const ints_t *)(panel + WIDTH);        \
    panel += PANEL;                                                                              \
    UNROLL(12) for (int r = 0; r < rows; r++) {                                    \
      sum[r][0] = ADD_LANE(sum[r][0], left, four[r], LANE);                                      \
      sum[r][1] = ADD_LANE(sum[r][1], right, four[r], LANE);                                     \
    }                                                                                            \
  }
  for (; k + 4 <= b->n_groups; k += 4) {
    ints_t four[AT_ONCE];
UNROLL(12)
    for (int r = 0; r < rows; r++) four[r] = *(const ints_t *)(b->x + r * (NARROW_DEPTH / GROUP) + k);
    FOURTH(0) FOURTH(1) FOURTH(2) FOURTH(3)
  }
#endif
  for (; k < b->n_groups; k++, panel += PANEL) {
    const ints_t left = *(const ints_t *)panel, right = *(const ints_t *)(panel + WIDTH);
UNROLL(12)
    for (int r = 0; r < rows; r++) {
      const ints_t group = (ints_t){0} + (int32_t)b->x[r * (NARROW_DEPTH / GROUP) + k];
      sum[r][0] = add_group(sum[r][0], left, group);
      sum[r][1] = add_group(sum[r][1], right, group);
    }
  }
UNROLL(12)
  for (int r = 0; r < rows; r++) finish_row(b, r, 0, sum[r]);
}
#endif

#if defined(__aarch64__) && !defined(__clang__)
__attribute__((noinline)) /* where all of it is one function, GCC 12 moves sums from register to register */
#endif
static TARGET void rows_of_block(int64_t rows, const Block *b) {
  switch (rows) {
    case 1: block(1, b); break;
    case 2: block(2, b); break;
    case 3: block(3, b); break;
    case 4: block(4, b); break;
#if AT_ONCE > 4
    case 5: block(5, b); break;
    case 6: block(6, b); break;
#endif
#if AT_ONCE > 6
    case 7: block(7, b); break;
    case 8: block(8, b); break;
#endif
#if AT_ONCE > 8
    case 9: block(9, b); break;
    case 10: block(10, b); break;
    case 11: block(11, b); break;
    case 12: block(12, b); break;
#endif
  }
}

#ifdef SPARSE_PANELS
#include "product_sparse.h"
#endif

/* How many to take of `left` in `parts` parts of nearly the same size. */
static inline int64_t share_of(int64_t left, int64_t parts) { return (left + parts - 1) / parts; }

TARGET void PRODUCT(const Linear *linear, int64_t first, int64_t last, const float *x, int64_t x_step, int64_t m,
                    float *y, int64_t y_step, int mode) {
  group_t groups[NARROW_ROWS * (NARROW_DEPTH / GROUP)] __attribute__((aligned(64)));
  Factors factors[NARROW_ROWS];
  const int64_t n_in = linear->n_in, n_groups = GROUPS(n_in);
  int64_t rows;
  for (int64_t parts = share_of(m, NARROW_ROWS); parts > 0; parts--, m -= rows, x += rows * x_step, y += rows * y_step) {
    rows = share_of(m, parts);
    for (int64_t k = 0; k < n_in || k == 0; k += NARROW_DEPTH) {
      const int64_t n = n_in - k < NARROW_DEPTH ? n_in - k : NARROW_DEPTH;
      const int is_first = k == 0 && !(mode & ADD), is_last = k + NARROW_DEPTH >= n_in;
#ifdef PAIRS
      narrow_pairs(groups, factors, x + k, x_step, rows, n, linear);
#else
      for (int64_t r = 0; r < rows; r++)
        factors[r] = narrow(groups + r * (NARROW_DEPTH / GROUP), x + r * x_step + k, n, linear);
#endif
      Block b = {.panel = (const group_t *)linear->panels + (first * n_groups + k / GROUP) * PANEL, .y_step = y_step,
                 .start = is_first ? linear->bias + first * PANEL : NULL, .n_groups = GROUPS(n),
                 .scales = linear->scales ? linear->scales + first * PANEL : NULL, .relu = is_last && (mode & RELU)};
#ifdef SPARSE_PANELS
      if (mode & SPARSE) {
        Active active;
        list_active(&active, groups, rows, b.n_groups);
        if (4 * active.n_all < 3 * rows * b.n_groups) {
          b.x = groups, b.factors = factors, b.y = y;
          sparse_rows(b, rows, last - first, n_groups * PANEL, &active);
          continue;
        }
      }
#endif
      for (int64_t p = first; p < last; p++, b.panel += n_groups * PANEL) {
        for (int64_t blocks = share_of(rows, AT_ONCE), done = 0, now; blocks > 0; blocks--, done += now) {
          now = share_of(share_of(rows - done, TOGETHER), blocks) * TOGETHER;
          if (TOGETHER > 1 && now > rows - done) now = rows - done;
          b.x = groups + done * (NARROW_DEPTH / GROUP), b.factors = factors + done;
          b.y = y + (p - first) * PANEL + done * y_step;
          rows_of_block(now, &b);
        }
        if (b.start) b.start += PANEL;
        if (b.scales) b.scales += PANEL;
      }
    }
  }
}
