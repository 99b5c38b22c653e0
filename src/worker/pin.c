// What cards of a worker's towers copy from and to is pinned, as far as the system lets it be:
// copies are several times as fast then, and go on by themselves while the host does other things.
// It is unpinned before anybody frees it or maps something else there, which is when the worker is
// destroyed: its towers have ended by then. A lost card is asked nothing any more (cuda/device.c).
#include "worker/worker_inner.h"

// NULL: there is none. What is pinned for one is for all.
static bel_device *first_card(const bel_worker *worker)
{
    for (int t = 0; worker->devices != NULL && t < worker->config.tower_count; t++)
        if (worker->devices[t] != NULL) return worker->devices[t];
    return NULL;
}

// Cards copy gradients into ranges, where these are not theirs, and into and out of rows.
void bel_worker_pin_own(const bel_worker *worker, bool pins)
{
    const bel_worker_config *config = &worker->config;
    bel_device *card = first_card(worker);
    if (card == NULL) return;
    for (int r = 0; r < worker->replica_count && config->updater == NULL; r++)
        bel_device_pin(card, config->ranges[r], bel_space_bytes(config->layout), pins);
    bel_worker_pin_rows(worker, card, pins);
}

// And parameters from the space, out of the buffers in which versions have come: their memory is
// what it will be by then, as other processes' is mapped over it when the first one is there
// (bel_client_config). Were it pinned before, cards would go on reading the pages that lay there.
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
