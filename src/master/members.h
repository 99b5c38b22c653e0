// The master's members: which have joined, which are heard, which wait for which. What roles say
// and do is the backend's business (remote_members.c); what must hold for any of them is here.
//
// A member that is lost may come back, as another process under a higher incarnation, or as the
// same one over another connection: when the job recovers, it is waited for. A process that was
// replaced is refused for good.
//
// A seat is vacant while nobody is waited for there. Workers have more seats than are wanted at
// first, and those are vacant; the seat of a worker that did not come back becomes vacant as well,
// where the job may go on without it. A worker that joins at a vacant seat takes it.
//
// Two clocks. Silence: a member of whom nothing is heard, not even a ping, is lost; a connection
// that ends is lost at once. Stall: all are heard, but no step comes about. Bound to one thread,
// the master's.
#ifndef BELFRY_MASTER_MEMBERS_H
#define BELFRY_MASTER_MEMBERS_H

#include "base/str.h"
#include "monitoring/numbers.h"
#include "transport/grpc/endpoint.h"
#include "transport/lane.h"
#include "wire/message.h"
#include "wire/role.h"

typedef struct bel_members bel_members;

typedef struct bel_members_config {
    // Where the master listens, with the job's secret; `accept` is asked for streams that are not
    // control streams.
    bel_endpoint_config endpoint;
    int counts[BEL_ROLE_COUNT];  // seats of each role; the master's is passed over
    int wanted_workers;          // those below this index
    int min_workers;             // it goes on without a lost worker while so many remain; 0: never
    const char *token;           // what a member must have read in the model folder …
    bool may_be_blind;           // … unless it may be on a host that does not see it
    double folder_patience_secs; // one that has read something else may join again within that
    double join_timeout_secs, silence_timeout_secs;
    bool recovers; // a lost member may come back within the join timeout
} bel_members_config;

// Listens; members may call from now on. Errors: those of bel_endpoint_create.
bel_status *bel_members_create(const bel_members_config *config,
                               bel_members **out_members) BEL_MUST_USE;
void bel_members_destroy(bel_members *members); // NULL is fine

bel_endpoint *bel_members_endpoint(bel_members *members);
const char *bel_members_token(const bel_members *members);

// What a worker must have built, as the master has: its settings, and the collectives of its graph
// (bel_graph_write_collectives). Must outlive the members.
typedef struct bel_join_graph {
    char *const *names, *const *values;
    int setting_count;
    const char *collectives; // "": there are none
} bel_join_graph;

// Waits until all members have joined. A member that runs another version, sees another model
// folder, or whose settings or collectives differ from those of `graph`, is refused, and that is
// the error: FAILED_PRECONDITION names the member, the first difference and both values.
// DEADLINE_EXCEEDED names who is missing, unless the job may do without them. CANCELLED: `stop`
// says so, which is asked about ten times a second, with what members have said noted.
bel_status *bel_members_gather(bel_members *members, const bel_join_graph *graph,
                               bool (*stop)(void *context), void *context) BEL_MUST_USE;

// Lets members join until all are there, but no longer than `secs`; nobody is missed.
void bel_members_hear(bel_members *members, double secs);

typedef struct bel_member_view {
    bel_role role;
    int index;
    bool here, vacant;
    bool blind; // does not see the model folder
    uint32_t incarnation;
    uint32_t generation; // of the state that it holds; 0: none
    char *host, *address;
    int64_t pid;
    int64_t step;     // of its newest status
    char *doing;      // the same: "computes", "waits for version 7 of shard 1"
    bool ended;       // it has said that it is done
    int64_t leave_ns; // when it has said that it is told to go; 0: it has not, -1: as it joined
    double *numbers;  // that it has sent last
    size_t number_count;
    int64_t numbers_ns;          // when
    bel_device_numbers *devices; // of a worker, as of its newest status
    int device_count;
    int64_t clock_lead_ns; // this clock when its join was taken, less its own when it sent that
} bel_member_view;

const bel_member_view *bel_members_get(const bel_members *members, int member);
int bel_members_find(const bel_members *members, bel_role role, int index);
int bel_members_count(const bel_members *members); // they are numbered from 0

// The member is told to begin anew at this generation.
void bel_members_set_generation(bel_members *members, int member, uint32_t generation);

// How many workers are wanted from now on: those of the lowest indices. Newcomers find seats; a
// worker that is not wanted any more keeps its seat until it is retired or lost.
void bel_members_want(bel_members *members, int workers);

// Makes this seat vacant, so that nobody is waited for there, or the opposite.
void bel_members_set_vacant(bel_members *members, int member, bool vacant);

// A worker that is here and plays no part any more is told that the job is over for it, and its
// seat is vacant.
void bel_members_retire(bel_members *members, int member);

// A member that was told to go has nothing left to do here: it is told so, ends, and its seat is
// empty until another process takes it, which is no loss.
void bel_members_let_go(bel_members *members, int member);

// Sends a message of this kind (wire/message.h); to a member that is away nothing is sent.
void bel_members_send(bel_members *members, int member, uint32_t generation,
                      const ProtobufCMessage *kind);

// The next news of any member: a message, but for statuses and farewells, which are noted here; or
// NULL, when the
// member has joined anew. Waits up to `secs`; false when there was none. Free the message with
// bel_message_destroy.
bool bel_members_take(bel_members *members, double secs, int *out_member,
                      Bel__Message **out_message);

// Ends a wait of bel_members_take early, or the next one. Any thread.
void bel_members_wake(bel_members *members);

// Connections that were lost, and processes that came back as another incarnation, so far.
int64_t bel_members_losses(const bel_members *members);
int64_t bel_members_restarts(const bel_members *members);

// The job has reached this step: what messages about lost members name.
void bel_members_note_step(bel_members *members, int64_t step);

// The last step that the master or any member has reached since the job began at a checkpoint:
// shard 0's word comes later than a member's own.
int64_t bel_members_reached(const bel_members *members);

// The job begins at the checkpoint of this step; what members have said of later ones is over.
void bel_members_begin_at(bel_members *members, int64_t step);

// A member has said that it fails. The end of its connection is no loss then: whoever has started
// its process must not kill it before it has said why, and another must not make good for it.
void bel_members_note_failure(bel_members *members, int member);

// Members are not started again from now on: a lost one is lost for good.
void bel_members_give_up_recovery(bel_members *members);

// Looks for members that are lost. UNAVAILABLE names the first, its host, pid, last step and why;
// when the job recovers, only if it did not come back in time. NULL: all are there, may come back,
// or are workers that the job can do without, whose seats are vacant now.
bel_status *bel_members_check(bel_members *members) BEL_MUST_USE;

// "worker 0 computes step 7; shard 1 waits for …": what each member said last.
void bel_members_describe(const bel_members *members, bel_str *out);

// Tells all members that the job is over, also those that join now, and gives them `wait_secs` to
// go.
void bel_members_dismiss(bel_members *members, bel_code code, const char *text, double wait_secs);

#endif
