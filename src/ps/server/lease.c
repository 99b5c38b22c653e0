// What shard 0 hands to workers: each block of the input goes to one worker once, in order. A
// worker has two leases in hand, of its next step and of the one behind it, whose batch is read
// meanwhile. Those of a worker that is replaced are leased again, before any block that no worker
// has had.
//
// Where a loop asks for steps by several functions, and reports count on whatever version they were
// computed, the functions are handed out in the same way: in the order in which steps are asked
// for, each as often as reports make a step. So there are always as many reports under way of a
// function as the steps that were handed out need, and a step is made of any reports of its
// function: it does not wait for the worker that was handed its own.
#include <string.h>

#include "ps/server/shard_inner.h"

void bel_shard_lease_from(bel_shard *shard, int64_t first_block, int64_t block_end)
{
    if (shard->policy->lockstep) return; // nothing is leased: a step says its blocks
    shard->ledger.next_block = shard->ledger.leased = first_block;
    shard->ledger.block_end = block_end;
}

bool bel_ledger_has_blocks(const bel_ledger *ledger)
{
    return ledger->returned_count > 0 || ledger->next_block < ledger->block_end;
}

// The first block for one more step of a worker, while there are any. Those that came back go
// first.
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

// Numbered, so that a lease that comes twice is recognised.
static void send_lease_locked(bel_shard *shard, int worker, int64_t first_block)
{
    bel_shard_worker *w = &shard->workers[worker];
    bel_lease_frame lease = {.number = w->leased++, .first_block = first_block};
    bel_shard_send_locked(shard, shard->config.worker_lanes[worker],
                          bel_lease_frame_write(lease, NULL, 0));
}

// Fills the worker's hand. One for which there are no blocks at all is told so, and waits for the
// end.
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

// The oldest one: its report was counted or dropped.
void bel_ledger_use_up_lease(bel_shard_worker *worker)
{
    if (worker->lease_count == 0) return;
    worker->leases[0] = worker->leases[1];
    worker->lease_count--;
}

// The worker is lost: `returned` has room for two leases of each worker.
void bel_ledger_return_leases(bel_shard *shard, bel_shard_worker *worker)
{
    bel_ledger *ledger = &shard->ledger;
    for (int i = 0; i < worker->lease_count; i++)
        ledger->returned[ledger->returned_count++] = worker->leases[i];
    worker->lease_count = 0;
}

// --- Step functions ------------------------------------------------------------------------------

// A worker that can have no block is told so, and reports nothing whatever it is handed.
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

// What this step needs goes first, so that the last blocks are used for it; then what was lost;
// then steps that are not begun. What was not handed out of steps before this one is not needed:
// there were too few blocks, or training goes on from a checkpoint.
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

// Of each worker at most one is regained and not handed out again, as it has one under way.
void bel_ledger_regain_function(bel_ledger *ledger, bel_shard_worker *worker)
{
    if (worker->handed) ledger->regained[ledger->regained_count++] = worker->function;
    worker->handed = false;
}
