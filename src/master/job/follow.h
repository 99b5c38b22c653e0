// Loop of a training on a file that grows: it asks for a step when the records of all its replicas
// are there. So each step is whole, workers wait for no data, and the master decides when the file
// ends, whatever other hosts see of it.
#ifndef BELFRY_MASTER_JOB_FOLLOW_H
#define BELFRY_MASTER_JOB_FOLLOW_H

#include "base/input_segment.h"
#include "belfry/replica.h"
#include "input/batch/input.h"

typedef struct bel_follow bel_follow;

// `input` follows a file, and must outlive it.
bel_follow *bel_follow_create(const bel_input *input);
void bel_follow_destroy(bel_follow *follow); // accepts NULL; its loop has returned

// The loop, for a bel_replicator.
bel_loop bel_follow_loop(bel_follow *follow);

// Sets the blocks of steps. Call it before the loop starts or continues.
void bel_follow_set_segment(bel_follow *follow, const bel_input_segment *segment);

#endif
