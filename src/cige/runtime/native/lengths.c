/* The best tags with which no entity is longer than its label allows, as tagging/best_spans.py has them: whole
   entities are decoded, since a chain cannot say how long one is. */

#include "marginals.h"

/* Whether no entity is open after this tag of character t. */
static int is_last(const Chain *c, const Held *h, int64_t place, int64_t t) {
  if (!c->is_open) return c->prefix[place] == 0 || c->prefix[place] > 2;
  return c->prefix[place] != 1 || !is_blocked(h, t, t + 1);
}

/* The best score up to the end of an entity of this label that has two or more characters, the last of them t; and how
   many. `best` has the score of what begins at each character too, at the place of the label's B. */
static double best_entity(const Chain *c, const Held *h, const Families *families, const double *unary,
                          const double *best, int64_t t, int64_t label, int64_t *length) {
  const int32_t *places = c->places + 4 * label;
  const int64_t S = c->n_lanes, open = places[0], middle = places[1], close = places[c->is_open ? 1 : 2];
  const int64_t longest = longest_of(c, families, label);
  double top = -INFINITY, inside = 0;
  *length = 2;
  if (open < 0 || middle < 0 || close < 0) return top;
  for (int64_t n = 2; (n <= longest || h->n_forced) && n <= t + 1 && inside > -INFINITY; n++) {
    const int64_t start = t - n + 1;
    if (n > 2) inside += unary[(t - n + 2) * S + middle] + c->scores[middle * S + (n == 3 ? close : middle)];
    if ((n > longest && !is_exempt(h, start)) || is_blocked(h, start, t + 1)) continue;
    const double score = best[start * S + open] + c->scores[open * S + (n == 2 ? close : middle)] + inside;
    if (score > top) top = score, *length = n;
  }
  return top + unary[t * S + close];
}

/* The best of the tags of character t that may come before what has these scores; that outside of entities if none is
   possible. */
static int64_t best_last(const Chain *c, const Held *h, const double *best, int64_t t, const double *more, int64_t step,
                         double *score) {
  best += t * c->n_lanes;
  int64_t place = 0;
  while (place + 1 < c->n_tags && c->prefix[place]) place++;
  *score = best[place] + more[place * step];
  for (int64_t i = 0; i < c->n_tags; i++) {
    const double own = best[i] + more[i * step];
    if (is_last(c, h, i, t) && own > *score) *score = own, place = i;
  }
  return place;
}

int64_t spans_within_lengths(const Chain *c, const Held *h, const Families *families, const double *unary, int64_t n,
                             double *best, ScoredSpan *spans) {
  const int64_t S = c->n_lanes;
  int64_t length, n_spans = 0;
  for (int64_t t = 0; t < n; t++) {
    double *to = best + t * S, reached;
    for (int64_t i = 0; i < c->n_tags; i++) { /* what an entity may begin with, or what is outside */
      to[i] = -INFINITY;
      if (c->prefix[i] == 2 || c->prefix[i] == 3) continue;
      if (c->prefix[i] == 4 && is_blocked(h, t, t + 1)) continue;
      if (t) best_last(c, h, best, t - 1, c->scores + i, S, &reached);
      to[i] = unary[t * S + i] + (t ? reached : c->start[i]);
    }
    for (int64_t i = 0; i < c->n_tags && t; i++)
      if (c->prefix[i] == 3 || (c->is_open && c->prefix[i] == 2))
        to[i] = best_entity(c, h, families, unary, best, t, c->label[i], &length);
  }
  double score;
  int64_t t = n - 1, place = best_last(c, h, best, t, c->end, 1, &score);
  while (t >= 0) { /* from the end of the text */
    int64_t first = place;
    length = 1;
    if (c->prefix[place]) {
      if (c->prefix[place] == 2 || c->prefix[place] == 3) {
        best_entity(c, h, families, unary, best, t, c->label[place], &length);
        first = c->places[4 * c->label[place]];
      }
      spans[n_spans++] = (ScoredSpan){(int32_t)(t + 1 - length), (int32_t)(t + 1), c->label[place], 0, 0};
    }
    t -= length;
    if (t >= 0) place = best_last(c, h, best, t, c->scores + first, S, &score);
  }
  for (int64_t k = 0; k < n_spans / 2; k++) {
    const ScoredSpan other = spans[k];
    spans[k] = spans[n_spans - 1 - k], spans[n_spans - 1 - k] = other;
  }
  return n_spans;
}
