// Rows in reports: payloads are checked, and sums follow the tree for any assignment.
#include <math.h>
#include <string.h>

#include "ps/layout/assignment.h"
#include "ps/layout/row_set.h"
#include "support/bel_test.h"

enum { WIDTH = 3, REPLICAS = 7, KEYS = 20, MOST = 64 };

// Whether replica r reports row k.
static bool says(int r, int k)
{
    return (r * 7 + k * 3) % 4 != 0;
}

static float value(int r, int k, int j)
{
    return (float)((r * 131 + k * 17 + j * 7) % 101) / 7.0f - 6.5f;
}

// Equal sizes, or different sizes with one replica without examples.
static bel_weight weight_of(bool alike, int r)
{
    int64_t examples = alike ? 10 : r == 2 ? 0 : 1 + 9 * (r % 3);
    return (bel_weight){examples > 0, examples};
}

typedef struct leaf {
    int64_t keys[KEYS];
    float rows[KEYS][WIDTH];
} leaf;

static bel_row_set fill(leaf *l, int r, bool some)
{
    int64_t count = 0;
    for (int k = 0; k < KEYS && some; k++) {
        if (!says(r, k)) continue;
        l->keys[count] = k * 5;
        for (int j = 0; j < WIDTH; j++)
            l->rows[count][j] = value(r, k, j);
        count++;
    }
    return (bel_row_set){count, l->keys, l->rows[0]};
}

// Sums node by node as workers do, then over the nodes as a shard does.
static bel_row_set sum_of(const int *replicas_of, int workers, bool alike, bel_row_sum *last,
                          leaf *kept)
{
    leaf leaves[REPLICAS];
    bel_assignment *assignment = bel_assignment_create(replicas_of, workers);
    bel_row_sum sums[REPLICAS] = {{0}};
    bel_row_set nodes[REPLICAS];
    bel_weight weights[REPLICAS];
    int firsts[REPLICAS];
    for (int k = 0; k < assignment->node_count; k++) {
        const bel_assignment_node *node = &assignment->nodes[k];
        bel_row_set sets[REPLICAS];
        bel_weight of_sets[REPLICAS];
        int ids[REPLICAS];
        for (int i = 0; i < node->count; i++) {
            ids[i] = node->first + i;
            of_sets[i] = weight_of(alike, ids[i]);
            sets[i] = fill(&leaves[ids[i]], ids[i], of_sets[i].replicas > 0);
        }
        nodes[k] = bel_row_sum_run(&sums[k], ids, sets, of_sets, node->count, WIDTH);
        weights[k] = of_sets[0];
        firsts[k] = node->first;
    }
    bel_row_set all = bel_row_sum_run(last, firsts, nodes, weights, assignment->node_count, WIDTH);
    memcpy(kept->keys, all.keys, (size_t)all.count * sizeof all.keys[0]);
    memcpy(kept->rows, all.rows, (size_t)all.count * WIDTH * sizeof(float));
    for (int k = 0; k < REPLICAS; k++)
        bel_row_sum_deinit(&sums[k]);
    bel_assignment_destroy(assignment);
    return (bel_row_set){all.count, kept->keys, kept->rows[0]};
}

// The same by bel_assignment_sum over single replicas, which skips absent ones.
static float expected(const bel_assignment *leaves, int k, int j)
{
    float values[REPLICAS], scratch[8];
    const float *inputs[REPLICAS];
    bel_weight weights[REPLICAS];
    for (int r = 0; r < REPLICAS; r++) {
        values[r] = value(r, k, j);
        inputs[r] = says(r, k) ? &values[r] : NULL;
        weights[r] = weight_of(true, r);
    }
    return *bel_assignment_sum(leaves, inputs, weights, 1, scratch);
}

static const int assignments[][REPLICAS] = {{7},   {1, 1, 1, 1, 1, 1, 1}, {3, 4}, {4, 3}, {2, 2, 3},
                                            {1, 6}};
static const int workers[] = {1, 7, 2, 2, 3, 2};

static void sums_follow_the_tree(void **state)
{
    (void)state;
    bel_assignment *leaves = bel_assignment_create(assignments[1], REPLICAS);
    for (size_t d = 0; d < sizeof workers / sizeof workers[0]; d++) {
        bel_row_sum sum = {0};
        leaf kept;
        bel_row_set all = sum_of(assignments[d], workers[d], true, &sum, &kept);
        assert_int_equal(all.count, KEYS); // some replica reports every row
        for (int k = 0; k < KEYS; k++) {
            assert_int_equal(all.keys[k], k * 5);
            for (int j = 0; j < WIDTH; j++)
                assert_true(all.rows[k * WIDTH + j] == expected(leaves, k, j));
        }
        bel_row_sum_deinit(&sum);
    }
    bel_assignment_destroy(leaves);
}

// Rows are weighted by their replicas' examples, even rows that a neighbor lacks. The bits do not
// depend on the assignment.
static void rows_are_weighted(void **state)
{
    (void)state;
    double examples = 0, played = 0;
    for (int r = 0; r < REPLICAS; r++) {
        examples += (double)weight_of(false, r).examples;
        played += (double)weight_of(false, r).replicas;
    }
    bel_row_sum sums[2] = {{0}, {0}};
    leaf first, kept;
    bel_row_set one = sum_of(assignments[0], workers[0], false, &sums[0], &first);
    for (int64_t i = 0; i < one.count; i++) {
        for (int j = 0; j < WIDTH; j++) {
            double sum = 0;
            int k = (int)one.keys[i] / 5;
            for (int r = 0; r < REPLICAS; r++)
                if (says(r, k))
                    sum += (double)weight_of(false, r).examples * (double)value(r, k, j);
            assert_true(fabs((double)one.rows[i * WIDTH + j] / played - sum / examples) < 1e-5);
        }
    }
    for (size_t d = 1; d < sizeof workers / sizeof workers[0]; d++) {
        bel_row_set all = sum_of(assignments[d], workers[d], false, &sums[1], &kept);
        assert_int_equal(all.count, one.count);
        assert_memory_equal(all.keys, one.keys, (size_t)all.count * sizeof *all.keys);
        assert_memory_equal(all.rows, one.rows, (size_t)all.count * WIDTH * sizeof(float));
    }
    bel_row_sum_deinit(&sums[0]);
    bel_row_sum_deinit(&sums[1]);
}

static void nothing_is_the_sum_of_nothing(void **state)
{
    (void)state;
    bel_row_sum sum = {0};
    const int firsts[] = {0, 1, 2};
    bel_row_set sets[3] = {{0}};
    bel_weight weights[3] = {{0}};
    assert_int_equal(bel_row_sum_run(&sum, firsts, sets, weights, 3, WIDTH).count, 0);
    bel_row_sum_deinit(&sum);
}

static void payloads_are_checked(void **state)
{
    (void)state;
    enum { SHARDS = 3 };
    int64_t keys[4], found = 0;
    for (int64_t key = 0; found < 4; key++)
        if (bel_table_shard(key, SHARDS) == 1) keys[found++] = key;
    struct {
        int64_t keys[2];
        float rows[2 * WIDTH];
    } payload = {{keys[0], keys[2]}, {1, 2, 3, 4, 5, 6}};
    size_t bytes = bel_row_set_bytes(2, WIDTH);
    bel_row_set set;
    assert_true(bel_row_set_read(&payload, bytes, WIDTH, 1, SHARDS, &set));
    assert_int_equal(set.count, 2);
    assert_true(set.rows[5] == 6.0f);
    assert_true(bel_row_set_read(&payload, 0, WIDTH, 1, SHARDS, &set));
    assert_int_equal(set.count, 0);
    assert_false(bel_row_set_read(&payload, bytes - 1, WIDTH, 1, SHARDS, &set));
    assert_false(bel_row_set_read(&payload, bytes, WIDTH, 0, SHARDS, &set)); // another shard's
    payload.keys[1] = keys[0];
    assert_false(bel_row_set_read(&payload, bytes, WIDTH, 1, SHARDS, &set)); // repeated
    payload.keys[0] = keys[3];
    assert_false(bel_row_set_read(&payload, bytes, WIDTH, 1, SHARDS, &set)); // descending
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_follow_the_tree),
        cmocka_unit_test(rows_are_weighted),
        cmocka_unit_test(nothing_is_the_sum_of_nothing),
        cmocka_unit_test(payloads_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
