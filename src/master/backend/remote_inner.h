// Private layout of the master's side of a cluster. The files of the backend are:
//
//   remote.c             the backend's functions
//   remote_parts.h       parts of the state
//   remote_listen.c      the master's address and token
//   remote_members.c     messages, and members that come back
//   remote_ask.c         requests to all shards
//   remote_assignment.c  assignment of replicas to workers
//   remote_seats.c       members by role
//   remote_leave.c       processes that are told to leave
//   remote_rescue.c      saving without a worker
//   remote_hold.c        continuing with the state that shards have
//   remote_relays.c      where workers report
//   remote_files.c       checkpoints of shards without access to the model folder
//   remote_show.c        members' numbers
//   remote_help.c        workers that help with evaluations
//   remote_evaluator.c   requests to the evaluator, and its answers
//   remote_values.c      values of a snapshot
#ifndef BELFRY_MASTER_BACKEND_REMOTE_INNER_H
#define BELFRY_MASTER_BACKEND_REMOTE_INNER_H

#include "master/backend/remote_parts.h"
#include "ps/layout/fan_in.h"

typedef struct bel_remote_help bel_remote_help;

typedef struct remote {
    bel_backend backend; // first: a bel_backend * is a remote *
    bel_remote_config config;
    bel_control_state state;
    bel_status *error;      // the first one
    int *shard_members;     // by shard: its index in the members
    int seats;              // seats of workers; arrays by worker are by seat
    bool started;           // members were told to begin, or were taken over
    bool over;              // training ended as the input is exhausted
    int mirrors;            // distance of mirrors (ps/layout/mirror_place.h); 0: no mirrors
    bel_fan_in_rule relays; // this generation's
    int *hosts;             // memory of its list: by seat
    remote_plan plan;
    remote_progress progress;
    remote_points points;
    remote_assignment assignment;
    admission *admissions; // by worker
    remote_ended ended;
    remote_sent sent;
    remote_leaving leaving;
    remote_snapshots snapshots;
    remote_values values;
    remote_asked asked;
    remote_saving saving;
    remote_requested requested;
    remote_rescue rescue;
    remote_evaluator evaluator;
    bel_remote_help *help; // help with evaluations
} remote;

// Seats of workers. Every worker needs a replica, so R is the limit. If R follows the workers, the
// limit is that of any cluster.
int bel_remote_seats_of(const bel_task *task, const bel_estimator *estimator); // remote_listen.c

// --- remote_members.c ----------------------------------------------------------------------------

// Sends a member its setup, to begin anew; a worker also `step`.
void bel_remote_send_setup(remote *r, int member, int64_t step);
// Admits a worker into the running generation: asks the shards, then sends its setup.
void bel_remote_admit(remote *r, int worker);

// Takes messages for up to `secs`, or at least one; detects lost members.
void bel_remote_pump(remote *r, double secs);
// The same while waiting for an answer to a request made at begun_ns (awake time), under the stall
// clock.
void bel_remote_await_answer(remote *r, double secs, int64_t begun_ns, const char *what);
void bel_remote_stalled(remote *r, double secs, const char *what);

// --- remote_ask.c --------------------------------------------------------------------------------

// Sends a request to all shards, and again to one whose connection breaks meanwhile. The caller
// waits for the answer with bel_remote_await_answer; BEL_ASKED_NOTHING ends it.
void bel_remote_ask_shards(remote *r, bel_asked what, int64_t step, char *folder);
void bel_remote_ask_again(remote *r, int shard);
// Takes an answer to BEL_ASKED_WHOLE.
void bel_remote_take_whole(remote *r, int shard, const Bel__Snapshot *m);
// Takes an answer to BEL_ASKED_HOLD.
void bel_remote_take_held(remote *r, int member, const Bel__Held *m);
// Handles a member that comes back while shards are asked whether their version is complete, or are
// paused. True: the caller has nothing to do for it.
bool bel_remote_joins_whole(remote *r, int member);

// --- remote_assignment.c -------------------------------------------------------------------------

// Before members are awaited: finds how many workers are wanted, and, for a master that replaces
// another, which of them played when that one was lost.
void bel_remote_expect(remote *r);
// When members are present: makes the assignment of the running generation, or of the next one. In
// it all present and wanted workers play a part; others are retired. Returns whether replicas or
// relays are others than before.
bool bel_remote_assign(remote *r, bool runs);
// In each round: requests a pause if the assignment should change. State is lost with a worker that
// is no longer awaited.
void bel_remote_check_assignment(remote *r);
// Tells a worker without part that the job is over for it, if it is not wanted, or was told to
// leave.
void bel_remote_take_idle(remote *r, int worker);

// --- remote_leave.c ------------------------------------------------------------------------------

// In each round: lets processes leave that were told to and have no more to do. Requests a pause
// for the others, and for this process; a stop if all are told to leave.
void bel_remote_check_leaving(remote *r);
// While waiting for members: true if the wait must end, as the job is to stop, or this process was
// told to leave.
bool bel_remote_ends_early(void *remote);
// Length of a notice in this process's environment.
int64_t bel_remote_notice_ns(const bel_task *task);
// Between generations, when all state is saved: lets the others leave, too.
void bel_remote_let_go(remote *r);
// Whether a worker that was told to leave has no part in the next assignment, as enough others
// remain.
bool bel_remote_is_spared(const remote *r, int worker);

// --- remote_seats.c ------------------------------------------------------------------------------

// Sends a message of this kind (wire/message.h) with the current generation.
void bel_remote_send_to_shard(remote *r, int shard, const ProtobufCMessage *kind);
void bel_remote_send_stop(remote *r);                 // to shard 0: save and end
void bel_remote_send_pause(remote *r);                // to shard 0: end for a pause
int bel_remote_shard_of(const remote *r, int member); // shard that a member holds; -1: none
// True for a parameter server without a shard, as the model is too small for all.
bool bel_remote_is_unused(const remote *r, int member);
// Why the set of workers is fixed; NULL: it is elastic.
const char *bel_remote_why_fixed(const remote *r);
// Whether workers can come and go.
bool bel_remote_is_elastic(const remote *r);
// Keeps the first error; takes ownership of the status.
void bel_remote_fail(remote *r, bel_status *status);
bel_status *bel_remote_take_error(remote *r) BEL_MUST_USE; // NULL: no error
void bel_remote_ask_to_stop(remote *r, const char *why);
void bel_remote_send_stop_at(remote *r);
void bel_remote_send_asks(remote *r);               // to shard 0: unsent steps
bool bel_remote_is_idle(remote *r);                 // all requested steps are made
void bel_remote_release(remote *r);                 // to shard 0: the snapshot may be overwritten
bool bel_remote_is_broken(const remote *r);         // the master's current operation cannot succeed
int bel_remote_worker(const remote *r, int worker); // index in the members
// Whether members may have been told to train before: by this master, or by a predecessor.
bool bel_remote_began(const remote *r);
bool bel_remote_is_away(const remote *r); // an unfinished worker is absent
int bel_remote_assigned(const remote *r); // one past the last worker with replicas

// --- remote_help.c -------------------------------------------------------------------------------

bel_remote_help *bel_remote_help_create(remote *r);
void bel_remote_help_destroy(bel_remote_help *help);
const bel_evaluation_helpers *bel_remote_begin_help(bel_backend *backend, int evaluation,
                                                    const char *checkpoint, int64_t step,
                                                    uint64_t input);
void bel_remote_end_help(bel_backend *backend);
void bel_remote_take_batch(remote *r, int member, const Bel__Batch *m);

// --- remote_evaluator.c --------------------------------------------------------------------------

// For bel_backend_ops.
void bel_remote_ask_evaluator(bel_backend *backend, int64_t step);
bool bel_remote_take_evaluated(bel_backend *backend, bel_evaluated *out_evaluated);
bool bel_remote_await_evaluator(bel_backend *backend);
// Repeats the present request to an evaluator that begins anew.
void bel_remote_send_evaluate(remote *r);
void bel_remote_forget_evaluated(remote *r); // the request and its answer
void bel_remote_hear_evaluated(remote *r, const Bel__Evaluated *m);

// --- remote_files.c ------------------------------------------------------------------------------

// Requests the file from a shard that has saved its part in a separate folder.
void bel_remote_pull(remote *r, int shard);
// Requests missing pieces again over another connection.
void bel_remote_pull_again(remote *r, int shard);
// Abandons the requests.
void bel_remote_end_pulls(remote *r);
void bel_remote_take_piece(remote *r, int member, const Bel__Piece *piece);
void bel_remote_answer_fetch(remote *r, int member, Bel__Fetch *request);

// --- remote_show.c -------------------------------------------------------------------------------

void bel_remote_show(bel_backend *backend, bel_board *board); // for bel_backend_ops

// --- remote_rescue.c -----------------------------------------------------------------------------

// Called on each round of the wait; remote_rescue.c explains it.
void bel_remote_rescue(remote *r);

// --- remote_hold.c -------------------------------------------------------------------------------

int64_t bel_remote_hold(bel_backend *backend); // for bel_backend_ops
// Whether all shards are here, and the state of this generation of each: with it, or its mirror.
bool bel_remote_holds(const remote *r);
void bel_remote_plan_transfers(remote *r); // before the generation rises: who lacks a state
// When all members are here: whether all shards have the snapshot that shall continue, or one has
// lost it (backend.missed).
void bel_remote_settle_snapshot(remote *r);

// --- remote_relays.c -----------------------------------------------------------------------------

// After the assignment: finds whether the generation has relays, and logs why it has none if
// workers share a host, or are more than fan_in. One that runs keeps the rule in the journal, which
// the caller has put into `relays`. Returns whether the rule differs from `before`.
bool bel_remote_choose_relays(remote *r, bool runs, const bel_fan_in_rule *before);
// Returns true if the worker is in a group of its host, but has joined without a place since.
bool bel_remote_lacks_place(const remote *r, int worker);
// Returns whether the rule in `relays`, read from the journal, is one of this assignment, and no
// worker of a group lacks its place.
bool bel_remote_keeps_relays(remote *r);
// Adds to a member's setup where it reports.
void bel_remote_describe_relays(const remote *r, int member, Bel__Setup *message);

// --- remote_values.c -----------------------------------------------------------------------------

bel_status *bel_remote_read_values(bel_backend *backend) BEL_MUST_USE; // for bel_backend_ops
void bel_remote_close_lanes(remote *r);

#endif
