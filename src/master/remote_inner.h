// The inside of the master's side of a cluster: remote.c (the backend), remote_members.c (messages
// and members that come back), remote_ask.c (what shards are asked), remote_assignment.c (who plays
// which replicas), remote_seats.c (who is who), remote_leave.c (processes that are told to go),
// remote_rescue.c (what is saved without a worker), remote_files.c (checkpoints of shards that do
// not see the model's folder), remote_show.c (what members have counted), remote_help.c (workers
// that help with evaluations), remote_values.c (values of a snapshot).
#ifndef BELFRY_MASTER_REMOTE_INNER_H
#define BELFRY_MASTER_REMOTE_INNER_H

#include <pthread.h>

#include "fetch/fetch.h"
#include "master/remote.h"

// A worker that comes anew while the job runs: the shards are told, and say where they stand.
typedef struct admission {
    bool under_way;
    int answers;
    bool *answered;  // by shard
    int64_t step;    // the lowest of them
    int64_t counted; // the last step in which the one before counted, -1: none
} admission;

// What all shards were asked for and have not all answered. Fields that a kind does not name are
// unused.
typedef enum bel_asked {
    BEL_ASKED_NOTHING,
    BEL_ASKED_SAVE,   // to write the snapshot of `step` into `folder`
    BEL_ASKED_VALUES, // to send the snapshot of `step` on the lane of now
    BEL_ASKED_FINISH, // to make a snapshot of the end, which is `step`
    BEL_ASKED_WHOLE,  // to make one of now, if nothing of the next version is made
} bel_asked;

typedef enum bel_rescue {
    BEL_RESCUE_NONE,
    BEL_RESCUE_ASKS, // the shards whether they are whole
    BEL_RESCUE_DONE, // they are, and stand still; the snapshot is in hand
} bel_rescue;

typedef struct asked {
    bel_asked what;
    int64_t step;
    char *folder; // borrowed
} asked;

typedef struct bel_remote_help bel_remote_help;

typedef struct remote {
    bel_backend backend; // first: a bel_backend * is a remote *
    bel_remote_config config;
    bel_control_state state;
    bel_status *error;
    int *shard_members; // by shard: its number among the members
    char *checkpoint;   // folder that shards load
    bel_control_config schedule;
    bel_input_segment segment;
    bool started, stop_sent;
    bool begins_anew;  // what shards hold is void, though they hold it
    int64_t block_end; // with a ledger: behind the last block of the input that is read
    bool over;         // training ended as the input has nothing left
    int64_t progress_ns;
    int64_t longest_step_ns; // between two words of progress; 0: no step was seen yet
    bool sets_up;            // a worker was told to begin, and no step has come about since
    int64_t stop_ns;         // when a stop was asked for, 0: not yet
    bool heard_progress;     // of this generation, or since this master took it over
    int64_t examples_before; // made before this master took over; -1: not yet known

    int seats;     // for workers; what follows by worker is by seat
    int *replicas; // by worker: how many it plays in this generation
    int wanted;    // workers below this index are to play
    int refused;   // the last wish, where it cannot be met and that was said; else 0
    bool gathered; // members have been waited for once
    bool pause_sent, stop_at_sent;
    int64_t leave_ns;  // when this process was told to go; 0: it was not, -1: before it began
    int64_t all_ns;    // since when all processes are told; 0: they are not
    int64_t notice_ns; // nobody goes before that has passed
    int64_t stop_at;   // what was sent
    int64_t scale_ns;  // when job.scale was last read for the number of workers that is wanted

    bool *ended; // by worker
    int ended_workers;
    int64_t end_step;      // the version at which they ended
    admission *admissions; // by worker

    int64_t *snapshots;     // by shard: the version of its newest snapshot, -1: none
    int64_t saved_snapshot; // the version that shard 0 has announced last, -1: none
    int64_t released;       // the version that was released last
    int64_t values_step;    // of backend.values; -1: none
    asked asked;            // of the shards, until they have answered
    uint32_t reading_count;
    int32_t reading;  // number of the lanes for values
    bel_lane **lanes; // by shard, for values
    bel_doorbell *bell;
    int saved_shards;
    bel_ckpt_shard **saved; // by shard, while a checkpoint is written
    bool *saves_apart;      // by shard: it was asked to save in a folder of its own
    bel_fetch **pulls;      // by shard: its file, which comes from a folder of its own; NULL: none
    int64_t news_ns;        // when a piece of one came last
    bool finishing;         // the evaluator was told that training is over

    // Steps that a loop of the program's own has asked for, by version modulo the size; its thread
    // puts them here, and the master's sends them.
    pthread_mutex_t ask_mutex;
    struct {
        int function;
        bool waits;
    } asks[BEL_CONTROL_MOST_ASKED];
    int64_t asks_end;  // behind the last version
    int64_t asks_sent; // before this version all were sent

    bel_rescue rescue;
    bool lacks_worker; // the job ends, or goes back, as a worker has failed or is lost for good
    int64_t rescue_ns; // since when a worker is away while the job is to stop; 0: none is
    int64_t *whole;    // by shard: its answer
    int whole_count;   // shards that have answered

    bel_remote_help *help; // with evaluations

    bel_control_point *points; // not yet taken
    size_t point_count, point_capacity;
    int64_t points_step; // all points up to this step have come
} remote;

// --- remote_members.c ----------------------------------------------------------------------------

// Tells a member to begin anew; a worker with `step`.
void bel_remote_send_setup(remote *r, int member, int64_t step);
// A worker joins the running generation: asks the shards, which leads to its setup.
void bel_remote_admit(remote *r, int worker);

// Takes messages for up to `secs`, or at least one; notes which members are lost.
void bel_remote_pump(remote *r, double secs);
// The same while an answer is waited for that was asked for at begun_ns, under the stall clock.
void bel_remote_await_answer(remote *r, double secs, int64_t begun_ns, const char *what);
void bel_remote_stalled(remote *r, double secs, const char *what);

// --- remote_ask.c --------------------------------------------------------------------------------

// Asks all shards for something; it is asked again of one whose connection breaks meanwhile. The
// answer is waited for with bel_remote_await_answer; BEL_ASKED_NOTHING ends it.
void bel_remote_ask_shards(remote *r, bel_asked what, int64_t step, char *folder);
void bel_remote_ask_again(remote *r, int shard);
// An answer to BEL_ASKED_WHOLE; it goes to `whole`.
void bel_remote_take_whole(remote *r, int shard, const Bel__Snapshot *m);
// A member has come back while shards are asked whether they are whole, or stand still as they are.
// True: nothing is to be done for it.
bool bel_remote_joins_whole(remote *r, int member);

// --- remote_assignment.c -------------------------------------------------------------------------

// Before members are waited for: how many workers are wanted, and, for a master that replaces
// another, which of them played when that one was lost.
void bel_remote_expect(remote *r);
// Once members are there: the assignment of the generation that runs, or of the one that begins, in
// which all workers that are there and wanted have a part; others are retired.
void bel_remote_assign(remote *r, bool runs);
// While it runs: asks for a pause when there should be another assignment; state is lost with a
// worker that is not waited for any more.
void bel_remote_check_assignment(remote *r);
// A worker has no part: tells it so, if it is not wanted, or told to go.
void bel_remote_take_idle(remote *r, int worker);

// --- remote_leave.c ------------------------------------------------------------------------------

// While it runs: lets those go that were told to, and are not needed for more than they have done;
// asks for a pause for the others, and for this process; for a stop where all are told to go.
void bel_remote_check_leaving(remote *r);
// While members are waited for: true when that is to end, as the job is to stop, or as this process
// is told to go.
bool bel_remote_ends_early(void *remote);
// How long a notice is in this process's environment.
int64_t bel_remote_notice_ns(const bel_task *task);
// Between generations, when all state is saved: lets the others go, too.
void bel_remote_let_go(remote *r);
// A worker that was told to go, where enough others remain: it has no part in the next assignment.
bool bel_remote_is_spared(const remote *r, int worker);

// --- remote_seats.c ------------------------------------------------------------------------------

// Sends a message of this kind (wire/message.h) with the generation of now.
void bel_remote_send_to_shard(remote *r, int shard, const ProtobufCMessage *kind);
void bel_remote_send_stop(remote *r);  // to shard 0: save and end
void bel_remote_send_pause(remote *r); // to shard 0: end, and training goes on from there
int bel_remote_shard_of(const remote *r, int member); // which a member holds; -1: none
// Why workers cannot come and go; NULL, and elastic: they can.
const char *bel_remote_why_fixed(const remote *r);
bool bel_remote_is_elastic(const remote *r);
// Keeps the first error; the status is the callee's.
void bel_remote_fail(remote *r, bel_status *status);
bel_status *bel_remote_take_error(remote *r) BEL_MUST_USE; // why; NULL: it can go on
void bel_remote_ask_to_stop(remote *r, const char *why);
void bel_remote_send_stop_at(remote *r);
void bel_remote_send_asks(remote *r);               // to shard 0: steps that were not sent yet
bool bel_remote_is_idle(remote *r);                 // all steps that were asked for are made
void bel_remote_release(remote *r);                 // to shard 0: the snapshot may be overwritten
void bel_remote_send_finish(remote *r, int member); // to an evaluator: training is over
bool bel_remote_is_broken(const remote *r); // nothing more can come of what the master does now
int bel_remote_worker(const remote *r, int worker); // its number among the members
bool bel_remote_is_away(const remote *r);           // a worker that plays, and has not ended
int bel_remote_assigned(const remote *r);           // workers up to the last that plays

// --- remote_help.c -------------------------------------------------------------------------------

bel_remote_help *bel_remote_help_create(remote *r);
void bel_remote_help_destroy(bel_remote_help *help);
const bel_evaluation_helpers *bel_remote_begin_help(bel_backend *backend, int evaluation,
                                                    const char *checkpoint, int64_t step,
                                                    uint64_t input);
void bel_remote_end_help(bel_backend *backend);
void bel_remote_take_batch(remote *r, int member, const Bel__Batch *m);

// --- remote_files.c ------------------------------------------------------------------------------

// Asks a shard that has saved its part in a folder of its own for the file; asks once more over
// another connection for what has not come; gives that up.
void bel_remote_pull(remote *r, int shard);
void bel_remote_pull_again(remote *r, int shard);
void bel_remote_end_pulls(remote *r);
void bel_remote_take_piece(remote *r, int member, const Bel__Piece *piece);
void bel_remote_answer_fetch(remote *r, int member, Bel__Fetch *request);

// --- remote_show.c -------------------------------------------------------------------------------

void bel_remote_show(bel_backend *backend, bel_board *board); // for bel_backend_ops

// --- remote_rescue.c -----------------------------------------------------------------------------

// On each round of the wait: see there.
void bel_remote_rescue(remote *r);

// --- remote_values.c -----------------------------------------------------------------------------

bel_status *bel_remote_read_values(bel_backend *backend) BEL_MUST_USE; // for bel_backend_ops
void bel_remote_close_lanes(remote *r);

#endif
