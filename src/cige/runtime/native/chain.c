/* The best tags under a linear chain, the spans they spell and how probable each span is, as nn/crf_numpy.py has them.

   Few tags may follow a given one: of 100, half the tags allow two. So each block of tags has a list of the tags that
   may come before it, and one of those that may follow it, and tags stand in an order that keeps these lists short. The
   sums of a block stay in registers while its list is read. */

#include <stdatomic.h>
#include <stdlib.h>

#include "../../nn/native/threads.h"
#include "marginals.h"

#define FEW 2048 /* characters that are not worth a thread */

/* Emissions of a sentence, float [n, step] in the order of the tags -> double [n, n_lanes] in that of the chain. A
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

/* Viterbi. `best` is work space of n * n_lanes; `path` are places, not tags. */
static void best_path(const Chain *c, const double *unary, int64_t n, double *best, int32_t *path) {
  const int64_t S = c->n_lanes, L = c->n_tags;
  for (int64_t i = 0; i < S; i++) best[i] = c->start[i] + unary[i];
  for (int64_t t = 1; t < n; t++) {
    const double *from = best + (t - 1) * S;
    double *to = best + t * S;
    for (int64_t b = 0; b < S / BLOCK; b++) best_of_block(&c->best, b, from, to + b * BLOCK);
    for (int64_t i = 0; i < S; i += DOUBLES) *(doubles_t *)(to + i) += *(const doubles_t *)(unary + t * S + i);
  }
  const double *from = best + (n - 1) * S, *more = c->end;
  for (int64_t t = n - 1; t >= 0; t--) { /* where the best score came from is found again along the best path alone */
    int64_t place = 0;
    double top = -INFINITY;
    for (int64_t i = 0; i < L; i++) {
      const double score = from[i] + more[i];
      if (score > top || (score == top && c->order[i] < c->order[place])) top = score, place = i;
    }
    path[t] = (int32_t)place;
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

static int64_t read_sentence(const Chain *c, Room *w, const float *emissions, int64_t step,
                             const uint8_t *is_closed, int64_t n, const Families *families, int32_t *tags,
                             ScoredSpan *spans) {
  if (!n) return 0;
  unary_of(c, emissions, step, is_closed, n, w->unary);
  best_path(c, w->unary, n, w->best, w->path);
  for (int64_t t = 0; t < n; t++) tags[t] = c->order[w->path[t]];
  if (!spans) return 0;
  int64_t n_spans = spans_of(c, w->path, n, spans);
  if (has_too_long(c, families, spans, n_spans))
    n_spans = spans_within_lengths(c, families, w->unary, n, w->best, spans);
  if (!n_spans) return 0; /* no marginals are needed */
  find_marginals(c, w, n);
  for (ScoredSpan *s = spans; s < spans + n_spans; s++) s->score = probability(c, w, n, families, s->label, s->start, s->end);
  return n_spans;
}

typedef struct {
  const Chain *chain;
  int64_t n_sentences, step, longest;
  const int32_t *n_chars;
  const int64_t *before;
  const float *emissions;
  const uint8_t *is_closed;
  const Families *families;
  int32_t *tags;
  ScoredSpan *spans;
  Candidates *candidates; /* of each sentence, or NULL where the best spans are asked for */
  int32_t *n_spans;
  atomic_llong *next;
  int failed;
} Worker;

static void *work(void *argument) {
  Worker *worker = argument;
  const Chain *c = worker->chain;
  const int64_t n = worker->longest, S = c->n_lanes;
  void *memory = malloc((5 * n * S + S + n + 1) * sizeof(double) + 2 * n * sizeof(int64_t) + n * sizeof(int32_t) + 64);
  if (!memory) {
    worker->failed = 1;
    return NULL;
  }
  Room w = {.unary = (double *)aligned(memory)};
  w.best = w.unary + n * S, w.weight = w.best + (n > 0 ? n : 1) * S, w.alpha = w.weight + n * S;
  w.beta = w.alpha + n * S, w.heights = w.beta + n * S;
  w.alpha_power = (int64_t *)(w.heights + n + 1), w.beta_power = w.alpha_power + n;
  w.path = (int32_t *)(w.beta_power + n);
  for (int64_t b; (b = atomic_fetch_add(worker->next, 1)) < worker->n_sentences;) {
    const int64_t first = worker->before[b], length = worker->n_chars[b];
    const float *emissions = worker->emissions + first * worker->step;
    const uint8_t *is_closed = worker->is_closed ? worker->is_closed + first : NULL;
    if (worker->candidates) {
      if (!length) continue;
      unary_of(c, emissions, worker->step, is_closed, length, w.unary);
      find_marginals(c, &w, length);
      worker->failed |= find_candidates(c, &w, length, worker->families, worker->candidates + b);
      worker->n_spans[b] = (int32_t)worker->candidates[b].n;
    } else {
      const int64_t found = read_sentence(c, &w, emissions, worker->step, is_closed, length, worker->families,
                                          worker->tags + first, worker->spans ? worker->spans + first : NULL);
      if (worker->spans) worker->n_spans[b] = (int32_t)found;
    }
  }
  free(memory);
  return NULL;
}

/* sizes = {B, floats of a row of emissions, threads, room in `spans`}. is_closed, or NULL, says of each character whether
   no span may have it. tags int32 [sum of n_chars], the best whatever the lengths of their spans; `spans`, or NULL, has
   room for as many and is given those of each sentence in turn, n_spans[b] of them, none too long; the score of each is
   the sum over the labels of its family, where it has one. With thresholds, `spans` is given all candidates instead, with
   their families in place of labels, and `tags` nothing.
   Returns 0, NO_MEMORY, or NO_ROOM where there are more candidates than room; then n_spans says how many there are. */
int read_chain(const Chain *chain, const int64_t *sizes, const int32_t *n_chars, const float *emissions,
               const uint8_t *is_closed, const Families *families, int32_t *tags, ScoredSpan *spans, int32_t *n_spans) {
  const int64_t B = sizes[0];
  const int finds_all = families && families->threshold;
  int64_t longest = 0, n_found = 0, *before = malloc((B + 1) * sizeof(int64_t));
  Candidates *candidates = finds_all ? calloc(B ? B : 1, sizeof(Candidates)) : NULL;
  int failed = !before || (finds_all && !candidates) ? NO_MEMORY : DONE;
  if (!failed) {
    before[0] = 0;
    for (int64_t b = 0; b < B; b++) {
      before[b + 1] = before[b] + n_chars[b];
      longest = n_chars[b] > longest ? n_chars[b] : longest;
    }
    const int64_t n_workers = before[B] < FEW ? 1 : usable_threads(sizes[2], B);
    atomic_llong next = 0;
    Worker workers[MAX_THREADS];
    for (int64_t t = 0; t < n_workers; t++)
      workers[t] = (Worker){.chain = chain, .n_sentences = B, .step = sizes[1], .longest = longest, .n_chars = n_chars,
                            .before = before, .emissions = emissions, .is_closed = is_closed, .families = families,
                            .tags = tags, .spans = spans, .candidates = candidates, .n_spans = n_spans, .next = &next};
    in_threads(work, workers, sizeof(Worker), n_workers);
    for (int64_t t = 0; t < n_workers; t++) failed |= workers[t].failed ? NO_MEMORY : DONE;
  }
  for (int64_t b = 0; b < B && candidates; b++) {
    if (!failed && n_found + candidates[b].n <= sizes[3])
      memcpy(spans + n_found, candidates[b].spans, candidates[b].n * sizeof(ScoredSpan));
    n_found += candidates[b].n;
    free(candidates[b].spans);
  }
  if (!failed && finds_all && n_found > sizes[3]) failed = NO_ROOM;
  for (int64_t b = 0, n = 0; b < B && spans && !finds_all && !failed; n += n_spans[b++])
    memmove(spans + n, spans + before[b], n_spans[b] * sizeof(ScoredSpan));
  free(candidates);
  free(before);
  return failed;
}
