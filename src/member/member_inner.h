// The inside of a member: member.c (its start and messages), member_say.c, member_join.c,
// member_memory.c, member_shard.c, member_shard_tell.c, member_lanes.c, member_worker.c,
// member_evaluator.c.
#ifndef BELFRY_MEMBER_MEMBER_INNER_H
#define BELFRY_MEMBER_MEMBER_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "estimator/exporters.h"
#include "estimator/trainable.h"
#include "member/member.h"
#include "ps/server/control.h"
#include "transport/grpc/grpc_lane.h"
#include "transport/grpc/mailbox.h"
#include "transport/shm/shm_lane.h"

// What a process that holds a shard has. In a process that is a worker as well the two share space
// and layout. Memory stays for as long as the process, but what depends on the assignment of
// replicas only until there is another; lanes and threads are a generation's.
typedef struct member_shard {
    bool here;
    bool shares_memory; // with workers
    int index;
    const bel_layout *layout;
    const bel_assignment *assignment;
    bel_space *space;
    float **outboxes; // with a ledger: by worker
    void *
        *answer_rooms; // with a hub: by worker, rows that it asked for; NULL: the shard has its own
    float *snapshot;
    float *snapshot_averages; // NULL: the optimizer keeps none
    bel_shard *shard;
    bel_doorbell *bell;
    bel_shard_peer *worker_peers, *shard_peers;
    bel_team *team;     // works on chunks: a thread for each core
    bel_lane *own_lane; // the end that leads to this process's own worker, until it is admitted

    bel_control *control;    // shard 0
    bel_lane **worker_lanes; // by worker
    bel_lane **shard_lanes;  // shard 0: by shard; others: [0]
    bel_lane *master_lane;
    pthread_t engine;
    bool has_engine;
    atomic_bool stop;
    atomic_llong snapshot_ready; // the version of the newest snapshot that is complete, -1: none
    int64_t snapshot_told;       // the one that the master was told of, -1: none
    int64_t progress_told;       // the step that it was told of, -1: none
    int64_t progress_ns;         // when
    atomic_bool progress_due;    // the last step was made
    pthread_mutex_t made_mutex;  // guards what follows: the newest step that a loop waits for
    double *made;                // its statistics; NULL: there was none
    int64_t made_version;
    bool made_told;
    int64_t sending;      // the same while some of them are not sent, -1: all are
    int sent;             // frames of it that are
    atomic_bool resuming; // a member was replaced: the next version is worth a line

    pthread_mutex_t mutex;    // guards what follows: which lanes can be found
    uint32_t open_generation; // 0: none
    uint32_t *incarnations;   // by worker
    bool *replacing;          // by worker
    int32_t reading;          // number of the master's lane
} member_shard;

typedef struct member_worker {
    bool here;
    bel_trainable trainable;
    bel_space *space;
    float *values; // with a ledger, in a process with a shard: what `space` lies over
    float **ranges;
    int range_count;
    void *row_buffer, *answer_room; // bel_client_config; the second only without a hub
    bel_client_peer *peers;
    bel_doorbell *bell;

    bel_lane **lanes; // by shard
    bel_client *client;
    bel_worker *worker;
    pthread_t thread;
    bool has_thread;
    atomic_bool cancelled, ended;
    atomic_bool leaves; // it ends behind its step
    bel_status *status; // of bel_worker_run, once it has ended
    bool told;          // the master knows
} member_worker;

// When an evaluator began, and when its last evaluations did; 0: there were none.
typedef struct bel_evaluator_pace {
    int64_t begun_ns, last_ns;
    bool said; // in the log
} bel_evaluator_pace;

typedef struct bel_member_help bel_member_help;
typedef struct bel_member_files bel_member_files;

typedef struct member {
    const bel_task *task;
    const bel_member_program *program;
    const bel_estimator *estimator;
    bel_endpoint *endpoint;
    bel_doorbell *bell; // of the mailbox
    bel_mailbox *mailbox;
    bel_shm_hub *hub;                       // NULL: workers and shards talk over gRPC
    bel_shm_region *parameters, *gradients; // with a hub
    bel_assignment *assignment;
    bel_shard_settings settings; // of this generation
    bel_optimizers *optimizers;  // the settings'; BEL_MAX_STEP_FUNCTIONS of them
    bel_layout *layout;          // a parameter server's own, from the master's description
    uint32_t generation;         // of the state here; 0: none
    char *token;                 // that it has joined with
    int64_t joined_ns;           // when it joined first, over this connection
    int64_t token_ns;            // when it read the token last
    bool answered;               // the master has said something since
    int64_t sought_ns;           // when the search for a master began that has not found one yet
    member_shard shard;
    member_worker worker;
    int64_t status_ns; // when it was last sent
    bel_status *end;   // what the master said; CANCELLED or NULL once it has
    bool over, told_stop, told_failure;
    int64_t leave_ns; // when the master was first told that this process is to go; 0: it was not
    bool told_leave;  // this master
    bool leaves;      // the master has let it go
    bool traces;      // it has begun this process's part of the trace
    bel_result *evaluated;    // evaluator: by evaluation, of the newest checkpoint that it has seen
    uint64_t *evaluated_data; // the fingerprints of the data that it had
    bel_run_log *log;         // evaluator: its curves
    bel_exporters *exporters; // evaluator: by evaluation
    int64_t evaluated_step;   // its step, -1: none
    int64_t looked_step;      // the newest then, which may be damaged and passed over; -1: none
    bel_evaluator_pace pace;
    bel_member_files *files; // of a shard that does not see the model folder; NULL: not so far
    bool fetches;            // the same, as the setup says
    bel_member_help *help;   // worker: with evaluations; NULL: it was not asked yet
    bool evaluates;          // evaluator: the master has said that the job runs
} member;

// member_say.c. Sends a message of this kind (wire/message.h) to the master, with the generation of
// the state here. Main thread.
void bel_member_send(member *m, const ProtobufCMessage *kind);
// What is counted here, behind STATUS and ENDED; free the list with bel_free.
double *bel_member_numbers(const member *m, size_t *out_count);
// What it does, in words, and what it has counted: once a second, or at once.
void bel_member_send_status(member *m, bool at_once);

// member_join.c. Calls the master until it answers, as it may not be there yet, or be started
// again, and joins. UNAVAILABLE: it cannot be reached within the join timeout.
bel_status *bel_member_join(member *m) BEL_MUST_USE;
bel_status *bel_member_leave(member *m) BEL_MUST_USE; // CANCELLED, and says so in the log
// What it has joined with may have been an old token: it joins with the new one, for a while.
// True when it has: all is to be told again.
bool bel_member_join_with_new_token(member *m);

// member_memory.c: the hub, unless lanes go over gRPC; memory that peers read in place when there
// is a hub.
bel_status *bel_member_open_hub(member *m, bel_lane_find *find) BEL_MUST_USE;
char *bel_member_shm_path(const char *address);
bel_status *bel_member_make_parameters(member *m, const bel_layout *layout,
                                       bel_space **out_space) BEL_MUST_USE;
// Another assignment has other rooms for rows, which are a part of a shard's region: the region and
// its space are made anew. A process with a worker and a shard keeps its assignment.
void bel_member_forget_answers(member *m);
bel_status *bel_member_make_ranges(member *m) BEL_MUST_USE;
void bel_member_free_ranges(member *m);
// With a ledger: the copies of the values that workers compute on, at a shard and at a worker.
bel_status *bel_member_make_outboxes(member *m) BEL_MUST_USE;
size_t bel_member_parameter_bytes(const member *m); // of a shard's region that workers map
static inline bool bel_member_has_ledger(const member *m)
{
    return bel_counting_has_ledger(&m->settings.counting);
}
bel_status *bel_member_attach(void *member) BEL_MUST_USE; // for bel_client_config
void bel_member_free_memory(member *m);

// member_lanes.c. This process's ends of the shard's lanes, by the setup; of one worker, which its
// caller puts into its place; and the bel_frame_place of a lane on which nothing may come.
void bel_member_make_lanes(member *m, const Bel__Setup *setup);
bel_lane *bel_member_make_worker_lane(member *m, int worker);
void *bel_member_refuse_frame(void *context, const bel_frame *frame);
// For the hub: a worker of this host opens its lane.
bel_status *bel_member_shard_find_shm(void *context, const bel_lane_hello *hello,
                                      bel_lane **out_lane) BEL_MUST_USE;
// For the endpoint: a peer opens a lane.
bel_status *bel_member_shard_accept(void *context, const char *path, bel_stream *stream,
                                    bel_stream_events *out_events) BEL_MUST_USE;

// member_shard.c. Creates the shard the first time; loads the checkpoint, opens the lanes and
// starts the thread.
bel_status *bel_member_shard_start(member *m, const Bel__Setup *setup) BEL_MUST_USE;
void bel_member_shard_stop(member *m); // ends its thread and closes its lanes
void bel_member_shard_forget_assignment(
    member *m);                        // once stopped: the next start makes a shard anew
void bel_member_shard_free(member *m); // once the endpoint is gone
// Does what the master asks of a shard. RESOURCE_EXHAUSTED: a snapshot of tables.
bel_status *bel_member_shard_message(member *m, const Bel__Message *message) BEL_MUST_USE;

// member_shard_tell.c. Tells the master about steps and snapshots.
void bel_member_shard_progress(member *m);
void bel_member_shard_tell_again(member *m); // to another master, or over another connection
// Shard 0 has made a step: bel_control_config.made, on the engine's thread.
void bel_member_shard_step_made(void *member, const bel_control_made *made);
void bel_member_shard_forget_made(member_shard *s); // the numbers of that step
void bel_member_shard_forget_told(member_shard *s); // the master knows nothing
void bel_member_shard_go_on_sending(member *m);     // the values that the master has asked for

// member_shard.c.
// The error that stopped the shard or, at shard 0, the training (a loss that is not finite).
bel_status *bel_member_shard_check(member *m) BEL_MUST_USE;

// member_files.c. Takes a setup, and asks the master for the files that it needs; takes a piece of
// one; says when all are here, NULL: they are not, and is told what has become of the beginning,
// whose status it takes: it may need more. Gives it up, but for what has come.
bel_status *bel_member_files_ask(member *m, Bel__Message *setup) BEL_MUST_USE;
const Bel__Message *bel_member_files_ready(member *m);
bel_status *bel_member_files_begun(member *m, bel_status *status) BEL_MUST_USE;
bel_status *bel_member_files_take(member *m, const Bel__Piece *piece) BEL_MUST_USE;
void bel_member_files_drop(member *m);
// Keeps what the master says of the state that is not here yet, and takes the message; false: it is
// for now. Gives out what was kept, in its order, once the state is here; NULL: nothing.
bool bel_member_files_keep(member *m, Bel__Message *message);
Bel__Message *bel_member_files_next(member *m);
// The checkpoint of a step in this process's own folder; a folder for one, free the path with
// bel_free; a piece of what is there.
bel_status *bel_member_files_open(member *m, int64_t step,
                                  bel_ckpt_reader **out_reader) BEL_MUST_USE;
bel_status *bel_member_files_make(member *m, int64_t step, char **out_folder) BEL_MUST_USE;
void bel_member_files_answer(member *m, Bel__Fetch *request);
void bel_member_files_free(member *m);

// member_worker.c. Builds the model; before joining, since its settings are shown then.
bel_status *bel_member_worker_build(member *m) BEL_MUST_USE;
bel_status *bel_member_worker_start(member *m, const Bel__Setup *setup) BEL_MUST_USE;
bel_status *bel_member_worker_run(member *m) BEL_MUST_USE; // starts its thread
// Why a lane of its worker is cut for good; OK: none is.
bel_status *bel_member_worker_check_lanes(const member *m) BEL_MUST_USE;
void bel_member_worker_check(member *m); // tells the master when the worker has ended
void bel_member_leave_if_lost(const member *m,
                              const bel_status *failure); // bel_estimator_leave_if_lost
void bel_member_worker_leave(member *m); // ends its thread behind its step, for which others wait
void bel_member_worker_end(member *m, double patience_secs); // its thread, at its next wait
void bel_member_worker_stop(member *m); // then its lanes, and what a shard here has read
void bel_member_worker_free(member *m); // once the endpoint is gone
// Joins a thread that rings m->bell when it has `ended`. What does not end in that time, in a
// user's code or a file system that is stuck, must not keep a process whose job is over, or the
// others of a job that begins anew: this process ends without it, with `code`.
void bel_member_join_thread(const member *m, pthread_t thread, const atomic_bool *ended,
                            double patience_secs, const char *what, int code);

// member_evaluator.c: evaluates the newest checkpoint if it is new; with `last`, then tells the
// master that it is done. `over`: training has reached its end, so exports of the end are made.
bel_status *bel_member_evaluate(member *m, bool last, bool over) BEL_MUST_USE;

// member_help.c: batches of an evaluation that the master asks a worker for; sends what has come of
// them; ends the thread, after its batch. RESOURCE_EXHAUSTED: no thread.
bel_status *bel_member_help_take(member *m, const Bel__Evaluate *message) BEL_MUST_USE;
void bel_member_help_send(member *m);
void bel_member_help_end(member *m, double patience_secs);

// Opens the inputs of all evaluations once, so that what is wrong with them is known before
// training.
bel_status *bel_member_check_evals(member *m) BEL_MUST_USE;

#endif
