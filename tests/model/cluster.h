// A model of a job: a master, two shards and two workers as processes, what they say to each other,
// and what can happen to them. It abstracts from what the code does, function by function:
//
//   cluster.c         processes that die and come back, connections that break, what is explored
//   cluster_master.c  src/master: remote.c, remote_members.c, train.c, save.c, members.c
//   cluster_shard.c   src/ps/server/shard.c and src/member/member_shard.c: what all modes share
//   cluster_sync.c    policy_all.c and values.c: everybody counts
//   cluster_ledger.c  policy_ledger.c, ledger.c, lease.c, answer.c: shard 0 names who counts
//   cluster_worker.c  src/worker/worker.c and src/ps/client/client.c
//
// Values are what they were made of: in sync the number of their version, with a ledger the list of
// the reports that counted. Each shard has one chunk. Queues keep their order; those of a lane are
// lost when one of its ends is, those of a control stream also when only the stream breaks.
#ifndef BELFRY_TESTS_MODEL_CLUSTER_H
#define BELFRY_TESTS_MODEL_CLUSTER_H

#include <string.h>

#include "model/explore.h"

enum { WORKERS = 2, SHARDS = 2, MEMBERS = SHARDS + WORKERS, STEPS_MAX = 3, PAGES = WORKERS + 2 };
enum { SHARD_0, SHARD_1, WORKER_0, WORKER_1, MASTER }; // processes

// Defects that are put in, to see that they are found.
typedef enum bel_cluster_defect {
    SOUND,
    FORGETS_PREVIOUS_VERSION, // a shard sends only the version at which it stands
    KEEPS_REPORTS_OF_DEAD,    // an admit forgets nothing
    LAST_STEP_TWICE_UNTOLD,   // who repeats the last step is not told that it was the last
    OVERWRITES_EARLY,         // a chunk is updated before everybody has reported
    NEVER_WAITS_FOR_RELEASE,  // the next snapshot is made over the one in hand
    RELEASE_NOT_REPEATED,     // … though the shard asks for it
    SNAPSHOT_NOT_TOLD_AGAIN,  // to another master
    SNAPSHOT_MIXED_UP,        // one that is just made is told of under the number of the last
    ENDED_NOT_TOLD_AGAIN,     // to another master
    OLD_SNAPSHOT_COUNTS,      // though the shard has told of a newer one
    ENDS_BY_JOIN,             // the master believes a join that the last step is made
    FINISHES_EARLY,           // the master asks for the last snapshot before one that was announced
    GENERATION_NOT_RAISED,    // a new generation is numbered by the journal as it was before
    PLACE_BY_MASTERS_WORD,    // a reader is told by the master where versions lie
    ADMITS_TWICE,             // a repeated admit cuts the lane of who was admitted
    SAVES_TWICE,              // a shard that has saved is asked again, as its connection broke
    NAMED_TWICE,              // shard 0 leaves a worker in its queue when it names it
    TAKES_OVER_WHAT_IS_LOST,  // after going back the master finds shards with state, and goes on
    LOST_IN_THE_MIDDLE,       // who counted in a step that is not finished is replaced all the same
    ANSWERS_WHILE_PUBLISHING, // … a version is copied for a worker
    ANSWERS_BEHIND_LEDGER,    // shard 0 answers with a version whose step it has closed
    LEASES_FORGOTTEN,         // a checkpoint does not say what was leased
    STALE_REPORT_COUNTS,      // where only reports on the newest version do
    DEFECTS
} bel_cluster_defect;

typedef struct bel_cluster_config {
    int steps;        // at most STEPS_MAX
    int save_steps;   // a checkpoint at each multiple; the last version is always saved
    bool in_place;    // workers read the shards' buffers; else they are sent the values
    bool ledger;      // one report makes a step …
    bool takes_stale; // … on whatever version; else on the newest
    int max_lead;     // … of a worker not so far ahead of the other; -1: there is no limit
    bool joined;      // the model begins when everybody has joined
    int deaths;       // of processes, at any moment
    int breaks;       // of control connections between processes that live
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
    uint8_t connected; // to the master: 1 its call is under way, 2 the master has heard it
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
    uint8_t published[SHARDS]; // by shard: one above the version that it has
    uint8_t buffer[SHARDS];    // where that lies
    // With a ledger:
    uint8_t got; // of shard 1: the version that its copy is of
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
    uint8_t snapshot, ready, said; // one above the version: in memory, complete, told the master
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
    uint16_t report[WORKERS]; // what it is made of
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
    uint8_t begins_anew; // what the members hold is void
    uint8_t first_step, saved_step, step;
    uint8_t ended; // bits of workers
    uint8_t here, seat_generation[MEMBERS], seat_incarnation[MEMBERS], seat_step[MEMBERS];
    uint8_t admits, answered[WORKERS], admitted_step[WORKERS], counted[WORKERS];
    uint8_t snapshots[SHARDS], saved_snapshot, has_snapshot, snapshot, released; // one above
    uint8_t asked, saved, leased; // asked: a message; saved: bits of shards
} bel_model_master;

typedef struct bel_model_disk {
    uint8_t checkpoint, generation, leased; // the newest; the journal's
    uint8_t folder, folder_of;              // one above the version; of which master
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
    uint8_t kind, step, decision; // 3, 2, 2 bits
    uint8_t block;                // 4 bits; ANSWER: the incarnation of the worker
    uint8_t other; // 2 bits. VERSION: the version whose copy it is, or the buffer; reports: the
                   // version of shard 1 that they were computed on; LEDGER, ANSWER: the worker
    uint8_t first; // PARAMS: whether it is the first version of this reader; VERSION: of values
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

// What a function that lists next states gets.
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

// Moves that only take from a queue or put into one, and that nothing else can come in the way of,
// are made at once and alone: in any other order the same would come of them. What worker and shard
// say to each other is lost with the worker, so its reports hurry only once it will not die; with a
// shard everything is void, and all that hurried with it.
bool bel_worker_stays(const bel_reporter *look, int worker);
bool bel_master_hurries(const bel_reporter *look);
bool bel_shard_hurries(const bel_reporter *look, int shard);
bool bel_worker_hurries(const bel_reporter *look, int worker);

// cluster_master.c
void bel_master_moves(const bel_reporter *look);

// cluster_shard.c
void bel_shard_moves(const bel_reporter *look, int shard);
uint8_t bel_shard_buffer(const bel_model_shard *shard, uint8_t version); // where it lies
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
bool bel_ledger_worker_begins(bel_cluster *s, int worker); // true: it has what it waits for

#endif
