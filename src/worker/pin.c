// Pins the memory that the GPUs of a worker's towers copy from and to, as far as the system allows.
// Copies are then several times as fast, and continue while the host does other work. The memory is
// unpinned before it is freed or replaced by another mapping, at the worker's destruction: its
// towers have finished by then. A lost GPU gets no more calls (cuda/device.c).
#include "worker/worker_inner.h"

// NULL: no GPU. Memory pinned for one GPU is pinned for all.
static bel_device *first_card(const bel_worker *worker)
{
    for (int t = 0; worker->devices != NULL && t < worker->config.tower_count; t++)
        if (worker->devices[t] != NULL) return worker->devices[t];
    return NULL;
}

// GPUs copy gradients into ranges, unless these are theirs, and into and out of rows.
void bel_worker_pin_own(const bel_worker *worker, bool pins)
{
    const bel_worker_config *config = &worker->config;
    bel_device *card = first_card(worker);
    if (card == NULL) return;
    for (int r = 0; r < worker->replica_count && config->updater == NULL; r++)
        bel_device_pin(card, config->ranges[r], bel_space_bytes(config->layout), pins);
    bel_worker_pin_rows(worker, card, pins);
}

// GPUs also copy parameters from the space, from the buffers that hold versions. The first version
// makes their memory final, as other processes' memory is then mapped over it (bel_client_config).
// If it were pinned before, GPUs would continue to read the old pages.
void bel_worker_pin_space(bel_worker *worker)
{
    const bel_space *space = worker->config.space;
    bel_device *card = first_card(worker);
    const unsigned both = 3;
    unsigned used = 0;
    if (card == NULL || worker->config.updater != NULL || worker->pinned == both) return;
    for (int c = 0; c < worker->config.layout->chunk_count; c++)
        used |= 1u << atomic_load_explicit(&space->current[c], memory_order_acquire);
    for (int b = 0; b < 2; b++)
        if ((used & ~worker->pinned) >> b & 1)
            bel_device_pin(card, space->buffers[b], bel_space_bytes(worker->config.layout), true);
    worker->pinned |= used;
}

void bel_worker_unpin_space(const bel_worker *worker)
{
    for (int b = 0; b < 2; b++)
        if (worker->pinned >> b & 1)
            bel_device_pin(first_card(worker), worker->config.space->buffers[b],
                           bel_space_bytes(worker->config.layout), false);
}
