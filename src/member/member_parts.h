// Parts of a member: its shard and its worker, its evaluator, its master, and the memory that other
// processes of its host read.
//
// `member` (member_inner.h) has one of each. The main thread uses them; comments name the others.
#ifndef BELFRY_MEMBER_MEMBER_PARTS_H
#define BELFRY_MEMBER_MEMBER_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/backoff.h"
#include "base/thread.h"
#include "evaluate/evaluation.h"
#include "member/member.h"
#include "ps/relay/relay.h"
#include "ps/server/control.h"
#include "ps/server/kept.h"
#include "trainable/trainable.h"
#include "transport/shm/shm_lane.h"
#include "transport/streams/mailbox.h"
#include "transport/streams/stream_lane.h"

// --- A shard -------------------------------------------------------------------------------------

// Arrays in the layout of the space. The snapshots stay for the life of the process; the others
// depend on the assignment.
typedef struct member_shard_memory {
    bel_space *space;
    float **outboxes;    // with a ledger: by worker
    void **answer_rooms; // with a hub: by worker, for requested rows; NULL: the shard's
    float *snapshot;
    float *averages; // their snapshot; NULL: the optimizer keeps none
    bel_kept *kept;  // state that outlives the process; NULL: it does not
} member_shard_memory;

// The shard's ends of lanes, of one generation (member_lanes.c).
typedef struct member_shard_lanes {
    bel_shard_peer *worker_peers, *shard_peers;
    bel_lane **workers; // by worker
    bel_lane **shards;  // shard 0: by shard; others: [0]
    bel_lane *master;
    bel_lane *own; // the end that leads to this process's own worker, until it is admitted
} member_shard_lanes;

// Search for a lane that a peer opens, on threads of the endpoint and the hub. The mutex guards
// all, and lanes.master.
typedef struct member_shard_search {
    pthread_mutex_t mutex;
    uint32_t generation;    // 0: no lane is found
    uint32_t *incarnations; // by worker
    bool *replacing;        // by worker
    int32_t reading;        // number of the master's lane
} member_shard_search;

// The thread that does the shard's work, and its team.
typedef struct member_shard_engine {
    bel_team *team; // works on chunks: a thread for each core
    pthread_t thread;
    bool runs;
    atomic_bool stop;
    atomic_bool resuming; // a member was replaced: the next version is logged
} member_shard_engine;

// Steps and snapshots that the master has received (member_shard_tell.c). The engine's thread sets
// the atomics.
typedef struct member_shard_reports {
    atomic_llong snapshot_ready; // version of the newest complete snapshot; -1: no snapshot
    int64_t snapshot_told;       // the last reported snapshot; -1: no snapshot
    int64_t progress_told;       // the last reported step; -1: no step
    int64_t progress_ns;         // time of that report
    atomic_bool progress_due;    // the last step was made
} member_shard_reports;

// Shard 0: the newest step that the program's loop waits for. The engine's thread makes it; the
// mutex guards all.
typedef struct member_shard_made {
    pthread_mutex_t mutex;
    double *stats; // NULL: no such step
    int64_t version;
    bool told;
} member_shard_made;

// Values that the master has requested, while they are sent.
typedef struct member_shard_sending {
    int64_t step; // their version; -1: none
    int sent;     // number of frames already sent
} member_shard_sending;

// Shard 0's newest points: those of the last generation, or those that are sent.
typedef struct member_points {
    bel_control_point *list; // up to BEL_KEPT_POINTS; NULL: none so far
    int count;
} member_points;

// With copies of parameter servers: the mirror of another shard, and what this process's shard has
// to do with its mirror elsewhere (member_mirror.c).
typedef struct member_shard_mirror {
    bool there; // the job has mirrors
    int of;     // shard whose mirror is here
    int own;    // shard in whose process the mirror of this one is
    bel_assignment *assignment;
    bel_space *space;
    float *averages; // NULL: the optimizer keeps none
    bel_shard *shard;
    bel_control *control; // shard 0's mirror: records points as shard 0 does
    member_points points;
    bel_lane *in, *out; // from that shard; from this process's shard to its mirror
    bel_shard_peer in_peer, out_peer;
    bool gives_state;  // the mirrored shard begins with the state of the mirror, which is here
    bool gives_mirror; // the other process begins with the state of this shard, as its mirror
    atomic_bool has_state, has_mirror; // the states of shard and mirror are here
    bel_kept_state held;               // state of a mirror that does not run
} member_shard_mirror;

// State of a process with a shard. If the process is also a worker, the two share space and layout.
// Memory stays for the life of the process, except that a new assignment of replicas replaces the
// memory that depends on it. Lanes and threads belong to one generation.
typedef struct member_shard {
    bool here;
    bool shares_memory; // with workers
    int index;
    const bel_layout *layout;
    bel_reporters reporters;          // workers, or relays
    const bel_assignment *assignment; // theirs
    bel_shard *shard;
    bel_doorbell *bell;
    bel_control *control; // shard 0
    member_points points;
    member_shard_memory memory;
    member_shard_lanes lanes;
    member_shard_search search;
    member_shard_engine engine;
    member_shard_reports reports;
    member_shard_made made;
    member_shard_sending sending;
    member_shard_mirror mirror;
    bel_kept_state held; // state of a shard that does not run: a predecessor's, or this process's
} member_shard;

// --- A worker ------------------------------------------------------------------------------------

typedef struct member_worker {
    bool here;
    bel_trainable trainable;
    bel_space *space;
    float *values; // with a ledger, in a process with a shard: memory of `space`
    float **ranges;
    int range_count;
    void *row_buffer, *answer_room; // as in bel_client_config; the second only without a hub
    void *rounded_room;             // the same; without a hub, if sums and updates are rounded
    bel_client_peer *peers;
    bel_doorbell *bell;

    const bel_layout *lane_layout; // as the lanes see it: all on one shard if a relay takes reports
    bel_lane **lanes;              // by shard of lane_layout
    bel_client *client;
    bel_worker *worker;
    pthread_t thread;
    bool has_thread;
    atomic_bool cancelled, ended;
    atomic_bool leaves;  // it ends after its step
    bel_status *status;  // result of bel_worker_run, set before `ended`
    bool told;           // the master has received it
    int64_t first_block; // the first one of the generation's
} member_worker;

// --- Relays --------------------------------------------------------------------------------------

// Relays in a worker's process, of one generation (member_relay.c). Threads of the endpoint look
// for lanes; the mutex guards the list.
typedef struct member_relays {
    pthread_mutex_t mutex;
    bel_fan_in *tree;                   // this assignment's
    int fan_in;                         // its rule
    int *hosts;                         // the same
    int host_count;                     // the same
    bel_layout *joined;                 // bel_layout_join of the worker's
    bel_relay *list[BEL_FAN_IN_LEVELS]; // from the lowest level up
    int count;
    int found;              // number of them that reporters can find
    bel_reporters siblings; // the worker among those that report where it does
    bel_fan_in_place place; // the worker's
} member_relays;

// --- An evaluator --------------------------------------------------------------------------------

// Results of all evaluations of a checkpoint; lists by evaluation.
typedef struct bel_evaluator_results {
    int64_t step; // the checkpoint's; -1: no results
    int count;
    bel_result *results;
    bel_details *details;
    uint64_t *data; // fingerprint of the data, over all checkpoints
} bel_evaluator_results;

// Evaluations of the checkpoints that the master asks for (member_evaluator.c).
typedef struct member_evaluator {
    int64_t asked; // step of the checkpoint in hand; -1: none
    bel_evaluator_results newest;
} member_evaluator;

// --- Every member --------------------------------------------------------------------------------

// The connection to the master (member_join.c).
typedef struct member_master {
    bel_mailbox *mailbox;
    char *token;         // token of the join
    int64_t token_ns;    // awake time of its last reading
    int64_t sought_ns;   // the same of the start of the present search for a master
    int64_t joined_ns;   // the same of the first join over this connection
    bool answered;       // the master has sent a message since
    bel_backoff backoff; // pauses of the search
} member_master;

// Messages that this master has received.
typedef struct member_told {
    int64_t status_ns; // time of the last status
    int64_t leave_ns;  // awake time of the first request to leave to a master; 0: none
    bool leave;        // this master has received the request
    bool stop, failure;
} member_told;

// The master's result.
typedef struct member_end {
    bool over;
    bool leaves;        // the master has released this process
    bel_status *status; // CANCELLED or NULL, when it is over
} member_end;

// Shared memory with processes of this host (member_memory.c).
typedef struct member_shm {
    bel_shm_hub *hub; // NULL: all lanes use gRPC
    bool one_host;    // with a hub: the job is on one host, and its shards share memory, too
    // In a job over several hosts, a worker with a hub:
    char *folder; // it has the hub's socket, and those of other workers of this host
    int lock;     // on the folder
    char *place;  // equal in workers that can share memory
    bel_shm_region *parameters, *gradients; // a shard's or a relay's values; a worker's gradients
} member_shm;

#endif
