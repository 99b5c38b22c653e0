// The tree of relays: every worker's reports reach the shards once, no relay has more reporters
// than fan_in, and sums that go through it have the bits of a sum without it.
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "ps/layout/fan_in.h"
#include "support/bel_test.h"

enum { MOST_WORKERS = 40, MOST_REPLICAS = 100, ELEMENTS = 5, MOST_FAN_IN = 7 };

static uint64_t drawn;

static int draw(int end)
{
    uint32_t words[4];
    bel_rng_block((bel_rng_key){{8, 9}}, 0, drawn++, words);
    return (int)(words[0] % (uint32_t)end);
}

// Values and weights of an assignment's nodes.
typedef struct sums {
    float values[MOST_REPLICAS][ELEMENTS];
    double stats[MOST_REPLICAS][ELEMENTS];
    bel_weight weights[MOST_REPLICAS];
} sums;

// All replicas' values, the same in every assignment.
static sums replicas;

static void fill(int count)
{
    for (int r = 0; r < count; r++) {
        int64_t examples = draw(4) == 0 ? draw(3) : 8;
        replicas.weights[r] = (bel_weight){examples > 0, examples};
        for (int i = 0; i < ELEMENTS; i++) {
            replicas.values[r][i] = (float)(draw(2003) - 1001) * (float)(1 << draw(11)) / 1001.0f;
            replicas.stats[r][i] = (double)replicas.values[r][i] / 3;
        }
    }
}

// The nodes that a worker reports, from its replicas.
static void report(const bel_assignment *assignment, int worker, sums *out)
{
    for (int k = assignment->first_node[worker]; k < assignment->first_node[worker + 1]; k++) {
        const bel_assignment_node *node = &assignment->nodes[k];
        float copies[MOST_REPLICAS][ELEMENTS], *ranges[MOST_REPLICAS];
        const double *list[MOST_REPLICAS];
        for (int r = 0; r < node->count; r++) {
            memcpy(copies[r], replicas.values[node->first + r], sizeof copies[r]);
            ranges[r] = copies[r];
            list[r] = replicas.stats[node->first + r];
        }
        out->weights[k] =
            bel_assignment_sum_node(node, ranges, replicas.weights + node->first, 0, ELEMENTS);
        memcpy(out->values[k], copies[0], sizeof copies[0]);
        bel_assignment *own = bel_assignment_create_apart(&node->count, 1);
        bel_assignment_sum_f64(own, list, ELEMENTS, out->stats[k]);
        bel_assignment_destroy(own);
    }
}

// Adds all values below node `to`, as a relay does.
static void add_below(const bel_assignment *below, const sums *in, const bel_assignment_node *to,
                      float out_values[ELEMENTS], double out_stats[ELEMENTS],
                      bel_weight *out_weight)
{
    const void *inputs[MOST_REPLICAS];
    const double *stats[MOST_REPLICAS];
    float scratch[12 * ELEMENTS];
    *out_weight = (bel_weight){0};
    for (int k = 0; k < below->node_count; k++) {
        bool inside =
            below->nodes[k].first >= to->first && below->nodes[k].first < to->first + to->count;
        inputs[k] = in->weights[k].replicas > 0 ? in->values[k] : NULL;
        stats[k] = in->stats[k];
        out_weight->replicas += inside ? in->weights[k].replicas : 0;
        out_weight->examples += inside ? in->weights[k].examples : 0;
    }
    const bel_assignment_merged merged = {.inputs = inputs, .weights = in->weights};
    assert_true(bel_assignment_covers(below, to->level, to->first));
    const float *sum =
        bel_assignment_sum_merged(below, &merged, to->level, to->first, ELEMENTS, scratch);
    if (sum != NULL) memcpy(out_values, sum, ELEMENTS * sizeof *sum);
    bel_assignment_sum_f64_below(below, stats, to->level, to->first, ELEMENTS, out_stats);
}

// Writes what reporter `index` of `above` reports: a worker, or a relay with its reporters.
static void report_up(const bel_assignment *job, int fan_in, const bel_reporters *above, int index,
                      int level, sums *out, int *out_relays)
{
    int worker = above->workers[index], levels[BEL_FAN_IN_LEVELS];
    int count = bel_fan_in_relays(job, fan_in, worker, levels);
    while (count > 0 && levels[count - 1] >= level)
        count--; // those are above
    bel_fan_in_place place =
        bel_fan_in_place_of(job, fan_in, worker, count > 0 ? levels[count - 1] : 0);
    assert_int_equal(place.index, index);
    if (count == 0) {
        report(above->assignment, index, out);
        return;
    }
    bel_reporters members = bel_fan_in_members(job, fan_in, worker, levels[count - 1]);
    sums *in = bel_xcalloc(1, sizeof *in);
    assert_in_range(members.count, 2, fan_in);
    assert_int_equal(members.workers[0], worker);
    ++*out_relays;
    for (int i = 0; i < members.count; i++) {
        assert_int_equal(bel_reporters_find(&members, members.workers[i]), i);
        report_up(job, fan_in, &members, i, levels[count - 1], in, out_relays);
    }
    const int *first = above->assignment->first_node + index;
    for (int k = first[0]; k < first[1]; k++)
        add_below(members.assignment, in, &above->assignment->nodes[k], out->values[k],
                  out->stats[k], &out->weights[k]);
    bel_reporters_deinit(&members);
    bel_free(in);
}

// The sum at a shard: of its reporters' nodes.
static const float *sum_up(const bel_assignment *assignment, const sums *in, float *scratch,
                           double out_stats[ELEMENTS])
{
    const float *inputs[MOST_REPLICAS];
    const double *stats[MOST_REPLICAS];
    for (int k = 0; k < assignment->node_count; k++) {
        inputs[k] = in->weights[k].replicas > 0 ? in->values[k] : NULL;
        stats[k] = in->stats[k];
    }
    bel_assignment_sum_f64(assignment, stats, ELEMENTS, out_stats);
    return bel_assignment_sum(assignment, inputs, in->weights, ELEMENTS, scratch);
}

static void check_tree(const bel_assignment *job, int fan_in)
{
    static sums flat, tree;
    static float flat_scratch[12 * ELEMENTS], scratch[12 * ELEMENTS];
    double flat_stats[ELEMENTS], stats[ELEMENTS];
    int relays = 0;
    memset(&flat, 0, sizeof flat);
    memset(&tree, 0, sizeof tree);
    for (int w = 0; w < job->worker_count; w++)
        report(job, w, &flat);
    bel_reporters top = bel_fan_in_top(job, fan_in);
    int levels = bel_fan_in_levels(job, fan_in);
    if (levels > 0) assert_in_range(top.count, 1, fan_in);
    for (int i = 0; i < top.count; i++) {
        if (bel_assignment_replicas(top.assignment, i) == 0) continue;
        report_up(job, fan_in, &top, i, levels + 1, &tree, &relays);
    }
    assert_int_equal(relays > 0, levels > 0);
    assert_int_equal(top.assignment->replica_count, job->replica_count);
    const float *expected = sum_up(job, &flat, flat_scratch, flat_stats);
    const float *sum = sum_up(top.assignment, &tree, scratch, stats);
    assert_int_equal(sum == NULL, expected == NULL);
    if (sum != NULL) assert_memory_equal(sum, expected, ELEMENTS * sizeof *sum);
    assert_memory_equal(stats, flat_stats, sizeof stats);
    bel_reporters_deinit(&top);
}

// Some workers have no replica.
static void test_same_bits(void **state)
{
    (void)state;
    for (int workers = 1; workers <= MOST_WORKERS; workers++)
        for (int fan_in = 2; fan_in <= MOST_FAN_IN; fan_in++) {
            int replicas_of[MOST_WORKERS];
            bool alike = draw(2) == 0;
            for (int w = 0; w < workers; w++)
                replicas_of[w] = alike ? 1 : draw(workers < 30 ? 4 : 3);
            replicas_of[0] += replicas_of[0] == 0;
            bel_assignment *job = bel_assignment_create(replicas_of, workers);
            fill(job->replica_count);
            check_tree(job, fan_in);
            bel_assignment_destroy(job);
        }
}

// The picture of fan_in.h.
static void test_five(void **state)
{
    (void)state;
    const int ones[] = {1, 1, 1, 1, 1};
    bel_assignment *job = bel_assignment_create(ones, 5);
    int levels[BEL_FAN_IN_LEVELS];
    assert_int_equal(bel_fan_in_levels(job, 0), 0);
    assert_int_equal(bel_fan_in_levels(job, 5), 0);
    assert_int_equal(bel_fan_in_levels(job, 2), 2);
    assert_int_equal(bel_fan_in_relays(job, 2, 0, levels), 2);
    assert_int_equal(levels[1], 2);
    assert_int_equal(bel_fan_in_relays(job, 2, 2, levels), 1);
    assert_int_equal(bel_fan_in_relays(job, 2, 4, levels), 0);
    assert_int_equal(bel_fan_in_place_of(job, 2, 3, 0).worker, 2);
    assert_int_equal(bel_fan_in_place_of(job, 2, 2, 1).worker, 0);
    assert_int_equal(bel_fan_in_place_of(job, 2, 2, 1).level, 2);
    assert_int_equal(bel_fan_in_place_of(job, 2, 4, 0).worker, -1);
    assert_int_equal(bel_fan_in_place_of(job, 2, 4, 0).index, 1);
    bel_assignment_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_five),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
