/* What a user's forced and blocked words ask of a sentence: tagging/user_rules.py and tagging/blocking.py in C. */

#include "marginals.h"

enum { N_HEAD = 6, N_GROUP = 4 }; /* numbers before the spans of a sentence, and before those of a group */

Held held_of(const Chain *chain, const Rules *rules, int64_t b) {
  Held held = {.chain = chain};
  if (!rules || rules->first[b] < 0) return held;
  const int32_t *own = rules->numbers + rules->first[b];
  held.chain = rules->chains[own[0]];
  held.n_forced = own[1], held.n_blocked = own[2], held.n_typed = own[3], held.n_groups = own[4];
  held.first_typed = own[5];
  held.forced = own + N_HEAD;
  held.blocked = held.forced + 3 * held.n_forced;
  held.typed = held.blocked + 2 * held.n_blocked;
  held.groups = held.typed + 2 * held.n_typed;
  return held;
}

/* Which prefix the tag of character t of an entity has. */
static int prefix_in_entity(const Chain *c, int64_t start, int64_t end, int64_t t) {
  if (c->is_open) return t == start ? 1 : 2;
  return end - start == 1 ? 4 : t == start ? 1 : t == end - 1 ? 3 : 2;
}

void force_spans(const Chain *c, const Held *h, int64_t n, double *unary) {
  for (const int32_t *span = h->forced; span < h->forced + 3 * h->n_forced; span += 3) {
    const int64_t start = span[0] > 0 ? span[0] : 0, end = span[1] < n ? span[1] : n, label = span[2];
    for (int64_t t = start; t < end; t++) {
      double *own = unary + t * c->n_lanes;
      const int prefix = prefix_in_entity(c, start, end, t);
#define IS_ASKED_FOR(I) (c->prefix[I] == prefix && (label < 0 || c->label[I] == label))
      int is_possible = 0;
      for (int64_t i = 0; i < c->n_tags; i++) is_possible |= IS_ASKED_FOR(i) && own[i] > -INFINITY;
      for (int64_t i = 0; i < c->n_tags; i++) own[i] = !IS_ASKED_FOR(i) ? -INFINITY : is_possible ? own[i] : 0;
    }
    for (int64_t i = 0; i < c->n_tags && c->is_open && start < end && end < n; i++) /* no closing tag: nothing goes on */
      if (c->prefix[i] == 2) unary[end * c->n_lanes + i] = -INFINITY;
  }
}

void fill_copies(const Held *h, int64_t n, Room *w) {
  const Chain *c = h->chain;
  const int64_t step = c->n_slots + 2, n_trained = c->base->n_lanes;
  memset(w->states, 0, (size_t)(n * step));
  for (int64_t k = 0; k < h->n_blocked; k++)
    if (h->blocked[2 * k + 1] - h->blocked[2 * k] == 1) w->states[h->blocked[2 * k] * step + 1] = 1;
  const int32_t *group = h->groups;
  for (int64_t k = 0; k < h->n_groups; k++) {
    const int64_t slot = group[0], last = group[1];
    const int32_t *starts = group + N_GROUP, *ends = starts + group[2];
    for (int64_t i = 0; i < group[2]; i++) w->states[starts[i] * step] = (uint8_t)(slot + 1);
    for (int64_t t = starts[0] + 1; t < last - 1; t++) w->states[t * step + 2 + slot] |= 1;
    w->states[(last - 1) * step + 2 + slot] |= 2;
    for (int64_t i = 0; i < group[3]; i++) w->states[(ends[i] - 1) * step + 2 + slot] |= 4;
    group = ends + group[3];
  }
  for (int64_t t = 0; t < n; t++) {
    const uint8_t *state = w->states + t * step;
    const double *trained = w->trained + t * n_trained;
    double *unary = w->unary + t * c->n_lanes;
    const int64_t n_lanes = lanes_at(c, w, t), n_tags = n_lanes < c->n_tags ? n_lanes : c->n_tags;
    for (int64_t i = 0; i < n_tags; i++) {
      const int64_t slot = c->slot[i], prefix = c->prefix[i];
      const int may_be = prefix == 1   ? state[0] == slot + 1
                         : prefix == 4 ? !state[1]
                         : slot >= 0   ? state[2 + slot] & c->part[i]
                                       : 1;
      unary[i] = may_be ? trained[c->order[i]] : -INFINITY;
    }
    for (int64_t i = n_tags; i < c->n_lanes; i++) unary[i] = -INFINITY;
  }
}

int64_t without_forced(const Held *h, ScoredSpan *spans, int64_t n_spans) {
  int64_t n_kept = 0;
  for (int64_t k = 0; k < n_spans; k++) {
    int overlaps = 0;
    for (int64_t i = 0; i < h->n_forced; i++)
      overlaps |= spans[k].start < h->forced[3 * i + 1] && h->forced[3 * i] < spans[k].end;
    if (!overlaps) spans[n_kept++] = spans[k];
  }
  return n_kept;
}

int is_blocked(const Held *h, int64_t start, int64_t end) {
  int64_t low = 0, high = h->n_blocked;
  while (low < high) {
    const int64_t middle = (low + high) / 2, a = h->blocked[2 * middle], b = h->blocked[2 * middle + 1];
    if (a < start || (a == start && b < end)) low = middle + 1;
    else high = middle;
  }
  return low < h->n_blocked && h->blocked[2 * low] == start && h->blocked[2 * low + 1] == end;
}
