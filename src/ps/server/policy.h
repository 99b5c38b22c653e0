// Who counts in a step, and who is answered: in what the four ways to count (ps/layout/counting.h)
// differ. A shard has one policy for its life and asks it; no other file of this room asks which
// one it is.
//
//   all      (policy_all.c)    everybody counts. A chunk is ready when all nodes have reported, a
//                              worker computes on the one newest version, which it reads in place
//                              or is sent as it is made, and is told of each version.
//   backups  (policy_ledger.c) the first N on the newest version count; a later one is dropped, and
//                              its worker answered at once.
//   async    (the same)        the first N count, whatever version they computed on.
//   bounded  (the same)        as async, but a worker too far ahead of the slowest is not answered
//                              before that one has come nearer.
//
// The last three share a ledger (ledger.c, lease.c, answer.c). There a chunk is ready when the
// workers that shard 0 has named have reported, a worker computes on a copy that was made for it,
// and is given a version when its report was used or dropped.
//
// All functions are called under the shard's mutex, but for create and destroy, and `counts`, which
// passes ask too: of the step that they make, whose answer is known and stays.
#ifndef BELFRY_PS_SERVER_POLICY_H
#define BELFRY_PS_SERVER_POLICY_H

#include "ps/server/shard.h"

typedef struct bel_policy {
    // Every report of a step was computed on that step's version: workers read it in place, and
    // nothing is updated between a worker's pull of rows and its report.
    bool lockstep;
    // Where there are several step functions, workers are handed those of later steps than the one
    // that is made; else all compute that one's.
    bool ahead;

    // Memory of its own. destroy may find the shard half made.
    void (*create)(bel_shard *shard);
    void (*destroy)(bel_shard *shard);
    void (*reset)(bel_shard *shard); // another generation

    // --- Who counts
    bool (*is_known)(const bel_shard *shard);           // is it known who counts in this step?
    bool (*counts)(const bel_shard *shard, int worker); // once it is
    // With a ledger, what sets backups, async and bounded apart (shard 0 asks):
    bool (*takes_stale)(const bel_shard *shard); // does a report on an older version count now?
    bool (*may_go_on)(const bel_shard *shard, int worker, int64_t slowest); // is it answered now?

    // --- What is taken in
    // True when a report of `worker` on that version can be used now; else it is late.
    bool (*accepts)(bel_shard *shard, const bel_frame *frame, int worker, int64_t version,
                    uint32_t decision);
    // Step statistics that were late.
    void (*passed_by)(bel_shard *shard, int worker, int64_t version, int node);
    // All step statistics of a worker's report are in.
    void (*completed)(bel_shard *shard, int worker);
    void (*take_pull)(bel_shard *shard, const bel_frame *frame, int worker);
    // From shard 0. NULL: no such frame can come.
    void (*take_counts)(bel_shard *shard, const bel_frame *frame);
    void (*take_answer)(bel_shard *shard, const bel_frame *frame);
    // True when rows may be read for a worker that computes on that version.
    bool (*rows_fit)(const bel_shard *shard, int table, int worker, int64_t version);

    // --- A step
    void (*begin)(bel_shard *shard);         // forgets what was reported for the step before
    bool (*is_done)(const bel_shard *shard); // all that those who count say of this step is in
    bel_steps_left (*steps_left)(const bel_shard *shard); // shard 0: what the input still makes
    void (*chunk_passed)(bel_shard *shard, int local);    // its new values are there
    void (*copied)(bel_shard *shard, int worker);         // a copy for a worker is made
    void (*published)(bel_shard *shard);                  // the step became the one before
    void (*poll)(bel_shard *shard);                       // before frames are taken

    // --- A worker is replaced
    void (*forget)(bel_shard *shard, int worker); // what its predecessor has said and has
    void (*admitted)(bel_shard *shard);
} bel_policy;

const bel_policy *bel_policy_of(const bel_counting *counting);

#endif
