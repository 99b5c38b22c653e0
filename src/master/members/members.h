// The master's members: their joining, liveness and replacement. The backend knows their messages
// and tasks (remote_members.c); rules for any member are here.
//
// A lost member may come back, as another process under a higher incarnation, or as the same one
// over another connection. When the job recovers, the master waits for it. A process that was
// replaced is refused for good.
//
// A seat is vacant while the master waits for no process there. Workers have more seats than are
// wanted at first, and those are vacant. The seat of a worker that did not come back also becomes
// vacant, if the job can continue without it. A worker that joins at a vacant seat takes it.
//
// There are two clocks. Silence: a member that sends nothing, not even a ping, is lost; if its
// connection ends, it is lost at once. Stall: all members are heard, but no step is made. Bound to
// one thread, the master's.
#ifndef BELFRY_MASTER_MEMBERS_MEMBERS_H
#define BELFRY_MASTER_MEMBERS_MEMBERS_H

#include "monitoring/numbers.h"
#include "transport/lane.h"
#include "transport/streams/endpoint.h"
#include "wire/message.h"
#include "wire/role.h"

typedef struct bel_str bel_str; // base/str.h
typedef struct bel_members bel_members;

typedef struct bel_members_config {
    // The master's address, with the job's secret; `accept` gets streams that are not control
    // streams.
    bel_endpoint_config endpoint;
    int counts[BEL_ROLE_COUNT];  // seats of each role; the master's is ignored
    int wanted_workers;          // workers below this index
    int min_workers;             // minimum to continue without a lost worker; 0: never
    const char *token;           // token that a member must have read in the model folder …
    bool may_be_blind;           // … unless it may be on a host without access to it
    double folder_patience_secs; // time in which one with another token may join again
    double join_timeout_secs, silence_timeout_secs;
    bool recovers; // a lost member may come back within the join timeout
} bel_members_config;

// Starts listening; members may call from now on. Errors: those of bel_endpoint_create.
bel_status *bel_members_create(const bel_members_config *config,
                               bel_members **out_members) BEL_MUST_USE;
void bel_members_destroy(bel_members *members); // accepts NULL

bel_endpoint *bel_members_endpoint(bel_members *members);
const char *bel_members_token(const bel_members *members);

// Required properties of a worker's model, equal to the master's: its settings, and the collectives
// of its graph (bel_graph_write_collectives). Must outlive the members.
typedef struct bel_join_graph {
    char *const *names, *const *values;
    int setting_count;
    const char *collectives; // "": none
} bel_join_graph;

// Waits until all members have joined. A member is refused if it runs another version, has another
// model folder, or differs from `graph` in settings or collectives. This ends the wait with
// FAILED_PRECONDITION, which names the member, the first difference and both values.
// DEADLINE_EXCEEDED names the missing members, unless the job may do without them. CANCELLED:
// `stop` returned true; it is called about ten times a second, after members' messages were noted.
bel_status *bel_members_gather(bel_members *members, const bel_join_graph *graph,
                               bool (*stop)(void *context), void *context) BEL_MUST_USE;

// Lets members join until all are present, but no longer than `secs`; missing ones are no error.
void bel_members_hear(bel_members *members, double secs);

typedef struct bel_member_view {
    bel_role role;
    int index;
    bool here, vacant;
    bool blind; // cannot access the model folder
    uint32_t incarnation;
    uint32_t generation; // generation of the state that it runs; 0: none
    // With a shard that does not run: generation (0: none) and version of the state that it holds.
    uint32_t held_generation;
    int64_t held_step;
    int64_t held_snapshot;      // version of the complete snapshot of that state; 0: none
    uint32_t mirror_generation; // the same for the mirror that it holds
    int64_t mirror_step;
    char *host, *address;
    char *place; // a worker's: equal in those that can share memory; "" or NULL: it cannot
    int64_t pid;
    int64_t step;     // step of its newest status
    char *doing;      // from the same: "computes", "waits for version 7 of shard 1"
    bool ended;       // it has reported its end
    int64_t leave_ns; // when it reported that it was told to leave; 0: unset, -1: on joining
    double *numbers;  // last numbers that it sent
    size_t number_count;
    int64_t numbers_ns;          // when they came
    bel_device_numbers *devices; // devices of a worker, from its newest status
    int device_count;
    int64_t clock_lead_ns; // this clock minus its clock, from its join
} bel_member_view;

const bel_member_view *bel_members_get(const bel_members *members, int member);
int bel_members_find(const bel_members *members, bel_role role, int index);
int bel_members_count(const bel_members *members); // numbered from 0

// Records that the member was told to begin anew at this generation.
void bel_members_set_generation(bel_members *members, int member, uint32_t generation);

// Sets how many workers are wanted: those of the lowest indices. Newcomers find seats; a worker
// that is no longer wanted keeps its seat until it is retired or lost.
void bel_members_want(bel_members *members, int workers);

// Makes this seat vacant, so that the master waits for no process there, or the opposite.
void bel_members_set_vacant(bel_members *members, int member, bool vacant);

// Retires a present member without further part: sends it the end of the job, and makes its seat
// vacant.
void bel_members_retire(bel_members *members, int member);

// Dismisses a member that was told to leave and has nothing left to do: it ends, and its seat is
// empty until another process takes it. This is no loss.
void bel_members_let_go(bel_members *members, int member);

// Records that the member has stopped its shard and its mirror, and holds their states at these
// versions (-1: it has no such state), and the shard's snapshot (0: none).
void bel_members_set_held(bel_members *members, int member, uint32_t generation,
                          const Bel__Held *held);

// Sends a message of this kind (wire/message.h). Nothing is sent to an absent member.
void bel_members_send(bel_members *members, int member, uint32_t generation,
                      const ProtobufCMessage *kind);

// Takes the next news of any member: a message, or NULL if the member has joined anew. Statuses and
// farewells are noted here instead. Waits up to `secs`; false: no news. Free the message with
// bel_message_destroy.
bool bel_members_take(bel_members *members, double secs, int *out_member,
                      Bel__Message **out_message);

// Ends the current or the next wait of bel_members_take early. Any thread.
void bel_members_wake(bel_members *members);

// Number of lost connections, and of processes that came back as another incarnation, so far.
int64_t bel_members_losses(const bel_members *members);
int64_t bel_members_restarts(const bel_members *members);

// Records that the job has reached this step, for messages about lost members.
void bel_members_note_step(bel_members *members, int64_t step);

// The last step that the master or any member has reached since the job began at a checkpoint:
// shard 0's report may come later than a member's.
int64_t bel_members_reached(const bel_members *members);

// Records that the job begins at the checkpoint of this step; members' reports of later ones are
// void.
void bel_members_begin_at(bel_members *members, int64_t step);

// Records that a member reported its failure. The end of its connection is then no loss: the
// starter of its process must not kill it before it has logged the reason, and another must not
// replace it.
void bel_members_note_failure(bel_members *members, int member);

// Members are not restarted from now on: a lost one is lost for good.
void bel_members_give_up_recovery(bel_members *members);

// Detects lost members. UNAVAILABLE names the first, its host, pid, last step and the reason; when
// the job recovers, only if it did not come back in time. NULL: all are present, may come back, or
// are workers that the job can do without, whose seats are now vacant.
bel_status *bel_members_check(bel_members *members) BEL_MUST_USE;

// Appends "worker 0 computes step 7; shard 1 waits for …": each member's last report.
void bel_members_describe(const bel_members *members, bel_str *out);

// Sends all members the end of the job, including those that join now, and gives them `wait_secs`
// to disconnect.
void bel_members_dismiss(bel_members *members, bel_code code, const char *text, double wait_secs);

#endif
