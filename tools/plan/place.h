// The processes of a job's plan as a deal for the cost model: hosts, threads, relays, mirrors, and
// the counts of all lanes.
#ifndef BELFRY_TOOLS_PLAN_PLACE_H
#define BELFRY_TOOLS_PLAN_PLACE_H

#include "launch/cluster/plan.h"
#include "plan/cost_model.h"
#include "ps/layout/fan_in.h"

typedef struct bel_place_links {
    bool hosts; // the cluster file names hosts
    bool apart; // each process of another host
    double byte_ns, latency_ns;
} bel_place_links;

typedef struct bel_place_config {
    const bel_layout *layout; // it may have fewer shards than the plan
    bel_place_links links;
    bel_stats_shape stats;
    bel_rounding rounding;
    bool grpc;  // lanes within this host are gRPC's, too
    int fan_in; // the most reporters of a shard or relay; 0: no relays
} bel_place_config;

typedef struct bel_place {
    bel_cost_deal deal; // its arrays are the place's
    int worker_count, relay_count, shard_count;
    int threads;            // a tower's, of the first worker
    int together;           // most towers on a host
    bel_cost_actor *actors; // workers, shards, then relays: of a worker from the lowest level up
    bel_cost_lane *lanes;
    int *towers; // by worker
    int *cores;
    const char **hosts; // by host; NULL: this one. Names are the plan's.
} bel_place;

// True if a role has hosts.
bool bel_place_names_hosts(const bel_cluster *cluster);

// Places the processes of the plan, whose threads it sets as the links say (bel_plan_move). Call
// bel_place_deinit.
void bel_place_init(bel_place *place, bel_plan *plan, const bel_place_config *config);
void bel_place_deinit(bel_place *place);

// Sets the measured times: of a replica's gradients, of the processor for its batch, and of a whole
// pass of one report.
void bel_place_set_steps(bel_place *place, double compute_ns, double input_ns, double pass_ns);

// Returns the counts of all lanes in a step.
bel_lane_counts bel_place_all(const bel_place *place);

#endif
