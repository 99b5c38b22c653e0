// The assignment of replicas to workers, and the summation tree over replica ids.
//
// Node (l, i) of the tree covers the ids [i·2^l, (i+1)·2^l). Its value is left + right; a missing
// id is skipped, never added as zero. A worker plays a contiguous block of ids and sends the
// largest complete nodes inside it; the shard continues with the same tree. So the bits of a sum
// depend neither on the distribution of ids over workers nor on the order of arrival.
//
// Replicas count by their examples. Each node's value has a weight. With m replicas that have
// examples, n_r each, the value is m / sum n_r · sum n_r g_r, which is m times their mean. If all
// n_r are equal this is the plain sum, and is computed so. If the mean number of examples differs
// between two nodes, each value is multiplied once, for the new mean, before the addition. A
// replica without examples is skipped like a missing id.
#ifndef BELFRY_PS_LAYOUT_ASSIGNMENT_H
#define BELFRY_PS_LAYOUT_ASSIGNMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ps/layout/rounding.h"

// Node that is sent as one report: ids [first, first + count), count = 2^level or cut at R.
typedef struct bel_assignment_node {
    int worker;
    int level;
    int first, count;
} bel_assignment_node;

// Replicas and examples in a sum over replicas.
typedef struct bel_weight {
    int64_t replicas; // with examples
    int64_t examples; // sum over those replicas; equal to `replicas` if each replica counts once
} bel_weight;

// Adds the weights of two neighboring nodes. The outputs are the factors for the two values before
// their addition, rounded to the values' type; 1 and 1 if the mean number of examples per replica
// is equal.
bel_weight bel_weight_add(bel_weight left, bel_weight right, double *out_left, double *out_right);

// The weight with which each replica with examples counts once.
static inline bel_weight bel_weight_once(bel_weight weight)
{
    return (bel_weight){weight.replicas, weight.replicas};
}

typedef struct bel_assignment {
    int replica_count;
    int worker_count;
    int *first_replica;         // by worker; worker_count + 1 entries
    bel_assignment_node *nodes; // in order of their ids
    int node_count;
    int *first_node; // by worker; worker_count + 1 entries
    int depth;       // levels of the tree above the leaves
} bel_assignment;

// Returns the ids of the tree's part that the workers play: [first, end).
static inline int bel_assignment_first(const bel_assignment *assignment)
{
    return assignment->first_replica[0];
}
static inline int bel_assignment_end(const bel_assignment *assignment)
{
    return assignment->first_replica[assignment->worker_count];
}

// Assigns replicas_of[w] replicas to worker w, in order. A worker with 0 has no replica and no
// node. At least one entry is above 0.
bel_assignment *bel_assignment_create(const int *replicas_of, int worker_count);

// Creates the same tree for workers that share their memory with all shards. Each replica is a
// node: a shard's pass adds the values where it uses the sum, without a write in between.
bel_assignment *bel_assignment_create_apart(const int *replicas_of, int worker_count);

// Creates a part of the tree over `replica_count` ids: those from `first` on, for workers that play
// neighboring blocks. Nodes are those of the whole tree. Sums below a node of the part are defined,
// sums over the whole tree are not.
bel_assignment *bel_assignment_create_part(const int *replicas_of, int worker_count, int first,
                                           int replica_count);

// True if all ids of node (level, first id) that exist are in the part.
bool bel_assignment_covers(const bel_assignment *assignment, int level, int first);
void bel_assignment_destroy(bel_assignment *assignment);

static inline int bel_assignment_replicas(const bel_assignment *assignment, int worker)
{
    return assignment->first_replica[worker + 1] - assignment->first_replica[worker];
}

// Returns false also for a number that is not a node.
static inline bool bel_assignment_is_node_of(const bel_assignment *assignment, int node, int worker)
{
    return node >= assignment->first_node[worker] && node < assignment->first_node[worker + 1];
}

// Returns the largest number of nodes of a worker. Unless replicas are apart, it is at most two for
// each level of the tree.
int bel_assignment_most_nodes(const bel_assignment *assignment);

// Assigns `replica_count` ids to the present workers (at least one) as evenly as possible: the
// first workers get one more. Writes worker_count numbers, 0 for absent workers.
void bel_assignment_evenly(int replica_count, const bool *present, int worker_count,
                           int *out_replicas_of);

// Sums `n` floats over the whole tree. inputs[k] holds node k's values and weights[k] their weight;
// the inputs of nodes that do not count are NULL. Returns a pointer to the sum: the input if only
// one node counts, NULL if no node counts, else memory in `scratch`, which holds (depth + 1) · n
// floats.
const float *bel_assignment_sum(const bel_assignment *assignment, const float *const *inputs,
                                const bel_weight *weights, int64_t n, float *scratch);

// Values of nodes for sums that are rounded, or of which some are merged.
typedef struct bel_assignment_inputs {
    const void *const *values; // by node, as above
    const bel_weight *weights; // by node
    bel_rounding rounding;     // each addition's (rounding.h)
    int64_t step;              // for rounding
    const bool *packed;        // by node, with rounding: values of the narrow type; else floats,
                               // which are rounded already
    const signed char *levels; // by node: level of the subtree whose sum is at its first node; -1:
                               // the node is part of another one. NULL: no node is merged
} bel_assignment_inputs;

// Sums the subtree (level, first id), with the bits of bel_assignment_sum. `scratch` holds
// (level + 1) · n floats.
const float *bel_assignment_sum_below(const bel_assignment *assignment,
                                      const bel_assignment_inputs *inputs, int level, int first,
                                      int64_t n, float *scratch);

// A sum before its last addition: left + right. If that addition is not a plain one (rounded, or
// with factors), or only one child counts, `left` is the sum and `right` NULL; both NULL: no node
// counts.
typedef struct bel_addends {
    const float *left, *right;
} bel_addends;

// Sums the whole tree but for the last addition: the caller makes it in the loop that uses the sum,
// which then reads both at once. They are inputs, or in `scratch`, of (depth + 1) · n floats.
bel_addends bel_assignment_addends(const bel_assignment *assignment,
                                   const bel_assignment_inputs *inputs, int64_t n, float *scratch);

// Adds them: returns `left`, or `out` with the `n` elements of the sum. `out` may be one of them.
const float *bel_addends_sum(bel_addends addends, int64_t n, float *out);

// Writes the factors of that sum for a caller that adds element by element with a stack, where each
// of `replicas` ids is a node. The caller pushes id after id. While the two top nodes have the same
// level, it replaces them by their sum; at the end it adds the remaining nodes from the top down.
// out_factors[2j] and [2j + 1] are the left and right factor of addition j, of replicas - 1. A node
// whose weight has no replicas does not count, and its value is -0.
void bel_assignment_joins(const bel_weight *weights, int replicas, float *out_factors);

// Sums in double, for step statistics: inputs[k] has `n` doubles; the result goes to out_sum.
void bel_assignment_sum_f64(const bel_assignment *assignment, const double *const *inputs,
                            int64_t n, double *out_sum);
// The same for the ids below node (level, first id), all of which have values.
void bel_assignment_sum_f64_below(const bel_assignment *assignment, const double *const *inputs,
                                  int level, int first, int64_t n, double *out_sum);

// Sums the replicas [first, first + count) of one node into the first of them, in place, for `n`
// elements at `offset`. ranges[j] is the gradient range of replica first + j, and weights[j] its
// weight. Returns the node's weight. Writes nothing if no replica has examples.
bel_weight bel_assignment_sum_node(const bel_assignment_node *node, float *const *ranges,
                                   const bel_weight *weights, int64_t offset, int64_t n);
// The same with each replica's elements and each addition rounded in a step.
bel_weight bel_assignment_sum_node_rounded(const bel_assignment_node *node, bel_rounding rounding,
                                           int64_t step, float *const *ranges,
                                           const bel_weight *weights, int64_t offset, int64_t n);

#endif
