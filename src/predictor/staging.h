// Staging: runs a program whose variables exceed the allowed memory, by double buffering. A stage
// is a range of groups of instructions whose variables fit into half of the memory. While one stage
// computes, a thread reads the next one's variables into the other half, also from the end of one
// run into the next. So a run takes the longer of the times of computing and reading. A variable
// used by two stages is read twice. The bits are those of a run with all variables in memory. Bound
// to one thread at a time.
#ifndef BELFRY_PREDICTOR_STAGING_H
#define BELFRY_PREDICTOR_STAGING_H

#include "runtime/program.h"

typedef struct bel_staging bel_staging;

// Source of a variable's elements: memory, or a function.
typedef struct bel_staged_source {
    const float *elements; // NULL: the function writes them
    size_t size_bytes;
    bool mapped; // elements are in a mapped file: pages are released as soon as they have been read
} bel_staged_source;

// Writes the elements of a variable. Each staging calls it on a separate thread, so calls may be
// concurrent. An error ends the run that needs them, and all later ones.
typedef bel_status *bel_stage_read_fn(void *context, int variable, void *out_elements);

// Variables, by index in the program's graph.
typedef struct bel_staged_variables {
    const bel_staged_source *sources;
    int count;
    bel_stage_read_fn *read; // NULL: all have elements in memory
    void *context;
} bel_staged_variables;

// `variables` are copied, but not the data that they point to; that data, program and instance must
// outlive the staging. The program must be compiled without fixed variables, and for the
// synchronous executor. Variables that outputs show need memory in addition. RESOURCE_EXHAUSTED: a
// group of instructions needs more than half of `memory_bytes`; the message has the size. Takes
// ownership of nothing on an error.
bel_status *bel_staging_create(const bel_program *program, bel_instance *instance,
                               const bel_staged_variables *variables, size_t memory_bytes,
                               bel_staging **out_staging) BEL_MUST_USE;
void bel_staging_destroy(bel_staging *staging); // accepts NULL

// Like bel_instance_run. Errors of reading; UNAVAILABLE: a stage was not read within ten minutes.
bel_status *bel_staging_run(bel_staging *staging, bel_team *team,
                            bel_run_context *context) BEL_MUST_USE;

int bel_staging_count(const bel_staging *staging);    // stages
size_t bel_staging_bytes(const bel_staging *staging); // maximum memory of variables

#endif
