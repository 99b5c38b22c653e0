// Model of a job: a master, two shards and two workers as processes, their messages, and the events
// that can happen to them. It abstracts from the code, function by function:
//
//   cluster.c         processes that die and restart, connections that break, the explored model
//   cluster_master.c  src/master: remote.c, remote_members.c, train.c, save.c, members.c
//   cluster_ends.c    remote_seats.c, remote_leave.c, remote_hold.c, remote_rescue.c: stops,
//                     pauses, farewells, shards that continue, stops without a worker
//   cluster_shard.c   src/ps/server/shard.c and src/member/member_shard.c: the shared part
//   cluster_rows.c    shard_rows.c and client_rows.c: tables
//   cluster_mirror.c  src/ps/server/mirror.c, mirror_state.c and src/member/member_mirror.c
//   cluster_sync.c    policy_all.c and values.c: all workers count
//   cluster_ledger.c  policy_ledger.c, ledger.c, lease.c, answer.c: shard 0 picks a worker
//   cluster_worker.c  src/worker/worker.c and src/ps/client/client.c
//
// Values are represented by their origin: in sync the number of their version, with a ledger the
// list of the reports that counted. Each shard has one chunk. Queues keep their order. A lane's
// queues are lost when one of its ends is lost; a control stream's also when only the stream
// breaks.
#ifndef BELFRY_TESTS_MODEL_CLUSTER_H
#define BELFRY_TESTS_MODEL_CLUSTER_H

#include <string.h>

#include "model/explore.h"

enum { WORKERS = 2, SHARDS = 2, MEMBERS = SHARDS + WORKERS, STEPS_MAX = 3, PAGES = WORKERS + 2 };
enum { SHARD_0, SHARD_1, WORKER_0, WORKER_1, MASTER }; // processes

// Planted defects, to see that the explorer finds them.
typedef enum bel_cluster_defect {
    SOUND,
    FORGETS_PREVIOUS_VERSION, // a shard sends only its newest version
    KEEPS_REPORTS_OF_DEAD,    // an admit forgets nothing
    LAST_STEP_TWICE_UNTOLD,   // a worker that repeats the last step is not told so
    OVERWRITES_EARLY,         // a chunk is updated before all workers have reported
    NEVER_WAITS_FOR_RELEASE,  // the next snapshot overwrites the one in use
    RELEASE_NOT_REPEATED,     // … though the shard asks for it
    SNAPSHOT_NOT_TOLD_AGAIN,  // to another master
    SNAPSHOT_MIXED_UP,        // a new snapshot is reported under the number of the last one
    ENDED_NOT_TOLD_AGAIN,     // to another master
    OLD_SNAPSHOT_COUNTS,      // although the shard has reported a newer one
    ENDS_BY_JOIN,             // the master believes a join that says the last step is made
    FINISHES_EARLY,           // the master asks for the last snapshot before an announced one
    GENERATION_NOT_RAISED,    // a new generation gets the journal's old number
    PLACE_BY_MASTERS_WORD,    // the master tells a reader where versions are stored
    ADMITS_TWICE,             // a repeated admit cuts the lane of the admitted worker
    SAVES_TWICE,              // a shard that has saved is asked again after its connection broke
    NAMED_TWICE,              // shard 0 leaves a worker in its queue when it names it
    TAKES_OVER_WHAT_IS_LOST,  // after going back the master finds shards with state, and continues
    LOST_IN_THE_MIDDLE,       // a worker that counted in an unfinished step is replaced
    ANSWERS_WHILE_PUBLISHING, // … while a version is copied for a worker
    ANSWERS_BEHIND_LEDGER,    // shard 0 answers with a version whose step it has closed
    LEASES_FORGOTTEN,         // a checkpoint omits the leases
    STALE_REPORT_COUNTS,      // in a mode in which only reports on the newest version count
    STOP_NOT_REPEATED,        // after the connection that may have lost the request
    STOP_FORGOTTEN,           // by a new generation
    END_IS_OLD_SNAPSHOT,      // … and its snapshot counts as one that was released
    SAVES_WHAT_IS_SAVED,      // a stop at a saved version saves it again
    PAUSE_TAKES_OVER,         // after a pause the master continues the state that is there
    PAUSE_IS_AN_END,          // shard 0 does not say that its last step is that of a pause
    ASSIGNMENT_BY_REQUEST,    // a new master takes the requested workers for those that play
    SHARD_LEAVES_AT_ONCE,     // without a pause that saves its state
    HELD_CHUNK_UPDATED,       // a chunk that is a version ahead is updated once more
    HELD_AT_HIGHEST,          // a generation begins at the highest version of a shard
    HELD_WITHOUT_STOP,        // … without stopping the shards that run
    HELD_STEP_NOT_MADE,       // a stop is obeyed before the step of such a generation
    HELD_WITHOUT_SNAPSHOT,    // … and the snapshot in use is forgotten
    HELD_HALF_SNAPSHOT,       // … with the snapshot, though a shard lacks its part
    KEPT_FORGETS_SNAPSHOT,    // a shard that comes back with its state does not name its snapshot
    MIRROR_NOT_AWAITED,       // a version is published before the mirror has made it
    MIRROR_CHUNK_UPDATED,     // a mirror that is a version ahead makes it once more
    MIRROR_NOT_COUNTED,       // a generation begins at the lowest version of the shards that live
    MIRROR_NOT_FILLED,        // a newcomer is not sent the mirror that its process shall hold
    MIRROR_LACKS_SUM,    // a repeated step's sum is not sent, as the shard has the next version
    WHOLE_THOUGH_MADE,   // a shard with a part of the next version says it is whole
    WHOLE_CONTINUES,     // a shard that said so accepts reports
    WHOLE_NOT_COMPARED,  // the master saves although the shards' versions differ
    WHOLE_NOT_RELEASED,  // shards wait although others are not whole
    ROWS_NOT_KEPT,       // a pull that comes again is answered from the table
    ROWS_UPDATED_EARLY,  // a table is updated before all row reports are there
    REPORTS_BEFORE_ROWS, // a worker reports before the answers to its pulls
    DEFECTS
} bel_cluster_defect;

typedef struct bel_cluster_config {
    int steps;                 // at most STEPS_MAX
    int save_steps;            // a checkpoint at each multiple; the last version is always saved
    bool in_place;             // workers read the shards' buffers; else they receive the values
    bool ledger;               // one report makes a step …
    bool takes_stale;          // … on any version; else on the newest
    int max_lead;              // … of a worker at most this far ahead of the other; -1: no limit
    bool joined;               // the model begins after all members have joined
    int deaths;                // number of processes that die, at any moment
    int breaks;                // number of control connections that break between live processes
    bool may_die[MEMBERS + 1]; // shards, workers, the master
    int stops;                 // requests to stop, at any moment; at most 1
    int scales;                // requests for another number of workers: 2 become 1, or 1 becomes 2
    bool one_plays;            // … worker 1 has no part at first
    int leaves;                // processes that must go, at any moment
    bool may_leave[MEMBERS + 1];
    bool keeps;    // the state of a shard outlives its process
    bool mirrors;  // each shard has a mirror in the other one's process
    bool rescues;  // a job that is to stop does not wait for a lost worker
    bool gives_up; // the job continues without worker 1 if that is lost for good
    bool tables;   // each shard has rows, which workers pull and report
    bel_cluster_defect defect;
} bel_cluster_config;

typedef struct bel_queue16 {
    uint16_t count, items[7];
} bel_queue16;

typedef struct bel_queue32 {
    uint32_t count, items[8];
} bel_queue32;

typedef enum bel_life { DOWN, UP, OVER } bel_life;

typedef struct bel_process {
    uint8_t life, incarnation;
    uint8_t connected; // to the master: 1 its call is under way, 2 the master has received it
    uint8_t leaving;   // it must go: 1, and this master knows: 2
} bel_process;

typedef enum bel_worker_place {
    NOT_BEGUN,
    PULLS,
    WAITS,
    PULLS_ROWS, // with tables; from both shards
    WAITS_FOR_ROWS,
    REPORTS_1, // to shard 1, whose layers are the last; with rows
    REPORTS_0,
    STATS_LIST_0,
    STATS_LIST_1,
    HAS_ENDED
} bel_worker_place;

typedef struct bel_model_worker {
    uint8_t generation, loaded, place, decision, told;
    uint8_t step;              // with a ledger: one above the version that it computed on
    uint8_t published[SHARDS]; // by shard: one above its version
    uint8_t buffer[SHARDS];    // the buffer of that version
    uint8_t rows;              // bits of shards whose rows have come
    uint8_t may_go;            // it exits after its step
    // With a ledger:
    uint8_t got; // from shard 1: the version of its copy
    uint8_t lease_count, leases[4], block;
} bel_model_worker;

typedef enum bel_reader { NO_READER, BEHIND, FOLLOWS } bel_reader;

// The mirror of the other shard, in the process of a shard, and what goes between the two.
typedef struct bel_model_mirror {
    uint8_t generation, step;           // it runs; 0: it does not
    uint8_t expects;                    // its state has not come
    uint8_t ahead;                      // its chunk has the next version
    uint8_t sum, passed, stats;         // this step's
    uint8_t held_generation, held_step; // the state that does not run
} bel_model_mirror;

typedef struct bel_model_shard {
    uint8_t generation, loaded, step, decision, decision_known, last_decision;
    uint8_t published_more; // than the version it began with
    uint8_t reports, stats_list, passed, publishing,
        snapshot_made; // the first two: bits of workers
    uint8_t report_incarnation[WORKERS];
    uint8_t buffers[2];                                                // versions
    uint8_t reader[WORKERS], sent[WORKERS], lane_incarnation[WORKERS]; // sent: one above
    uint8_t snapshot, ready, said;      // one above the version: in memory, complete, reported
    uint8_t writes, writes_for;         // one above the version; the master's incarnation
    uint8_t plays;                      // bits of workers
    uint8_t held_generation, held_step; // the state that does not run
    uint8_t ahead;    // the chunk has the next version, and this step does not update it
    uint8_t starts;   // shard 0 has not decided on its first step yet
    uint8_t stands;   // it accepts nothing, with a snapshot of its complete version
    uint8_t whole_of; // one above that version
    uint8_t row_reports, row_incarnation[WORKERS], rows_passed;
    uint8_t kept[WORKERS];  // one above the version of the rows that were answered
    uint8_t whole_snapshot; // one above the version of its complete snapshot
    // With mirrors:
    uint8_t expects;              // its state has not come
    uint8_t sum_sent, stats_sent; // to its mirror, in this step
    uint8_t mirrored;             // one above the version of its mirror
    // Shard 0:
    uint8_t snapshot_busy, has_snapshot, made_step, progress_said;
    uint8_t stop_wanted, pause_wanted, reason, must; // must: it makes this step before it stops
    // With a ledger:
    uint8_t copying[WORKERS], answer[WORKERS];
    uint8_t page_known[PAGES], page_worker[PAGES];
    uint8_t queue_count, queue[4], held;     // held: bits
    uint8_t counted[WORKERS], lead[WORKERS]; // counted: one above
    uint8_t leases[WORKERS][2], lease_count[WORKERS], next_block, leased;
    uint8_t returned_count, returned[8];
    uint16_t report[WORKERS]; // its origin
    uint32_t history, snapshot_history;
} bel_model_shard;

typedef enum bel_phase {
    GATHERS,
    RUNS,
    SAVES,
    RELEASES,
    FINISHES,
    SAVES_LAST,
    HOLDS,      // waits for shards with their state, and stops those that run
    ASKS_WHOLE, // whether the shards have one complete version
    IS_THROUGH,
    DISMISSES
} bel_phase;

typedef enum bel_reason { DONE, INTERRUPTED, PAUSED } bel_reason; // why a step is the last

typedef struct bel_model_master {
    uint8_t life, incarnation, phase, generation, lost;
    uint8_t begins_anew; // the members' state is void
    uint8_t first_step, saved_step, step;
    uint8_t ended; // bits of workers
    uint8_t here, seat_generation[MEMBERS], seat_incarnation[MEMBERS], seat_step[MEMBERS];
    uint8_t admits, answered[WORKERS], admitted_step[WORKERS], counted[WORKERS];
    uint8_t snapshots[SHARDS], saved_snapshot, has_snapshot, snapshot, released; // one above
    uint8_t asked, saved, leased; // asked: a message; saved: bits of shards that have answered
    uint8_t over;                 // one above shard 0's reason
    uint8_t plays, stop_sent, pause_sent;
    uint8_t leaves;  // bits of members that must go
    uint8_t leaving; // the master itself
    uint8_t held;    // the next generation begins with the state of the shards
    uint8_t seat_held[SHARDS], seat_held_step[SHARDS];     // generation and version of such states
    uint8_t seat_mirror[SHARDS], seat_mirror_step[SHARDS]; // the same of the mirrors that they hold
    uint8_t seat_snapshot[SHARDS]; // one above the version of their snapshots
    uint8_t
        since; // the generation that began with a checkpoint, and that the present one continues
    uint8_t continues;     // one above the version of a snapshot that continues
    uint8_t at_end;        // the snapshot was requested after training
    uint8_t whole[SHARDS]; // one above the version; NOT_WHOLE; 0: no answer yet
    uint8_t lacks;         // worker 1 is given up, and this step lacks it
    uint8_t failed;        // the job ends with an error, and the last checkpoint remains
} bel_model_master;

typedef struct bel_model_disk {
    uint8_t checkpoint, generation, leased; // the newest; the journal's
    uint8_t folder, folder_of;              // one above the version; the writing master
    uint8_t part[SHARDS];                   // one above the version
    uint32_t part_history[SHARDS], history;
    uint8_t plays, wanted; // the journal's assignment, and the requested one
} bel_model_disk;

typedef struct bel_cluster {
    uint32_t broken;                               // number of an invariant
    uint8_t deaths, breaks, stops, scales, leaves; // those that may still happen
    uint8_t stop_wanted;
    bel_process processes[MEMBERS]; // shards first
    bel_model_worker workers[WORKERS];
    bel_model_shard shards[SHARDS];
    bel_model_master master;
    bel_model_disk disk;
    bel_queue16 up[WORKERS][SHARDS], down[WORKERS][SHARDS], ledger; // lanes; ledger: 0 to 1
    bel_queue16 to_mirror[SHARDS], from_mirror[SHARDS];             // by mirrored shard
    bel_model_mirror mirrors[SHARDS];                               // by the process that holds it
    uint8_t left_out; // bits of versions without a checkpoint, as a part was lost
    bel_queue32 to_master[MEMBERS], from_master[MEMBERS];
} bel_cluster;

typedef enum bel_broken {
    ALL_HOLD,
    QUEUE_OVERFLOWS,
    READS_OTHER_VERSION,
    SENDS_OTHER_VERSION,
    VALUES_OVERWRITTEN,
    REPORT_OF_DEAD,
    REPORT_INCOMPLETE,
    UPDATE_OUT_OF_TURN,
    SHARDS_APART,
    SNAPSHOT_OVERWRITTEN,
    CHECKPOINT_MIXED,
    CHECKPOINT_TORN,
    CHECKPOINT_BACK,
    CHECKPOINT_LEFT_OUT,
    JOB_FAILS,
    LANE_CUT,
    HISTORIES_DIFFER,
    BLOCK_USED_TWICE,
    STALE_COUNTED,
    PUBLISHED_WHILE_COPYING,
    COPY_WHILE_COMPUTING,
    PAGE_UNKNOWN,
    END_WRONG,
    STOP_LOST,
    WENT_BACK,
    ROWS_OF_OTHER_VERSION,
    MIRROR_OUT_OF_TURN,
    BROKEN_COUNT
} bel_broken;

// --- Frames and messages -------------------------------------------------------------------------

enum { // kinds of frames
    REPORT,
    STATS,
    VERSION,
    PULL,
    PARAMS,
    LEASE,
    LEDGER,
    ANSWER,
    ROW_PULL,
    ROWS,
    ROW_REPORT,
    SUM,  // to a mirror
    STATE // a shard's or a mirror's; `other`: it has the next version; `block`: the generation
};
enum { SAVE = 1, STOP = 2 }; // decisions

typedef struct bel_model_frame {
    uint8_t kind, step, decision; // bits: 4, 2, 2
    uint8_t block;                // 4 bits; ANSWER: the incarnation of the worker
    uint8_t other; // 2 bits. VERSION: the copied version, or the buffer; reports: the version of
                   // shard 1 that they were computed on; LEDGER, ANSWER: the worker; ROWS: the
                   // version that they have
    uint8_t first; // PARAMS: whether it is this reader's first version; VERSION: of values
} bel_model_frame;

enum {
    JOIN = 1,
    SETUP,
    PROGRESS,
    SNAPSHOT,
    ASK_SAVE,
    SAVED,
    RELEASE,
    ENDED,
    FINISH,
    END,
    ADMIT,
    ADMITTED,
    ASK_STOP,
    ASK_PAUSE,
    HOLD,
    HELD,
    LEAVE
};
enum { NOT_WHOLE = 7 }; // step of a shard's answer to a FINISH with `flag`
enum { NO_STATE = 7 };  // step of a HELD whose sender lacks the state; the same for its mirror
enum { ALL_WORKERS = (1 << WORKERS) - 1, ALL_SHARDS = (1 << SHARDS) - 1 };

typedef struct bel_model_message {
    uint8_t kind, generation, step;
    uint8_t first; // SETUP: the step of the checkpoint; SAVED: 1: it failed; PROGRESS: bel_reason
    uint8_t index, incarnations[2];
    uint8_t counted, leased; // JOIN: generation and version of a held state; SETUP: `leased` has
                             // bits of shards without state, then of those without mirror
    uint8_t plays;           // JOIN: version of the held mirror, and `first` its generation
    uint8_t flag;     // SETUP: held; END: the receiver leaves; FINISH, SNAPSHOT, RELEASE: whole
    uint8_t snapshot; // JOIN, HELD, SETUP: one above the version of a complete snapshot
} bel_model_message;

void bel_queue_frame(bel_cluster *s, bel_queue16 *queue, bel_model_frame frame);
bel_model_frame bel_first_frame(const bel_queue16 *queue);
bel_model_frame bel_take_frame(bel_queue16 *queue);
void bel_queue_message(bel_cluster *s, bel_queue32 *queue, bel_model_message message);
bel_model_message bel_first_message(const bel_queue32 *queue);
bel_model_message bel_take_message(bel_queue32 *queue);

static inline void bel_break(bel_cluster *s, bel_broken what)
{
    if (s->broken == ALL_HOLD) s->broken = what;
}

// --- The parts -----------------------------------------------------------------------------------

// Arguments of the functions that list the next states.
typedef struct bel_reporter {
    const bel_cluster_config *config;
    const bel_cluster *now;
    bel_explorer *explorer;
} bel_reporter;

void bel_emit(const bel_reporter *look, const bel_cluster *next, const char *actor, int index,
              const char *what, int number);

// cluster.c
bel_explore_model bel_cluster_model(const bel_cluster_config *config);
void bel_send_master(bel_cluster *s, int member, bel_model_message message); // nothing if cut off
void bel_send_member(bel_cluster *s, int member, bel_model_message message);
bool bel_lane_is_open(const bel_cluster *s, int worker, int shard);
void bel_process_ends(bel_cluster *s, int member, bool keeps); // keeps: a shard's state
void bel_shard_keep(bel_model_shard *shard);                   // only what its memory holds
void bel_master_ends(bel_cluster *s);

// Moves that only take from a queue or put into one, and that no other move can interfere with, run
// at once and without alternatives, as any other order has the same result. Messages between worker
// and shard are lost with the worker, so a worker's reports hurry only if it will not die any more.
// The loss of a shard voids everything, including the moves that hurried.
bool bel_worker_stays(const bel_reporter *look, int worker);
bool bel_master_hurries(const bel_reporter *look);
bool bel_shard_hurries(const bel_reporter *look, int shard);
bool bel_worker_hurries(const bel_reporter *look, int worker);

// cluster_master.c
void bel_master_moves(const bel_reporter *look);
void bel_master_send_shards(bel_cluster *s, bel_model_message message);
void bel_master_forget(const bel_reporter *look, bel_cluster *s);
void bel_master_go_back(const bel_reporter *look);
void bel_master_begin_save(const bel_reporter *look, bel_phase phase);

// cluster_ends.c
void bel_ends_processes(const bel_reporter *look); // requests, and processes that must go
void bel_ends_moves(const bel_reporter *look);     // the master's
bool bel_ends_can_hold(const bel_reporter *look);
bool bel_ends_has_state(const bel_model_master *m, int shard);
bool bel_ends_all_have(const bel_reporter *look, const bel_model_master *m);   // or their mirrors
uint8_t bel_ends_lacking(const bel_reporter *look, const bel_model_master *m); // as in a SETUP
bool bel_ends_never_goes_back(const bel_cluster_config *config);
void bel_ends_hold(const bel_reporter *look);
void bel_ends_conclude(const bel_reporter *look, bel_cluster *s); // the last version is saved
void bel_ends_retire(bel_cluster *s, int worker);
bool bel_ends_stop_is_lost(const bel_cluster *s);

// cluster_shard.c
void bel_shard_moves(const bel_reporter *look, int shard);
uint8_t bel_shard_buffer(const bel_model_shard *shard, uint8_t version); // the version's
void bel_shard_learns(bel_model_shard *shard, uint8_t decision);
bool bel_shard_can_pass(const bel_reporter *look, const bel_model_shard *shard);

// cluster_mirror.c
void bel_mirror_moves(const bel_reporter *look, int k); // moves in process k
bool bel_mirror_hurries(const bel_reporter *look, int k);
void bel_mirror_begin(bel_cluster *s, int k, const bel_model_message *setup);
void bel_mirror_keep(bel_model_mirror *mirror); // only the state, which does not run
void bel_mirror_begin_step(bel_model_shard *shard);
bool bel_mirror_may_pass(const bel_model_shard *shard);
bool bel_mirror_step_done(const bel_reporter *look, const bel_model_shard *shard);
bool bel_mirror_waits(const bel_reporter *look, int k); // for states, before any step

// cluster_worker.c
void bel_worker_moves(const bel_reporter *look, int worker);
void bel_worker_send(bel_cluster *s, int worker, int shard, bel_model_frame frame);

// cluster_rows.c
const char *bel_rows_shard_takes(const bel_reporter *look, bel_cluster *s, int shard, int worker);
void bel_rows_move(const bel_reporter *look, int shard);
bool bel_rows_can_pass(const bel_reporter *look, const bel_model_shard *shard);
const char *bel_rows_compute(const bel_reporter *look, bel_cluster *s, int worker);
bool bel_rows_take(const bel_reporter *look, int worker, int shard);

// cluster_sync.c
const char *bel_sync_takes(const bel_reporter *look, bel_cluster *s, int shard, int worker);
void bel_sync_passed(const bel_reporter *look, bel_cluster *s, int shard);
void bel_sync_published(const bel_reporter *look, bel_cluster *s, int shard);

// cluster_ledger.c
void bel_ledger_moves(const bel_reporter *look, int shard);
bool bel_ledger_hurries(const bel_reporter *look, int shard);
const char *bel_ledger_takes(const bel_reporter *look, bel_cluster *s, int shard, int worker);
void bel_ledger_forgets(bel_cluster *s, int shard, int worker, bool keeps);
void bel_ledger_passed(const bel_reporter *look, bel_cluster *s, int shard);
void bel_ledger_published(const bel_reporter *look, bel_cluster *s, int shard);
bool bel_ledger_can_pass(const bel_model_shard *shard);
bool bel_ledger_step_done(const bel_reporter *look, const bel_model_shard *shard);
bool bel_ledger_counts(const bel_model_shard *shard, int worker);
bool bel_ledger_worker_begins(bel_cluster *s, int worker); // true: its awaited answer is there

#endif
