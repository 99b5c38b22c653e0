// Batches of an input that run side by side through a model without training: what evaluation,
// prediction and whoever helps with an evaluation have in common. Bound to one thread.
#ifndef BELFRY_ESTIMATOR_BLOCKS_H
#define BELFRY_ESTIMATOR_BLOCKS_H

#include "estimator/evaluation.h"

// One of the batches that ran last.
typedef struct bel_block_run {
    int64_t block;          // -1: none
    bel_instance *instance; // with the outputs; NULL: the batch had no example
    const bel_batch *batch;
} bel_block_run;

typedef struct bel_blocks bel_blocks;

// Outputs in EVAL: the loss, its weight, then of each metric sum and weight, then the confusion
// matrix where `details` are wanted; in PREDICT bel_spec_outputs. The config is borrowed.
// INVALID_ARGUMENT: the input repeats forever and there are no steps.
bel_status *bel_blocks_create(const bel_evaluation_config *config,
                              bel_blocks **out_blocks) BEL_MUST_USE;
void bel_blocks_destroy(bel_blocks *blocks); // accepts NULL

// How many blocks are run in all; how many outputs each has, and what they are in the graph.
int64_t bel_blocks_count(const bel_blocks *blocks);
int bel_blocks_outputs(const bel_blocks *blocks);
const bel_value *bel_blocks_output(const bel_blocks *blocks, int output);

// Runs block wanted[t] (-1: none) on tower t, all side by side; *out_runs is by tower, until the
// next call. The error of the lowest tower that has one, with its block.
bel_status *bel_blocks_run(bel_blocks *blocks, const int64_t *wanted,
                           const bel_block_run **out_runs) BEL_MUST_USE;

#endif
