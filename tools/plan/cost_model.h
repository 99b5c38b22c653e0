// Cost model of a synchronous step: from rates of a machine, the counts of the protocol and the
// places of the processes to the time of a step and its parts. A pure function, without files,
// clocks and defaults.
//
//   step = computing + exchange + latency + wake-ups
//   exchange = longest of (up, pass, down) + the rest of them / pieces
//
// Up and down are the bytes on the slowest link, each way. The pass is the work of the busiest
// shard, on one thread. The three overlap chunk by chunk: `pieces` is the number of that shard's
// chunks. Computing overlaps with nothing.
#ifndef BELFRY_TOOLS_PLAN_COST_MODEL_H
#define BELFRY_TOOLS_PLAN_COST_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "ps/layout/step_counts.h"

typedef enum bel_cost_lane { BEL_COST_SHM, BEL_COST_GRPC, BEL_COST_LANES } bel_cost_lane;

// Rates of the machine, all in nanoseconds.
typedef struct bel_cost_rates {
    double add; // one thread adds a float of one more report to a sum
    struct {
        double exchange; // a small frame and its answer, between two threads that sleep
        double frame;    // processor time of a frame, at one end
        double byte;     // processor time of a payload's byte, at one end
    } lanes[BEL_COST_LANES];
} bel_cost_rates;

typedef struct bel_cost_worker {
    int host;
    int threads;       // all its towers'
    int reports;       // nodes that it sends for each chunk in a step
    double compute_ns; // its replicas', with those threads
} bel_cost_worker;

typedef struct bel_cost_shard {
    int host;
    double floats; // elements of its chunks that change
    int chunks;    // their number
} bel_cost_shard;

// Processes, their hosts, and the counts between them.
typedef struct bel_cost_deal {
    const bel_cost_worker *workers;
    int worker_count;
    const bel_cost_shard *shards;
    int shard_count;
    const int *cores; // by host
    int host_count;
    const bel_lane_counts *lanes; // a step's, by worker, then shard
    bool grpc;                    // lanes within a host are gRPC's, too
    double pass_ns;               // one thread passes a float of one report: update, and write
    double link_ns;               // a byte on a host's link, each way; 0: no link limits
    double latency_ns;            // between two hosts, one way
} bel_cost_deal;

typedef enum bel_cost_part {
    BEL_COST_COMPUTING,
    BEL_COST_PASS,
    BEL_COST_SHARD_LINK,
    BEL_COST_WORKER_LINK,
    BEL_COST_LATENCY,
    BEL_COST_WAKE_UPS, // and the workers' work for their lanes
    BEL_COST_PARTS
} bel_cost_part;

// Prediction. Bytes and frames are those of the busiest process of a role, in a step.
typedef struct bel_cost {
    double parts_ns[BEL_COST_PARTS]; // they overlap, so their sum may exceed the step
    double step_ns;
    bel_cost_part bottleneck; // the longest part
    bel_lane_counts worker, shard;
} bel_cost;

// Returns the lane between a worker and a shard: shared memory within a host.
bel_cost_lane bel_cost_lane_of(const bel_cost_deal *deal, int worker, int shard);

// Predicts a step. Every count is at least 1.
bel_cost bel_cost_of(const bel_cost_deal *deal, const bel_cost_rates *rates);

// "computing", "the shards' pass", …
const char *bel_cost_part_text(bel_cost_part part);

#endif
