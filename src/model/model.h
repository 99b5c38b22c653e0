// Calls of a model function: the context that it sees, and the result.
#ifndef BELFRY_ESTIMATOR_MODEL_H
#define BELFRY_ESTIMATOR_MODEL_H

#include "belfry/replica.h"
#include "graph/graph.h"
#include "input/batch/input.h"
#include "model/spec.h"
#include "optim/optimizers.h"

// TRAIN: result of a step function (belfry/replica.h); in most jobs the model function is the only
// one.
typedef struct bel_built_function {
    const char *name;        // NULL: the model function
    char *loss_name;         // "<name>/loss"; NULL: the model function
    const char *variables;   // bel_step_function's
    bel_estimator_spec spec; // checked
    bel_value **assigned; // by graph variable, up to assigned_count: a state variable's next value
    size_t assigned_count;
} bel_built_function;

// A graph with the meaning of its values, for one mode. Immutable once built.
typedef struct bel_built {
    bel_mode mode;
    bel_graph *graph;
    bel_estimator_spec spec;       // checked for the mode; TRAIN: spec of the first function
    bel_built_function *functions; // TRAIN: they share the graph
    bel_optimizers *optimizers;    // TRAIN, by function: the specs', checked
    int function_count;
    int *fields; // by graph input: the batch's field; -1: rows of a table
} bel_built;

// Lists the predictions of a checked spec, its predictions first, if set. Returns their number.
int bel_spec_outputs(const bel_estimator_spec *spec, bel_output out_list[BEL_MAX_OUTPUTS + 1]);

// INVALID_ARGUMENT: a summary with a name has the wrong type or shape for its kind.
bel_status *bel_summary_check(const bel_summary *summary) BEL_MUST_USE;

// Whether a step function may update a variable: its patterns match the name. NULL: all do.
bool bel_step_function_names(const char *patterns, const char *name);

// Calls the estimator's model function, or in TRAIN the step functions of `loop` (NULL: no loop),
// with an input for each field of `input` (without labels in PREDICT). `kept_replicas`: number of
// replicas whose values variables have; 0: that of this job (TRAIN). Errors: the function's, or the
// graph's sticky error; a missing part of the spec (INVALID_ARGUMENT, names it); metrics or loss of
// a wrong shape.
bel_status *bel_model_build(const bel_estimator *estimator, bel_mode mode, const bel_loop *loop,
                            const bel_input *input, int kept_replicas,
                            bel_built **out_built) BEL_MUST_USE;
void bel_built_destroy(bel_built *built);

#endif
