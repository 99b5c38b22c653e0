// Runner of an input's batches through a model without training, several side by side. Evaluation,
// prediction and evaluation helpers share it. Bound to one thread.
#ifndef BELFRY_ESTIMATOR_BLOCKS_H
#define BELFRY_ESTIMATOR_BLOCKS_H

#include "evaluate/evaluation.h"

// One of the batches that ran last.
typedef struct bel_block_run {
    int64_t block;          // -1: no batch
    bel_instance *instance; // with the outputs; NULL: the batch had no example
    const bel_batch *batch;
} bel_block_run;

typedef struct bel_blocks bel_blocks;

// Creates a runner. Its outputs in EVAL are the loss, its weight, then sum and weight of each
// metric, then the confusion matrix if `details` are wanted; in PREDICT they are bel_spec_outputs.
// The config is borrowed. INVALID_ARGUMENT: the input repeats forever and there are no steps.
bel_status *bel_blocks_create(const bel_evaluation_config *config,
                              bel_blocks **out_blocks) BEL_MUST_USE;
void bel_blocks_destroy(bel_blocks *blocks); // accepts NULL

// Total number of blocks; number of outputs of each; output i as a graph value.
int64_t bel_blocks_count(const bel_blocks *blocks);
int bel_blocks_outputs(const bel_blocks *blocks);
const bel_value *bel_blocks_output(const bel_blocks *blocks, int output);

// Runs block wanted[t] (-1: no block) on tower t, all side by side. *out_runs is indexed by tower,
// and valid until the next call. Returns the error of the lowest tower that has one, with its
// block.
bel_status *bel_blocks_run(bel_blocks *blocks, const int64_t *wanted,
                           const bel_block_run **out_runs) BEL_MUST_USE;

#endif
