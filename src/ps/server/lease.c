// Shard 0's assignment of blocks and functions to workers. Each block of the input goes to one
// worker once, in order. A worker holds two leases: for its next step and for the step after it,
// whose batch is read meanwhile. The leases of a replaced worker are leased again, before any new
// block.
//
// If a loop asks for steps by several functions, and reports on any version count, the functions
// are assigned in the same way: in the order of the requested steps, each N times, where N reports
// make a step. So the reports under way of each function always suffice for the assigned steps. A
// step is made of any reports of its function: it does not wait for a certain worker's.
#include <string.h>

#include "ps/server/shard_inner.h"

void bel_shard_lease_from(bel_shard *shard, int64_t first_block, int64_t block_end)
{
    if (shard->policy->lockstep) return; // no leases: a step determines its blocks
    shard->ledger.next_block = shard->ledger.leased = first_block;
    shard->ledger.block_end = block_end;
}

bool bel_ledger_has_blocks(const bel_ledger *ledger)
{
    return ledger->returned_count > 0 || ledger->next_block < ledger->block_end;
}

// The first block for one more step of a worker, if there is one. Returned blocks go first.
static int64_t next_lease(bel_shard *shard, int worker)
{
    bel_ledger *ledger = &shard->ledger;
    if (ledger->returned_count > 0) {
        int64_t first = ledger->returned[0];
        ledger->returned_count--;
        memmove(ledger->returned, ledger->returned + 1,
                (size_t)ledger->returned_count * sizeof *ledger->returned);
        return first;
    }
    int64_t first = ledger->next_block;
    ledger->next_block += bel_assignment_replicas(shard->config.assignment, worker);
    return first;
}

// Leases are numbered, so that a repeated frame is recognized.
static void send_lease_locked(bel_shard *shard, int worker, int64_t first_block)
{
    bel_shard_worker *w = &shard->workers[worker];
    bel_lease_frame lease = {.number = w->leased++, .first_block = first_block};
    bel_shard_send_locked(shard, shard->config.worker_lanes[worker],
                          bel_lease_frame_write(lease, NULL, 0));
}

// Leases blocks to the worker until it has two. A worker for which there are no blocks is notified,
// and waits for the end.
void bel_ledger_lease_locked(bel_shard *shard, int worker)
{
    bel_shard_worker *w = &shard->workers[worker];
    while (w->lease_count < 2 && bel_ledger_has_blocks(&shard->ledger)) {
        int64_t first = next_lease(shard, worker);
        w->leases[w->lease_count++] = first;
        send_lease_locked(shard, worker, first);
    }
    if (w->lease_count == 0) send_lease_locked(shard, worker, BEL_LEASE_NONE);
}

// Removes the oldest lease: its report was counted or dropped.
void bel_ledger_use_up_lease(bel_shard_worker *worker)
{
    if (worker->lease_count == 0) return;
    worker->leases[0] = worker->leases[1];
    worker->lease_count--;
}

// For a lost worker. `returned` has room for two leases of each worker.
void bel_ledger_return_leases(bel_shard *shard, bel_shard_worker *worker)
{
    bel_ledger *ledger = &shard->ledger;
    for (int i = 0; i < worker->lease_count; i++)
        ledger->returned[ledger->returned_count++] = worker->leases[i];
    worker->lease_count = 0;
}

// --- Step functions ------------------------------------------------------------------------------

// A worker without a block is notified, and never reports, whatever function it gets.
static bool will_report(const bel_shard *shard, int worker)
{
    return shard->workers[worker].lease_count > 0 || bel_ledger_has_blocks(&shard->ledger);
}

static int take_regained(bel_ledger *ledger, int place)
{
    int function = ledger->regained[place];
    ledger->regained_count--;
    memmove(ledger->regained + place, ledger->regained + place + 1,
            (size_t)(ledger->regained_count - place) * sizeof *ledger->regained);
    return function;
}

// Functions for this step go first, so that the last blocks are used for it; then lost ones; then
// steps that have not begun. Unassigned reports of earlier steps are not needed: there were too few
// blocks, or training continued from a checkpoint.
static int next_asked(bel_shard *shard)
{
    bel_ledger *ledger = &shard->ledger;
    for (int i = 0; i < ledger->regained_count; i++)
        if (ledger->regained[i] == bel_shard_function(shard)) return take_regained(ledger, i);
    if (ledger->asked_step < shard->step || ledger->asked_left == 0) {
        ledger->asked_step =
            ledger->asked_step < shard->step ? shard->step : ledger->asked_step + 1;
        ledger->asked_left = shard->config.settings.counting.workers;
    }
    if (ledger->asked_step > shard->step && ledger->regained_count > 0)
        return take_regained(ledger, 0);
    int function = shard->events.function_of(shard->events.context, ledger->asked_step);
    if (function >= 0) ledger->asked_left--;
    return function;
}

int bel_ledger_hand_function(bel_shard *shard, int worker)
{
    bool several = shard->config.settings.function_count > 1;
    if (!several || !shard->policy->ahead || !will_report(shard, worker))
        return bel_shard_function(shard);
    int function = next_asked(shard);
    shard->workers[worker].handed = function >= 0;
    return function;
}

// For each worker at most one function is regained and not assigned again, as it has one under way.
void bel_ledger_regain_function(bel_ledger *ledger, bel_shard_worker *worker)
{
    if (worker->handed) ledger->regained[ledger->regained_count++] = worker->function;
    worker->handed = false;
}
