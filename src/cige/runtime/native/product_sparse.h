/* The loops of product_narrow.h for rows in which many groups are zeros, as ReLU leaves them: only the other groups are
   multiplied. Zeros add nothing to whole numbers, so the results are the same to the last bit.

   The groups of a row that are not zeros are listed once. Then the rows are multiplied one after the other with
   SPARSE_PANELS panels, which stay in the first cache meanwhile, and with the next panels. This is for AVX2, whose
   groups are pairs: in the bundled model, 63% of them are zeros. Of groups of four, as those of AVX512-VNNI are, 41% are
   zeros, and leaving them out takes as long as multiplying all. */

#define NARROW_GROUPS (NARROW_DEPTH / GROUP)

typedef struct {
  uint16_t group[NARROW_ROWS][NARROW_GROUPS + WIDTH]; /* the places of those that are not 0, by row; see store_active */
  int64_t n[NARROW_ROWS], n_all;
} Active;

/* For each value of a byte: which of its bits are set, one number per byte, the lowest first. */
#define BIT_AT(BYTE, N) ((BYTE) >> (N) & 1 ? (uint64_t)(N) << 8 * __builtin_popcount((BYTE) & ((1 << (N)) - 1)) : 0)
#define LOW_BITS(B) BIT_AT(B, 0) | BIT_AT(B, 1) | BIT_AT(B, 2) | BIT_AT(B, 3)
#define BITS(B) (LOW_BITS(B) | BIT_AT(B, 4) | BIT_AT(B, 5) | BIT_AT(B, 6) | BIT_AT(B, 7))
#define FOUR(B) BITS(B), BITS((B) + 1), BITS((B) + 2), BITS((B) + 3)
#define SIXTEEN(B) FOUR(B), FOUR((B) + 4), FOUR((B) + 8), FOUR((B) + 12)
#define SIXTY_FOUR(B) SIXTEEN(B), SIXTEEN((B) + 16), SIXTEEN((B) + 32), SIXTEEN((B) + 48)
static const uint64_t bits_of[256] = {SIXTY_FOUR(0), SIXTY_FOUR(64), SIXTY_FOUR(128), SIXTY_FOUR(192)};

/* Lists which groups of a vector are not 0, counted from k, and returns their number; WIDTH numbers are written. */
INLINE int64_t store_active(uint16_t *to, ints_t groups, int64_t k) {
  const int active = 255 & ~_mm256_movemask_ps((__m256)(groups == 0));
  const __m128i at = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(bits_of + active)));
  _mm_storeu_si128((__m128i *)to, _mm_add_epi16(at, _mm_set1_epi16((int16_t)k)));
  return __builtin_popcount((unsigned)active);
}

static TARGET void list_active(Active *active, const group_t *groups, int64_t rows, int64_t n_groups) {
  active->n_all = 0;
  for (int64_t r = 0; r < rows; r++, groups += NARROW_GROUPS) {
    uint16_t *to = active->group[r];
    int64_t n = 0;
    for (int64_t k = 0; k < n_groups; k += WIDTH) n += store_active(to + n, *(const ints_t *)(groups + k), k);
    while (n > 0 && to[n - 1] >= n_groups) n--; /* zeros behind the row, times a factor that may be infinite */
    active->n[r] = n;
    active->n_all += n;
  }
}

INLINE void sparse_row(const int n_panels, const Block *b, int64_t panel_step, const uint16_t *active,
                       int64_t n_active) {
  sums_t sum[SPARSE_PANELS][2];
  const group_t *panel[SPARSE_PANELS], *x = b->x;
UNROLL(2)
  for (int p = 0; p < n_panels; p++) {
    sum[p][0] = sum[p][1] = first_sums(b->factors);
    panel[p] = b->panel + p * panel_step;
  }
  for (int64_t i = 0; i < n_active; i++) {
    const int64_t k = active[i];
    const ints_t group = (ints_t){0} + (int32_t)x[k];
UNROLL(2)
    for (int p = 0; p < n_panels; p++) {
      sum[p][0] = add_group(sum[p][0], *(const ints_t *)(panel[p] + k * PANEL), group);
      sum[p][1] = add_group(sum[p][1], *(const ints_t *)(panel[p] + k * PANEL + WIDTH), group);
    }
  }
UNROLL(2)
  for (int p = 0; p < n_panels; p++) finish_row(b, 0, p, sum[p]);
}

/* Rows of one block and all its panels, panel_step groups apart. */
static TARGET void sparse_rows(Block b, int64_t rows, int64_t n_panels, int64_t panel_step, const Active *active) {
  for (int64_t p = 0; p < n_panels; p += SPARSE_PANELS) {
    Block own = b;
    for (int64_t r = 0; r < rows; r++) {
      if (n_panels - p >= SPARSE_PANELS)
        sparse_row(SPARSE_PANELS, &own, panel_step, active->group[r], active->n[r]);
      else
        sparse_row(1, &own, panel_step, active->group[r], active->n[r]);
      own.x += NARROW_GROUPS, own.factors++, own.y += b.y_step;
    }
    b.panel += SPARSE_PANELS * panel_step, b.y += SPARSE_PANELS * PANEL;
    if (b.start) b.start += SPARSE_PANELS * PANEL;
    if (b.scales) b.scales += SPARSE_PANELS * PANEL;
  }
}
