/* Products of rows with weights that were packed once: y = x W^T + bias.

   The columns of W^T stand in panels of PANEL, two vectors, one row of a panel behind the other: a panel is read from
   its beginning to its end for every block of ROWS rows of x, whose sums stay in registers meanwhile. */

#ifndef CIGE_PRODUCT_H
#define CIGE_PRODUCT_H

#include "../../nn/native/rows.h"
#include "layout.h"

#define PANEL (2 * WIDTH)
#if WIDTH == 16
#define ROWS 12 /* of 32 registers, 24 hold sums */
#elif defined(__aarch64__)
#define ROWS 8 /* of 32 registers, 16 do, and 8 hold a vector of each row */
#else
#define ROWS 6 /* of 16 registers, 12 do */
#endif
#define DEPTH 256 /* numbers of a row of x at once, so that a part of a panel stays in the first cache */

enum { FLOAT32 = 0, BFLOAT16 = 1, INT8 = 2, INT16 = 3 }; /* of weights and rows of x; see product_int8.c */

#define LINEAR(F, S)                                                                                                  \
  F(S, int64_t, n_in) F(S, int64_t, n_panels)                                                                         \
  F(S, const void *, panels)  /* float [n_panels][n_in][PANEL]; see product_narrow.h for the other forms */           \
  F(S, const float *, bias)   /* [n_panels * PANEL] */                                                                \
  F(S, int64_t, precision)                                                                                            \
  F(S, const float *, scales) /* [n_panels * PANEL]: what INT8 and INT16 weights are multiplied by; NULL otherwise */
DEFINE(Linear, LINEAR);

/* ADD: to what is in y, and no bias. SPARSE: most numbers of x may be 0, which changes no result. */
enum { PLAIN = 0, ADD = 1, RELU = 2, SPARSE = 4 };

/* Panels [first, last) of m rows; y has room for whole panels, x_step and y_step floats lie between rows. */
typedef void Product(const Linear *linear, int64_t first, int64_t last, const float *x, int64_t x_step, int64_t m,
                     float *y, int64_t y_step, int mode);
Product product;
Product product_bf16, product_int8, product_avxvnni; /* which product() calls */

/* For levels without the instructions of a product: it can be linked, and is never called. */
#define NO_PRODUCT(NAME)                                                                                               \
  void NAME(const Linear *linear, int64_t first, int64_t last, const float *x, int64_t x_step, int64_t m, float *y,    \
            int64_t y_step, int mode) {                                                                                \
    (void)linear, (void)first, (void)last, (void)x, (void)x_step, (void)m, (void)y, (void)y_step, (void)mode;          \
  }

/* Whether this processor has the instructions, and the compiler of this level knew them. */
int has_bf16(void);
int has_int8(void);
int has_avxvnni(void);
int64_t has_precision(int64_t precision);
int64_t panel_width(void);
int64_t whole_bytes(int64_t precision); /* of a number in panels of INT8 or INT16; 0 where there is none */
int64_t int8_offset(void); /* what is added to numbers of one byte */
int64_t group_bytes(void); /* of the numbers of a row that stand side by side in panels of less than 32 bits */

/* One product by itself, for tests, for measuring and for tables: y = x W^T + bias of m rows without gaps. */
void one_product(const Linear *linear, const float *x, int64_t m, float *y, int64_t mode);

#endif
