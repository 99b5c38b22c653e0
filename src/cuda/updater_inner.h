// Internals of the GPU updater: updater.c creates it, plans, and copies for checkpoints;
// updater_step.c makes steps.
#ifndef BELFRY_CUDA_UPDATER_INNER_H
#define BELFRY_CUDA_UPDATER_INNER_H

#include "cuda/device.h"
#include "cuda/kernels/update.h"
#include "cuda/updater.h"

// A GPU, and the range of the space that it updates.
typedef struct bel_cuda_place {
    bel_cuda_device *device;
    void *stream, *done;      // `done`: an event
    bel_device_memory values; // the whole space
    int first_piece, piece_count;
    int64_t first, elements; // in the space, from its first piece to the end of its last
    int64_t first_grain, grain_count;
    bel_device_memory pieces, numbers, averages, directions, squares, hashes;
    bel_device_memory slots[BEL_RULE_MAX_SLOTS];
    bel_device_memory gathered; // gradients of other GPUs, one range after another
    void *kernel_update, *kernel_direct, *kernel_follow, *kernel_hash;
    bel_cuda_operands operands;
    bel_cuda_update params;
} bel_cuda_place;

// A replica, and its gradients on its tower's GPU.
typedef struct bel_cuda_replica {
    int place;
    bel_device_memory gradients;
} bel_cuda_replica;

typedef struct bel_cuda_updater {
    bel_updater updater; // first: a bel_updater is cast to this
    const bel_cuda_api *api;
    int64_t elements;
    bel_cuda_place *places;
    int place_count;
    int *place_of; // by tower
    bel_cuda_replica *replicas;
    int replica_count, tower_count;
    bel_update_plan plan; // its arrays and groups; pieces are on the GPUs
    bool planned;
    char *staged; // pinned: the numbers of a step, which GPUs copy from here …
    size_t staged_bytes;
    double *squares;  // … then the squares that `direct` gives, which GPUs copy here
    uint64_t *hashes; // and then the hashes of blocks, of each GPU
} bel_cuda_updater;

static inline bel_cuda_updater *bel_cuda_updater_of(bel_updater *updater)
{
    return (bel_cuda_updater *)updater;
}

static inline size_t bel_cuda_float_bytes(int64_t elements)
{
    return (size_t)elements * sizeof(float);
}

// Elements from one gathered range of gradients to the next. Kernels read four elements at a time,
// which must start at multiples of 16 bytes.
static inline int64_t bel_cuda_stride_of(const bel_cuda_place *p)
{
    return (p->elements + 3) / 4 * 4;
}

static inline uint64_t bel_cuda_address_of(const bel_device_memory *memory, int64_t element)
{
    return (uint64_t)(uintptr_t)memory->address + bel_cuda_float_bytes(element);
}

static inline size_t bel_cuda_square_count(const bel_update_plan *plan)
{
    if (!plan->norms) return 0;
    return (size_t)(plan->trusts ? 2 : 1) * (size_t)plan->grain_count;
}

// Waits for all queued work, on all GPUs, after any `status` of queueing it. Returns the first
// error. If one GPU timed out, the others count as lost with it.
bel_status *bel_cuda_updater_finish(bel_cuda_updater *u, bel_status *status) BEL_MUST_USE;

// Operations of bel_updater_ops.
bel_status *bel_cuda_updater_update(bel_updater *updater, const bel_update_step *step) BEL_MUST_USE;
bel_status *bel_cuda_updater_direct(bel_updater *updater, const bel_update_step *step,
                                    double *out_squares) BEL_MUST_USE;
bel_status *bel_cuda_updater_follow(bel_updater *updater, const bel_update_step *step) BEL_MUST_USE;
bel_status *bel_cuda_updater_compare(bel_updater *updater) BEL_MUST_USE;

#endif
