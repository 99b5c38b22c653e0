// Running a program whose variables are more than memory is to hold: in stages, runs of groups of
// instructions whose variables fit into half of it. While one stage computes, a thread reads the
// variables of the next one into the other half, also over the end of a run into the next one; so a
// run takes as long as the longer of computing and reading. What a stage reads twice is read twice.
// The bits are those of a run with all variables in memory. Bound to one thread at a time.
#ifndef BELFRY_PREDICTOR_STAGING_H
#define BELFRY_PREDICTOR_STAGING_H

#include "runtime/program.h"

typedef struct bel_staging bel_staging;

// Where the elements of a variable are read from when they are needed: memory, or what a function
// says.
typedef struct bel_staged_source {
    const float *elements; // NULL: the function writes them
    size_t size_bytes;
    bool mapped; // elements are from a file: pages that were read are given back at once
} bel_staged_source;

// Writes the elements of a variable. Each staging calls it on its own thread, so several may at
// once. Its error ends the run that needs them, and all later ones.
typedef bel_status *bel_stage_read_fn(void *context, int variable, void *out_elements);

// By variable of the program's graph.
typedef struct bel_staged_variables {
    const bel_staged_source *sources;
    int count;
    bel_stage_read_fn *read; // NULL: all have elements
    void *context;
} bel_staged_variables;

// `variables` are copied, what they point to stays, as program and instance do. The program is
// compiled without fixed variables, and for the synchronous executor. What the outputs show of
// variables is in memory besides. RESOURCE_EXHAUSTED: a group of instructions needs more than half
// of `memory_bytes`; says how much. Takes nothing on an error.
bel_status *bel_staging_create(const bel_program *program, bel_instance *instance,
                               const bel_staged_variables *variables, size_t memory_bytes,
                               bel_staging **out_staging) BEL_MUST_USE;
void bel_staging_destroy(bel_staging *staging); // accepts NULL

// As bel_instance_run. Errors of reading; UNAVAILABLE: a stage was not read within ten minutes.
bel_status *bel_staging_run(bel_staging *staging, bel_team *team,
                            bel_run_context *context) BEL_MUST_USE;

int bel_staging_count(const bel_staging *staging);    // stages
size_t bel_staging_bytes(const bel_staging *staging); // that hold variables at most

#endif
