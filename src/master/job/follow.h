// Loop of a training on a file that grows: it asks for a step when the records of all its replicas
// are there. So each step is whole, workers wait for no data, and the master decides when the file
// ends, whatever other hosts see of it.
#ifndef BELFRY_MASTER_JOB_FOLLOW_H
#define BELFRY_MASTER_JOB_FOLLOW_H

#include "base/input_segment.h"
#include "belfry/replica.h"
#include "trainable/trainable.h"

typedef struct bel_str bel_str; // base/str.h
typedef struct bel_follow bel_follow;

// The trainable's input follows a file. It must outlive the result, which counts its `rests`.
bel_follow *bel_follow_create(bel_trainable *trainable);
void bel_follow_destroy(bel_follow *follow); // accepts NULL; its loop has returned

// The loop, for a bel_replicator.
bel_loop bel_follow_loop(bel_follow *follow);

// Sets the blocks of steps. Call it before the loop starts or continues.
void bel_follow_set_segment(bel_follow *follow, const bel_input_segment *segment);

// Appends the mark of the rows before `step` (bel_input_mark), the next step of `segment`. So the
// file still has the rows that were learned. Errors: those of bel_input_mark.
bel_status *bel_follow_mark(const bel_follow *follow, const bel_input_segment *segment,
                            int64_t step, bel_str *out_text) BEL_MUST_USE;

// Begins after the rows that a checkpoint at `step` has learned, which are not read again. `mark`:
// as above, as of then.
// DATA_LOSS: the file has other rows, or fewer.
bel_status *bel_follow_begin(bel_follow *follow, const bel_input_segment *segment, int64_t step,
                             const char *mark) BEL_MUST_USE;

// Tells that a checkpoint at `step` is visible: no mark of fewer rows is made any more.
void bel_follow_saved(bel_follow *follow, const bel_input_segment *segment, int64_t step);

#endif
