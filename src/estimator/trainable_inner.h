// What the files of a trainable share: trainable.c makes it, trainable_check.c says what cannot be
// trained, updates.c where it is updated.
#ifndef BELFRY_ESTIMATOR_TRAINABLE_INNER_H
#define BELFRY_ESTIMATOR_TRAINABLE_INNER_H

#include "estimator/trainable.h"

// By step function: for each variable what it reports, then for each lookup the gradients of rows;
// NULL: nothing.
static inline bel_value **bel_trainable_reports(const bel_trainable *t, int function)
{
    const bel_graph *graph = t->built->graph;
    return t->reports + (size_t)function * (graph->variable_count + graph->lookup_count);
}

// Before gradients are asked for.
bel_status *bel_trainable_check_tables(const bel_trainable *t) BEL_MUST_USE;
// Once it is laid out. FAILED_PRECONDITION: update_device is CUDA, but cards cannot update these
// parameters; says why.
bel_status *bel_trainable_check_updates(const bel_trainable *t) BEL_MUST_USE;

// What the program of a step takes of a tower's memory, for a full batch. Errors as of
// bel_program_compile.
bel_status *bel_trainable_arena_bytes(const bel_trainable *t, const bel_program_options *options,
                                      int64_t *out_bytes) BEL_MUST_USE;

// With them.
bel_status *bel_trainable_check(const bel_trainable *t) BEL_MUST_USE;

#endif
