/* The best tags of a chain, the spans they spell, and how probable each is. */

#include "../../src/cige/runtime/native/model.h"
#include "check.h"

typedef __typeof__(&read_chain) ReadChain;
typedef __typeof__(&check_model) CheckModel;

enum { L = 5, LANES = 8, LONGEST = 40 }; /* O B M E S of one label */

typedef struct {
  double start[LANES], end[LANES], scores[L * LANES], into[LANES * LANES];
} Scores;

static int may_follow(int from, int to) {
  const int opens = from == 1 || from == 2, goes_on = to == 2 || to == 3;
  return opens == goes_on;
}

/* log of the sum, or the highest, over the tags of n characters; with a span, only where it is an entity. */
static double of_all(const Scores *s, const float *emissions, int64_t step, int n, int best, const ScoredSpan *span,
                     int32_t *tags) {
  static double score[LONGEST][L];
  static int from[LONGEST][L];
  for (int t = 0; t < n; t++)
    for (int i = 0; i < L; i++) {
      double own = emissions[t * step + i], sum = 0, top = -INFINITY;
      if (span && t >= span->start && t < span->end) {
        const int is_one = span->end - span->start == 1;
        const int wanted = is_one ? 4 : t == span->start ? 1 : t + 1 == span->end ? 3 : 2;
        if (i != wanted) own = -INFINITY;
      }
      for (int p = 0; p < L && t; p++) {
        const double reached = score[t - 1][p] + s->scores[p * LANES + i];
        if (reached > top) top = reached, from[t][i] = p;
      }
      for (int p = 0; p < L && t && top > -INFINITY; p++) sum += exp(score[t - 1][p] + s->scores[p * LANES + i] - top);
      score[t][i] = own + (t == 0 ? s->start[i] : best || top == -INFINITY ? top : top + log(sum));
    }
  double top = -INFINITY, sum = 0;
  int last = 0;
  for (int i = 0; i < L; i++)
    if (score[n - 1][i] + s->end[i] > top) top = score[n - 1][i] + s->end[i], last = i;
  if (best) {
    for (int t = n - 1; t >= 0; last = from[t][last], t--) tags[t] = last;
    return top;
  }
  for (int i = 0; i < L; i++) sum += exp(score[n - 1][i] + s->end[i] - top);
  return top + log(sum);
}

static Transitions transitions(const Scores *s, int is_exponential, int is_backward) {
  int32_t *first = room(2, sizeof(int32_t)), *place = room(L, sizeof(int32_t));
  double *entries = room(L * LANES, sizeof(double));
  first[1] = L;
  for (int p = 0; p < L; p++) {
    place[p] = p;
    for (int i = 0; i < LANES; i++) {
      double score = is_backward ? (i < L ? s->scores[i * LANES + p] : -INFINITY) : s->scores[p * LANES + i];
      entries[p * LANES + i] = is_exponential ? exp(score) : score;
    }
  }
  return (Transitions){first, place, entries};
}

void check_chain(void *library) {
  const ReadChain read = (ReadChain)function_of(library, "read_chain");
  enum { B = 120, STEP = 32 };
  uint64_t state = 4;
  static Scores s;
  for (int i = 0; i < LANES; i++) {
    s.start[i] = i < L && i != 2 && i != 3 ? number(&state) : -INFINITY;
    s.end[i] = i < L && i != 1 && i != 2 ? number(&state) : -INFINITY;
    for (int p = 0; p < L; p++) s.scores[p * LANES + i] = i < L && may_follow(p, i) ? number(&state) : -INFINITY;
  }
  for (int i = 0; i < LANES; i++)
    for (int p = 0; p < LANES; p++) s.into[i * LANES + p] = p < L ? s.scores[p * LANES + i] : -INFINITY;
  const int32_t order[] = {0, 1, 2, 3, 4}, label[] = {0, 0, 0, 0, 0}, places[] = {1, 2, 3, 4}, longest[] = {LONGEST};
  const Chain chain = {.n_tags = L, .n_lanes = LANES, .start = s.start, .end = s.end,
                       .scores = s.scores, .into = s.into, .best = transitions(&s, 0, 0),
                       .forward = transitions(&s, 1, 0), .backward = transitions(&s, 1, 1),
                       .order = order, .prefix = order, .label = label, .places = places, .longest = longest,
                       .n_labels = 1, .n_plain = LANES};
  const CheckModel check = (CheckModel)function_of(library, "check_model");
  Problem problem;
  const int32_t too_many[] = {0, 1, 2, 3, 5};
  Chain other = chain;
  other.prefix = too_many;
  expect("chain is accepted", check(&(Model){.chain = &chain}, &problem), 0);
  expect("wrong prefix is refused", check(&(Model){.chain = &other}, &problem), 1);
  expect("prefix is named", !strcmp(problem.part, "chain.prefix") && problem.number == 4 && problem.given == 5, 1);
  int32_t n_chars[B];
  int64_t total = 0;
  for (int b = 0; b < B; b++) total += n_chars[b] = 1 + b * 7 % LONGEST;
  float *emissions = numbers(total * STEP, 2, &state);
  int32_t *tags = room((size_t)total, sizeof(int32_t)), *wanted = room((size_t)total, sizeof(int32_t)), n_spans[B];
  ScoredSpan *spans = room((size_t)total, sizeof(ScoredSpan));
  const Emissions of_sentences = {.n_sentences = B, .step = STEP, .n_chars = n_chars, .rows = emissions, .tags = tags};
  const Reading reading = {.n_threads = 3, .room = total, .spans = spans, .n_spans = n_spans};
  expect("chain", read(&chain, &of_sentences, &reading), DONE);
  int64_t at = 0, n = 0, n_wanted = 0;
  float *scores = floats(total);
  double *of_spans = room((size_t)total, sizeof(double));
  for (int b = 0; b < B; at += n_chars[b++]) {
    const float *own = emissions + at * STEP;
    of_all(&s, own, STEP, n_chars[b], 1, NULL, wanted + at);
    for (int t = 0; t < n_chars[b]; t++) n_wanted += wanted[at + t] == 3 || wanted[at + t] == 4;
    const double all = of_all(&s, own, STEP, n_chars[b], 0, NULL, NULL);
    for (int k = 0; k < n_spans[b]; k++, n++) {
      scores[n] = (float)spans[n].score;
      of_spans[n] = exp(of_all(&s, own, STEP, n_chars[b], 0, spans + n, NULL) - all);
    }
  }
  expect("best tags", memcmp(tags, wanted, (size_t)total * sizeof(int32_t)) == 0, 1);
  expect("spans", n, n_wanted);
  compare("probabilities of spans", scores, of_spans, n, 1e-6);
}
