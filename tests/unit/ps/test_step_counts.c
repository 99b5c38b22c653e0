// Frames and bytes of a step, by hand. bench_hollow compares them with real lanes.
#include "ps/layout/step_counts.h"
#include "support/bel_test.h"

enum { STATS_BYTES = 3 * 8 };

// Chunks of 16 Ki elements: two trainable variables, a state variable, and a frozen one.
static bel_layout *make_layout(int shards)
{
    static char names[4][2] = {"a", "b", "s", "f"};
    const bel_layout_variable variables[] = {
        {.name = names[0], .shape = BEL_SHAPE(1 << 14), .kind = BEL_VARIABLE_TRAINABLE},
        {.name = names[1], .shape = BEL_SHAPE(1 << 14), .kind = BEL_VARIABLE_TRAINABLE},
        {.name = names[2], .shape = BEL_SHAPE(1 << 14), .kind = BEL_VARIABLE_STATE_SUM},
        {.name = names[3], .shape = BEL_SHAPE(1 << 14), .kind = BEL_VARIABLE_FROZEN},
    };
    return bel_layout_create(variables, 4, shards);
}

static void assert_counts(bel_lane_counts counts, int64_t up_frames, int64_t up_bytes,
                          int64_t down_frames, int64_t down_bytes)
{
    assert_int_equal(counts.up_frames, up_frames);
    assert_int_equal(counts.up_bytes, up_bytes);
    assert_int_equal(counts.down_frames, down_frames);
    assert_int_equal(counts.down_bytes, down_bytes);
}

static void test_a_step_and_a_start_by_lane_and_precision(void **state)
{
    (void)state;
    enum { CHUNK = 1 << 14 };
    bel_layout *layout = make_layout(1);
    bel_assignment *assignment = bel_assignment_create((const int[]){1, 1}, 2);
    assert_int_equal(layout->chunk_count, 4);
    bel_lane_kind kind = {0};
    assert_counts(bel_step_counts(layout, assignment, 1, 0, kind), 4, 3 * CHUNK * 4 + STATS_BYTES,
                  4, 3 * CHUNK * 4);
    assert_counts(bel_start_counts(layout, 0, kind), 1, 0, 5, 4 * CHUNK * 4);
    bel_lane_counts counts = bel_step_counts(layout, assignment, 1, 0, kind);
    assert_true(counts.up_messages == 4 && counts.down_messages == 4);
    kind.joined_bytes = CHUNK * 4; // all wait for the last frame
    counts = bel_step_counts(layout, assignment, 1, 0, kind);
    assert_true(counts.up_messages == 1 && counts.down_messages == 1);
    assert_int_equal(bel_start_counts(layout, 0, kind).down_messages, 1);
    kind.rounding = BEL_ROUNDING_BF16; // the state stays f32, and the start does
    assert_counts(bel_step_counts(layout, assignment, 1, 0, kind), 4,
                  2 * CHUNK * 2 + CHUNK * 4 + STATS_BYTES, 4, 2 * CHUNK * 2 + CHUNK * 4);
    assert_counts(bel_start_counts(layout, 0, kind), 1, 0, 5, 4 * CHUNK * 4);
    kind.rounding = BEL_ROUNDING_INT8;
    assert_counts(bel_step_counts(layout, assignment, 1, 0, kind), 4,
                  2 * CHUNK / 16 * 17 + CHUNK * 4 + STATS_BYTES, 4,
                  2 * CHUNK / 16 * 17 + CHUNK * 4);
    kind.in_place = true;  // nothing is packed, and values are read
    kind.joined_bytes = 0; // reports do not ring
    counts = bel_step_counts(layout, assignment, 1, 0, kind);
    assert_true(counts.up_messages == 1 && counts.down_messages == 1);
    assert_counts(bel_step_counts(layout, assignment, 1, 0, kind), 4, 3 * CHUNK * 4 + STATS_BYTES,
                  1, 0);
    assert_counts(bel_start_counts(layout, 0, kind), 1, 0, 1, 0);
    bel_assignment_destroy(assignment);
    bel_layout_destroy(layout);
}

// A worker with replicas 1, 2 and 3 of four sends node 1 and node 2..3.
static void test_each_node_is_a_report(void **state)
{
    (void)state;
    bel_layout *layout = make_layout(1);
    bel_assignment *assignment = bel_assignment_create((const int[]){1, 3}, 2);
    bel_lane_counts one = bel_step_counts(layout, assignment, 0, 0, (bel_lane_kind){0});
    bel_lane_counts two = bel_step_counts(layout, assignment, 1, 0, (bel_lane_kind){0});
    assert_counts(two, 2 * one.up_frames, 2 * one.up_bytes, one.down_frames, one.down_bytes);
    bel_assignment_destroy(assignment);
    bel_layout_destroy(layout);
}

// Eight chunks of 4 MiB, and room for eight reports of a chunk. Three workers need 96 MiB: two
// chunks of all have slots at first, and a third one of two workers. Through shared memory there is
// no limit.
static void test_parts_without_room_are_told(void **state)
{
    (void)state;
    enum { CHUNKS = 8, CHUNK_BYTES = 4 << 20, BYTES = CHUNKS * CHUNK_BYTES };
    static char name[] = "v";
    const bel_layout_variable variable = {.name = name, .shape = BEL_SHAPE(BYTES / 4)};
    bel_layout *layout = bel_layout_create(&variable, 1, 1);
    assert_int_equal(layout->chunk_count, CHUNKS);
    bel_assignment *one = bel_assignment_create((const int[]){1}, 1);
    bel_assignment *three = bel_assignment_create((const int[]){1, 1, 1}, 3);
    const bel_lane_kind grpc = {0}, shm = {.in_place = true};
    assert_counts(bel_step_counts(layout, one, 0, 0, grpc), CHUNKS + 1, BYTES + STATS_BYTES,
                  CHUNKS + 1, BYTES);
    for (int w = 0; w < 3; w++) {
        int told = CHUNKS - (w < 2 ? 3 : 2);
        assert_counts(bel_step_counts(layout, three, w, 0, grpc), CHUNKS + 1, BYTES + STATS_BYTES,
                      CHUNKS + 1 + told, BYTES);
        assert_counts(bel_step_counts(layout, three, w, 0, shm), CHUNKS + 1, BYTES + STATS_BYTES, 1,
                      0);
    }
    bel_assignment_destroy(one);
    bel_assignment_destroy(three);
    bel_layout_destroy(layout);
}

// Every shard has statistics and a version, also one without a chunk.
static void test_shards_share_the_chunks(void **state)
{
    (void)state;
    enum { SHARDS = 6 };
    bel_layout *one = make_layout(1), *six = make_layout(SHARDS);
    bel_assignment *assignment = bel_assignment_create((const int[]){1}, 1);
    bel_lane_counts all = bel_step_counts(one, assignment, 0, 0, (bel_lane_kind){0}), sum = {0};
    for (int k = 0; k < SHARDS; k++) {
        bel_lane_counts counts = bel_step_counts(six, assignment, 0, k, (bel_lane_kind){0});
        sum.up_frames += counts.up_frames;
        sum.up_bytes += counts.up_bytes;
        sum.down_frames += counts.down_frames;
        sum.down_bytes += counts.down_bytes;
    }
    assert_counts(sum, all.up_frames + SHARDS - 1, all.up_bytes + (SHARDS - 1) * STATS_BYTES,
                  all.down_frames + SHARDS - 1, all.down_bytes);
    bel_assignment_destroy(assignment);
    bel_layout_destroy(one);
    bel_layout_destroy(six);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_and_a_start_by_lane_and_precision),
        cmocka_unit_test(test_each_node_is_a_report),
        cmocka_unit_test(test_parts_without_room_are_told),
        cmocka_unit_test(test_shards_share_the_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
