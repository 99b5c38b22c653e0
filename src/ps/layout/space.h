// Memory of a parameter space as one process sees it: two buffers of the whole space and, for each
// chunk, the number of its current buffer. In one process shards and workers share it, so
// parameters are never copied. A buffer is overwritten only after every counted worker has reported
// a later step, so synchronous workers read in place.
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

// Creates two buffers, or one that is updated in place if no thread reads during updates. All
// elements are zero, buffer 0 is current. RESOURCE_EXHAUSTED: no memory.
bel_status *bel_space_create(const bel_layout *layout, int buffer_count,
                             bel_space **out_space) BEL_MUST_USE;

// Creates the same over two arrays of the caller, which must outlive it. They are set to zero.
bel_space *bel_space_over(const bel_layout *layout, float *const buffers[2]);
void bel_space_destroy(bel_space *space);

// True if updates are made in place, in the only buffer.
static inline bool bel_space_is_in_place(const bel_space *space)
{
    return space->buffers[0] == space->buffers[1];
}

// Returns the bytes of an array as large as the space, rounded up to pages.
size_t bel_space_bytes(const bel_layout *layout);

// Creates a flat array as large as the space (slots, snapshots); free it with bel_space_free_array.
// Pages that are never written take no memory, so a shard's arrays cost as much as its chunks.
bel_status *bel_space_array(const bel_layout *layout, const char *what,
                            float **out_array) BEL_MUST_USE;
// NULL is allowed for `array`, and then also for `layout`.
void bel_space_free_array(const bel_layout *layout, float *array);

// Creates `count` such arrays (a worker's gradient ranges), with all their pages.
bel_status *bel_space_arrays(const bel_layout *layout, const char *what, int count,
                             float ***out_arrays) BEL_MUST_USE;
// NULL is allowed for `arrays`.
void bel_space_free_arrays(const bel_layout *layout, float **arrays, int count);

// Returns variable `variable` of the current version. All chunks of a variable are updated in the
// same steps, so its first chunk decides.
const float *bel_space_variable(const bel_space *space, int variable);

// Returns the buffer of the whole space that is current for a chunk.
const float *bel_space_of_chunk(const bel_space *space, int chunk);

// Computes the initial values of all variables (bel_initial_values).
bel_status *bel_space_initialize(const bel_layout *layout, uint64_t seed,
                                 float *values) BEL_MUST_USE;

#endif
