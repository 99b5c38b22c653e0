// Room for rows: every part at its place, no overlaps, and nothing beyond the end.
#include "ps/layout/row_buffer.h"
#include "support/bel_test.h"

enum { SHARDS = 3 };

static bel_layout *make_layout(void)
{
    static char dense[] = "dense", narrow[] = "narrow", wide[] = "wide";
    const bel_layout_variable variable = {.name = dense, .shape = BEL_SHAPE(4)};
    bel_layout *layout = bel_layout_create(&variable, 1, SHARDS);
    bel_layout_add_table(layout, &(bel_layout_table){.name = narrow, .width = 1, .ids = 7});
    bel_layout_add_table(layout, &(bel_layout_table){.name = wide, .width = 5, .ids = 3});
    return layout;
}

static void parts_follow_each_other(void **state)
{
    (void)state;
    static const int replicas_of[] = {3, 2, 1};
    bel_layout *layout = make_layout();
    bel_assignment *assignment = bel_assignment_create(replicas_of, 3);
    for (int w = 0; w < 3; w++) {
        size_t end = 0, answers = 0;
        for (int t = 0; t < layout->table_count; t++) {
            int64_t ids = bel_row_buffer_ids(layout, assignment, w, t);
            int width = layout->tables[t].width;
            assert_int_equal(ids, replicas_of[w] * layout->tables[t].ids);
            assert_true(bel_row_buffer_keys(layout, assignment, w, t) >= end);
            end = bel_row_buffer_keys(layout, assignment, w, t) + (size_t)ids * sizeof(int64_t);
            for (int k = assignment->first_node[w]; k < assignment->first_node[w + 1]; k++) {
                // One row at each shard but the last, which has all the others: no report needs
                // more room.
                int64_t rows = assignment->nodes[k].count * layout->tables[t].ids, left = rows;
                size_t at = bel_row_buffer_report(layout, assignment, t, k);
                assert_true(at >= end && at % BEL_ROW_ALIGN == 0);
                assert_int_equal(bel_row_buffer_report_bytes(layout, assignment, t, k),
                                 bel_row_set_bytes(rows, width));
                for (int s = 0; s + 1 < SHARDS && left > 1; s++, left--)
                    at += bel_row_aligned(bel_row_set_bytes(1, width));
                end = at + bel_row_aligned(bel_row_set_bytes(left, width));
            }
            assert_true(bel_row_buffer_answers(layout, assignment, w, t) >= answers);
            answers = bel_row_buffer_answers(layout, assignment, w, t);
            for (int64_t pull = 0; pull < replicas_of[w]; pull++) // used in turns
                answers += bel_row_aligned((size_t)(layout->tables[t].ids * width) * sizeof(float));
        }
        assert_true(bel_row_buffer_bytes(layout, assignment, w) >= end);
        assert_true(bel_row_buffer_answer_bytes(layout, assignment, w) >= answers);
    }
    bel_assignment_destroy(assignment);
    bel_layout_destroy(layout);
}

static void without_tables_there_is_none(void **state)
{
    (void)state;
    static const int replicas_of[] = {2};
    static char dense[] = "dense";
    const bel_layout_variable variable = {.name = dense, .shape = BEL_SHAPE(4)};
    bel_layout *layout = bel_layout_create(&variable, 1, 1);
    bel_assignment *assignment = bel_assignment_create(replicas_of, 1);
    assert_int_equal(bel_row_buffer_bytes(layout, assignment, 0), 0);
    assert_int_equal(bel_row_buffer_answer_bytes(layout, assignment, 0), 0);
    bel_assignment_destroy(assignment);
    bel_layout_destroy(layout);
}

// `count` equal tables, on one shard.
static bel_layout *make_tables(int count, int width, int64_t ids)
{
    static char dense[] = "dense", user[] = "user";
    const bel_layout_variable variable = {.name = dense, .shape = BEL_SHAPE(4)};
    bel_layout *layout = bel_layout_create(&variable, 1, 1);
    for (int t = 0; t < count; t++)
        bel_layout_add_table(layout, &(bel_layout_table){.name = user, .width = width, .ids = ids});
    return layout;
}

static void check(int count, int width, int64_t ids, int64_t replicas, const char *part)
{
    bel_layout *layout = make_tables(count, width, ids);
    bel_status *status = bel_row_buffer_check(layout, replicas);
    if (part == NULL) {
        BEL_ASSERT_OK(status);
    } else {
        BEL_ASSERT_FAILS(status, BEL_RESOURCE_EXHAUSTED, part);
    }
    bel_layout_destroy(layout);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    check(1, 64, 1 << 20, 1024, NULL);
    check(1, INT32_MAX, INT64_MAX, INT32_MAX, "table \"user\": 9223372036854775807 ids");
    check(1, 1 << 20, 1 << 20, 1, NULL);                     // 8 TiB
    check(2, 1 << 20, 1 << 20, 1, "rows of 1048576 floats"); // 16 TiB with the second one
    check(1, 1 << 20, 1 << 20, 2, "replicas: 2;");
    check(1, 1, 1, INT64_MAX, "need more room than there can be");
}

// The check counts at least the room that is needed.
static void the_check_counts_all(void **state)
{
    (void)state;
    const int64_t ids = 1 << 20;
    bel_layout *layout = make_tables(1, 62, ids);
    const int replicas_of[] = {3, 5};
    bel_assignment *assignment = bel_assignment_create(replicas_of, 2);
    size_t bytes = 0;
    for (int w = 0; w < 2; w++)
        bytes += bel_row_buffer_bytes(layout, assignment, w) +
                 bel_row_buffer_answer_bytes(layout, assignment, w);
    size_t all = 8 * 2 * bel_row_set_bytes(ids, 62);
    assert_true(bytes <= all + 8 * 4 * BEL_ROW_ALIGN);
    assert_true(bytes > all - all / 100);
    bel_assignment_destroy(assignment);
    bel_layout_destroy(layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(the_check_counts_all),
        cmocka_unit_test(parts_follow_each_other),
        cmocka_unit_test(without_tables_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
