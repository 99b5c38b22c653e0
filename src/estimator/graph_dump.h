// What a training step computes, for people: `belfry graph`.
#ifndef BELFRY_ESTIMATOR_GRAPH_DUMP_H
#define BELFRY_ESTIMATOR_GRAPH_DUMP_H

#include "base/str.h"
#include "belfry/estimator.h"

typedef struct bel_graph_dump_options {
    bool measure;
    bool dump;
    unsigned passes_off; // bits (1 << bel_pass)
} bel_graph_dump_options;

// Compiles the model's training program for a full batch and writes it to `out`: an instruction a
// line, in the order in which they run, then what memory the plan takes and the least that any
// could. With `measure` the program runs on the first batch, with initial values and on one thread;
// each line has its time and share, the time that is expected of it (runtime/cost.h), and how far
// that is off. With `dump` the graph is written instead, before the passes and after them, and how
// much each of them did. Errors: those of input and model; RESOURCE_EXHAUSTED.
bel_status *bel_estimator_dump_graph(const bel_estimator *estimator, const bel_train_spec *train,
                                     const bel_graph_dump_options *options,
                                     bel_str *out) BEL_MUST_USE;

#endif
