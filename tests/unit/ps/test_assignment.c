// Summation tree: for every number of replicas and any assignment the sum has the bits of a single
// worker with all replicas.
#include <math.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/rng.h"
#include "ps/layout/assignment.h"
#include "ps/layout/rounding.h"
#include "support/bel_test.h"

enum { MAX_REPLICAS = 17, ELEMENTS = 19, ASSIGNMENTS = 25 };

// Values of very different sizes, so that every other order of addition changes the bits.
static void fill(float (*out)[ELEMENTS])
{
    for (int r = 0; r < MAX_REPLICAS; r++)
        for (int i = 0; i < ELEMENTS; i++) {
            float scale = (float)(1 << (r * 5 + i) % 11);
            out[r][i] = ((float)((r * 7919 + i * 104729) % 2003) / 1001.0f - 1.0f) * scale;
        }
}

enum { ALIKE, SHORT, EMPTY, NONE, COUNTS }; // number of examples per replica

static bel_weight weight_of(int counts, int r)
{
    static const int64_t examples[COUNTS][4] = {
        {7, 7, 7, 7}, {64, 64, 31, 5}, {64, 0, 64, 3}, {0, 0, 0, 0}};
    int64_t n = examples[counts][r * 5 % 7 % 4];
    return (bel_weight){n > 0, n};
}

// A caller that makes the last addition gets the bits of the whole tree. The addition is left to it
// if both children have a value, with equal means of examples.
static void check_addends(const bel_assignment *assignment, const float *const *inputs,
                          const bel_weight *weights)
{
    float scratch[6 * ELEMENTS], tree[6 * ELEMENTS], added[ELEMENTS];
    const bel_assignment_inputs in = {.values = (const void *const *)inputs, .weights = weights};
    bel_addends addends = bel_assignment_addends(assignment, &in, ELEMENTS, scratch);
    const float *got = bel_addends_sum(addends, ELEMENTS, added);
    bool faulty = bel_fault_is(BEL_FAULT_SUM_SEQUENTIAL) || bel_fault_is(BEL_FAULT_DIVIDE);
    if (!faulty) {
        const float *sum =
            bel_assignment_sum_below(assignment, &in, assignment->depth, 0, ELEMENTS, tree);
        assert_memory_equal(got, sum, sizeof added);
    }
    int64_t of_half[2] = {0}, half = assignment->depth > 0 ? 1 << (assignment->depth - 1) : 1;
    bool alike = true;
    for (int k = 0; k < assignment->node_count; k++) {
        of_half[assignment->nodes[k].first >= half] += weights[k].replicas;
        alike = alike && weights[k].examples * weights[0].replicas ==
                             weights[0].examples * weights[k].replicas;
    }
    bool both = of_half[0] > 0 && of_half[1] > 0 && assignment->node_count > 1;
    if (!both) assert_null(addends.right);
    if (both && alike && !faulty) assert_non_null(addends.right);
}

// The sum as workers and shard compute it: nodes first, then the tree over them. NULL: an empty
// sum.
static const float *sum_weighted(const bel_assignment *assignment, int counts, float out[ELEMENTS])
{
    static float values[MAX_REPLICAS][ELEMENTS];
    float *ranges[MAX_REPLICAS], scratch[6 * ELEMENTS];
    const float *inputs[MAX_REPLICAS];
    bel_weight weights[MAX_REPLICAS], of_nodes[MAX_REPLICAS];
    fill(values);
    for (int r = 0; r < assignment->replica_count; r++) {
        ranges[r] = values[r];
        weights[r] = weight_of(counts, r);
    }
    for (int k = 0; k < assignment->node_count; k++) {
        const bel_assignment_node *node = &assignment->nodes[k];
        float **first = ranges + node->first;
        const bel_weight *of_first = weights + node->first;
        of_nodes[k] =
            bel_assignment_sum_node(node, first, of_first, 0, 10); // in two pieces, like ranges
        bel_weight again = bel_assignment_sum_node(node, first, of_first, 10, ELEMENTS - 10);
        assert_int_equal(again.examples, of_nodes[k].examples);
        inputs[k] = of_nodes[k].replicas > 0 ? values[node->first] : NULL;
    }
    assert_true(assignment->depth <= 5);
    const float *sum = bel_assignment_sum(assignment, inputs, of_nodes, ELEMENTS, scratch);
    if (sum == NULL) return NULL;
    memcpy(out, sum, ELEMENTS * sizeof *out);
    check_addends(assignment, inputs, of_nodes);
    return out;
}

static void sum_over(const bel_assignment *assignment, float out[ELEMENTS])
{
    assert_non_null(sum_weighted(assignment, ALIKE, out));
}

// Assigns `replicas` at random to 1 … replicas workers, with some workers without replicas between
// them. In every third assignment each replica is sent separately.
static bel_assignment *random_assignment(int replicas, uint32_t number)
{
    int replicas_of[2 * MAX_REPLICAS], workers = 0, left = replicas;
    for (; left > 0; workers++) {
        uint32_t words[4];
        bel_rng_block((bel_rng_key){{1, number}}, (uint64_t)replicas, (uint64_t)workers, words);
        replicas_of[workers] = 1 + (int)(words[0] % (uint32_t)left);
        if (words[1] % 2 == 0) replicas_of[workers] = 1; // small shares as well
        left -= replicas_of[workers];
        if (words[2] % 4 == 0) replicas_of[++workers] = 0;
    }
    bool apart = number % 3 == 0;
    return (apart ? bel_assignment_create_apart : bel_assignment_create)(replicas_of, workers);
}

static void check_nodes(const bel_assignment *assignment)
{
    int next = 0;
    for (int w = 0; w < assignment->worker_count; w++) {
        assert_int_equal(next, assignment->first_replica[w]);
        for (int k = assignment->first_node[w]; k < assignment->first_node[w + 1]; k++) {
            const bel_assignment_node *node = &assignment->nodes[k];
            assert_int_equal(node->worker, w);
            assert_int_equal(node->first, next); // in the order of ids, without gaps
            assert_int_equal(node->first % (1 << node->level), 0);
            int end = node->first + (1 << node->level);
            if (end > assignment->replica_count) end = assignment->replica_count;
            assert_int_equal(node->first + node->count, end);
            next = end;
        }
    }
    assert_int_equal(next, assignment->replica_count);
    assert_int_equal(assignment->first_node[assignment->worker_count], assignment->node_count);
}

static void test_same_bits(void **state)
{
    (void)state;
    for (int replicas = 1; replicas <= MAX_REPLICAS; replicas++) {
        float expected[ELEMENTS], got[ELEMENTS];
        bel_assignment *one = bel_assignment_create(&replicas, 1);
        check_nodes(one);
        assert_int_equal(one->node_count, 1);
        sum_over(one, expected);
        bel_assignment_destroy(one);
        for (uint32_t number = 0; number < ASSIGNMENTS; number++) {
            bel_assignment *assignment = random_assignment(replicas, number);
            check_nodes(assignment);
            sum_over(assignment, got);
            assert_memory_equal(got, expected, sizeof got);
            bel_assignment_destroy(assignment);
        }
    }
}

// Replicas of different sizes, some without examples. The bits do not depend on the assignment. The
// sum over replicas with examples is the mean over all examples.
static void test_weights(void **state)
{
    (void)state;
    static float values[MAX_REPLICAS][ELEMENTS];
    fill(values);
    for (int at = 0; at < COUNTS * MAX_REPLICAS; at++) {
        int counts = at / MAX_REPLICAS, replicas = 1 + at % MAX_REPLICAS;
        float expected[ELEMENTS], got[ELEMENTS];
        bel_assignment *one = bel_assignment_create(&replicas, 1);
        const float *some = sum_weighted(one, counts, expected);
        bel_assignment_destroy(one);
        double sums[ELEMENTS] = {0}, sizes[ELEMENTS] = {0}, examples = 0, played = 0;
        for (int r = 0; r < replicas; r++) {
            double n = (double)weight_of(counts, r).examples;
            examples += n;
            played += n > 0;
            for (int i = 0; i < ELEMENTS; i++) {
                sums[i] += n * (double)values[r][i];
                sizes[i] += n * fabs((double)values[r][i]);
            }
        }
        assert_int_equal(some != NULL, examples > 0);
        for (int i = 0; i < ELEMENTS && some != NULL; i++) {
            double error = (double)expected[i] / played - sums[i] / examples;
            assert_true(fabs(error) <= 1e-6 * sizes[i] / examples);
        }
        for (uint32_t number = 0; number < ASSIGNMENTS; number++) {
            bel_assignment *assignment = random_assignment(replicas, number);
            const float *sum = sum_weighted(assignment, counts, got);
            assert_int_equal(sum != NULL, some != NULL);
            if (some != NULL) assert_memory_equal(got, expected, sizeof got);
            bel_assignment_destroy(assignment);
        }
    }
}

// Sums like a GPU kernel, which knows no nodes: with a stack and precomputed factors. Replicas that
// do not count are -0.
static float stack_sum(const bel_weight *weights, const float *factors, int replicas, int element,
                       float (*values)[ELEMENTS])
{
    float stack[8];
    int height = 0, next = 0;
    for (int r = 0; r < replicas; r++) {
        stack[height++] = weights[r].replicas > 0 ? values[r][element] : -0.0f;
        bool last = r + 1 == replicas;
        for (int left = r; height > 1 && (last || (left & 1) != 0); left >>= 1, next += 2) {
            float joined =
                stack[height - 2] * factors[next] + stack[height - 1] * factors[next + 1];
            stack[--height - 1] = joined;
        }
    }
    assert_int_equal(next, 2 * (replicas - 1));
    return stack[0];
}

// About a third of the replicas do not count, and about half of the others have 64 examples.
static bel_weight random_weight(int replicas, int r, uint32_t number)
{
    uint32_t words[4];
    bel_rng_block((bel_rng_key){{2, number}}, (uint64_t)replicas, (uint64_t)r, words);
    int64_t examples = words[0] % 3 == 0 ? 0 : words[1] % 2 == 0 ? 64 : 1 + words[2] % 64;
    return (bel_weight){examples > 0, examples};
}

// Factors for sums element by element give the bits of the sum over ranges.
static void test_joins(void **state)
{
    (void)state;
    static float values[MAX_REPLICAS][ELEMENTS];
    int none = 0, uneven = 0;
    fill(values);
    for (int at = 0; at < MAX_REPLICAS * ASSIGNMENTS; at++) {
        int replicas = 1 + at % MAX_REPLICAS;
        float factors[2 * MAX_REPLICAS], scratch[6 * ELEMENTS];
        const float *inputs[MAX_REPLICAS];
        bel_weight weights[MAX_REPLICAS];
        for (int r = 0; r < replicas; r++) {
            weights[r] = random_weight(replicas, r, (uint32_t)(at / MAX_REPLICAS));
            inputs[r] = weights[r].replicas > 0 ? values[r] : NULL;
        }
        bel_assignment *apart = bel_assignment_create_apart(&replicas, 1);
        bel_assignment_joins(weights, replicas, factors);
        const float *sum = bel_assignment_sum(apart, inputs, weights, ELEMENTS, scratch);
        for (int i = 0; i < ELEMENTS && sum != NULL; i++) {
            float got = stack_sum(weights, factors, replicas, i, values);
            assert_memory_equal(&got, &sum[i], sizeof got);
        }
        for (int j = 0; j < replicas - 1; j++)
            uneven += factors[2 * j] != 1.0f;
        none += sum == NULL;
        bel_assignment_destroy(apart);
    }
    assert_true(none > 0 && uneven > 0);
}

// The tree written out for five replicas: ((a + b) + (c + d)) + e.
static void test_tree(void **state)
{
    (void)state;
    static float values[MAX_REPLICAS][ELEMENTS];
    float got[ELEMENTS];
    int replicas = 5;
    fill(values);
    bel_assignment *assignment = bel_assignment_create(&replicas, 1);
    sum_over(assignment, got);
    for (int i = 0; i < ELEMENTS; i++) {
        float left = (values[0][i] + values[1][i]) + (values[2][i] + values[3][i]);
        assert_true(got[i] == left + values[4][i]);
    }
    bel_assignment_destroy(assignment);
}

// Each addition rounded, and inputs narrow or as floats: the same bits in any assignment.
static void sum_rounded(const bel_assignment *assignment, bel_rounding rounding, int counts,
                        uint32_t number, float *out)
{
    static float values[MAX_REPLICAS][ELEMENTS];
    static uint16_t packed_values[MAX_REPLICAS][ELEMENTS + 16];
    float *ranges[MAX_REPLICAS], scratch[6 * ELEMENTS];
    const void *inputs[MAX_REPLICAS];
    bel_weight weights[MAX_REPLICAS], of_nodes[MAX_REPLICAS];
    bool packed[MAX_REPLICAS];
    fill(values);
    for (int r = 0; r < assignment->replica_count; r++) {
        ranges[r] = values[r];
        weights[r] = weight_of(counts, r);
    }
    for (int k = 0; k < assignment->node_count; k++) {
        const bel_assignment_node *node = &assignment->nodes[k];
        of_nodes[k] = bel_assignment_sum_node_rounded(node, rounding, 7, ranges + node->first,
                                                      weights + node->first, 0, ELEMENTS);
        packed[k] = (number + (uint32_t)k) % 2 == 0;
        bel_rounding_pack(rounding, 7, values[node->first], packed_values[k], ELEMENTS);
        inputs[k] = packed[k] ? (const void *)packed_values[k] : values[node->first];
        if (of_nodes[k].replicas == 0) inputs[k] = NULL;
    }
    const bel_assignment_inputs in = {
        .values = inputs, .weights = of_nodes, .rounding = rounding, .step = 7, .packed = packed};
    bel_addends addends = bel_assignment_addends(assignment, &in, ELEMENTS, scratch);
    assert_non_null(addends.left);
    const float *sum = bel_addends_sum(addends, ELEMENTS, scratch + 5 * (int64_t)ELEMENTS);
    memcpy(out, sum, ELEMENTS * sizeof *out);
}

static void check_rounded(bel_rounding rounding)
{
    int different = 0;
    for (int at = 0; at < NONE * MAX_REPLICAS; at++) {
        int counts = at / MAX_REPLICAS, replicas = at % MAX_REPLICAS + 1;
        float expected[ELEMENTS], got[ELEMENTS], exact[ELEMENTS];
        bel_assignment *one = bel_assignment_create(&replicas, 1);
        sum_rounded(one, rounding, counts, 1, expected);
        assert_non_null(sum_weighted(one, counts, exact));
        different += memcmp(exact, expected, sizeof exact) != 0;
        bel_assignment_destroy(one);
        for (uint32_t number = 0; number < ASSIGNMENTS; number++) {
            bel_assignment *assignment = random_assignment(replicas, number);
            sum_rounded(assignment, rounding, counts, number, got);
            assert_memory_equal(got, expected, sizeof got);
            bel_assignment_destroy(assignment);
        }
    }
    assert_true(different > 0);
}

static void test_rounded(void **state)
{
    (void)state;
    check_rounded(BEL_ROUNDING_BF16);
    check_rounded(BEL_ROUNDING_INT8);
}

static void test_stats_list(void **state)
{
    (void)state;
    for (int replicas = 1; replicas <= MAX_REPLICAS; replicas++) {
        for (uint32_t number = 0; number < ASSIGNMENTS; number++) {
            bel_assignment *assignment = random_assignment(replicas, number);
            double stats_list[MAX_REPLICAS][2], sum[2];
            const double *inputs[MAX_REPLICAS];
            for (int k = 0; k < assignment->node_count; k++) {
                stats_list[k][0] = assignment->nodes[k].count; // integers: the sum is exact
                stats_list[k][1] = 1 << k;
                inputs[k] = stats_list[k];
            }
            bel_assignment_sum_f64(assignment, inputs, 2, sum);
            assert_true(sum[0] == replicas);
            assert_true(sum[1] == (1 << assignment->node_count) - 1);
            bel_assignment_destroy(assignment);
        }
    }
}

// Checks that the test above can fail: adding in the order of the workers changes some sums.
static void test_fault_shows(void **state)
{
    (void)state;
    static const char *const faults[] = {"sum_sequential", "divide"};
    for (size_t f = 0; f < sizeof faults / sizeof faults[0]; f++) {
        int different = 0;
        for (int replicas = 3; replicas <= MAX_REPLICAS; replicas++) {
            float expected[ELEMENTS], got[ELEMENTS];
            bel_assignment *one = bel_assignment_create(&replicas, 1);
            sum_over(one, expected);
            bel_assignment_destroy(one);
            bel_fault_set(faults[f]);
            bel_assignment *assignment = random_assignment(replicas, 1);
            sum_over(assignment, got);
            bel_assignment_destroy(assignment);
            bel_fault_set("");
            different += memcmp(got, expected, sizeof got) != 0;
        }
        assert_true(different > 0);
    }
}

// Contiguous blocks, as even as possible, for the workers present.
static void test_evenly(void **state)
{
    (void)state;
    static const struct {
        int replicas, workers;
        bool present[5];
        int expected[5];
    } rows[] = {
        {4, 2, {1, 1}, {2, 2}},
        {5, 3, {1, 1, 1}, {2, 2, 1}},
        {5, 4, {0, 1, 0, 1}, {0, 3, 0, 2}},
        {3, 5, {1, 0, 1, 0, 1}, {1, 0, 1, 0, 1}},
        {7, 3, {0, 0, 1}, {0, 0, 7}},
        {2, 2, {1, 0}, {2, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int got[5] = {-1, -1, -1, -1, -1};
        bel_assignment_evenly(rows[i].replicas, rows[i].present, rows[i].workers, got);
        assert_memory_equal(got, rows[i].expected, (size_t)rows[i].workers * sizeof *got);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),   cmocka_unit_test(test_weights),
        cmocka_unit_test(test_tree),        cmocka_unit_test(test_stats_list),
        cmocka_unit_test(test_fault_shows), cmocka_unit_test(test_evenly),
        cmocka_unit_test(test_joins),       cmocka_unit_test(test_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
