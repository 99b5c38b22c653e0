// Policies: the differences between the four ways to count (ps/layout/counting.h), which decide
// whose reports count in a step and when a worker is answered. A shard has one policy for its life
// and calls it; no other file of this folder asks which one it is.
//
//   all      (policy_all.c)    All workers count. A chunk is ready when all nodes have reported. A
//                              worker computes on the only newest version, which it reads in place
//                              or receives chunk by chunk, and is notified of each version.
//   backups  (policy_ledger.c) The first N on the newest version count. A later report is dropped,
//                              and its worker answered at once.
//   async    (policy_ledger.c) The first N count, on any version.
//   bounded  (policy_ledger.c) As async, but a worker too far ahead of the slowest is answered only
//                              when the slowest has come nearer.
//
// The last three share a ledger (ledger.c, lease.c, answer.c). There a chunk is ready when the
// workers that shard 0 has named have reported. A worker computes on a copy, and receives a
// version when its report was used or dropped.
//
// All functions are called under the shard's mutex, except create, destroy and `counts`. Passes
// also call `counts`, for the step that they make, whose answer is known and final.
#ifndef BELFRY_PS_SERVER_POLICY_H
#define BELFRY_PS_SERVER_POLICY_H

#include "ps/server/shard.h"

typedef struct bel_policy {
    // Every report of a step was computed on that step's version: workers read it in place, and no
    // row is updated between a worker's pull of rows and its report.
    bool lockstep;
    // With several step functions, workers may compute functions of later steps than the one in
    // progress; otherwise all compute that step's.
    bool ahead;

    // The policy's memory. destroy may get a partly created shard.
    void (*create)(bel_shard *shard);
    void (*destroy)(bel_shard *shard);
    void (*reset)(bel_shard *shard); // another generation

    // --- Counting
    bool (*is_known)(const bel_shard *shard); // is it known which workers count in this step?
    bool (*counts)(const bel_shard *shard, int worker); // only once it is known
    // With a ledger, the two differences between backups, async and bounded (shard 0 calls them):
    bool (*takes_stale)(const bel_shard *shard); // does a report on an older version count now?
    // is the worker answered now?
    bool (*may_go_on)(const bel_shard *shard, int worker, int64_t slowest);

    // --- Received frames
    // True if a report of `worker` on that version can be used now; otherwise it is late.
    bool (*accepts)(bel_shard *shard, const bel_frame *frame, int worker, int64_t version,
                    uint32_t decision);
    // Late step statistics have arrived.
    void (*passed_by)(bel_shard *shard, int worker, int64_t version, int node);
    // All step statistics of a worker's report have arrived.
    void (*completed)(bel_shard *shard, int worker);
    void (*take_pull)(bel_shard *shard, const bel_frame *frame, int worker);
    // From shard 0. NULL: such frames cannot come.
    void (*take_counts)(bel_shard *shard, const bel_frame *frame);
    void (*take_answer)(bel_shard *shard, const bel_frame *frame);
    // True if rows may be read for a worker that computes on that version.
    bool (*rows_fit)(const bel_shard *shard, int table, int worker, int64_t version);

    // --- A step
    void (*begin)(bel_shard *shard);         // forgets the reports for the preceding step
    bool (*is_done)(const bel_shard *shard); // everything from the counting workers has arrived
    bel_steps_left (*steps_left)(const bel_shard *shard); // shard 0: steps left in the input
    void (*chunk_passed)(bel_shard *shard, int local);    // its new values are ready
    void (*copied)(bel_shard *shard, int worker);         // a copy for a worker is complete
    void (*published)(bel_shard *shard); // the step in progress is the next one now
    void (*poll)(bel_shard *shard);      // called before frames are taken

    // --- Replacement of a worker
    void (*forget)(bel_shard *shard, int worker); // the predecessor's reports and state
    void (*admitted)(bel_shard *shard);
} bel_policy;

const bel_policy *bel_policy_of(const bel_counting *counting);

#endif
