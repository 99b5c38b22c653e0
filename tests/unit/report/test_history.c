// Curves read from event files: several sessions, points that a START voids, an older checkpoint
// evaluated later, and files that are damaged or still being written.
#include "report/history.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "report/event_file.h"
#include "support/bel_test.h"

// Writes a session that begins after step `first` (-1: without a START), with the loss `scale` ·
// step.
static void write_session(const char *name, double time, int64_t first, const int64_t *steps,
                          int count, double scale)
{
    char *dir = name[0] != '\0' ? bel_path_join(bel_test_own_folder(), name)
                                : bel_xstrdup(bel_test_own_folder());
    bel_event_file *file;
    BEL_ASSERT_OK(bel_event_file_open_at(dir, time, &file));
    if (first >= 0) bel_event_file_session_start(file, first + 1);
    for (int i = 0; i < count; i++)
        bel_event_file_scalar(file, time, steps[i], "loss", (float)(scale * (double)steps[i]));
    BEL_ASSERT_OK(bel_event_file_close(file));
    bel_free(dir);
}

static void expect(const bel_history *history, const char *name, const char *curve)
{
    const bel_report_series *series = bel_history_find(history, name, "loss");
    bel_str text = {0};
    bel_str_puts(&text, "");
    for (size_t i = 0; series != NULL && i < series->point_count; i++) {
        bel_str_printf(&text, "%s%lld:%g", i > 0 ? " " : "", (long long)series->steps[i],
                       series->values[i]);
    }
    assert_string_equal(text.text, curve);
    bel_str_deinit(&text);
}

static void test_sessions(void **state)
{
    (void)state;
    bel_history *history;
    write_session("", 1000, 0, (const int64_t[]){10, 20, 30}, 3, 1);
    write_session("", 900, 20, (const int64_t[]){30, 40}, 2,
                  2); // resumed from 20; the clock went back
    write_session("eval", 1000, 0, (const int64_t[]){20, 40}, 2, 1);
    write_session("eval", 1002, -1, (const int64_t[]){20}, 1, 3); // an old checkpoint, later
    write_session("eval", 1003, -1, (const int64_t[]){30}, 1, 3);
    write_session("evaluation", 1000, 0, (const int64_t[]){1}, 1, 1);              // not a name
    bel_free(bel_test_file(bel_test_own_folder(), "eval_results.txt", "good", 4)); // a plain file
    BEL_ASSERT_OK(bel_history_read(bel_test_own_folder(), &history));
    expect(history, "", "10:10 20:20 30:60 40:80");
    expect(history, "eval", "20:60 30:90 40:40");
    expect(history, "evaluation", "");
    assert_int_equal(bel_history_best(bel_history_find(history, "eval", "loss")), 2);
    assert_int_equal(bel_history_best(NULL), -1);
    assert_null(bel_history_find(history, "", "accuracy"));
    bel_history_destroy(history);
}

static void test_best_is_finite_and_first(void **state)
{
    (void)state;
    const int64_t steps[] = {1, 2, 3, 4};
    const double values[] = {NAN, 3, 2, 2};
    const bel_report_series series = {"loss", steps, values, 4};
    assert_int_equal(bel_history_best(&series), 2);
}

// Whichever byte is wrong and wherever the file ends, exactly the points before it are read.
static void test_damage(void **state)
{
    (void)state;
    char *data, **names;
    size_t size, count;
    write_session("", 1000, 0, (const int64_t[]){10, 20}, 2, 1);
    BEL_ASSERT_OK(bel_dir_list(bel_test_own_folder(), &names, &count));
    assert_int_equal(count, 1);
    char *path = bel_path_join(bel_test_own_folder(), names[0]);
    BEL_ASSERT_OK(bel_file_read(path, &data, &size));
    size_t last = size - (size - 42) / 3; // about where the last event begins
    for (size_t at = 0; at < 2 * size; at++) {
        bel_history *history;
        bool flips = at < size;
        if (flips) data[at] ^= 0x10;
        bel_free(bel_test_file(bel_test_own_folder(), names[0], data, flips ? size : at - size));
        if (flips) data[at] ^= 0x10;
        BEL_ASSERT_OK(bel_history_read(bel_test_own_folder(), &history));
        const bel_report_series *series = bel_history_find(history, "", "loss");
        size_t points = series == NULL ? 0 : series->point_count;
        assert_true(points < 2);
        if (flips && at > last + 8) assert_int_equal(points, 1);
        if (points > 0) assert_true(series->steps[0] == 10 && series->values[0] == 10);
        bel_history_destroy(history);
    }
    bel_free(data);
    bel_free(path);
    bel_free(names[0]);
    bel_free(names);
}

static bel_details some_details(int64_t step, double first, double *counts)
{
    counts[0] = first;
    counts[1] = counts[2] = 2;
    counts[3] = 9;
    bel_details details = {.step = step, .classes = 2, .confusion = counts, .roc_count = 1};
    details.rocs[0] = (bel_roc){.name = "auc", .no = {0, 0.25, 1}, .yes = {0, 0.5, 1}, .count = 3};
    return details;
}

static void write_details(double time, int64_t starts, const bel_details *details)
{
    char *dir = bel_path_join(bel_test_own_folder(), "eval");
    bel_event_file *file;
    BEL_ASSERT_OK(bel_event_file_open_at(dir, time, &file));
    if (starts >= 0) bel_event_file_session_start(file, starts);
    if (details != NULL) bel_details_write(details, file);
    BEL_ASSERT_OK(bel_event_file_close(file));
    bel_free(dir);
}

// Expects `part` in the page; NULL: the page shows no evaluation.
static void expect_page(const char *part)
{
    bel_history *history;
    char *path = bel_path_join(bel_test_own_folder(), "report.html"), *page;
    size_t size;
    BEL_ASSERT_OK(bel_history_read(bel_test_own_folder(), &history));
    BEL_ASSERT_OK(bel_history_report(history, &(bel_report){.title = "t"}, path));
    BEL_ASSERT_OK(bel_file_read(path, &page, &size));
    if (part == NULL) {
        assert_null(strstr(page, "The last evaluation"));
    } else {
        assert_non_null(strstr(page, part));
        assert_non_null(strstr(page, "ROC of auc, eval"));
        assert_non_null(strstr(page, "d=\"M40.0 310.0L115.0 160.0L340.0 10.0\""));
    }
    bel_free(page);
    bel_free(path);
    bel_history_destroy(history);
}

// The page shows the details of the newest step, from any session. A START voids them.
static void test_details(void **state)
{
    (void)state;
    double counts[4];
    bel_details details = some_details(20, 111, counts);
    expect_page(NULL);
    write_details(1000, 1, &details);
    expect_page("<span>111</span>");
    details = some_details(40, 222, counts);
    write_details(1001, -1, &details);
    expect_page("<span>222</span>");
    details = some_details(30, 333, counts); // an old checkpoint, later
    write_details(1002, -1, &details);
    expect_page("<span>222</span>");
    details = some_details(40, 444, counts); // a later record of the same step
    write_details(1003, -1, &details);
    expect_page("<span>444</span>");
    write_details(1004, 41, NULL);
    expect_page("<span>444</span>");
    write_details(1005, 40, NULL);
    expect_page(NULL);
}

// A file may contain anything: a table that cannot be drawn is skipped.
static void test_foreign_tables(void **state)
{
    (void)state;
    char *dir = bel_path_join(bel_test_own_folder(), "eval");
    double numbers[64 * 64] = {0};
    bel_event_file *file;
    BEL_ASSERT_OK(bel_event_file_open_at(dir, 1000, &file));
    bel_event_file_numbers(file, 0, 5, "belfry/confusion", numbers, 2, 3);
    bel_event_file_numbers(file, 0, 5, "belfry/confusion", numbers, 64, 64);
    bel_event_file_numbers(file, 0, 5, "belfry/roc/auc", numbers, 2, 2);
    bel_event_file_numbers(file, 0, 5, "belfry/roc/auc", numbers, 3, BEL_ROC_POINTS + 1);
    bel_event_file_numbers(file, 0, 5, "confusion", numbers, 2, 2);
    static const double odd[] = {NAN, INFINITY, -1, 1e300};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        numbers[3] = odd[i];
        bel_event_file_numbers(file, 0, 5, "belfry/confusion", numbers, 2, 2);
        bel_event_file_numbers(file, 0, 5, "belfry/roc/auc", numbers, 3, 2);
    }
    BEL_ASSERT_OK(bel_event_file_close(file));
    bel_free(dir);
    expect_page(NULL);
}

static void test_page(void **state)
{
    (void)state;
    bel_history *history;
    char *path = bel_path_join(bel_test_own_folder(), "report.html"), *page;
    size_t size;
    write_session("", 1000, 0, (const int64_t[]){10, 20}, 2, 1);
    write_session("eval_other", 1000, 0, (const int64_t[]){20}, 1, 1);
    BEL_ASSERT_OK(bel_history_read(bel_test_own_folder(), &history));
    BEL_ASSERT_OK(bel_history_report(history, &(bel_report){.title = "t"}, path));
    BEL_ASSERT_OK(bel_file_read(path, &page, &size));
    assert_non_null(strstr(page, "eval_other"));
    assert_non_null(strstr(page, "train"));
    bel_free(page);
    bel_free(path);
    bel_history_destroy(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_sessions),       BEL_TEST_IN_FOLDER(test_best_is_finite_and_first),
        BEL_TEST_IN_FOLDER(test_damage),         BEL_TEST_IN_FOLDER(test_details),
        BEL_TEST_IN_FOLDER(test_foreign_tables), BEL_TEST_IN_FOLDER(test_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
