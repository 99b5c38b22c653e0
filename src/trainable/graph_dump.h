// Readable dump of a training step: `belfry graph`.
#ifndef BELFRY_ESTIMATOR_GRAPH_DUMP_H
#define BELFRY_ESTIMATOR_GRAPH_DUMP_H

#include "belfry/estimator.h"

typedef struct bel_str bel_str; // base/str.h

typedef struct bel_graph_dump_options {
    bool measure;
    bool dump;
    unsigned passes_off; // bits (1 << bel_pass)
} bel_graph_dump_options;

// Compiles the model's training program for a full batch and writes it to `out`: one instruction a
// line, in execution order, then the memory of the plan and the lower bound of any plan. With
// `measure` the program runs on the first batch, with initial values and on one thread; each line
// has its time and share, its predicted time (runtime/cost.h), and the prediction's error. With
// `dump` the graph is written instead, before and after the passes, with the effect of each pass.
// Errors: those of input and model; RESOURCE_EXHAUSTED.
bel_status *bel_estimator_dump_graph(const bel_estimator *estimator, const bel_train_spec *train,
                                     const bel_graph_dump_options *options,
                                     bel_str *out) BEL_MUST_USE;

#endif
