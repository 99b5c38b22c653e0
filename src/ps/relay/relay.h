// A relay: takes the reports of a group of workers, adds them along the summation tree, and reports
// the sums to the shards or to a relay above; values and versions come down the same way
// (ps/layout/fan_in.h, docs/protocol.md "Relays").
//
// To its reporters it is the only shard, and it uses a shard's code for them: room for reports,
// values, versions (ps/server, upward.c). To the shards it is a worker, with a client. It has one
// thread and a team. Its values are in two buffers, which it shares with its process's worker; its
// sums are in one array for each of its nodes.
//
// If the reporters are on its host (fan_in.h), their lanes are shared memory: it reads their sums
// in place, and they map its values, of which the host has one copy.
//
// It belongs to a generation and keeps no state that outlives a step. If a reporter or a relay is
// lost, a new generation begins, with new relays.
#ifndef BELFRY_PS_RELAY_RELAY_H
#define BELFRY_PS_RELAY_RELAY_H

#include "base/str.h"
#include "ps/layout/fan_in.h"
#include "ps/layout/space.h"
#include "ps/layout/step_stats.h"
#include "transport/lane.h"
#include "transport/shm/shm_lane.h"
#include "transport/streams/endpoint.h"

typedef struct bel_relay bel_relay;

typedef struct bel_relay_config {
    int worker, level; // in whose process it is, and of which level
    const bel_fan_in *tree;
    const bel_layout *layout; // the job's
    const bel_layout *joined; // bel_layout_join of it: what reporters and relays see
    bel_stats_shape stats;
    bel_rounding rounding; // for sums and updates
    uint32_t generation;
    const uint32_t *incarnations; // by worker
    int64_t step;                 // the first version
    bel_endpoint *endpoint;
    bel_relay *above;       // the relay to which it reports, in this process; NULL: elsewhere, at
    char *const *addresses; // the address of that relay's process, or those of the shards
    float *const *buffers;  // two arrays, laid out as the space
    // If its reporters are on this host: the hub of their lanes, and the region of the two buffers,
    // one after the other.
    bel_shm_hub *hub;
    bel_shm_region *region;
    size_t report_room; // for tests: ps/layout/report_room.h, in bytes; 0: BEL_REPORT_ROOM
    double stall_timeout_secs;
} bel_relay_config;

// Creates it, with its ends of the lanes to reporters in other processes and upward. Tree, layouts,
// endpoint, hub, region, `above` and buffers must outlive it. Its first reporter is in this
// process. RESOURCE_EXHAUSTED: no memory.
bel_status *bel_relay_create(const bel_relay_config *config, bel_relay **out_relay) BEL_MUST_USE;

// Stops the thread and closes all lanes, then frees it. NULL is allowed.
void bel_relay_destroy(bel_relay *relay);

// Connects the first reporter: returns its end of a lane, which the caller closes. Its bell is
// rung. Once, before the start.
bel_lane *bel_relay_connect(bel_relay *relay, bel_doorbell *bell);

// The values that its first reporter reads in place.
bel_space *bel_relay_space(bel_relay *relay);

// Starts the thread.
bel_status *bel_relay_start(bel_relay *relay) BEL_MUST_USE;

// Ends the thread, after its present work.
void bel_relay_stop(bel_relay *relay);

// Sets the lane of a reporter that opens one, with `shm` through shared memory; NULL: not this
// relay's, or the hello's generation or incarnation does not fit. Any thread, until it is
// destroyed.
void bel_relay_find(bel_relay *relay, const bel_lane_hello *hello, bool shm, bel_lane **out_lane);

// Returns the error that stopped it: a malformed frame, parameters that differ, a cut lane.
// UNAVAILABLE: what it reports to is gone.
bel_status *bel_relay_check(bel_relay *relay) BEL_MUST_USE;

// Appends its activity in words: "waits for reports of worker 3".
void bel_relay_doing(bel_relay *relay, bel_str *out_words);

#endif
