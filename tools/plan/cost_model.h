// Cost model of a synchronous step: from rates of a machine, the counts of the protocol and the
// places of the processes to the time of a step, its parts and its processor time. A pure function,
// without files, clocks and defaults.
//
//   step = computing + exchange + latency + wake-ups
//
// Computing and the exchange consist of stages. A stage is the bursts of some processes, all at the
// same time: it takes as long as the longest burst. On a host with more busy threads than cores it
// takes longer, as a kernel moves threads seldom: the others share the cores, and then the longest
// runs (Graham's bound for a greedy schedule, which jobs come near). It takes at least the time
// that the cores need for all bursts. The exchange has a stage for the workers' lanes, for each
// level of relays, for the shards, and for the links of each level, up and down. Stages overlap
// chunk by chunk:
//
//   exchange = longest stage + the rest of them / chunks of the busiest shard
//
// It takes at least the time that any host's cores and link need for all stages. Computing overlaps
// with nothing.
//
// A message costs processor time at both ends, and its bytes too. Messages that come together from
// one side wake their receiver once.
#ifndef BELFRY_TOOLS_PLAN_COST_MODEL_H
#define BELFRY_TOOLS_PLAN_COST_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "ps/layout/step_counts.h"

typedef enum bel_cost_medium { BEL_COST_SHM, BEL_COST_GRPC, BEL_COST_MEDIA } bel_cost_medium;

// Rates of the machine, all in nanoseconds. All but `exchange` are processor time.
typedef struct bel_cost_rates {
    double add; // one thread adds a float of one more report to a sum
    struct {
        double exchange; // the clock: a small message and its answer, between two sleeping threads
        double wake;     // a receiver wakes for the messages of one side
        double message;  // a message, at each end
        double byte;     // a payload's byte, at each end
    } media[BEL_COST_MEDIA];
} bel_cost_rates;

typedef enum bel_cost_role {
    BEL_COST_WORKER,
    BEL_COST_RELAY,
    BEL_COST_SHARD,
    BEL_COST_ROLES
} bel_cost_role;

// A worker, a relay in a worker's process, or a shard with the mirror in its process. Fields that
// its role lacks are 0.
typedef struct bel_cost_actor {
    bel_cost_role role;
    int host;
    int threads;       // for computing, or for sums and updates
    double compute_ns; // worker: the gradients of its replicas, with those threads
    double input_ns;   // worker: processor time that makes its batches meanwhile
    int level;         // relay: from 1
    double floats;     // relay, shard: elements that change in a step
    int chunks;        // the same: their number of chunks
    int reports;       // the same: sums that come of each
    bool mirrored;     // shard: it has a mirror, and sends it a sum
    double mirror;     // shard: elements of the mirror that it holds
} bel_cost_actor;

// A lane between two actors; up is from `low` to `high`. A shard's lane to its mirror has a shard
// at both ends.
typedef struct bel_cost_lane {
    int low, high;
    bel_cost_medium medium;
    bel_lane_counts counts; // a step's
} bel_cost_lane;

// Actors, their hosts, and the lanes between them. Lanes within a process are omitted.
typedef struct bel_cost_deal {
    const bel_cost_actor *actors;
    int actor_count;
    const bel_cost_lane *lanes;
    int lane_count;
    const int *cores; // by host
    int host_count;
    int levels;        // number of levels of relays
    double pass_ns;    // processor time: a float of one report is updated, and written
    double link_ns;    // a byte on a host's link, each way; 0: no link limits
    double latency_ns; // between two hosts, one way
} bel_cost_deal;

typedef enum bel_cost_part {
    BEL_COST_COMPUTING,
    BEL_COST_WORKER_LANES, // a worker's work for its lanes
    BEL_COST_RELAYS,       // all levels: sums, and their work for lanes
    BEL_COST_PASS,         // sums and update, and work for lanes
    BEL_COST_COPIES,       // the share of sums to a mirror, and of its update
    BEL_COST_WORKER_LINK,
    BEL_COST_RELAY_LINK,
    BEL_COST_SHARD_LINK,
    BEL_COST_LATENCY,
    BEL_COST_WAKE_UPS,
    BEL_COST_PARTS
} bel_cost_part;

// Prediction. Bytes and frames are those of the busiest actor of a role, in a step.
typedef struct bel_cost {
    double parts_ns[BEL_COST_PARTS]; // they overlap, so their sum may exceed the step
    double step_ns;
    double processor_ns[BEL_COST_ROLES]; // by role, all its processes
    bel_cost_part bottleneck;            // the longest part
    bel_lane_counts most[BEL_COST_ROLES];
} bel_cost;

// Predicts a step. Workers and shards are at least one each, and cores too.
bel_cost bel_cost_of(const bel_cost_deal *deal, const bel_cost_rates *rates);

// "computing", "the shards' pass", …
const char *bel_cost_part_text(bel_cost_part part);

#endif
