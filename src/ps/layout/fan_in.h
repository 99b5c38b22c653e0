// The tree of relays: where sums meet on their way to the shards, if several workers share a host,
// or more of them than `fan_in` report.
//
// The workers that play are counted 0 … P - 1, in order. A group of level 1 is a run of neighbors
// on one host, whatever `fan_in` is, or without hosts fan_in neighbors. A group of a higher level
// has fan_in neighboring groups of the level below, the last one perhaps fewer. The process of a
// group's first worker is its relay: it takes the members' reports, adds them along the summation
// tree (assignment.h), and reports the group's nodes. A group with one member needs no relay: the
// member takes its place. The groups of the lowest level that has at most fan_in of them report to
// the shards. With fan_in 2 and five workers:
//
//   shards ── level 2: {0, 1, 2, 3}, relay 0 ── level 1: {0, 1}, relay 0 ── workers 0, 1
//          │                                 └─ level 1: {2, 3}, relay 2 ── workers 2, 3
//          └─ worker 4
//
// Every process computes the tree from the replicas of the workers, from fan_in and from the hosts.
#ifndef BELFRY_PS_LAYOUT_FAN_IN_H
#define BELFRY_PS_LAYOUT_FAN_IN_H

#include "ps/layout/assignment.h"

enum { BEL_FAN_IN = 32, BEL_FAN_IN_MOST = 1024, BEL_FAN_IN_LEVELS = 10 };

// Everything beside the assignment that determines the tree.
typedef struct bel_fan_in_rule {
    int fan_in; // the most members of a group; 0: no groups but those of hosts
    const int
        *hosts; // sizes of the runs of workers on one host, in order; NULL: no groups of hosts
    int host_count;
} bel_fan_in_rule;

// The tree of a generation. Immutable.
typedef struct bel_fan_in bel_fan_in;

// Reporters of one relay, or of the shards: its members, each with the replicas of its workers.
typedef struct bel_reporters {
    bel_assignment *assignment; // by reporter; of shards: of all ids, else a part
    int *workers;               // by reporter: its first worker, in whose process it is
    int count;
} bel_reporters;

// Place of a reporter: the relay that it reports to, and its index among that one's reporters.
typedef struct bel_fan_in_place {
    int level;  // the relay's level; 0: the shards
    int worker; // in whose process the relay is; -1: the shards
    int index;
} bel_fan_in_place;

// True if fan_in is 0 or at least 2, and `hosts` has sizes that add up to the workers that play,
// one of them above 1.
bool bel_fan_in_is_rule(const bel_assignment *assignment, const bel_fan_in_rule *rule);

// Creates the tree of a valid rule. The assignment must outlive it.
bel_fan_in *bel_fan_in_create(const bel_assignment *assignment, const bel_fan_in_rule *rule);
void bel_fan_in_destroy(bel_fan_in *tree); // NULL is allowed

// Returns the number of levels of relays; 0: every worker reports to the shards.
int bel_fan_in_levels(const bel_fan_in *tree);

// True if the relays of that level and their reporters are on one host, and share memory.
bool bel_fan_in_is_host(const bel_fan_in *tree, int level);

// Returns the reporters of the shards. Without relays they are all workers, playing or not.
bel_reporters bel_fan_in_top(const bel_fan_in *tree);

// Lists the relays in a worker's process, from the lowest level up: their levels, at most
// BEL_FAN_IN_LEVELS. Returns their number. `worker` plays, as below.
int bel_fan_in_relays(const bel_fan_in *tree, int worker, int *out_levels);

// Returns the reporters of the relay of that level in the worker's process.
bel_reporters bel_fan_in_members(const bel_fan_in *tree, int worker, int level);

// Returns where the relay of that level in the worker's process reports; level 0: the worker.
bel_fan_in_place bel_fan_in_place_of(const bel_fan_in *tree, int worker, int level);

// Returns the reporters of a place: of its relay, or of the shards.
bel_reporters bel_fan_in_beside(const bel_fan_in *tree, const bel_fan_in_place *place);

// Returns the index of the reporter that a worker's reports are in; -1: it is before all of them.
int bel_reporters_find(const bel_reporters *reporters, int worker);

void bel_reporters_deinit(bel_reporters *reporters);

#endif
