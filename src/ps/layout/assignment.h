// The assignment: which worker plays which replicas, and the summation tree over replica ids.
//
// Node (l, i) of the tree covers the ids [i·2^l, (i+1)·2^l); its value is left + right, and an id
// that does not exist is passed over, never added as zero. A worker plays a contiguous block of ids
// and sends the largest complete nodes inside it; the shard goes on with the same tree. So the bits
// of a sum do not depend on how ids sit on workers, nor on the order of arrival.
//
// Replicas count by their examples. A node's value goes with its weight: with m replicas that have
// examples, n_r each, the value is m / sum n_r · sum n_r g_r, that is m times their mean. Where all
// n_r are equal that is the plain sum, and computed so; where two nodes' means of examples differ,
// each is brought to the new mean by one multiplication before they are added. A replica without
// examples is passed over like an id that does not exist.
#ifndef BELFRY_PS_LAYOUT_ASSIGNMENT_H
#define BELFRY_PS_LAYOUT_ASSIGNMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A node that is sent as one report: ids [first, first + count), count = 2^level or cut at R.
typedef struct bel_assignment_node {
    int worker;
    int level;
    int first, count;
} bel_assignment_node;

// What a sum over replicas stands for.
typedef struct bel_weight {
    int64_t replicas; // that have examples
    int64_t examples; // of them all; or `replicas`, where each replica counts once
} bel_weight;

// Two nodes side by side: the weight of both together, and what each value is multiplied by before
// they are added, rounded to its type; 1 and 1 where their replicas have as many examples on
// average.
bel_weight bel_weight_add(bel_weight left, bel_weight right, double *out_left, double *out_right);

// The weight under which each replica with examples counts once.
static inline bel_weight bel_weight_once(bel_weight weight)
{
    return (bel_weight){weight.replicas, weight.replicas};
}

typedef struct bel_assignment {
    int replica_count;
    int worker_count;
    int *first_replica;         // by worker; worker_count + 1 entries
    bel_assignment_node *nodes; // in the order of their ids
    int node_count;
    int *first_node; // by worker; worker_count + 1 entries
    int depth;       // levels of the tree above the leaves
} bel_assignment;

// replicas_of[w] replicas go to worker w, in order; a worker with 0 plays none and has no node. At
// least one is played.
bel_assignment *bel_assignment_create(const int *replicas_of, int worker_count);

// The same tree for workers that share their memory with all shards: each replica is a node, so a
// shard's pass adds them up where it uses the sum, and nothing is written in between.
bel_assignment *bel_assignment_create_apart(const int *replicas_of, int worker_count);
void bel_assignment_destroy(bel_assignment *assignment);

static inline int bel_assignment_replicas(const bel_assignment *assignment, int worker)
{
    return assignment->first_replica[worker + 1] - assignment->first_replica[worker];
}

// Also false for any number that is no node.
static inline bool bel_assignment_is_node_of(const bel_assignment *assignment, int node, int worker)
{
    return node >= assignment->first_node[worker] && node < assignment->first_node[worker + 1];
}

// Nodes of the worker that has most of them. Where replicas are not apart that is two for each
// level of the tree at most.
int bel_assignment_most_nodes(const bel_assignment *assignment);

// Assigns `replica_count` ids to the workers that are present (at least one) as evenly as can be:
// the first of them get one more. Writes worker_count numbers, 0 for the absent.
void bel_assignment_evenly(int replica_count, const bool *present, int worker_count,
                           int *out_replicas_of);

// How many frames may be under way on a lane between a worker and a shard of a model with so many
// chunks and tables: two reports, and pieces of exchanges.
size_t bel_assignment_lane_frames(const bel_assignment *assignment, int chunk_count,
                                  int table_count);

// Sums `n` floats over the whole tree. inputs[k] holds node k's values and weights[k] their weight;
// a node that does not count is NULL and passed over. Returns a pointer to the sum: an input when
// only one counts, else inside `scratch`, which holds (depth + 1) · n floats; NULL when none does.
const float *bel_assignment_sum(const bel_assignment *assignment, const float *const *inputs,
                                const bel_weight *weights, int64_t n, float *scratch);

// The factors of such a sum where each of `replicas` ids is a node, for who adds element by element
// with a stack: id after id is put on it, and as often as two nodes of one level lie on top they
// become their sum; at the end, from the top down, those that are left. out_factors[2j] and
// [2j + 1] are those of the left and of the right one of the j-th addition, of replicas - 1. A
// weight without replicas: it does not count, and its value is -0.
void bel_assignment_joins(const bel_weight *weights, int replicas, float *out_factors);

// The same in double, for step statistics: inputs[k] are `n` doubles; the result goes to out_sum.
void bel_assignment_sum_f64(const bel_assignment *assignment, const double *const *inputs,
                            int64_t n, double *out_sum);

// Sums the replicas [first, first + count) of one node into the first of them, in place, for `n`
// elements at `offset`: ranges[j] is the gradient range of replica first + j, and weights[j] its
// weight. Returns the node's weight; without a replica that has examples nothing is written.
bel_weight bel_assignment_sum_node(const bel_assignment_node *node, float *const *ranges,
                                   const bel_weight *weights, int64_t offset, int64_t n);

#endif
