// Capacity of lanes: it follows from the two ends, not from the other processes of the job.
#include "base/alloc.h"
#include "base/number.h"
#include "ps/layout/exchange.h"
#include "ps/layout/lane_frames.h"
#include "support/bel_test.h"

enum { VARIABLES = 10, SPARE = 16 };

static bel_layout *make_layout(int shards)
{
    static char names[VARIABLES][8];
    bel_layout_variable variables[VARIABLES];
    for (int v = 0; v < VARIABLES; v++) {
        bel_snprintf(names[v], sizeof names[v], "v%d", v);
        variables[v] = (bel_layout_variable){.name = names[v], .shape = BEL_SHAPE(1 << 16)};
    }
    return bel_layout_create(variables, VARIABLES, shards);
}

// Two reports: chunks, step statistics and a version.
static size_t frames_of(const bel_layout *layout, size_t nodes)
{
    return 2 * ((size_t)layout->chunk_count + 2) * nodes + SPARE;
}

static bel_assignment *assign(int workers, int replicas)
{
    int *replicas_of = bel_xcalloc((size_t)workers, sizeof *replicas_of);
    for (int w = 0; w < workers; w++)
        replicas_of[w] = replicas;
    bel_assignment *assignment = bel_assignment_create(replicas_of, workers);
    bel_free(replicas_of);
    return assignment;
}

static void test_a_lane_of_a_worker_is_the_same_in_a_job_of_any_size(void **state)
{
    (void)state;
    bel_layout *layout = make_layout(1);
    assert_true(layout->chunk_count > 1);
    for (int workers = 1; workers <= 1024; workers *= 4) {
        bel_assignment *assignment = assign(workers, 1);
        assert_int_equal(bel_lane_frames_of_worker(layout, assignment, workers - 1, 0, true),
                         frames_of(layout, 1));
        bel_assignment_destroy(assignment);
    }
    bel_layout_destroy(layout);
}

static void test_only_the_chunks_of_the_shard_count(void **state)
{
    (void)state;
    enum { SHARDS = 5, BESIDE = 2 * 2 + SPARE };
    bel_layout *layout = make_layout(SHARDS);
    bel_assignment *assignment = assign(3, 1);
    size_t reports = 0;
    for (int k = 0; k < SHARDS; k++)
        reports += bel_lane_frames_of_worker(layout, assignment, 0, k, true) - BESIDE;
    assert_int_equal(reports, 2 * layout->chunk_count);
    bel_assignment_destroy(assignment);
    bel_layout_destroy(layout);
}

static void test_nodes_and_exchanges_of_the_worker_count(void **state)
{
    (void)state;
    static const int replicas_of[] = {1, 3}; // replica 1, and replicas 2 and 3 as one node
    bel_layout *layout = make_layout(1);
    bel_assignment *assignment = bel_assignment_create(replicas_of, 2);
    assert_int_equal(bel_lane_frames_of_worker(layout, assignment, 0, 0, true),
                     frames_of(layout, 1));
    assert_int_equal(bel_lane_frames_of_worker(layout, assignment, 1, 0, true),
                     frames_of(layout, 2));
    layout->exchanges = true;
    assert_int_equal(bel_lane_frames_of_worker(layout, assignment, 0, 0, true),
                     frames_of(layout, 1) + 2 * BEL_EXCHANGE_PIECES);
    bel_assignment_destroy(assignment);
    bel_layout_destroy(layout);
}

// Room for each part of two reports, whatever the worker's nodes.
static void test_room_for_parts_counts_without_shared_memory(void **state)
{
    (void)state;
    static const int replicas_of[] = {1, 3};
    bel_layout *layout = make_layout(1);
    bel_assignment *assignment = bel_assignment_create(replicas_of, 2);
    for (int w = 0; w < 2; w++)
        assert_int_equal(bel_lane_frames_of_worker(layout, assignment, w, 0, false),
                         frames_of(layout, (size_t)w + 1) + 2 * (size_t)layout->chunk_count);
    bel_assignment_destroy(assignment);
    bel_layout_destroy(layout);
}

static void test_shards_exchange_frames_of_every_worker(void **state)
{
    (void)state;
    bel_assignment *few = assign(2, 1), *many = assign(1000, 1);
    assert_int_equal(bel_lane_frames_of_shards(few), 2 * 6 + SPARE);
    assert_int_equal(bel_lane_frames_of_shards(many), 1000 * 6 + SPARE);
    bel_assignment_destroy(few);
    bel_assignment_destroy(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lane_of_a_worker_is_the_same_in_a_job_of_any_size),
        cmocka_unit_test(test_only_the_chunks_of_the_shard_count),
        cmocka_unit_test(test_nodes_and_exchanges_of_the_worker_count),
        cmocka_unit_test(test_room_for_parts_counts_without_shared_memory),
        cmocka_unit_test(test_shards_exchange_frames_of_every_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
