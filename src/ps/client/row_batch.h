// The ids of a batch as rows of a table: each distinct id once, and the index back to it.
//
// A batch may name an id many times. Rows are pulled once for each distinct id, in ascending order.
// Gradients of equal ids are summed before they are sent, in order of their positions in the batch,
// so that the sum's bits are a function of the batch. A position whose id is BEL_NO_ID has no row.
#ifndef BELFRY_PS_CLIENT_ROW_BATCH_H
#define BELFRY_PS_CLIENT_ROW_BATCH_H

#include <stdint.h>

#include "belfry/status.h"

typedef struct bel_row_batch bel_row_batch;

// Creates a batch of at most `capacity` ids; later calls allocate nothing. RESOURCE_EXHAUSTED.
bel_status *bel_row_batch_create(int64_t capacity, bel_row_batch **out_batch) BEL_MUST_USE;
void bel_row_batch_destroy(bel_row_batch *batch);

// Sets n ids (n ≤ capacity) and finds the distinct ones.
void bel_row_batch_set(bel_row_batch *batch, const int64_t *ids, int64_t n);
int64_t bel_row_batch_count(const bel_row_batch *batch);       // distinct ids
const int64_t *bel_row_batch_keys(const bel_row_batch *batch); // ascending
// By position: index of the key; -1: no id.
const int32_t *bel_row_batch_index(const bel_row_batch *batch);

// out_sums[k] = the sum of the gradient rows at the positions of key k; count × width.
void bel_row_batch_sum(const bel_row_batch *batch, const float *gradients, int width,
                       float *out_sums);

#endif
