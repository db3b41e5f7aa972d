/* How probable spans are under a linear chain.

   Forward and backward scores are probabilities that are scaled by a power of two at every step, so a step takes no
   logarithm, and an exponential for each tag. In 64 bits a tag that is e^-700 less likely than the best one is lost, so
   where scores are as far apart as no trained model has them, sums are made of logarithms instead. */

#include <stdlib.h>

#include "marginals.h"

#define SUMS 4 /* that go on side by side, since each addition waits for the one before it */
#define LN2 0.6931471805599453
#define WIDE 100.0 /* differences of scores for logarithms, as nn/crf_numpy.py has it */

enum { OPEN, INSIDE, CLOSE, SINGLE, LEAVING = 3, PARTS = 4 }; /* of Chain's places: B, M or I, E, S */

/* e^x for x <= 0, to about 1e-15 of it (a Taylor series of e^r, |r| <= ln 2 / 2); 0 below -708. */
static inline doubles_t exp_of_doubles(doubles_t x) {
  const double rounder = 6755399441055744.0; /* 1.5 * 2^52 */
  const doubles_t shifted = x * 1.4426950408889634 + rounder, k = shifted - rounder;
  const doubles_t r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10;
  doubles_t power = r * (1.0 / 6227020800) + 1.0 / 479001600;
  power = power * r + 1.0 / 39916800;
  power = power * r + 1.0 / 3628800;
  power = power * r + 1.0 / 362880;
  power = power * r + 1.0 / 40320;
  power = power * r + 1.0 / 5040;
  power = power * r + 1.0 / 720;
  power = power * r + 1.0 / 120;
  power = power * r + 1.0 / 24;
  power = power * r + 1.0 / 6;
  power = power * r + 0.5;
  power = power * r * r + r + 1.0;
  const longs_t exponent = ((longs_t)shifted + 1023) << 52;
  const doubles_t result = power * (doubles_t)exponent;
  return (doubles_t)((longs_t)result & ~(x < -708.0));
}

/* The sum of what is at the other side of a block's transitions, each times its number. */
static inline void sum_of_block(const Transitions *side, int64_t block, const double *other, double *to) {
  doubles_t sum[SUMS][VECTORS] = {{{0}}};
  int64_t e = side->first[block], end = side->first[block + 1];
  for (; e + SUMS <= end; e += SUMS) {
    const doubles_t *numbers = (const doubles_t *)(side->numbers + e * BLOCK);
    for (int s = 0; s < SUMS; s++)
      for (int v = 0; v < VECTORS; v++) sum[s][v] += numbers[s * VECTORS + v] * other[side->place[e + s]];
  }
  for (; e < end; e++)
    for (int v = 0; v < VECTORS; v++)
      sum[0][v] += ((const doubles_t *)(side->numbers + e * BLOCK))[v] * other[side->place[e]];
  for (int v = 0; v < VECTORS; v++) ((doubles_t *)to)[v] = (sum[0][v] + sum[1][v]) + (sum[2][v] + sum[3][v]);
}

/* Scaled so that the highest of a row is in [0.5, 1); the power of two that it was divided by. */
static int64_t rescale(double *row, int64_t n) {
  doubles_t top = {0};
  for (int64_t i = 0; i < n; i += DOUBLES) top = larger(*(const doubles_t *)(row + i), top);
  double highest = top[0];
  for (int l = 1; l < DOUBLES; l++) highest = top[l] > highest ? top[l] : highest;
  if (!(highest > 0)) return 0;
  int power;
  (void)frexp(highest, &power);
  const double factor = ldexp(1, -power);
  for (int64_t i = 0; i < n; i += DOUBLES) *(doubles_t *)(row + i) *= factor;
  return power;
}

/* Whether the scores of a character are further apart than `limit`. */
static int is_wide(const double *unary, int64_t n_tags, double top, double limit) {
  int is_below = 0;
  for (int64_t i = 0; i < n_tags; i++) is_below |= (unary[i] < top - limit) & (unary[i] > -INFINITY);
  return is_below;
}

/* log of the sum of e^(a[i] + b[i]) */
static double log_of_sum(const double *a, const double *b, int64_t n) {
  double top = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) top = a[i] + b[i] > top ? a[i] + b[i] : top;
  for (int64_t i = 0; i < n && top > -INFINITY; i++) sum += exp(a[i] + b[i] - top);
  return sum > 0 ? top + log(sum) : top;
}

/* As find_marginals, in logarithms. */
static void find_logs(const Chain *c, Room *w, int64_t n, int64_t first_beta, int64_t last_alpha) {
  const int64_t S = c->n_lanes, L = c->n_tags;
  w->in_logs = 1;
  w->heights[n] = 0;
  for (int64_t t = 0; t < n; t++) w->alpha_power[t] = w->beta_power[t] = 0, w->heights[t] = 0;
  for (int64_t i = 0; i < L; i++) w->alpha[i] = c->start[i] + w->unary[i];
  for (int64_t t = 1; t <= last_alpha; t++)
    for (int64_t i = 0; i < L; i++)
      w->alpha[t * S + i] = log_of_sum(w->alpha + (t - 1) * S, c->into + i * S, L) + w->unary[t * S + i];
  for (int64_t i = 0; i < L; i++) w->beta[(n - 1) * S + i] = c->end[i];
  double *after = w->best; /* free by now */
  for (int64_t t = n - 2; t >= first_beta; t--) {
    for (int64_t i = 0; i < L; i++) after[i] = w->beta[(t + 1) * S + i] + w->unary[(t + 1) * S + i];
    for (int64_t i = 0; i < L; i++) w->beta[t * S + i] = log_of_sum(after, c->scores + i * S, L);
  }
  w->all = log_of_sum(w->alpha + last_alpha * S, w->beta + last_alpha * S, L);
}

static inline double log_of(const Room *w, double x) { return w->in_logs ? x : log(x); }

void find_marginals(const Chain *c, Room *w, int64_t n, int64_t first_beta, int64_t last_alpha) {
  const int64_t S = c->n_lanes, L = c->n_tags;
  int has_wide = 0;
  w->heights[0] = 0, w->in_logs = 0;
  for (int64_t t = 0; t < n; t++) {
    const double *unary = w->unary + t * S;
    const int64_t n_lanes = lanes_at(c, w, t), n_tags = n_lanes < L ? n_lanes : L;
    double top = unary[0], *weight = w->weight + t * S;
    for (int64_t i = 1; i < n_tags; i++) top = unary[i] > top ? unary[i] : top;
    for (int64_t i = n_lanes; i < S; i++) weight[i] = 0;
    for (int64_t i = 0; i < n_lanes; i += DOUBLES)
      *(doubles_t *)(weight + i) = exp_of_doubles(*(const doubles_t *)(unary + i) - top);
    w->heights[t + 1] = w->heights[t] + top;
    has_wide |= is_wide(unary, n_tags, top, WIDE - c->spread);
  }
  if (has_wide) {
    find_logs(c, w, n, first_beta, last_alpha);
    return;
  }
  double first[BLOCK];
  for (int64_t i = 0; i < S; i += BLOCK) {
    for (int k = 0; k < BLOCK; k++) first[k] = c->start[i + k] == -INFINITY ? 0 : exp(c->start[i + k]);
    for (int k = 0; k < BLOCK; k++) w->alpha[i + k] = first[k] * w->weight[i + k];
  }
  w->alpha_power[0] = rescale(w->alpha, S);
  for (int64_t t = 1; t <= last_alpha; t++) {
    const double *from = w->alpha + (t - 1) * S;
    double *to = w->alpha + t * S;
    const int64_t n_lanes = lanes_at(c, w, t);
    for (int64_t b = 0; b < n_lanes / BLOCK; b++) sum_of_block(&c->forward, b, from, to + b * BLOCK);
    for (int64_t i = 0; i < n_lanes; i += DOUBLES) *(doubles_t *)(to + i) *= *(const doubles_t *)(w->weight + t * S + i);
    for (int64_t i = n_lanes; i < S; i++) to[i] = 0;
    w->alpha_power[t] = w->alpha_power[t - 1] + rescale(to, S);
  }
  double *last = w->beta + (n - 1) * S;
  for (int64_t i = 0; i < S; i++) last[i] = c->end[i] == -INFINITY ? 0 : exp(c->end[i]);
  w->beta_power[n - 1] = rescale(last, S);
  double *after = w->best; /* free by now */
  for (int64_t t = n - 2; t >= first_beta; t--) {
    double *to = w->beta + t * S;
    for (int64_t i = 0; i < S; i += DOUBLES)
      *(doubles_t *)(after + i) = *(const doubles_t *)(w->beta + (t + 1) * S + i) *
                                  *(const doubles_t *)(w->weight + (t + 1) * S + i);
    const int64_t n_lanes = lanes_at(c, w, t); /* beyond them, alpha is 0 and beta is not needed */
    for (int64_t b = 0; b < n_lanes / BLOCK; b++) sum_of_block(&c->backward, b, after, to + b * BLOCK);
    for (int64_t i = n_lanes; i < S; i++) to[i] = 0;
    w->beta_power[t] = w->beta_power[t + 1] + rescale(to, S);
  }
  double sum = 0;
  const double *alpha = w->alpha + last_alpha * S, *beta = w->beta + last_alpha * S;
  for (int64_t i = 0; i < L; i++) sum += alpha[i] * beta[i];
  w->all = log(sum) + (double)(w->alpha_power[last_alpha] + w->beta_power[last_alpha]) * LN2 + w->heights[n];
}

/* The tag of character t of a span; -1 where the scheme has none. `slot` is the set of copies that the tag before it is
   of, or -1: what is left of a span that blocked ones begin with has one way only. */
static int64_t place_in_span(const Chain *c, const Room *w, int64_t label, int64_t start, int64_t end, int64_t t,
                             int64_t *slot) {
  const int32_t *places = c->places + PARTS * (1 + c->n_slots) * label;
  if (c->is_open) return places[t > start ? INSIDE : OPEN];
  if (end - start == 1) return places[SINGLE];
  const int part = t == start ? OPEN : t == end - 1 ? CLOSE : INSIDE;
  if (!c->n_slots) return places[part];
  const uint8_t *state = w->states + t * (c->n_slots + 2);
  if (part == OPEN) *slot = state[0] - 1;
  if (*slot < 0) return places[part];
  const int32_t *copies = places + PARTS * (1 + *slot);
  if (part != INSIDE || !(state[2 + *slot] & 2)) return copies[part];
  *slot = -1;
  return copies[LEAVING];
}

/* The share of all sequences that have just these tags at [start, end), or at [start, end] if the entity goes on. */
static double share_of_stretch(const Chain *c, const Room *w, int64_t n, int64_t label, int64_t start, int64_t end,
                               int goes_on) {
  const int64_t S = c->n_lanes;
  int64_t slot = -1, at = place_in_span(c, w, label, start, end, start, &slot), t = start;
  if (at < 0) return 0;
  double total = w->heights[start + 1] + (double)w->alpha_power[start] * LN2 + log_of(w, w->alpha[start * S + at]);
  while (++t < end + goes_on) {
    const int64_t next = place_in_span(c, w, label, start, end, t, &slot);
    if (next < 0) return 0;
    total += c->scores[at * S + next] + w->unary[t * S + next];
    at = next;
  }
  t--;
  total += log_of(w, w->beta[t * S + at]) + (double)w->beta_power[t] * LN2 + w->heights[n] - w->heights[t + 1];
  const double share = exp(total - w->all);
  return share > 1 ? 1 : share;
}

static double of_label(const Chain *c, const Room *w, int64_t n, int64_t label, int64_t start, int64_t end) {
  double share = share_of_stretch(c, w, n, label, start, end, 0);
  if (c->is_open && end < n) { /* without a closing tag, longer entities share the prefix */
    share -= share_of_stretch(c, w, n, label, start, end, 1);
    share = share > 0 ? share : 0;
  }
  return share;
}

double probability(const Chain *c, const Room *w, int64_t n, const Families *families, int64_t label, int64_t start,
                   int64_t end) {
  if (!families || families->family[label] < 0) return of_label(c, w, n, label, start, end);
  double sum = 0;
  for (int64_t other = 0; other < c->n_labels; other++)
    if (families->family[other] == families->family[label]) sum += of_label(c, w, n, other, start, end);
  return sum > 1 ? 1 : sum;
}

double probability_of_any(const Chain *c, const Room *w, int64_t n, int64_t start, int64_t end) {
  double sum = 0;
  for (int64_t label = 0; label < c->n_labels; label++) sum += of_label(c, w, n, label, start, end);
  return sum > 1 ? 1 : sum;
}

static int add_candidate(Candidates *found, ScoredSpan span) {
  if (found->n == found->room) {
    const int64_t room = 2 * found->room + 16;
    ScoredSpan *more = realloc(found->spans, (size_t)room * sizeof(ScoredSpan));
    if (!more) return 1;
    found->spans = more, found->room = room;
  }
  found->spans[found->n++] = span;
  return 0;
}

/* tagging/candidates.py: a span needs tags that open, go on with and close an entity of its family, so only characters
   where such tags are probable enough are tried. */
int find_candidates(const Chain *c, const Room *w, int64_t n, const Families *families, Candidates *found) {
  const int64_t S = c->n_lanes, F = families->n_families;
  double *opens = w->weight, *inside = w->weight + F, *closes = w->best; /* free by now; of each character, S apart */
  for (int64_t t = 0; t < n; t++) {
    const double power = (double)(w->alpha_power[t] + w->beta_power[t]) * LN2 + w->heights[n] - w->all;
    const double factor = exp(power);
    for (int64_t f = 0; f < F; f++) opens[t * S + f] = inside[t * S + f] = closes[t * S + f] = 0;
    for (int64_t place = 0; place < c->n_tags; place++) {
      const int64_t f = c->label[place] < 0 ? -1 : families->family[c->label[place]];
      if (f < 0) continue;
      const double a = w->alpha[t * S + place], b = w->beta[t * S + place];
      const double share = w->in_logs                      ? exp(a + b + power)
                           : a * b > 1e-300 && power < 600 ? a * b * factor
                           : a != 0 && b != 0              ? exp(log(a) + log(b) + power)
                                                           : 0;
      inside[t * S + f] += share;
      if (c->prefix[place] == 1 || c->prefix[place] == 4) opens[t * S + f] += share;
      if (c->is_open || c->prefix[place] == 3 || c->prefix[place] == 4) closes[t * S + f] += share;
    }
  }
  for (int64_t f = 0; f < F; f++) {
    const double threshold = families->threshold[f], least = threshold * (1 - 1e-9); /* sums over tags are rounded */
    int64_t longest = 0;
    for (int64_t label = 0; label < c->n_labels; label++)
      if (families->family[label] == f && c->longest[label] > longest) longest = c->longest[label];
    for (int64_t start = 0; start < n; start++) {
      if (opens[start * S + f] < least) continue;
      for (int64_t end = start + 1; end <= n && end - start <= longest && inside[(end - 1) * S + f] >= least; end++) {
        if (closes[(end - 1) * S + f] < least) continue;
        double sum = 0;
        for (int64_t label = 0; label < c->n_labels; label++)
          if (families->family[label] == f) sum += of_label(c, w, n, label, start, end);
        const ScoredSpan span = {(int32_t)start, (int32_t)end, (int32_t)f, 0, sum > 1 ? 1 : sum};
        if (sum >= threshold && add_candidate(found, span)) return 1;
      }
    }
  }
  return 0;
}
