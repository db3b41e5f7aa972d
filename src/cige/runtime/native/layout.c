/* The table of all structs that cross the boundary, and the constants that both sides name. */

#include "layout.h"

#include <stddef.h>

#include "marginals.h"
#include "model.h"

#define TYPE_OF(X)                                                                                                    \
  _Generic((X), int32_t: "int32", int64_t: "int64", double: "float64", const uint8_t *: "bool*",                      \
      const uint16_t *: "float16*", const int32_t *: "int32*", int32_t *: "int32*", const uint32_t *: "uint32*",      \
      const int64_t *: "int64*", const uint64_t *: "uint64*", const float *: "float32*", float *: "float32*",         \
      const double *: "float64*", double *: "float64*", const void *: "void*", const char *: "text",                  \
      const float *const *: "pointer*", const Chain *const *: "pointer*", ScoredSpan *: "ScoredSpan*", Linear: "Linear", \
      Table: "Table", Norm: "Norm", Codes: "Codes", Pairs: "Pairs", Transitions: "Transitions",                       \
      const Layer *: "Layer*", const Chain *: "Chain*", const Families *: "Families*", const Rules *: "Rules*",       \
      const Vocabulary *: "Vocabulary*", const Flat *: "Flat*", const Lstm *: "Lstm*")

#define ROW(STRUCT, TYPE, NAME)                                                                                       \
  {#STRUCT, #NAME, TYPE_OF(((const STRUCT *)0)->NAME), (int32_t)offsetof(STRUCT, NAME), (int32_t)sizeof(TYPE)},
#define OF(STRUCT, FIELDS) {#STRUCT, NULL, "struct", 0, (int32_t)sizeof(STRUCT)}, FIELDS(ROW, STRUCT)
#define CONSTANT(NAME) {#NAME, NULL, NULL, NAME, 0},

static const Field table[] = {
    OF(Linear, LINEAR) OF(Table, TABLE) OF(Norm, NORM) OF(Layer, LAYER) OF(Flat, FLAT) OF(Sentences, SENTENCES)
    OF(Transitions, TRANSITIONS) OF(Chain, CHAIN) OF(Families, FAMILIES) OF(Rules, RULES)
    OF(ScoredSpan, SCORED_SPAN) OF(Emissions, EMISSIONS) OF(Reading, READING)
    OF(Codes, CODES) OF(Pairs, PAIRS) OF(Vocabulary, VOCABULARY) OF(Lattices, LATTICES)
    OF(RowsOfTables, ROWS_OF_TABLES) OF(Lstm, LSTM) OF(LstmRun, LSTM_RUN) OF(Model, MODEL) OF(Problem, PROBLEM)
    CONSTANT(PANEL) CONSTANT(BLOCK) CONSTANT(FLOAT32) CONSTANT(BFLOAT16) CONSTANT(INT8) CONSTANT(INT16)
    CONSTANT(PLAIN) CONSTANT(ADD) CONSTANT(RELU)
    CONSTANT(DONE) CONSTANT(NO_MEMORY) CONSTANT(MISSING) CONSTANT(NO_ROOM)
    {NULL, NULL, NULL, 0, 0},
};

const Field *layout_of_structs(void) { return table; }
