/* The best tags under a linear chain, the spans they spell and how probable each span is, as nn/crf_numpy.py has them.

   Few tags may follow a given one: of 100, half the tags allow two. So each block of tags has a list of the tags that
   may come before it, and one of those that may follow it, and tags stand in an order that keeps these lists short. The
   sums of a block stay in registers while its list is read. */

#include <stdatomic.h>
#include <stdlib.h>

#include "../../nn/native/threads.h"
#include "marginals.h"

#define FEW 2048 /* characters that are not worth a thread */

/* Emissions of a sentence, float [n, step] in the order of the tags -> double [n, n_lanes] in that of a trained chain. A
   character that is closed is outside all entities. */
static void unary_of(const Chain *c, const float *emissions, int64_t step, const uint8_t *is_closed, int64_t n,
                     double *unary) {
  for (int64_t t = 0; t < n; t++, emissions += step, unary += c->n_lanes) {
    for (int64_t i = 0; i < c->n_tags; i++) unary[i] = emissions[c->order[i]];
    for (int64_t i = c->n_tags; i < c->n_lanes; i++) unary[i] = -INFINITY;
    for (int64_t i = 0; is_closed && is_closed[t] && i < c->n_tags; i++)
      if (c->prefix[i]) unary[i] = -INFINITY;
  }
}

static inline void best_of_block(const Transitions *into, int64_t block, const double *from, double *to) {
  doubles_t top[VECTORS];
  for (int v = 0; v < VECTORS; v++) top[v] = (doubles_t){0} - INFINITY;
  for (int64_t e = into->first[block]; e < into->first[block + 1]; e++) {
    const doubles_t *scores = (const doubles_t *)(into->numbers + e * BLOCK);
    const double own = from[into->place[e]];
    for (int v = 0; v < VECTORS; v++) top[v] = larger(scores[v] + own, top[v]);
  }
  for (int v = 0; v < VECTORS; v++) ((doubles_t *)to)[v] = top[v];
}

/* Viterbi, to `path` in places, not tags. */
static void best_path(const Chain *c, Room *w, int64_t n) {
  double *unary = w->unary, *best = w->best;
  const int64_t S = c->n_lanes, L = c->n_tags;
  for (int64_t i = 0; i < S; i++) best[i] = c->start[i] + unary[i];
  for (int64_t t = 1; t < n; t++) {
    const double *from = best + (t - 1) * S;
    double *to = best + t * S;
    const int64_t n_lanes = lanes_at(c, w, t);
    for (int64_t b = 0; b < n_lanes / BLOCK; b++) best_of_block(&c->best, b, from, to + b * BLOCK);
    for (int64_t i = n_lanes; i < S; i++) to[i] = -INFINITY;
    for (int64_t i = 0; i < n_lanes; i += DOUBLES) *(doubles_t *)(to + i) += *(const doubles_t *)(unary + t * S + i);
  }
  const double *from = best + (n - 1) * S, *more = c->end;
  for (int64_t t = n - 1; t >= 0; t--) { /* where the best score came from is found again along the best path alone */
    const int64_t n_lanes = lanes_at(c, w, t), n_tags = n_lanes < L ? n_lanes : L;
    int64_t place = 0;
    double top = -INFINITY;
    for (int64_t i = 0; i < n_tags; i++) {
      const double score = from[i] + more[i];
      if (score > top || (score == top && c->order[i] < c->order[place])) top = score, place = i;
    }
    w->path[t] = (int32_t)place;
    more = c->into + place * S;
    from -= S;
  }
}

/* The strict reading of data/tags.py; at most one span begins at a character. */
static int64_t spans_of(const Chain *c, const int32_t *path, int64_t n, ScoredSpan *spans) {
  int64_t n_spans = 0, start = 0, open = -1;
#define SPAN(FROM, TO, LABEL) spans[n_spans++] = (ScoredSpan){(int32_t)(FROM), (int32_t)(TO), (int32_t)(LABEL), 0, 0}
  for (int64_t t = 0; t < n; t++) {
    const int prefix = c->prefix[path[t]], label = c->label[path[t]];
    const int continues = open >= 0 && open == label && (prefix == 2 || prefix == 3);
    if (c->is_open && open >= 0 && !continues) SPAN(start, t, open);
    if (prefix == 1) {
      start = t, open = label;
    } else if (prefix == 4) {
      SPAN(t, t + 1, label);
      open = -1;
    } else if (prefix == 3 && continues) {
      SPAN(start, t + 1, label);
      open = -1;
    } else if (!continues) {
      open = -1;
    }
  }
  if (c->is_open && open >= 0) SPAN(start, n, open);
  return n_spans;
}

static int has_too_long(const Chain *c, const Families *families, const ScoredSpan *spans, int64_t n_spans) {
  for (const ScoredSpan *s = spans; s < spans + n_spans; s++)
    if (s->end - s->start > longest_of(c, families, s->label)) return 1;
  return 0;
}

/* What the chain of a sentence reads: emissions with which nothing closed is an entity, and the user's words hold. */
static void fill_unary(const Held *h, Room *w, const float *emissions, int64_t step, const uint8_t *is_closed,
                       int64_t n) {
  const Chain *trained = h->chain->base ? h->chain->base : h->chain;
  double *unary = h->chain->base ? w->trained : w->unary;
  unary_of(trained, emissions, step, is_closed, n, unary);
  force_spans(trained, h, n, unary);
  if (h->chain->base) fill_copies(h, n, w);
}

/* `typed` is given the probabilities of the typed spans, which are those of all readings. */
static int64_t read_sentence(const Held *h, Room *w, int64_t n, const Families *families, int32_t *tags,
                             ScoredSpan *spans, double *typed) {
  const Chain *c = h->chain, *trained = c->base ? c->base : c;
  if (!n) return 0;
  best_path(c, w, n);
  for (int64_t t = 0; t < n && tags; t++)
    tags[t] = c->base ? trained->order[c->order[w->path[t]]] : c->order[w->path[t]];
  int64_t n_spans = without_forced(h, spans, spans_of(c, w->path, n, spans));
  if (has_too_long(c, families, spans, n_spans)) {
    const double *unary = c->base ? w->trained : w->unary;
    n_spans = without_forced(h, spans, spans_within_lengths(trained, h, families, unary, n, w->best, spans));
  }
  if (!n_spans && !h->n_typed) return 0; /* no marginals are needed */
  int64_t first_end = n - 1, last_start = 0; /* a span needs alpha where it begins, and beta where it ends */
  for (int64_t k = 0; k < n_spans + h->n_typed; k++) {
    const int32_t *typed = k < n_spans ? NULL : h->typed + 2 * (k - n_spans);
    const int64_t start = typed ? typed[0] : spans[k].start, end = typed ? typed[1] : spans[k].end;
    first_end = end - 1 < first_end ? end - 1 : first_end;
    last_start = start > last_start ? start : last_start;
  }
  find_marginals(c, w, n, first_end, last_start > first_end ? last_start : first_end);
  for (ScoredSpan *s = spans; s < spans + n_spans; s++) s->score = probability(c, w, n, families, s->label, s->start, s->end);
  for (int64_t k = 0; k < h->n_typed; k++)
    typed[h->first_typed + k] = probability_of_any(c, w, n, h->typed[2 * k], h->typed[2 * k + 1]);
  return n_spans;
}

typedef struct { /* what all threads share */
  const Chain *chain;
  const Emissions *emissions;
  const Reading *reading;
  int64_t longest, n_lanes, n_states; /* n_states: bytes of a character, where a chain has copies */
  const int64_t *before;
  Candidates *candidates; /* of each sentence, or NULL where the best spans are asked for */
  atomic_llong next;
  atomic_int failed;
} Job;

static void *work(void *argument) {
  Job *job = argument;
  const int64_t n = job->longest, S = job->n_lanes, n_trained = job->n_states ? n : 0;
  void *memory = malloc((size_t)((5 * n + n_trained) * S + S + n + 1) * sizeof(double) +
                        (size_t)n * (2 * sizeof(int64_t) + sizeof(int32_t)) + (size_t)(n_trained * job->n_states) + 64);
  if (!memory) {
    job->failed = 1;
    return NULL;
  }
  Room w = {.unary = (double *)aligned(memory)};
  w.best = w.unary + n * S, w.weight = w.best + (n > 0 ? n : 1) * S, w.alpha = w.weight + n * S;
  w.beta = w.alpha + n * S, w.trained = w.beta + n * S, w.heights = w.trained + n_trained * S;
  w.alpha_power = (int64_t *)(w.heights + n + 1), w.beta_power = w.alpha_power + n;
  w.path = (int32_t *)(w.beta_power + n);
  w.states = (uint8_t *)(w.path + n);
  const Emissions *e = job->emissions;
  const Reading *r = job->reading;
  for (int64_t b; (b = atomic_fetch_add(&job->next, 1)) < e->n_sentences;) {
    const int64_t first = job->before[b], length = e->n_chars[b];
    const Held held = held_of(job->chain, r->rules, b);
    if (length)
      fill_unary(&held, &w, e->rows + first * e->step, e->step, r->is_closed ? r->is_closed + first : NULL, length);
    if (job->candidates) {
      if (!length) continue;
      Candidates *found = job->candidates + b;
      find_marginals(held.chain, &w, length, 0, length - 1);
      job->failed |= find_candidates(held.chain, &w, length, r->families, found);
      found->n = without_forced(&held, found->spans, found->n);
      r->n_spans[b] = (int32_t)found->n;
    } else {
      r->n_spans[b] = (int32_t)read_sentence(&held, &w, length, r->families, e->tags ? e->tags + first : NULL,
                                             r->spans + first, r->rules ? r->rules->typed : NULL);
    }
  }
  free(memory);
  return NULL;
}

int read_chain(const Chain *chain, const Emissions *emissions, const Reading *reading) {
  const int64_t B = emissions->n_sentences;
  const int32_t *n_chars = emissions->n_chars;
  ScoredSpan *spans = reading->spans;
  int32_t *n_spans = reading->n_spans;
  const int finds_all = reading->families && reading->families->threshold;
  int64_t longest = 0, n_found = 0, n_lanes = chain->n_lanes, n_states = 0;
  int64_t *before = malloc((size_t)(B + 1) * sizeof(int64_t));
  Candidates *candidates = finds_all ? calloc((size_t)(B ? B : 1), sizeof(Candidates)) : NULL;
  int failed = !before || (finds_all && !candidates) ? NO_MEMORY : DONE;
  if (!failed) {
    before[0] = 0;
    for (int64_t b = 0; b < B; b++) {
      before[b + 1] = before[b] + n_chars[b];
      longest = n_chars[b] > longest ? n_chars[b] : longest;
      const Chain *own = held_of(chain, reading->rules, b).chain;
      n_lanes = own->n_lanes > n_lanes ? own->n_lanes : n_lanes;
      n_states = own->base && own->n_slots + 2 > n_states ? own->n_slots + 2 : n_states;
    }
    const int64_t n_workers = before[B] < FEW ? 1 : usable_threads(reading->n_threads, B);
    Job job = {.chain = chain, .emissions = emissions, .reading = reading, .longest = longest, .n_lanes = n_lanes,
               .n_states = n_states, .before = before, .candidates = candidates};
    in_threads(work, &job, 0, n_workers);
    failed = job.failed ? NO_MEMORY : DONE;
  }
  for (int64_t b = 0; b < B && candidates; b++) {
    if (!failed && candidates[b].n && n_found + candidates[b].n <= reading->room)
      memcpy(spans + n_found, candidates[b].spans, (size_t)candidates[b].n * sizeof(ScoredSpan));
    n_found += candidates[b].n;
    free(candidates[b].spans);
  }
  if (!failed && finds_all && n_found > reading->room) failed = NO_ROOM;
  for (int64_t b = 0, n = 0; b < B && !finds_all && !failed; n += n_spans[b++])
    memmove(spans + n, spans + before[b], (size_t)n_spans[b] * sizeof(ScoredSpan));
  free(candidates);
  free(before);
  return failed;
}
