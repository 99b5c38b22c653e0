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
    const bel_assignment_inputs values = {.values = inputs, .weights = in->weights};
    assert_true(bel_assignment_covers(below, to->level, to->first));
    const float *sum =
        bel_assignment_sum_below(below, &values, to->level, to->first, ELEMENTS, scratch);
    if (sum != NULL) memcpy(out_values, sum, ELEMENTS * sizeof *sum);
    bel_assignment_sum_f64_below(below, stats, to->level, to->first, ELEMENTS, out_stats);
}

// Writes what reporter `index` of `above` reports: a worker, or a relay with its reporters.
static void report_up(const bel_fan_in *tree, int fan_in, const bel_reporters *above, int index,
                      int level, sums *out, int *out_relays)
{
    int worker = above->workers[index], levels[BEL_FAN_IN_LEVELS];
    int count = bel_fan_in_relays(tree, worker, levels);
    while (count > 0 && levels[count - 1] >= level)
        count--; // those are above
    bel_fan_in_place place = bel_fan_in_place_of(tree, worker, count > 0 ? levels[count - 1] : 0);
    assert_int_equal(place.index, index);
    if (count == 0) {
        report(above->assignment, index, out);
        return;
    }
    bel_reporters members = bel_fan_in_members(tree, worker, levels[count - 1]);
    sums *in = bel_xcalloc(1, sizeof *in);
    bool host = bel_fan_in_is_host(tree, levels[count - 1]);
    assert_in_range(members.count, 2, host ? MOST_WORKERS : fan_in);
    assert_int_equal(members.workers[0], worker);
    ++*out_relays;
    for (int i = 0; i < members.count; i++) {
        assert_int_equal(bel_reporters_find(&members, members.workers[i]), i);
        report_up(tree, fan_in, &members, i, levels[count - 1], in, out_relays);
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

static void check_tree(const bel_assignment *job, const bel_fan_in_rule *rule)
{
    static sums flat, tree;
    static float flat_scratch[12 * ELEMENTS], scratch[12 * ELEMENTS];
    double flat_stats[ELEMENTS], stats[ELEMENTS];
    int relays = 0, fan_in = rule->fan_in > 0 ? rule->fan_in : MOST_WORKERS;
    assert_true(bel_fan_in_is_rule(job, rule));
    bel_fan_in *made = bel_fan_in_create(job, rule);
    memset(&flat, 0, sizeof flat);
    memset(&tree, 0, sizeof tree);
    for (int w = 0; w < job->worker_count; w++)
        report(job, w, &flat);
    bel_reporters top = bel_fan_in_top(made);
    int levels = bel_fan_in_levels(made);
    if (levels > 0) assert_in_range(top.count, 1, fan_in);
    for (int i = 0; i < top.count; i++) {
        if (bel_assignment_replicas(top.assignment, i) == 0) continue;
        report_up(made, fan_in, &top, i, levels + 1, &tree, &relays);
    }
    assert_int_equal(relays > 0, levels > 0);
    assert_int_equal(top.assignment->replica_count, job->replica_count);
    const float *expected = sum_up(job, &flat, flat_scratch, flat_stats);
    const float *sum = sum_up(top.assignment, &tree, scratch, stats);
    assert_int_equal(sum == NULL, expected == NULL);
    if (sum != NULL) assert_memory_equal(sum, expected, ELEMENTS * sizeof *sum);
    assert_memory_equal(stats, flat_stats, sizeof stats);
    bel_reporters_deinit(&top);
    bel_fan_in_destroy(made);
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
            check_tree(job, &(bel_fan_in_rule){.fan_in = fan_in});
            bel_assignment_destroy(job);
        }
}

// All ways to cut up to eight workers into runs, one of them with more than one.
static void test_hosts(void **state)
{
    (void)state;
    enum { MOST = 8 };
    for (int workers = 2; workers <= MOST; workers++) {
        for (int cuts = 0; cuts < (1 << (workers - 1)) - 1; cuts++) { // bit i: after player i
            int replicas_of[2 * MOST], hosts[MOST] = {0}, count = 1;
            for (int i = 0; i < workers; i++) {
                hosts[count - 1]++;
                if (i < workers - 1) count += cuts >> i & 1;
                replicas_of[2 * i] = 1 + draw(3);
                replicas_of[2 * i + 1] = 0; // one that does not play
            }
            bel_assignment *job = bel_assignment_create(replicas_of, 2 * workers);
            fill(job->replica_count);
            for (int fan_in = 0; fan_in <= 4; fan_in += fan_in == 0 ? 2 : 1)
                check_tree(job, &(bel_fan_in_rule){fan_in, hosts, count});
            bel_assignment_destroy(job);
        }
    }
}

// Members of each group from the definition: a group of hosts is a run, others are fan_in of the
// level below. `worker` reports to the first group above it that has another member.
static bel_fan_in_place naive_place(const bel_fan_in_rule *rule, int workers, int at)
{
    int groups[MOST_WORKERS], count = workers; // by worker: its group of the level
    for (int w = 0; w < workers; w++)
        groups[w] = w;
    for (int level = 1;; level++) {
        bool hosts = level == 1 && rule->host_count > 0;
        if (!hosts && (rule->fan_in == 0 || count <= rule->fan_in)) break;
        int above[MOST_WORKERS], first = 0, end = 0, h = 0;
        for (int w = 0, left = 0; w < workers; w++, left--) {
            if (hosts && left == 0) left = rule->hosts[h++];
            above[w] = hosts ? h - 1 : groups[w] / rule->fan_in;
        }
        while (above[first] != above[at])
            first++;
        for (end = first; end < workers && above[end] == above[at];)
            end++;
        if (groups[first] != groups[end - 1])
            return (bel_fan_in_place){level, first, groups[at] - groups[first]};
        memcpy(groups, above, sizeof groups);
        count = above[workers - 1] + 1;
    }
    return (bel_fan_in_place){0, -1, groups[at]};
}

static void test_places(void **state)
{
    (void)state;
    enum { MOST = 9 };
    int ones[MOST];
    for (int w = 0; w < MOST; w++)
        ones[w] = 1;
    for (int cuts = 0; cuts < 1 << (MOST - 1); cuts++) {
        int hosts[MOST] = {0}, count = 1;
        for (int i = 0; i < MOST; i++) {
            hosts[count - 1]++;
            if (i < MOST - 1) count += cuts >> i & 1;
        }
        bel_assignment *job = bel_assignment_create(ones, MOST);
        for (int fan_in = 0; fan_in <= 5; fan_in++) {
            bool none = count == MOST; // runs of one worker are no hosts
            const bel_fan_in_rule rule = {fan_in, hosts, none ? 0 : count};
            assert_int_equal(bel_fan_in_is_rule(job, &rule), fan_in != 1);
            if (fan_in == 1) continue;
            bel_fan_in *tree = bel_fan_in_create(job, &rule);
            for (int w = 0; w < MOST; w++) {
                bel_fan_in_place is = bel_fan_in_place_of(tree, w, 0);
                bel_fan_in_place should = naive_place(&rule, MOST, w);
                assert_true(is.level == should.level && is.worker == should.worker &&
                            is.index == should.index);
            }
            bel_fan_in_destroy(tree);
        }
        bel_assignment_destroy(job);
    }
}

static void test_rules(void **state)
{
    (void)state;
    const int three[] = {1, 0, 2, 1};
    bel_assignment *job = bel_assignment_create(three, 4);
    static const int whole[] = {2, 1}, ones[] = {1, 1, 1}, more[] = {2, 2}, none[] = {3, 0};
    assert_true(bel_fan_in_is_rule(job, &(bel_fan_in_rule){0, whole, 2}));
    assert_true(bel_fan_in_is_rule(job, &(bel_fan_in_rule){BEL_FAN_IN_MOST, NULL, 0}));
    assert_false(bel_fan_in_is_rule(job, &(bel_fan_in_rule){0, ones, 3}));
    assert_false(bel_fan_in_is_rule(job, &(bel_fan_in_rule){0, more, 2}));
    assert_false(bel_fan_in_is_rule(job, &(bel_fan_in_rule){0, none, 2}));
    assert_false(bel_fan_in_is_rule(job, &(bel_fan_in_rule){1, whole, 2}));
    assert_false(bel_fan_in_is_rule(job, &(bel_fan_in_rule){-1, whole, 2}));
    assert_false(bel_fan_in_is_rule(job, &(bel_fan_in_rule){BEL_FAN_IN_MOST + 1, whole, 2}));
    bel_assignment_destroy(job);
}

// The most levels: 1,024 workers, the first two of them on one host.
static void test_most_levels(void **state)
{
    (void)state;
    enum { WORKERS = 1024 };
    static int ones[WORKERS], hosts[WORKERS - 1];
    int levels[BEL_FAN_IN_LEVELS];
    for (int w = 0; w < WORKERS; w++)
        ones[w] = 1;
    for (int h = 0; h < WORKERS - 1; h++)
        hosts[h] = h == 0 ? 2 : 1;
    bel_assignment *job = bel_assignment_create(ones, WORKERS);
    bel_fan_in *tree = bel_fan_in_create(job, &(bel_fan_in_rule){2, hosts, WORKERS - 1});
    assert_int_equal(bel_fan_in_levels(tree), BEL_FAN_IN_LEVELS);
    assert_int_equal(bel_fan_in_relays(tree, 0, levels), BEL_FAN_IN_LEVELS);
    bel_fan_in_destroy(tree);
    bel_assignment_destroy(job);
}

// The picture of fan_in.h.
static void test_five(void **state)
{
    (void)state;
    const int alike[] = {1, 1, 1, 1, 1};
    bel_assignment *job = bel_assignment_create(alike, 5);
    bel_fan_in *none = bel_fan_in_create(job, &(bel_fan_in_rule){0});
    bel_fan_in *few = bel_fan_in_create(job, &(bel_fan_in_rule){.fan_in = 5});
    bel_fan_in *tree = bel_fan_in_create(job, &(bel_fan_in_rule){.fan_in = 2});
    int levels[BEL_FAN_IN_LEVELS];
    assert_int_equal(bel_fan_in_levels(none), 0);
    assert_int_equal(bel_fan_in_levels(few), 0);
    assert_int_equal(bel_fan_in_levels(tree), 2);
    assert_int_equal(bel_fan_in_relays(tree, 0, levels), 2);
    assert_int_equal(levels[1], 2);
    assert_int_equal(bel_fan_in_relays(tree, 2, levels), 1);
    assert_int_equal(bel_fan_in_relays(tree, 4, levels), 0);
    assert_int_equal(bel_fan_in_place_of(tree, 3, 0).worker, 2);
    assert_int_equal(bel_fan_in_place_of(tree, 2, 1).worker, 0);
    assert_int_equal(bel_fan_in_place_of(tree, 2, 1).level, 2);
    assert_int_equal(bel_fan_in_place_of(tree, 4, 0).worker, -1);
    assert_int_equal(bel_fan_in_place_of(tree, 4, 0).index, 1);
    bel_fan_in_destroy(none);
    bel_fan_in_destroy(few);
    bel_fan_in_destroy(tree);
    bel_assignment_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),   cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_places),      cmocka_unit_test(test_rules),
        cmocka_unit_test(test_most_levels), cmocka_unit_test(test_five),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
