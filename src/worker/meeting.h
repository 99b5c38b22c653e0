// One collective of an exchange, for exchange.c (the exchange as a whole), exchange_here.c (among
// the replicas of one worker) and exchange_others.c (by way of shard 0).
#ifndef BELFRY_WORKER_MEETING_H
#define BELFRY_WORKER_MEETING_H

#include "ps/layout/combine.h"
#include "worker/worker_inner.h"

// The collective as all replicas of the worker see it.
typedef struct bel_meeting {
    bel_worker *worker;
    const bel_collective *what;
    bel_exchange_part *parts; // by replica
    bool *present;            // by replica: it has examples
    int first;                // the first that is present
} bel_meeting;

// What the tower of a replica knows of it.
const bel_replica_run *bel_meeting_run(const bel_worker *worker, int replica);

// The meeting is about part `part` of exchange `exchange` from now on.
void bel_meeting_turn_to(bel_meeting *meeting, int exchange, int part);

// How replica r counts.
static inline bel_weight bel_meeting_weight(const bel_meeting *meeting, int r)
{
    return meeting->what->weighted ? meeting->worker->weights[r] : (bel_weight){1, 1};
}

// The reduction, over so many elements.
static inline bel_combining bel_meeting_combining(const bel_meeting *meeting, int64_t elements)
{
    return (bel_combining){meeting->what->reduce, meeting->parts[meeting->first].input.dtype,
                           elements};
}

// Room of so many bytes beside the replicas' own.
void bel_meeting_make_room(bel_meeting *meeting, size_t bytes);

// Copies the values of all replicas to where they can be overwritten, as the slots of
// bel_combine: where the results go, or else (`beside`) into room of the worker's.
void bel_meeting_copy_values(bel_meeting *meeting, bool beside);

// A copy of what a replica of weight `its` gives, as much as it counts for one of weight `own`.
void bel_meeting_give_scaled(const bel_combining *combining, const void *from, bel_weight its,
                             bel_weight own, char *to);

// FAILED_PRECONDITION: a value is needed of a replica that has no examples; -1: of any.
bel_status *bel_meeting_lacks(const bel_meeting *meeting, int replica) BEL_MUST_USE;

// exchange_here.c
bel_status *bel_meeting_hold_here(bel_meeting *meeting) BEL_MUST_USE;

// exchange_others.c: gives the worker's part; what comes back is there after
// bel_meeting_end_with_others, which sends what is left.
bel_status *bel_meeting_hold_with_others(bel_meeting *meeting, int exchange, int part) BEL_MUST_USE;
bel_status *bel_meeting_end_with_others(bel_meeting *meeting, int exchange) BEL_MUST_USE;
bel_exchange_pieces *bel_exchange_pieces_create(void);

#endif
