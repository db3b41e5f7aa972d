/* A model, all that C reads of it: `check_model` looks once at what was filled, and a Model that passed is the handle by
   which Python and JavaScript call the rest. */

#ifndef CIGE_MODEL_H
#define CIGE_MODEL_H

#include "chain.h"
#include "flat.h"
#include "lstm.h"
#include "rows_of_tables.h"

/* What a model has; the others are NULL. */
#define MODEL(F, S)                                                                                                   \
  F(S, const Vocabulary *, vocabulary) F(S, const Flat *, flat)                                                       \
  F(S, const uint8_t *, is_known) /* [rows of characters], whether char_rows of `flat` has one */                     \
  F(S, const Chain *, chain) F(S, const Lstm *, lstm)
DEFINE(Model, MODEL);

/* Why a model cannot be read, as in flat.layers[1].ff_in.n_in: `part` is flat.layers, `inner` ff_in, or NULL, and `field`
   n_in, or NULL where an array has a wrong entry. `given` is no number where a pointer is NULL. */
#define PROBLEM(F, S)                                                                                                 \
  F(S, const char *, part)                                                                                            \
  F(S, int64_t, number) /* of the layer or the entry, or -1 */                                                        \
  F(S, const char *, inner) F(S, const char *, field) F(S, double, given) F(S, double, least) F(S, double, most)
DEFINE(Problem, PROBLEM);

/* Returns 0 if the counts, ranges, widths and precisions of these structs fit each other and no array is missing, else 1
   with the first problem. What is in arrays of weights and mapped files is for the caller to check. */
int check_model(const Model *model, Problem *problem);

/* From lattices to spans in one call: rows of the tables, FLAT, the chain. Returns what read_chain does, or MISSING if
   something of the model's tables is still to be made. */
int read_lattices(const Model *model, const Lattices *lattices, const Reading *reading);

#endif
