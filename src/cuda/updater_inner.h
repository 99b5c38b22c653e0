// What the files of the cards' updater share: updater.c makes it, plans and copies for checkpoints,
// updater_step.c makes steps.
#ifndef BELFRY_CUDA_UPDATER_INNER_H
#define BELFRY_CUDA_UPDATER_INNER_H

#include "cuda/device.h"
#include "cuda/kernels/update.h"
#include "cuda/updater.h"

// A card, and the range of the space that it updates.
typedef struct bel_cuda_place {
    bel_cuda_device *device;
    void *stream, *done;      // an event
    bel_device_memory values; // of the whole space
    int first_piece, piece_count;
    int64_t first, elements; // of the space, from its first piece to its last one's end
    int64_t first_grain, grain_count;
    bel_device_memory pieces, numbers, averages, directions, squares, hashes;
    bel_device_memory slots[BEL_RULE_MAX_SLOTS];
    bel_device_memory gathered; // gradients of other cards, one range after another
    void *kernel_update, *kernel_direct, *kernel_follow, *kernel_hash;
    bel_cuda_operands operands;
    bel_cuda_update params;
} bel_cuda_place;

// A replica, and its gradients on its tower's card.
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
    bel_update_plan plan; // its arrays and groups; pieces are on the cards
    bool planned;
    char *staged; // pinned: the numbers of a step, which cards copy from here …
    size_t staged_bytes;
    double *squares; // … and behind them the squares, as `direct` gives them, which they copy here
    uint64_t *hashes; // and behind these the hashes of blocks, of each card
} bel_cuda_updater;

static inline bel_cuda_updater *bel_cuda_updater_of(bel_updater *updater)
{
    return (bel_cuda_updater *)updater;
}

static inline size_t bel_cuda_float_bytes(int64_t elements)
{
    return (size_t)elements * sizeof(float);
}

// From one gathered range of gradients to the next. Kernels take four elements at a time, and a
// card those at multiples of 16 bytes alone.
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

// Whatever `status` has come of queueing: waits for what was queued, on all cards. The first error
// is told. Where one card has not ended in time the others count as lost with it.
bel_status *bel_cuda_updater_finish(bel_cuda_updater *u, bel_status *status) BEL_MUST_USE;

// As of bel_updater_ops.
bel_status *bel_cuda_updater_update(bel_updater *updater, const bel_update_step *step) BEL_MUST_USE;
bel_status *bel_cuda_updater_direct(bel_updater *updater, const bel_update_step *step,
                                    double *out_squares) BEL_MUST_USE;
bel_status *bel_cuda_updater_follow(bel_updater *updater, const bel_update_step *step) BEL_MUST_USE;
bel_status *bel_cuda_updater_compare(bel_updater *updater) BEL_MUST_USE;

#endif
