// Board: rates, the slowest worker, and the three forms of its text.
#include "monitoring/board.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "support/bel_test.h"

enum { SECOND = 1000000000 };

// Reports that `worker` finished `steps` steps, each of which took these milliseconds.
static void note_steps(bel_board *board, int worker, double steps, double input_ms,
                       double compute_ms, double total_ms, int64_t noted_ns)
{
    const double values[BEL_NUMBER_COUNT] = {[BEL_NUMBER_STEPS] = steps,
                                             [BEL_NUMBER_INPUT] = steps * input_ms * 1e-3,
                                             [BEL_NUMBER_COMPUTE] = steps * compute_ms * 1e-3,
                                             [BEL_NUMBER_TOTAL] = steps * total_ms * 1e-3,
                                             [BEL_NUMBER_COUNTED] = 77,  // ignored from a worker
                                             [BEL_NUMBER_VERSIONS] = 99, // ignored too
                                             [BEL_NUMBER_MEMORY] = 1e6};
    bel_board_note(bel_board_find(board, BEL_BOARD_WORKER, worker), values, noted_ns);
}

static void test_rates(void **state)
{
    (void)state;
    bel_board *board = bel_board_create(2, 1, 0);
    bel_board_row *row = bel_board_find(board, BEL_BOARD_WORKER, 1);
    assert_int_equal(board->row_count, 4);
    assert_null(bel_board_find(board, BEL_BOARD_WORKER, 2));
    note_steps(board, 1, 10, 0, 1, 2, SECOND);
    assert_true(isnan(row->rates[BEL_NUMBER_STEPS]));
    assert_true(row->values[BEL_NUMBER_STEPS] == 10);
    note_steps(board, 1, 40, 0, 1, 2, 3 * (int64_t)SECOND);
    assert_true(row->rates[BEL_NUMBER_STEPS] == 15);
    note_steps(board, 1, 50, 0, 1, 2, 3 * (int64_t)SECOND); // not newer than the last report
    assert_true(row->values[BEL_NUMBER_STEPS] == 40);
    assert_true(row->values[BEL_NUMBER_COUNTED] == 0 && row->values[BEL_NUMBER_VERSIONS] == 0);
    assert_true(row->values[BEL_NUMBER_MEMORY] == 0);      // not a separate process
    note_steps(board, 1, 5, 0, 1, 2, 4 * (int64_t)SECOND); // another incarnation counts from 0
    assert_true(isnan(row->rates[BEL_NUMBER_STEPS]));
    bel_board_set_step(board, 3, 0.5, 100, SECOND);
    bel_board_set_step(board, 4, 0.5, 150, SECOND + SECOND / 2); // too soon for a rate
    assert_true(isnan(board->examples_per_second));
    bel_board_set_step(board, 9, 0.25, 300, 3 * (int64_t)SECOND);
    assert_true(board->examples_per_second == 100);
    bel_board_destroy(board);
}

static void expect_slowest(const bel_board *board, bool recent, const char *sentence)
{
    bel_str text = {0};
    bool found = bel_board_write_slowest(board, recent, &text);
    assert_int_equal(found, sentence != NULL);
    if (found) assert_string_equal(text.text, sentence);
    bel_str_deinit(&text);
}

static void test_slowest(void **state)
{
    (void)state;
    bel_board *board = bel_board_create(3, 1, 0);
    expect_slowest(board, false, NULL); // no numbers yet
    note_steps(board, 0, 100, 1, 12, 52, SECOND);
    expect_slowest(board, false, NULL); // no other worker to compare with
    note_steps(board, 1, 100, 1, 14, 52, SECOND);
    note_steps(board, 2, 100, 1, 15, 52, SECOND);
    expect_slowest(board, false, NULL); // slower by too little
    note_steps(board, 2, 200, 1, 40, 52, 2 * (int64_t)SECOND);
    expect_slowest(board, false, "worker 2 is the slowest: compute 40.0 ms of 52.0 (others 12.0)");
    expect_slowest(board, true, NULL); // only one worker has a rate
    note_steps(board, 1, 200, 30, 14, 52, 2 * (int64_t)SECOND);
    note_steps(board, 2, 300, 1, 14, 52, 3 * (int64_t)SECOND);
    expect_slowest(board, false, "worker 1 is the slowest: input 30.0 ms of 52.0 (others 1.0)");
    bel_board_destroy(board);
}

// Reports that shard k published `versions` versions, each with these milliseconds.
static void note_updates(bel_board *board, int k, double versions, double gather_ms,
                         double apply_ms)
{
    const double values[BEL_NUMBER_COUNT] = {[BEL_NUMBER_VERSIONS] = versions,
                                             [BEL_NUMBER_GATHER] =
                                                 (versions - 1) * gather_ms * 1e-3,
                                             [BEL_NUMBER_APPLY] = (versions - 1) * apply_ms * 1e-3};
    bel_board_note(bel_board_find(board, BEL_BOARD_SHARD, k), values, SECOND);
}

static void note_parts(bel_board *board, int worker, double steps, double push_ms,
                       double exchange_ms, double total_ms)
{
    const double values[BEL_NUMBER_COUNT] = {[BEL_NUMBER_STEPS] = steps,
                                             [BEL_NUMBER_INPUT] = steps * 1e-3,
                                             [BEL_NUMBER_COMPUTE] = steps * 20e-3,
                                             [BEL_NUMBER_PUSH] = steps * push_ms * 1e-3,
                                             [BEL_NUMBER_EXCHANGE] = steps * exchange_ms * 1e-3,
                                             [BEL_NUMBER_TOTAL] = steps * total_ms * 1e-3};
    bel_board_note(bel_board_find(board, BEL_BOARD_WORKER, worker), values, SECOND);
}

static double sum_of(const bel_board_split *s)
{
    return s->input + s->compute + s->push + s->apply + s->pull + s->wait + s->other;
}

static void test_parts_of_a_step(void **state)
{
    (void)state;
    bel_board_split split;
    bel_board *board = bel_board_create(3, 2, 0);
    assert_false(bel_board_split_step(board, &split));
    note_parts(board, 0, 100, 2, 8, 40);
    note_parts(board, 1, 50, 4, 12, 44); // began later; worker 2 has not begun
    assert_true(bel_board_split_step(board, &split));
    assert_false(split.shards_known);
    assert_float_equal(split.wait, 10, 1e-9);
    note_updates(board, 0, 101, 3, 2);
    note_updates(board, 1, 101, 99, 4); // its order of reports differs: ignored
    assert_true(bel_board_split_step(board, &split) && split.shards_known);
    assert_float_equal(split.input, 1, 1e-9);
    assert_float_equal(split.compute, 20, 1e-9);
    assert_float_equal(split.push, 3, 1e-9);
    assert_float_equal(split.apply, 4, 1e-9);
    assert_float_equal(split.wait, 3, 1e-9);
    assert_float_equal(split.pull, 3, 1e-9);
    assert_float_equal(split.other, 8, 1e-9);
    assert_float_equal(sum_of(&split), 42, 1e-9);
    bel_board_destroy(board);
    board = bel_board_create(1, 1, 0); // parts never exceed the total
    note_parts(board, 0, 10, 2, 5, 28);
    note_updates(board, 0, 2, 4, 3);
    assert_true(bel_board_split_step(board, &split));
    assert_float_equal(split.apply, 3, 1e-9);
    assert_float_equal(split.wait, 2, 1e-9);
    assert_float_equal(split.pull, 0, 1e-9);
    assert_float_equal(sum_of(&split), 28, 1e-9);
    bel_board_destroy(board);
}

static void test_tiny_differences(void **state)
{
    (void)state;
    bel_board *board = bel_board_create(2, 1, 0);
    note_steps(board, 0, 100, 0, 0.1, 1, SECOND);
    note_steps(board, 1, 100, 0, 0.9, 1, SECOND); // nine times as slow, but too short to count
    expect_slowest(board, false, NULL);
    bel_board_destroy(board);
}

static bel_board *make_board(void)
{
    bel_board *board = bel_board_create(2, 1, 1);
    const double reports[] = {20, 3, 1};
    bel_board_find(board, BEL_BOARD_WORKER, 0)->is_process = true;
    board->last_step = 1000;
    board->examples = 960;
    board->restarts = 2;
    board->losses = 1;
    bel_board_set_step(board, 30, (double)NAN, 600, SECOND);
    note_steps(board, 0, 10, 1, 2, 4, SECOND);
    note_steps(board, 0, 30, 1, 2, 4, 2 * (int64_t)SECOND);
    note_steps(board, 1, 30, 1, 20, 30, 2 * (int64_t)SECOND);
    bel_board_note_reports(bel_board_find(board, BEL_BOARD_WORKER, 0), reports);
    bel_board_set_doing(bel_board_find(board, BEL_BOARD_WORKER, 1), 30, "waits for \"it\"");
    static const bel_device_numbers devices[] = {{0, 1, 4096, 8192, 16384}, {3, 2, 0, 512, 1024}};
    bel_board_note_devices(bel_board_find(board, BEL_BOARD_WORKER, 1), devices, 2);
    return board;
}

static void assert_line(const char *text, const char *line)
{
    size_t length = strlen(line);
    for (const char *at = strstr(text, line); at != NULL; at = strstr(at + 1, line))
        if ((at == text || at[-1] == '\n') && at[length] == '\n') return;
    fail_msg("no line \"%s\" in:\n%s", line, text);
}

static void test_metrics(void **state)
{
    (void)state;
    bel_board *board = make_board();
    bel_str text = {0};
    bel_board_write_metrics(board, &text);
    assert_line(text.text, "# TYPE belfry_step gauge");
    assert_line(text.text, "belfry_step 30");
    assert_line(text.text, "belfry_loss NaN");
    assert_line(text.text, "belfry_restarts_total 2");
    assert_line(text.text, "# TYPE belfry_worker_steps_total counter");
    assert_line(text.text, "belfry_worker_steps_total{worker=\"0\"} 30");
    assert_line(text.text, "belfry_worker_steps_per_second{worker=\"0\"} 20");
    assert_line(text.text, "belfry_worker_steps_per_second{worker=\"1\"} NaN");
    assert_line(text.text, "belfry_worker_reports_stale_total{worker=\"0\"} 3");
    assert_line(text.text, "belfry_process_memory_bytes{role=\"worker\",index=\"0\"} 1000000");
    assert_null(strstr(text.text, "belfry_shard_versions_total{")); // no report from it yet
    assert_line(text.text, "# TYPE belfry_device_taken_bytes gauge");
    assert_line(text.text, "belfry_device_towers{worker=\"1\",device=\"cuda:3\"} 2");
    assert_line(text.text, "belfry_device_taken_bytes{worker=\"1\",device=\"cuda:0\"} 4096");
    assert_line(text.text, "belfry_device_free_bytes{worker=\"1\",device=\"cuda:3\"} 512");
    assert_line(text.text, "belfry_device_memory_bytes{worker=\"1\",device=\"cuda:0\"} 16384");
    bel_str_deinit(&text);
    bel_board_destroy(board);
}

static void test_json(void **state)
{
    (void)state;
    bel_board *board = make_board(), *read = NULL;
    bel_str text = {0}, again = {0};
    bel_board_write_json(board, &text);
    BEL_ASSERT_OK(bel_board_parse(text.text, text.length, "x", &read));
    bel_board_write_json(read, &again);
    assert_int_equal(read->row_count, 5);
    read->time = board->time;
    assert_true(isnan(read->loss));
    const bel_board_row *row = bel_board_find(read, BEL_BOARD_WORKER, 1);
    assert_string_equal(row->doing, "waits for \"it\"");
    assert_true(row->values[BEL_NUMBER_STEPS] == 30 && isnan(row->rates[BEL_NUMBER_STEPS]));
    assert_true(bel_board_find(read, BEL_BOARD_WORKER, 0)->rates[BEL_NUMBER_STEPS] == 20);
    assert_true(read->examples == board->examples && board->examples > 0);
    assert_int_equal(row->device_count, 2);
    assert_int_equal(row->devices[1].number, 3);
    assert_int_equal(row->devices[1].towers, 2);
    assert_true(row->devices[0].taken == 4096 && row->devices[0].free == 8192);
    assert_true(row->devices[1].all == 1024);
    bel_board_destroy(read);
    static const char *const bad[] = {"", "[]", "{}", "{\"rows\":[]}", "nonsense"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        BEL_ASSERT_FAILS(bel_board_parse(bad[i], strlen(bad[i]), "the file", &read), BEL_DATA_LOSS,
                         "the file");
    char *cut = strstr(text.text, "\"evaluator\"");
    memcpy(cut, "\"nobody___\"", 11);
    BEL_ASSERT_FAILS(bel_board_parse(text.text, text.length, "x", &read), BEL_DATA_LOSS,
                     "not the board");
    bel_str_deinit(&text);
    bel_str_deinit(&again);
    bel_board_destroy(board);
}

static void test_table(void **state)
{
    (void)state;
    bel_board *board = make_board();
    bel_str text = {0};
    board->examples_per_second = NAN;
    bel_board_write_table(board, &text);
    assert_non_null(strstr(text.text, "step 30/1000, loss -, - examples/s, "));
    assert_non_null(strstr(text.text, "waits for \"it\""));
    assert_line(text.text, "1       cuda:3   2       0 B        512 B      1.0 KiB");
    assert_line(text.text, "worker 1 is the slowest: compute 20.0 ms of 30.0 (others 2.0)");
    bel_str_deinit(&text);
    bel_board_destroy(board);
}

// Workers come and go; the other rows keep their places and values.
static void test_seats(void **state)
{
    (void)state;
    bel_board *board = bel_board_create(2, 1, 0);
    bel_board_set_doing(bel_board_find(board, BEL_BOARD_WORKER, 1), 7, "computes");
    bel_board_seat(board, BEL_BOARD_WORKER, 0, false);
    bel_board_seat(board, BEL_BOARD_WORKER, 3, true);
    bel_board_seat(board, BEL_BOARD_WORKER, 2, true);
    bel_board_seat(board, BEL_BOARD_WORKER, 2, true);
    bel_board_seat(board, BEL_BOARD_WORKER, 9, false);
    static const int expected[] = {1, 2, 3};
    assert_int_equal(board->row_count, 5);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(board->rows[1 + i].role, BEL_BOARD_WORKER);
        assert_int_equal(board->rows[1 + i].index, expected[i]);
    }
    assert_int_equal(board->rows[4].role, BEL_BOARD_SHARD);
    assert_string_equal(board->rows[1].doing, "computes");
    assert_true(isnan(board->rows[2].rates[BEL_NUMBER_STEPS]));
    bel_board_seat(board, BEL_BOARD_SHARD, 0, false);
    bel_board_seat(board, BEL_BOARD_SHARD, 0, false);
    assert_int_equal(board->row_count, 4);
    assert_int_equal(board->rows[3].index, 3);
    bel_board_destroy(board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seats),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_slowest),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_parts_of_a_step),
        cmocka_unit_test(test_tiny_differences),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
