// The summation tree. Complete nodes are found greedily from the left: at id i the largest power of
// two that divides i and still fits. A node that reaches the end of all ids also fits, as absent
// ids are skipped there.
#include "ps/layout/assignment.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "ps/layout/exchange.h"

// Returns the largest node that starts at `first` and is inside [first, end). A node that extends
// beyond `total`, the end of all ids, is complete too.
static bel_assignment_node largest_node(int worker, int first, int end, int total)
{
    int level = 0;
    while (level < 30) {
        int size = 1 << (level + 1);
        bool aligned = first % size == 0;
        bool inside = first + size <= end || (end == total && first + size / 2 < total);
        if (!aligned || !inside) break;
        level++;
    }
    int last = first + (1 << level) < total ? first + (1 << level) : total;
    return (bel_assignment_node){worker, level, first, last - first};
}

// Assigns ids from `begin` on to workers in order, and cuts each worker's block into nodes from its
// first id on. There are at most as many nodes as replicas. `total` is the end of all ids; 0: that
// of these workers.
static bel_assignment *assignment_create(const int *replicas_of, int worker_count, int begin,
                                         int total, bool apart)
{
    bel_assignment *assignment = bel_xcalloc(1, sizeof *assignment);
    size_t workers = (size_t)worker_count;
    assignment->worker_count = worker_count;
    assignment->first_replica = bel_xcalloc(workers + 1, sizeof *assignment->first_replica);
    assignment->first_node = bel_xcalloc(workers + 1, sizeof *assignment->first_node);
    assignment->first_replica[0] = begin;
    for (int w = 0; w < worker_count; w++)
        assignment->first_replica[w + 1] = assignment->first_replica[w] + replicas_of[w];
    int part_end = bel_assignment_end(assignment);
    assignment->replica_count = total > 0 ? total : part_end;
    assignment->nodes = bel_xcalloc((size_t)(part_end - begin), sizeof *assignment->nodes);
    for (int w = 0; w < worker_count; w++) {
        int end = assignment->first_replica[w + 1];
        assignment->first_node[w] = assignment->node_count;
        for (int id = assignment->first_replica[w]; id < end;) {
            int most = apart ? id + 1 : end;
            bel_assignment_node node = largest_node(w, id, most, assignment->replica_count);
            if (bel_fault_is(BEL_FAULT_SUM_SEQUENTIAL)) node.count = end - id; // all in one
            assignment->nodes[assignment->node_count++] = node;
            id += node.count;
        }
    }
    assignment->first_node[worker_count] = assignment->node_count;
    while ((1 << assignment->depth) < assignment->replica_count)
        assignment->depth++;
    return assignment;
}

bel_assignment *bel_assignment_create(const int *replicas_of, int worker_count)
{
    return assignment_create(replicas_of, worker_count, 0, 0, false);
}

bel_assignment *bel_assignment_create_apart(const int *replicas_of, int worker_count)
{
    return assignment_create(replicas_of, worker_count, 0, 0, true);
}

bel_assignment *bel_assignment_create_part(const int *replicas_of, int worker_count, int first,
                                           int replica_count)
{
    return assignment_create(replicas_of, worker_count, first, replica_count, false);
}

bool bel_assignment_covers(const bel_assignment *assignment, int level, int first)
{
    int end = bel_assignment_end(assignment), left = assignment->replica_count - first;
    bool to_the_end = end == assignment->replica_count && left > 0 && left <= 1 << level;
    return first >= bel_assignment_first(assignment) && (to_the_end || first + (1 << level) <= end);
}

int bel_assignment_most_nodes(const bel_assignment *assignment)
{
    int most = 0;
    for (int w = 0; w < assignment->worker_count; w++) {
        int count = assignment->first_node[w + 1] - assignment->first_node[w];
        most = count > most ? count : most;
    }
    return most;
}

void bel_assignment_evenly(int replica_count, const bool *present, int worker_count,
                           int *out_replicas_of)
{
    int players = 0, next = 0;
    for (int w = 0; w < worker_count; w++)
        players += present[w] ? 1 : 0;
    for (int w = 0; w < worker_count; w++) {
        out_replicas_of[w] = 0;
        if (!present[w]) continue;
        out_replicas_of[w] = replica_count / players + (next < replica_count % players ? 1 : 0);
        next++;
    }
}

void bel_assignment_destroy(bel_assignment *assignment)
{
    if (assignment == NULL) return;
    bel_free(assignment->first_replica);
    bel_free(assignment->first_node);
    bel_free(assignment->nodes);
    bel_free(assignment);
}

bel_weight bel_weight_add(bel_weight left, bel_weight right, double *out_left, double *out_right)
{
    const bel_weight both = {left.replicas + right.replicas, left.examples + right.examples};
    *out_left = *out_right = 1;
    bool alike = left.examples * right.replicas == right.examples * left.replicas;
    if (left.replicas == 0 || right.replicas == 0 || alike) return both;
    double mean = (double)both.examples / (double)both.replicas;
    *out_left = (double)left.examples / (double)left.replicas / mean;
    *out_right = (double)right.examples / (double)right.replicas / mean;
    return both;
}

static void add_f32(float *sum, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] = a[i] + b[i];
}

// Adds with factors, for operands whose mean numbers of examples differ.
static void add_scaled(float *sum, const float *a, float a_factor, const float *b, float b_factor,
                       int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] = a[i] * a_factor + b[i] * b_factor;
}

// a + b, both with replicas that count; `sum` may be either operand.
static bel_weight add_weighted(float *sum, const float *a, bel_weight a_weight, const float *b,
                               bel_weight b_weight, int64_t n)
{
    double a_factor, b_factor;
    const bel_weight both = bel_weight_add(a_weight, b_weight, &a_factor, &b_factor);
    if (a_factor == 1 && b_factor == 1) {
        add_f32(sum, a, b, n);
    } else {
        add_scaled(sum, a, (float)a_factor, b, (float)b_factor, n);
    }
    return both;
}

// The node of the list that starts at id `first`, or -1.
static int node_at(const bel_assignment *assignment, int first)
{
    int low = 0, high = assignment->node_count - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        if (assignment->nodes[middle].first == first) return middle;
        if (assignment->nodes[middle].first < first) {
            low = middle + 1;
        } else {
            high = middle - 1;
        }
    }
    return -1;
}

typedef struct summing {
    const bel_assignment *assignment;
    const bel_assignment_inputs *inputs;
    int64_t n;
    float *scratch; // one row for each level
} summing;

// Input `k` as floats: where it is, or unpacked in a row.
static const float *input_of(const summing *s, int k, float *row)
{
    const bel_assignment_inputs *in = s->inputs;
    if (in->rounding == BEL_ROUNDING_NONE || in->values[k] == NULL || !in->packed[k])
        return in->values[k];
    bel_rounding_unpack(in->rounding, in->values[k], row, s->n);
    return row;
}

static int level_of(const summing *s, int k)
{
    return s->inputs->levels != NULL ? s->inputs->levels[k] : s->assignment->nodes[k].level;
}

// Sums of both children of a node, in the order of their ids. A child without a value is NULL, and
// `left` is the one that is there.
typedef struct children {
    const float *left, *right;
    bel_weight left_weight, right_weight;
} children;

static children split_below(const summing *s, int level, int first);

// Adds both children in row `level`.
static const float *add_children(const summing *s, const children *of, int level,
                                 bel_weight *out_weight)
{
    float *row = s->scratch + (int64_t)level * s->n;
    *out_weight = add_weighted(row, of->left, of->left_weight, of->right, of->right_weight, s->n);
    if (s->inputs->rounding != BEL_ROUNDING_NONE)
        bel_rounding_round(s->inputs->rounding, s->inputs->step, row, s->n);
    return row;
}

// Value of node (level, first): an input or row `level`. NULL if no id of the node exists or
// counts.
static const float *sum_below(const summing *s, int level, int first, bel_weight *out_weight)
{
    children of = split_below(s, level, first);
    *out_weight = of.left_weight;
    return of.right == NULL ? of.left : add_children(s, &of, level, out_weight);
}

// The children of node (level, first): inputs, or rows up to `level`. A node that is an input is
// the left child.
static children split_below(const summing *s, int level, int first)
{
    children of = {.left = NULL};
    if (first >= s->assignment->replica_count) return of;
    int listed = node_at(s->assignment, first);
    if (listed >= 0 && level_of(s, listed) >= level) {
        if (s->inputs->values[listed] != NULL) of.left_weight = s->inputs->weights[listed];
        of.left = input_of(s, listed, s->scratch + (int64_t)level * s->n);
        return of;
    }
    // The left child's sum may be in the row below, which the right one then overwrites. So it
    // moves to this node's row first, where the sum of both goes as well.
    of.left = sum_below(s, level - 1, first, &of.left_weight);
    float *row = s->scratch + (int64_t)level * s->n;
    const float *below = s->scratch + (int64_t)(level - 1) * s->n;
    size_t bytes = (size_t)s->n * sizeof *row;
    if (of.left == below) of.left = memcpy(row, of.left, bytes);
    of.right = sum_below(s, level - 1, first + (1 << (level - 1)), &of.right_weight);
    if (of.left != NULL || of.right == NULL) return of;
    of.left = of.right == below ? memcpy(row, of.right, bytes) : of.right;
    of.left_weight = of.right_weight;
    of.right = NULL;
    return of;
}

// BELFRY_FAULT=sum_sequential: adds one value after another. BELFRY_FAULT=divide: averages inside
// each worker first and undoes it, which is exact for powers of two, wrong for three. NULL: no such
// fault.
static const float *sum_faulty(const summing *s)
{
    bool divides = bel_fault_is(BEL_FAULT_DIVIDE);
    const bel_assignment *assignment = s->assignment;
    if (!divides && !bel_fault_is(BEL_FAULT_SUM_SEQUENTIAL)) return NULL;
    memset(s->scratch, 0, (size_t)s->n * sizeof *s->scratch);
    for (int k = 0; k < assignment->node_count; k++) {
        const float *input = s->inputs->values[k];
        float count = (float)bel_assignment_replicas(assignment, assignment->nodes[k].worker);
        for (int64_t i = 0; i < s->n && input != NULL; i++)
            s->scratch[i] += divides ? input[i] * (1.0f / count) * count : input[i];
    }
    return s->scratch;
}

const float *bel_assignment_sum_below(const bel_assignment *assignment,
                                      const bel_assignment_inputs *inputs, int level, int first,
                                      int64_t n, float *scratch)
{
    const summing s = {assignment, inputs, n, scratch};
    bel_weight weight;
    return sum_below(&s, level, first, &weight);
}

const float *bel_addends_sum(bel_addends addends, int64_t n, float *out)
{
    if (addends.right == NULL) return addends.left;
    add_f32(out, addends.left, addends.right, n);
    return out;
}

bel_addends bel_assignment_addends(const bel_assignment *assignment,
                                   const bel_assignment_inputs *inputs, int64_t n, float *scratch)
{
    const summing s = {assignment, inputs, n, scratch};
    // A single node is the whole tree, also under a fault, which makes it of all ids.
    if (assignment->node_count == 1) return (bel_addends){input_of(&s, 0, scratch), NULL};
    bool rounds = inputs->rounding != BEL_ROUNDING_NONE;
    const float *faulty = NULL;
    if (!rounds && inputs->levels == NULL) faulty = sum_faulty(&s);
    if (faulty != NULL) return (bel_addends){faulty, NULL};
    children of = split_below(&s, assignment->depth, 0);
    if (of.right == NULL) return (bel_addends){of.left, NULL};
    double left_factor, right_factor;
    bel_weight weight =
        bel_weight_add(of.left_weight, of.right_weight, &left_factor, &right_factor);
    if (!rounds && left_factor == 1 && right_factor == 1) return (bel_addends){of.left, of.right};
    return (bel_addends){add_children(&s, &of, assignment->depth, &weight), NULL};
}

const float *bel_assignment_sum(const bel_assignment *assignment, const float *const *inputs,
                                const bel_weight *weights, int64_t n, float *scratch)
{
    const bel_assignment_inputs in = {.values = (const void *const *)inputs, .weights = weights};
    bel_addends addends = bel_assignment_addends(assignment, &in, n, scratch);
    return bel_addends_sum(addends, n, scratch + (int64_t)assignment->depth * n);
}

// Adds the right neighbor's double sums to the left one's, level by level. At level l the left
// node begins at a multiple of 2^(l+1), the right one 2^l after it. `alive`: the node's sum is not
// yet part of a left neighbor's.
void bel_assignment_sum_f64_below(const bel_assignment *assignment, const double *const *inputs,
                                  int top, int first, int64_t n, double *out_sum)
{
    int begin = node_at(assignment, first), end = begin;
    while (end < assignment->node_count && assignment->nodes[end].first - first < 1 << top)
        end++;
    size_t nodes = (size_t)(end - begin), row = (size_t)n;
    double *values = bel_xcalloc(nodes * row, sizeof *values);
    bool *alive = bel_xcalloc(nodes, sizeof *alive);
    for (size_t k = 0; k < nodes; k++) {
        const double *input = inputs[(size_t)begin + k];
        if (input == NULL) continue;
        memcpy(values + k * row, input, row * sizeof *values);
        alive[k] = true;
    }
    for (int level = 0; level < top; level++) {
        for (size_t k = 0; k < nodes; k++) {
            int left = assignment->nodes[(size_t)begin + k].first;
            if (left % (2 << level) != 0) continue;
            int right = node_at(assignment, left + (1 << level)) - begin;
            if (right < 0 || (size_t)right >= nodes || !alive[right]) continue;
            for (size_t j = 0; j < row; j++) // an absent left node is still zero
                values[k * row + j] += values[(size_t)right * row + j];
            alive[k] = true;
            alive[right] = false;
        }
    }
    memcpy(out_sum, values, row * sizeof *out_sum);
    bel_free(values);
    bel_free(alive);
}

void bel_assignment_sum_f64(const bel_assignment *assignment, const double *const *inputs,
                            int64_t n, double *out_sum)
{
    bel_assignment_sum_f64_below(assignment, inputs, assignment->depth, 0, n, out_sum);
}

// BELFRY_FAULT=sum_sequential: adds one value after another, without weights.
static void sum_node_sequential(const bel_assignment_node *node, float *const *ranges,
                                int64_t offset, int64_t n)
{
    float *sum = ranges[0] + offset;
    for (int j = 1; j < node->count; j++)
        add_f32(sum, sum, ranges[j] + offset, n);
}

// Sums replicas [first, end) of the node in place, into the first of them. [first, end) is a node
// of the tree or the existing part of one. Each value is rounded.
static bel_weight sum_replicas(float *const *ranges, const bel_weight *weights, int first, int end,
                               bel_rounding rounding, int64_t step, int64_t offset, int64_t n)
{
    float *sum = ranges[first] + offset;
    bool rounds = rounding != BEL_ROUNDING_NONE;
    if (end - first == 1) {
        if (rounds && weights[first].replicas > 0) bel_rounding_round(rounding, step, sum, n);
        return weights[first];
    }
    int half = 1;
    while (2 * half < end - first)
        half *= 2;
    bel_weight left = sum_replicas(ranges, weights, first, first + half, rounding, step, offset, n);
    bel_weight right = sum_replicas(ranges, weights, first + half, end, rounding, step, offset, n);
    const float *other = ranges[first + half] + offset;
    if (right.replicas == 0) return left;
    if (left.replicas > 0) {
        left = add_weighted(sum, sum, left, other, right, n);
        if (rounds) bel_rounding_round(rounding, step, sum, n);
        return left;
    }
    memcpy(sum, other, (size_t)n * sizeof *sum);
    return right;
}

// ranges and weights start at the node's first replica, so the node's tree begins at 0.
bel_weight bel_assignment_sum_node(const bel_assignment_node *node, float *const *ranges,
                                   const bel_weight *weights, int64_t offset, int64_t n)
{
    if (!bel_fault_is(BEL_FAULT_SUM_SEQUENTIAL)) {
        return sum_replicas(ranges, weights, 0, node->count, BEL_ROUNDING_NONE, 0, offset, n);
    }
    bel_weight all = {0};
    for (int j = 0; j < node->count; j++) {
        all.replicas += weights[j].replicas;
        all.examples += weights[j].examples;
    }
    sum_node_sequential(node, ranges, offset, n);
    return all;
}

bel_weight bel_assignment_sum_node_rounded(const bel_assignment_node *node, bel_rounding rounding,
                                           int64_t step, float *const *ranges,
                                           const bel_weight *weights, int64_t offset, int64_t n)
{
    return sum_replicas(ranges, weights, 0, node->count, rounding, step, offset, n);
}

// One addition on the stack of bel_assignment_joins.
static bel_weight assignment_join(bel_weight left, bel_weight right, float **next)
{
    double left_factor, right_factor;
    const bel_weight both = bel_weight_add(left, right, &left_factor, &right_factor);
    *(*next)++ = (float)left_factor;
    *(*next)++ = (float)right_factor;
    return both;
}

void bel_assignment_joins(const bel_weight *weights, int replicas, float *out_factors)
{
    bel_weight stack[32], last = {0};
    float *next = out_factors;
    for (int r = 0; r < replicas; r++) {
        int level = 0;
        last = weights[r];
        for (; (r >> level & 1) != 0; level++)
            last = assignment_join(stack[level], last, &next);
        stack[level] = last;
    }
    bool begun = false;
    for (int level = 0; level < 31; level++) {
        if ((replicas >> level & 1) == 0) continue;
        last = begun ? assignment_join(stack[level], last, &next) : stack[level];
        begun = true;
    }
}
