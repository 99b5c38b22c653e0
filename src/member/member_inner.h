// Inside view of a member: member.c (messages), member_start.c, member_say.c, member_join.c,
// member_files.c, member_help.c, member_hub.c, member_memory.c, member_shard.c,
// member_shard_tell.c, member_lanes.c, member_mirror.c, member_worker.c, member_relay.c,
// member_evaluator.c.
#ifndef BELFRY_MEMBER_MEMBER_INNER_H
#define BELFRY_MEMBER_MEMBER_INNER_H

#include "member/member_parts.h"

typedef struct bel_member_help bel_member_help;
typedef struct bel_member_files bel_member_files;

typedef struct member {
    const bel_task *task;
    const bel_member_program *program;
    const bel_estimator *estimator;
    bel_endpoint *endpoint;
    bel_doorbell *bell;  // the mailbox's
    uint32_t generation; // generation of this process's state; 0: none
    bel_assignment *assignment;
    bel_shard_settings settings; // this generation's
    bel_optimizers *optimizers;  // the settings'; BEL_MAX_STEP_FUNCTIONS of them
    bel_layout *layout;          // a parameter server's, from the master's description
    member_master master;
    member_told told;
    member_end end;
    member_shm shm;
    member_shard shard;
    member_worker worker;
    member_relays relays;
    member_evaluator evaluator;
    bel_member_files *files; // without access to the model folder; NULL: not so far
    bool fetches;            // the same, from the setup
    bel_member_help *help;   // worker: help with evaluations; NULL: no request yet
    bool traces;             // this process's part of the trace has begun
} member;

// member_say.c. Sends a message of this kind (wire/message.h) to the master, with the generation of
// this process's state. Main thread.
void bel_member_send(member *m, const ProtobufCMessage *kind);
// Returns the counters of this process, for STATUS and ENDED; free the list with bel_free.
double *bel_member_numbers(const member *m, size_t *out_count);
// Sends its activity, in words, and its counters: once a second, or at once.
void bel_member_send_status(member *m, bool at_once);

// member_join.c. Calls the master until it answers, as it may start later or restart, and joins.
// UNAVAILABLE: it cannot be reached within the join timeout.
bel_status *bel_member_join(member *m) BEL_MUST_USE;
// As bel_member_join, after a lost connection; takes `why`, the reason. The reason is the error if
// the job does not recover or the master's answer is final.
// Calls the master again, which also learns what has changed here, and repeats all reports.
bel_status *bel_member_join_again(member *m) BEL_MUST_USE;
bel_status *bel_member_find_master_again(member *m, bel_status *why) BEL_MUST_USE;
bel_status *bel_member_leave(member *m) BEL_MUST_USE; // returns CANCELLED, and logs it
// Joins again if the token has changed, for a while: the token of the first join may have been old.
// All reports are then repeated.
void bel_member_join_with_new_token(member *m);

static inline bool bel_member_is_evaluator(const member *m)
{
    return m->task->role == BEL_ROLE_EVALUATOR;
}

// member_hub.c. Opens the hub, unless lanes use gRPC; with a hub, peers read memory in place.
bel_status *bel_member_open_hub(member *m, bel_lane_find *find) BEL_MUST_USE;
void bel_member_close_hub(member *m); // after its lanes
// Returns the sockets at which a shard, or a worker of this host with a relay, introduces its
// shared memory; free with bel_free. NULL: the address is not of a unix socket.
char *bel_member_shm_path(const char *address);
char *bel_member_relay_path(const member *m, int worker, uint32_t incarnation);
// True if workers and shards share memory, as the job is on one host.
static inline bool bel_member_is_on_one_host(const member *m)
{
    return m->shm.hub != NULL && m->shm.one_host;
}
// True if another process reads this worker's reports in place, and has the values that it maps.
static inline bool bel_member_reports_in_place(const member *m)
{
    const member_relays *relays = &m->relays;
    bool to_host = relays->tree != NULL && relays->count == 0 &&
                   bel_fan_in_is_host(relays->tree, relays->place.level);
    return bel_member_is_on_one_host(m) || to_host;
}

// member_memory.c
// Finds the state that a predecessor of this process has left (m->shard.held).
void bel_member_look_at_memory(member *m);
bel_status *bel_member_make_parameters(member *m, const bel_layout *layout,
                                       bel_space **out_space) BEL_MUST_USE;
// Frees the region and its space for another assignment, which has other rooms for rows in a
// shard's region. A process with a worker and a shard keeps its assignment.
void bel_member_forget_answers(member *m);
bel_status *bel_member_make_ranges(member *m) BEL_MUST_USE;
void bel_member_free_ranges(member *m);
// In a worker's process: makes the region of its relay's values, unless it is there.
bel_status *bel_member_make_relay_values(member *m) BEL_MUST_USE;
// Frees a worker's values for another assignment, in which they may be in another process.
void bel_member_forget_values(member *m);
// With a ledger: creates the copies of the values on which workers compute, at a shard and at a
// worker.
bel_status *bel_member_make_outboxes(member *m) BEL_MUST_USE;
size_t bel_member_parameter_bytes(const member *m); // bytes of a shard's region that workers map
static inline bool bel_member_has_ledger(const member *m)
{
    return bel_counting_has_ledger(&m->settings.counting);
}
bel_status *bel_member_attach(void *member) BEL_MUST_USE; // for bel_client_config
void bel_member_free_memory(member *m);

// member_lanes.c. Creates this process's ends of the shard's lanes, for the setup.
void bel_member_make_lanes(member *m, const Bel__Setup *setup);
// Creates one worker's lane, which the caller puts into its place.
bel_lane *bel_member_make_worker_lane(member *m, int worker);
// A bel_frame_place for a lane that must not carry payloads.
void *bel_member_refuse_frame(void *context, const bel_frame *frame);
// For the hub, with the member as context: finds the lane of a worker of this host that opens it.
bel_status *bel_member_find_shm(void *context, const bel_lane_hello *hello,
                                bel_lane **out_lane) BEL_MUST_USE;
// For the endpoint: accepts a lane that a peer opens to the shard or a relay.
bel_status *bel_member_accept(void *context, const char *path, bel_stream *stream,
                              bel_stream_events *out_events) BEL_MUST_USE;

// member_shard.c. Creates the shard the first time; loads the checkpoint, opens the lanes and
// starts the thread.
bel_status *bel_member_shard_start(member *m, const Bel__Setup *setup) BEL_MUST_USE;
void bel_member_shard_stop(member *m); // ends its thread and closes its lanes
void bel_member_shard_forget_assignment(
    member *m);                        // after the stop: the next start creates a new shard
void bel_member_shard_free(member *m); // after the endpoint's end
// Handles the master's messages to a shard. RESOURCE_EXHAUSTED: a snapshot of tables.
bel_status *bel_member_shard_message(member *m, const Bel__Message *message) BEL_MUST_USE;
// Replaces the points by the control's newest ones; NULL: leaves them.
void bel_member_read_points(bel_control *control, member_points *points);
// Stops the work and answers with the version that the shard holds.
void bel_member_shard_hold(member *m);

// member_mirror.c. With copies: creates the mirror for this assignment, before the shard.
bel_status *bel_member_mirror_make(member *m, const Bel__Setup *setup) BEL_MUST_USE;
// Begins the states of shard and mirror: loads the checkpoint, continues, or expects a state.
bel_status *bel_member_mirror_begin(member *m, const Bel__Setup *setup,
                                    bel_status *(*load)(member *m, const Bel__Setup *setup,
                                                        bel_shard *shard)) BEL_MUST_USE;
void bel_member_mirror_make_lanes(member *m, const Bel__Setup *setup);
// On the engine's thread, before the shard starts: sends and takes states, and starts the mirror.
// False: the engine was told to stop.
bool bel_member_mirror_enter(member *m);
bool bel_member_mirror_work(member *m); // as bel_shard_work_together
bel_status *bel_member_mirror_check(member *m) BEL_MUST_USE;
void bel_member_mirror_stop(member *m); // after the engine's end: closes the lanes
void bel_member_mirror_free(member *m);

// member_shard_tell.c. Reports steps and snapshots to the master.
void bel_member_shard_progress(member *m);
void bel_member_shard_report(member *m);     // the same, at once, also after the engine's end
void bel_member_shard_tell_again(member *m); // to another master, or over another connection
// Shard 0 has made a step: bel_control_config.made, on the engine's thread.
void bel_member_shard_step_made(void *member, const bel_control_made *made);
void bel_member_shard_forget_made(member_shard_made *made);       // the step's numbers
void bel_member_shard_forget_told(member_shard_reports *reports); // the master has received none
void bel_member_shard_go_on_sending(member *m); // the values that the master requested

// member_shard.c.
// Returns the error that stopped the shard or, at shard 0, the training (a loss that is not
// finite).
bel_status *bel_member_shard_check(member *m) BEL_MUST_USE;

// member_start.c. Begins with a setup, or begins again with that of another generation. Errors of
// a malformed setup, of memory, and of the parts.
bel_status *bel_member_start_parts(member *m, uint32_t generation,
                                   const Bel__Setup *setup) BEL_MUST_USE;
// Stops all parts; the worker's thread has `patience_secs` to end.
void bel_member_stop_parts(member *m, double patience_secs);

// member_files.c. Takes a message that needs files of a checkpoint (SETUP; an evaluator's
// EVALUATE), and asks the master for them.
bel_status *bel_member_files_ask(member *m, Bel__Message *message) BEL_MUST_USE;
// Returns that message if all files are here, else NULL.
const Bel__Message *bel_member_files_ready(member *m);
// Returns the step of the checkpoint whose files are awaited; -1: none.
int64_t bel_member_files_awaited(const member *m);
// Takes the status of the message's work, which may need more files.
bel_status *bel_member_files_begun(member *m, bel_status *status) BEL_MUST_USE;
// Takes a piece of a file.
bel_status *bel_member_files_take(member *m, const Bel__Piece *piece) BEL_MUST_USE;
// Stops waiting, but keeps the pieces that have arrived.
void bel_member_files_drop(member *m);
// Keeps a message for a state that is not complete yet, and takes ownership; false: the caller
// handles it now.
bool bel_member_files_keep(member *m, Bel__Message *message);
// Returns the kept messages in their order, once the state is complete; NULL: no message.
Bel__Message *bel_member_files_next(member *m);
// Returns the path of the checkpoint of a step in this process's folder; free it with bel_free.
char *bel_member_files_path(member *m, int64_t step);
// Opens that checkpoint.
bel_status *bel_member_files_open(member *m, int64_t step,
                                  bel_ckpt_reader **out_reader) BEL_MUST_USE;
// Creates a folder for one; free the path with bel_free.
bel_status *bel_member_files_make(member *m, int64_t step, int64_t base,
                                  char **out_folder) BEL_MUST_USE;
// Answers with a piece of a file in it.
void bel_member_files_answer(member *m, Bel__Fetch *request);
void bel_member_files_free(member *m);

// member_worker.c. Builds the model, before joining, as the join has its settings.
bel_status *bel_member_worker_build(member *m) BEL_MUST_USE;
bel_status *bel_member_worker_start(member *m, const Bel__Setup *setup) BEL_MUST_USE;
bel_status *bel_member_worker_run(member *m) BEL_MUST_USE; // starts its thread
// Returns the reason why a lane of its worker is cut for good; OK: no lane is.
bel_status *bel_member_worker_check_lanes(const member *m) BEL_MUST_USE;
// Joins again without a place if the relay of this host cannot be reached.
bel_status *bel_member_worker_check_place(member *m) BEL_MUST_USE;
void bel_member_worker_check(member *m); // reports the worker's end to the master
void bel_member_leave_if_lost(const member *m,
                              const bel_status *failure); // bel_estimator_leave_if_lost
// ends its thread after its step, for which other workers wait
void bel_member_worker_leave(member *m);
void bel_member_worker_end(member *m, double patience_secs); // ends its thread at its next wait
void bel_member_worker_stop(member *m); // then its lanes, and the memory that a shard here reads
void bel_member_worker_free(member *m); // after the endpoint's end
// Joins a thread that rings m->bell when it sets `ended`. A thread that hangs in a user's code or a
// stuck file system must not keep a process whose job is over, or the other members of a job that
// begins again. After the patience this process exits without it, with `code`.
void bel_member_join_thread(const member *m, pthread_t thread, const atomic_bool *ended,
                            double patience_secs, const char *what, int code);

// member_relay.c. True if this worker's process may get relays, so that it must listen.
bool bel_member_may_relay(const member *m);
// Takes a new assignment's tree of relays from the setup. INVALID_ARGUMENT: an impossible one.
bel_status *bel_member_relays_take_rule(member *m, const Bel__Setup *setup) BEL_MUST_USE;
void bel_member_relays_forget(member *m); // frees it
// Creates the relays of this generation, and finds where the worker reports; before its lanes.
bel_status *bel_member_relays_make(member *m, const Bel__Setup *setup) BEL_MUST_USE;
bel_status *bel_member_relays_run(member *m) BEL_MUST_USE; // starts their threads
// Finds the lane of a reporter that opens it, on a thread of the endpoint or (`shm`) of the hub.
void bel_member_relays_find(member *m, const bel_lane_hello *hello, bool shm, bel_lane **out_lane);
// Returns the error that stopped a relay, unless a new generation will repair it.
bel_status *bel_member_relays_check(const member *m) BEL_MUST_USE;
void bel_member_relays_stop(member *m); // ends their threads, which read the worker's reports
void bel_member_relays_free(member *m); // after the worker's stop

// member_evaluator.c: evaluates a checkpoint, which is visible or was fetched, and sends the
// results.
bel_status *bel_member_evaluate(member *m, const Bel__Evaluate *request) BEL_MUST_USE;
// Takes the status of that work, or of fetching the files, and reports it to the master: the
// results, or why they fail. Returns errors that end this process.
bel_status *bel_member_evaluated(member *m, int64_t step, bel_status *status) BEL_MUST_USE;
// Before a setup: forgets the request, and the results unless the generation is the same, as a new
// one may have other checkpoints.
void bel_member_forget_evaluated(member *m, uint32_t generation);

// member_help.c: takes a request of the master to a worker, for batches of an evaluation.
// RESOURCE_EXHAUSTED: no thread.
bel_status *bel_member_help_take(member *m, const Bel__Evaluate *message) BEL_MUST_USE;
// Sends the results.
void bel_member_help_send(member *m);
// Ends the thread, after its batch.
void bel_member_help_end(member *m, double patience_secs);

// Opens the inputs of all evaluations once, so that their errors show before training.
bel_status *bel_member_check_evals(member *m) BEL_MUST_USE;
void bel_member_evaluator_deinit(member_evaluator *evaluator);

#endif
