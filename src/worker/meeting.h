// One collective of an exchange, for exchange.c (the exchange as a whole), exchange_here.c (among
// the replicas of one worker) and exchange_others.c (through shard 0).
#ifndef BELFRY_WORKER_MEETING_H
#define BELFRY_WORKER_MEETING_H

#include "ps/layout/combine.h"
#include "worker/worker_inner.h"

// The collective from the view of all replicas of the worker.
typedef struct bel_meeting {
    bel_worker *worker;
    const bel_collective *what;
    bel_exchange_part *parts; // by replica
    bool *present;            // by replica: it has examples
    int first;                // the first present replica
} bel_meeting;

// Returns the tower's state of a replica.
const bel_replica_run *bel_meeting_run(const bel_worker *worker, int replica);

// Sets the meeting to part `part` of exchange `exchange`.
void bel_meeting_turn_to(bel_meeting *meeting, int exchange, int part);

// Returns the weight of replica r.
static inline bel_weight bel_meeting_weight(const bel_meeting *meeting, int r)
{
    return meeting->what->weighted ? meeting->worker->weights[r] : (bel_weight){1, 1};
}

// Returns the reduction, over that number of elements.
static inline bel_combining bel_meeting_combining(const bel_meeting *meeting, int64_t elements)
{
    return (bel_combining){meeting->what->reduce, meeting->parts[meeting->first].input.dtype,
                           elements};
}

// Makes room of `bytes` bytes beside the replicas' memory.
void bel_meeting_make_room(bel_meeting *meeting, size_t bytes);

// Copies the values of all replicas to memory that can be overwritten, as the slots of bel_combine:
// the destinations of the results or, with `beside`, the worker's room.
void bel_meeting_copy_values(bel_meeting *meeting, bool beside);

// Copies the value of a replica of weight `its`, scaled to its share for one of weight `own`.
void bel_meeting_give_scaled(const bel_combining *combining, const void *from, bel_weight its,
                             bel_weight own, char *to);

// FAILED_PRECONDITION: a replica whose value is needed has no examples; -1: any replica.
bel_status *bel_meeting_lacks(const bel_meeting *meeting, int replica) BEL_MUST_USE;

// exchange_here.c
bel_status *bel_meeting_hold_here(bel_meeting *meeting) BEL_MUST_USE;

// exchange_others.c: sends the worker's part. The results are complete after
// bel_meeting_end_with_others, which sends the rest.
bel_status *bel_meeting_hold_with_others(bel_meeting *meeting, int exchange, int part) BEL_MUST_USE;
bel_status *bel_meeting_end_with_others(bel_meeting *meeting, int exchange) BEL_MUST_USE;
bel_exchange_pieces *bel_exchange_pieces_create(void);

#endif
