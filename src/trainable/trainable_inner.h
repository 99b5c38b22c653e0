// Declarations that a trainable's files share: trainable.c makes it, trainable_check.c refuses
// models that cannot be trained, updates.c chooses the place of updates.
#ifndef BELFRY_ESTIMATOR_TRAINABLE_INNER_H
#define BELFRY_ESTIMATOR_TRAINABLE_INNER_H

#include "trainable/trainable.h"

// By step function: the report of each variable, then for each lookup the gradients of rows; NULL:
// nothing.
static inline bel_value **bel_trainable_reports(const bel_trainable *t, int function)
{
    const bel_graph *graph = t->built->graph;
    return t->reports + (size_t)function * (graph->variable_count + graph->lookup_count);
}

// Called before gradients are added.
bel_status *bel_trainable_check_tables(const bel_trainable *t) BEL_MUST_USE;
// Called after the layout. FAILED_PRECONDITION: update_device is CUDA, but GPUs cannot update these
// parameters; the message has the reason.
bel_status *bel_trainable_check_updates(const bel_trainable *t) BEL_MUST_USE;

// Computes the memory of a tower for the program of a step, for a full batch. Errors are those of
// bel_program_compile.
bel_status *bel_trainable_arena_bytes(const bel_trainable *t, const bel_program_options *options,
                                      int64_t *out_bytes) BEL_MUST_USE;

// Called after gradients are added.
bel_status *bel_trainable_check(const bel_trainable *t) BEL_MUST_USE;

#endif
