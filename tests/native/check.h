/* What the checks of the compiled libraries share: opening them, numbers that are the same everywhere, and comparing.
 */

#ifndef CIGE_CHECK_H
#define CIGE_CHECK_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*Function)(void);

extern int n_wrong;

/* Both end the program where there is no such library or function. */
void *open_library(const char *folder, const char *module);
Function function_of(void *library, const char *name);

static inline void *room(size_t n, size_t size) { /* zeros, with space behind them that vectors may read */
  void *memory = calloc(n + 256, size);
  if (!memory) exit(3);
  return (void *)(((uintptr_t)memory + 63) & ~(uintptr_t)63); /* it stays until the program ends */
}

static inline float *floats(int64_t n) { return room((size_t)n, sizeof(float)); }

/* In (-1, 1), from a generator whose state is the caller's. */
static inline float number(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (float)((int32_t)(*state >> 32)) / 2147483648.0f;
}

static inline float *numbers(int64_t n, float scale, uint64_t *state) {
  float *x = floats(n);
  for (int64_t k = 0; k < n; k++) x[k] = scale * number(state);
  return x;
}

/* Says how far the numbers of `got` are from those of `wanted`, and notes where it is further than `least`. */
static inline void compare(const char *what, const float *got, const double *wanted, int64_t n, double least) {
  double furthest = 0;
  for (int64_t k = 0; k < n; k++) {
    const double off = fabs((double)got[k] - wanted[k]);
    if (!(off <= furthest)) furthest = off; /* a NaN too */
  }
  const int is_right = furthest <= least;
  printf("  %s: %s\n", what, is_right ? "right" : "WRONG");
  if (!is_right) fprintf(stderr, "%s: off by %g, expected at most %g\n", what, furthest, least);
  n_wrong += !is_right;
}

static inline void expect(const char *what, int64_t got, int64_t wanted) {
  printf("  %s: %lld\n", what, (long long)got);
  if (got != wanted) fprintf(stderr, "%s: %lld, expected %lld\n", what, (long long)got, (long long)wanted);
  n_wrong += got != wanted;
}

static inline uint32_t checksum(const void *bytes, size_t n) { /* FNV-1a */
  uint32_t sum = 2166136261u;
  for (size_t k = 0; k < n; k++) sum = (sum ^ ((const uint8_t *)bytes)[k]) * 16777619u;
  return sum;
}

void check_product(void *library);
void check_lstm(void *library);
void check_chain(void *library);
void check_flat(void *library);
void check_rows(void *library);
void check_training(void *library);
void check_words(void);

#endif
