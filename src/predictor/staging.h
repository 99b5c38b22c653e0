// Running a program whose variables are more than memory is to hold: in stages, runs of groups of
// instructions whose variables fit into half of it. While one stage computes, a thread reads the
// variables of the next one into the other half, also over the end of a run into the next one; so a
// run takes as long as the longer of computing and reading. What a stage reads twice is read twice.
// The bits are those of a run with all variables in memory. Bound to one thread at a time.
#ifndef BELFRY_PREDICTOR_STAGING_H
#define BELFRY_PREDICTOR_STAGING_H

#include "runtime/program.h"

typedef struct bel_staging bel_staging;

// Where the elements of a variable lie: in memory that is read when they are needed.
typedef struct bel_staged_source {
    const float *elements;
    size_t size_bytes;
    bool mapped; // from a file: pages that were read are given back at once
} bel_staged_source;

// `sources` by variable of the program's graph, which stay, as program and instance do. The program
// is compiled without fixed variables, and for the synchronous executor. What the outputs show of
// variables is read where it lies. RESOURCE_EXHAUSTED: a group of instructions needs more than half
// of `memory_bytes`; says how much. Takes nothing on an error.
bel_status *bel_staging_create(const bel_program *program, bel_instance *instance,
                               const bel_staged_source *sources, int variable_count,
                               size_t memory_bytes, bel_staging **out_staging) BEL_MUST_USE;
void bel_staging_destroy(bel_staging *staging); // accepts NULL

// As bel_instance_run. UNAVAILABLE: a stage was not read within ten minutes.
bel_status *bel_staging_run(bel_staging *staging, bel_team *team,
                            bel_run_context *context) BEL_MUST_USE;

int bel_staging_count(const bel_staging *staging);    // stages
size_t bel_staging_bytes(const bel_staging *staging); // that hold variables at most

#endif
