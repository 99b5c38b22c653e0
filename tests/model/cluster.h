// Model of a job: a master, two shards and two workers as processes, their messages, and the events
// that can happen to them. It abstracts from the code, function by function:
//
//   cluster.c         processes that die and restart, connections that break, the explored model
//   cluster_master.c  src/master: remote.c, remote_members.c, train.c, save.c, members.c
//   cluster_shard.c   src/ps/server/shard.c and src/member/member_shard.c: the shared part
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
    bel_cluster_defect defect;
} bel_cluster_config;

typedef struct bel_queue16 {
    uint16_t count, items[7];
} bel_queue16;

typedef struct bel_queue32 {
    uint32_t count, items[6];
} bel_queue32;

typedef enum bel_life { DOWN, UP, OVER } bel_life;

typedef struct bel_process {
    uint8_t life, incarnation;
    uint8_t connected; // to the master: 1 its call is under way, 2 the master has received it
} bel_process;

typedef enum bel_worker_place {
    NOT_BEGUN,
    PULLS,
    WAITS,
    REPORTS_1, // to shard 1, whose layers are the last
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
    // With a ledger:
    uint8_t got; // from shard 1: the version of its copy
    uint8_t lease_count, leases[4], block;
} bel_model_worker;

typedef enum bel_reader { NO_READER, BEHIND, FOLLOWS } bel_reader;

typedef struct bel_model_shard {
    uint8_t generation, loaded, step, decision, decision_known, last_decision;
    uint8_t published_more; // than the version it began with
    uint8_t reports, stats_list, passed, publishing,
        snapshot_made; // the first two: bits of workers
    uint8_t report_incarnation[WORKERS];
    uint8_t buffers[2];                                                // versions
    uint8_t reader[WORKERS], sent[WORKERS], lane_incarnation[WORKERS]; // sent: one above
    uint8_t snapshot, ready, said; // one above the version: in memory, complete, reported
    uint8_t writes, writes_for;    // one above the version; the master's incarnation
    // Shard 0:
    uint8_t snapshot_busy, has_snapshot, made_step, progress_said;
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
    IS_THROUGH,
    DISMISSES
} bel_phase;

typedef struct bel_model_master {
    uint8_t life, incarnation, phase, generation, lost;
    uint8_t begins_anew; // the members' state is void
    uint8_t first_step, saved_step, step;
    uint8_t ended; // bits of workers
    uint8_t here, seat_generation[MEMBERS], seat_incarnation[MEMBERS], seat_step[MEMBERS];
    uint8_t admits, answered[WORKERS], admitted_step[WORKERS], counted[WORKERS];
    uint8_t snapshots[SHARDS], saved_snapshot, has_snapshot, snapshot, released; // one above
    uint8_t asked, saved, leased; // asked: a message; saved: bits of shards
} bel_model_master;

typedef struct bel_model_disk {
    uint8_t checkpoint, generation, leased; // the newest; the journal's
    uint8_t folder, folder_of;              // one above the version; the writing master
    uint8_t part[SHARDS];                   // one above the version
    uint32_t part_history[SHARDS], history;
} bel_model_disk;

typedef struct bel_cluster {
    uint32_t broken; // number of an invariant
    uint8_t deaths, breaks;
    bel_process processes[MEMBERS]; // shards first
    bel_model_worker workers[WORKERS];
    bel_model_shard shards[SHARDS];
    bel_model_master master;
    bel_model_disk disk;
    bel_queue16 up[WORKERS][SHARDS], down[WORKERS][SHARDS], ledger; // lanes; ledger: 0 to 1
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
    BROKEN_COUNT
} bel_broken;

// --- Frames and messages -------------------------------------------------------------------------

enum { REPORT, STATS, VERSION, PULL, PARAMS, LEASE, LEDGER, ANSWER }; // kinds of frames
enum { SAVE = 1, STOP = 2 };                                          // decisions

typedef struct bel_model_frame {
    uint8_t kind, step, decision; // bits: 3, 2, 2
    uint8_t block;                // 4 bits; ANSWER: the incarnation of the worker
    uint8_t other; // 2 bits. VERSION: the copied version, or the buffer; reports: the version of
                   // shard 1 that they were computed on; LEDGER, ANSWER: the worker
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
    ADMITTED
};

typedef struct bel_model_message {
    uint8_t kind, generation, step;
    uint8_t first; // SETUP: the step of the checkpoint; SAVED: 1: it failed
    uint8_t index, incarnations[2];
    uint8_t counted, leased;
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

// cluster_shard.c
void bel_shard_moves(const bel_reporter *look, int shard);
uint8_t bel_shard_buffer(const bel_model_shard *shard, uint8_t version); // the version's
void bel_shard_learns(bel_model_shard *shard, uint8_t decision);
bool bel_shard_can_pass(const bel_reporter *look, const bel_model_shard *shard);

// cluster_worker.c
void bel_worker_moves(const bel_reporter *look, int worker);

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
