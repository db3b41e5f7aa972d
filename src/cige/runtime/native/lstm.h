/* A layer of a bidirectional LSTM; runtime/recurrent.py fills the structures. */

#ifndef CIGE_LSTM_H
#define CIGE_LSTM_H

#include "product.h"

#define LSTM(F, S)                                                                                                    \
  F(S, int64_t, width)   /* of the state, in whole panels */                                                          \
  F(S, Linear, forward)  /* from the state to the gates i, f, g, o, each of `width` numbers */                        \
  F(S, Linear, backward)
DEFINE(Lstm, LSTM);

#define LSTM_RUN(F, S)                                                                                                \
  F(S, int64_t, n_sentences) F(S, int64_t, n_threads)                                                                 \
  F(S, const int32_t *, first)   /* of each sentence, the longest first: its first row */                             \
  F(S, const int32_t *, n_chars) /* and how many it has */                                                            \
  F(S, const float *, inputs)    /* [rows, 2, 4 width]: what the layer's input adds to the gates, biases included */  \
  F(S, float *, out)             /* [rows, 2, width] */
DEFINE(LstmRun, LSTM_RUN);

/* Returns 0, or 1 if memory ran out. */
int lstm_layer(const Lstm *lstm, const LstmRun *run);

#endif
