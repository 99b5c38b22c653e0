// The memory of a parameter space as one process sees it: two buffers of the whole space and, for
// each chunk, which of them is current. In one process shards and workers share it, so parameters
// are never copied. A buffer is overwritten only when every counted worker has reported a later
// step, so synchronous workers read in place.
#ifndef BELFRY_PS_LAYOUT_SPACE_H
#define BELFRY_PS_LAYOUT_SPACE_H

#include <stdatomic.h>

#include "ps/layout/layout.h"

typedef struct bel_space {
    const bel_layout *layout;
    float *buffers[2];
    int owned_buffers;
    atomic_uchar *current; // by chunk
} bel_space;

// Two buffers, or one that is updated in place, where nobody reads while updates run.
// RESOURCE_EXHAUSTED without memory. All elements are zero, buffer 0 is current.
bel_status *bel_space_create(const bel_layout *layout, int buffer_count,
                             bel_space **out_space) BEL_MUST_USE;

// The same over two arrays of the caller's, which outlive it; zeroed.
bel_space *bel_space_over(const bel_layout *layout, float *const buffers[2]);
void bel_space_destroy(bel_space *space);

// Bytes of an array as large as the space, in whole pages.
size_t bel_space_bytes(const bel_layout *layout);

// A flat array as large as the space (slots, snapshots); free with bel_space_free_array. Pages that
// are never written to take no memory: a shard's arrays cost as much as its chunks. Freeing NULL is
// fine, also without a layout.
bel_status *bel_space_array(const bel_layout *layout, const char *what,
                            float **out_array) BEL_MUST_USE;
void bel_space_free_array(const bel_layout *layout, float *array);

// `count` such arrays (a worker's gradient ranges), with all their pages; NULL is fine when they
// are freed.
bel_status *bel_space_arrays(const bel_layout *layout, const char *what, int count,
                             float ***out_arrays) BEL_MUST_USE;
void bel_space_free_arrays(const bel_layout *layout, float **arrays, int count);

// Where variable `variable` of the current version lies: all chunks of a variable are updated in
// the same steps, so its first chunk tells for all.
const float *bel_space_variable(const bel_space *space, int variable);

// The buffer of the whole space that is current for a chunk.
const float *bel_space_of_chunk(const bel_space *space, int chunk);

// Initial values of all variables: bel_initial_values.
bel_status *bel_space_initialize(const bel_layout *layout, uint64_t seed,
                                 float *values) BEL_MUST_USE;

#endif
