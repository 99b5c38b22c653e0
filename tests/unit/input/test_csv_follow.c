// Followed CSV files: the index begins at a mark, loses rows that were passed, and has the same
// rows, lines and marks as one from the first row on.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "input/table/csv_growth.h"
#include "input/table/csv_table.h"
#include "support/bel_test.h"

static const bel_csv_label no_label = {.column = -1};
static bel_arena *arena;

static int begin_test(void **state)
{
    arena = bel_arena_create();
    return bel_test_enter_folder(state);
}

static int end_test(void **state)
{
    bel_arena_destroy(arena);
    return bel_test_leave_folder(state);
}

static char *path_of(const char *name)
{
    char *path = bel_path_join(bel_test_own_folder(), name), *copy = bel_arena_strdup(arena, path);
    bel_free(path);
    return copy;
}

static void write_to(const char *name, const char *mode, const bel_str *text)
{
    FILE *file = fopen(path_of(name), mode);
    assert_non_null(file);
    assert_int_equal(fwrite(text->text, 1, text->length, file), text->length);
    assert_int_equal(fclose(file), 0);
}

// Appends rows first to first + count - 1. Some have line feeds, some are long.
static void add_rows(bel_str *text, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        bel_str_printf(text, "%d,%s,%0*d\n", i, i % 7 == 3 ? "\"a\nb\n\"" : "x", 1 + i % 211, i);
        if (i % 1000 == 999) bel_str_puts(text, "\n");
    }
}

static void open_set(bel_csv_set *set, const char *path)
{
    const char *const *paths, *const *names;
    *set = (bel_csv_set){0};
    BEL_ASSERT_OK(bel_csv_set_open_growing(set, arena, &path, 1, ',', &paths));
    BEL_ASSERT_OK(bel_csv_table_names(&set->files[0], true, arena, &names));
    BEL_ASSERT_OK(bel_csv_set_follow(set, &no_label, true));
}

// Waits until a look succeeds. Returns its rows.
static int64_t look(const bel_csv_set *set, int64_t wanted)
{
    int64_t rows = 0;
    for (int64_t begun = bel_clock_ns(); bel_clock_ns() - begun < INT64_C(30000000000);) {
        bel_status *status = bel_csv_set_look(set, wanted, &rows);
        bool again = status != NULL && bel_status_code(status) == BEL_UNAVAILABLE;
        if (!again) BEL_ASSERT_OK(status);
        if (!again && rows >= wanted) break;
        bel_status_ignore(status);
    }
    return rows;
}

static bel_status *look_fails(const bel_csv_set *set, int64_t wanted)
{
    bel_status *status = NULL;
    int64_t rows;
    for (int64_t begun = bel_clock_ns(); bel_clock_ns() - begun < INT64_C(30000000000);) {
        bel_status_ignore(status);
        status = bel_csv_set_look(set, wanted, &rows);
        if (status != NULL && bel_status_code(status) != BEL_UNAVAILABLE) break;
    }
    return status;
}

// A row's place and its first field.
static void describe(const bel_csv_set *set, int64_t number, bel_str *out_text)
{
    const char *row;
    out_text->length = 0;
    bel_csv_set_origin(set, number, out_text);
    BEL_ASSERT_OK(bel_csv_set_enter(set, number));
    (void)bel_csv_set_find(set, number, &row);
    bel_str_printf(out_text, " %ld", strtol(row, NULL, 10));
    bel_csv_set_leave(set);
}

static void mark_of(const bel_csv_set *set, int64_t rows, bel_str *out_text)
{
    out_text->length = 0;
    BEL_ASSERT_OK(bel_csv_set_mark(set, rows, out_text));
}

// Compares rows and marks of two sets from `first` on.
static void compare(const bel_csv_set *a, const bel_csv_set *b, int64_t first, int64_t end)
{
    bel_str of_a = {0}, of_b = {0};
    for (int64_t row = first; row < end; row += 1 + row % 97) {
        describe(a, row, &of_a);
        describe(b, row, &of_b);
        assert_string_equal(of_a.text, of_b.text);
        mark_of(a, row + 1, &of_a);
        mark_of(b, row + 1, &of_b);
        assert_string_equal(of_a.text, of_b.text);
    }
    bel_str_deinit(&of_a);
    bel_str_deinit(&of_b);
}

// The file is larger than the step of its window, and grows while it is read.
static void test_a_file_that_grows(void **state)
{
    (void)state;
    enum { ROWS = 120000, PART = ROWS / 8 };
    bel_str text = {0}, mark = {0};
    bel_csv_set all, passing, later;
    bel_str_puts(&text, "\xEF\xBB\xBF\"a\nb\",b,c\n");
    write_to("log.csv", "w", &text);
    open_set(&all, path_of("log.csv"));
    open_set(&passing, path_of("log.csv"));
    for (int part = 0; part < ROWS / PART; part++) {
        text.length = 0;
        add_rows(&text, part * PART, PART);
        write_to("log.csv", "a", &text);
        int64_t rows = look(&all, (part + 1) * PART), from = rows - PART;
        assert_int_equal(look(&passing, rows), rows);
        compare(&all, &passing, from, rows);
        mark_of(&all, rows - 777, &mark);
        bel_csv_set_pass(&passing, rows - 500);
        assert_true(passing.files[0].row_starts.count <= 2 * (500 + BEL_CSV_DROPPED_ROWS));
        BEL_ASSERT_FAILS(bel_csv_set_enter(&passing, 3), BEL_DATA_LOSS, "expected record 3, got");
        open_set(&later, path_of("log.csv"));
        BEL_ASSERT_OK(bel_csv_set_begin(&later, rows - 777, mark.text));
        assert_int_equal(look(&later, rows), rows);
        assert_true(later.files[0].row_starts.count < 800);
        compare(&all, &later, rows - 777, rows);
        bel_csv_set_close(&later);
    }
    assert_true(passing.files[0].view.base > 0);
    // It goes back, and to the beginning.
    BEL_ASSERT_OK(bel_csv_set_begin(&passing, 0, NULL));
    (void)look(&passing, ROWS / 2);
    compare(&all, &passing, 0, 2000);
    BEL_ASSERT_FAILS(bel_csv_set_begin(&passing, 5, mark.text), BEL_DATA_LOSS, "a mark of 5 rows");
    bel_csv_set_close(&passing);
    bel_csv_set_close(&all);
    bel_str_deinit(&text);
    bel_str_deinit(&mark);
}

// Rows that come before the window moves are indexed, and a full window is moved.
static void test_rows_beside_a_move(void **state)
{
    (void)state;
    enum { ROWS = 60000, MORE = 1000, ROOM = 8 << 20 };
    bel_str text = {0};
    bel_csv_set set;
    int64_t rows; // blank lines count, too
    bel_str_puts(&text, "a,b,c\n");
    add_rows(&text, 0, ROWS);
    write_to("log.csv", "w", &text);
    open_set(&set, path_of("log.csv"));
    rows = look(&set, ROWS);
    text.length = 0;
    add_rows(&text, ROWS, MORE);
    write_to("log.csv", "a", &text);
    bel_csv_set_pass(&set, rows - 10);
    assert_true(set.files[0].view.base > 0);
    assert_true(look(&set, rows + MORE) >= rows + MORE);
    set.files[0].view.reserved = ROOM;
    text.length = 0;
    add_rows(&text, ROWS + MORE, 2 * ROWS);
    write_to("log.csv", "a", &text);
    for (int64_t wanted = ROWS + MORE; wanted < 3 * ROWS; wanted += MORE) {
        bel_csv_set_pass(&set, wanted - 100);
        assert_true(look(&set, wanted + MORE) >= wanted + MORE);
    }
    bel_csv_set_close(&set);
    open_set(&set, path_of("log.csv"));
    set.files[0].view.reserved = ROOM;
    BEL_ASSERT_FAILS(look_fails(&set, 3 * ROWS), BEL_RESOURCE_EXHAUSTED, "since the last");
    BEL_ASSERT_OK(bel_csv_set_look(&set, 100, &rows));
    bel_csv_set_close(&set);
    bel_str_deinit(&text);
}

// A file that was written anew is found by a move, too.
static void test_a_move_in_another_file(void **state)
{
    (void)state;
    enum { ROWS = 60000 };
    bel_str text = {0};
    bel_csv_set set;
    bel_str_puts(&text, "a,b,c\n");
    add_rows(&text, 0, ROWS);
    write_to("log.csv", "w", &text);
    open_set(&set, path_of("log.csv"));
    const int64_t rows = look(&set, ROWS);
    text.text[text.length - 2] ^= 1;
    write_to("log.csv", "r+", &text);
    bel_csv_set_pass(&set, rows - 10);
    assert_int_equal(set.files[0].view.base, 0);
    BEL_ASSERT_FAILS(look_fails(&set, rows + 1), BEL_DATA_LOSS, "written anew");
    bel_csv_set_close(&set);
    bel_str_deinit(&text);
}

// The mark of an earlier version leaves out the byte order mark, and has no lines.
static void test_a_mark_of_before(void **state)
{
    (void)state;
    bel_str text = {0}, mark = {0}, old = {0};
    bel_csv_mark read = {0};
    bel_csv_set all, later;
    bel_str_puts(&text, "\xEF\xBB\xBF"
                        "a,b,c\n");
    add_rows(&text, 0, 100);
    write_to("log.csv", "w", &text);
    open_set(&all, path_of("log.csv"));
    open_set(&later, path_of("log.csv"));
    assert_int_equal(look(&all, 100), 100);
    mark_of(&all, 90, &mark);
    assert_true(bel_csv_mark_read(mark.text, &read));
    read.bytes -= 3;
    bel_str_printf(&old, "90 rows, %lld bytes, %016llx", (long long)read.bytes,
                   (unsigned long long)bel_csv_mark_hash_old(&read, text.text + 3));
    BEL_ASSERT_OK(bel_csv_set_begin(&later, 90, old.text));
    assert_int_equal(look(&later, 100), 100);
    compare(&all, &later, 90, 100);
    old.text[old.length - 1] ^= 1;
    BEL_ASSERT_OK(bel_csv_set_begin(&later, 90, old.text));
    BEL_ASSERT_FAILS(look_fails(&later, 100), BEL_DATA_LOSS, "got others");
    static const char *const none[] = {NULL, "", "90 rows of a log",
                                       "90 rows, 9 bytes of a.csv, 00"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        BEL_ASSERT_FAILS(bel_csv_set_begin(&later, 90, none[i]), BEL_DATA_LOSS, "expected a mark");
    bel_csv_set_close(&later);
    bel_csv_set_close(&all);
    bel_str_deinit(&old);
    bel_str_deinit(&mark);
    bel_str_deinit(&text);
}

static void test_other_rows(void **state)
{
    (void)state;
    bel_str text = {0}, mark = {0};
    bel_csv_set set;
    bel_str_puts(&text, "a,b,c\n");
    add_rows(&text, 0, 100);
    write_to("log.csv", "w", &text);
    open_set(&set, path_of("log.csv"));
    assert_int_equal(look(&set, 100), 100);
    mark_of(&set, 90, &mark);
    bel_csv_set_close(&set);
    text.text[30] ^= 1;
    write_to("log.csv", "w", &text);
    open_set(&set, path_of("log.csv"));
    BEL_ASSERT_OK(bel_csv_set_begin(&set, 90, mark.text));
    BEL_ASSERT_FAILS(look_fails(&set, 90), BEL_DATA_LOSS, "expected the rows of 90 rows, ");
    bel_csv_set_close(&set);
    text.text[30] ^= 1;
    text.length /= 2;
    write_to("log.csv", "w", &text);
    open_set(&set, path_of("log.csv"));
    BEL_ASSERT_OK(bel_csv_set_begin(&set, 90, mark.text));
    BEL_ASSERT_FAILS(look_fails(&set, 90), BEL_NOT_FOUND, "log.csv: expected at least");
    text.length = 0;
    bel_str_puts(&text, "a,b,c\n");
    add_rows(&text, 0, 100);
    write_to("log.csv", "r+", &text); // the rest arrives
    assert_int_equal(look(&set, 100), 100);
    bel_csv_set_close(&set);
    bel_str_deinit(&text);
    bel_str_deinit(&mark);
}

static void put(int number, int rows)
{
    char name[16];
    bel_str text = {0};
    bel_str_puts(&text, "a,b,c\n");
    add_rows(&text, number * 1000, rows);
    bel_snprintf(name, sizeof name, "%03d", number);
    write_to(".new", "w", &text);
    bel_snprintf(name, sizeof name, "%03d.csv", number);
    assert_int_equal(rename(path_of(".new"), path_of(name)), 0);
    bel_str_deinit(&text);
}

// More files than are open at once. Those that were passed are closed, and may be removed.
static void test_files_that_appear(void **state)
{
    (void)state;
    enum { FILES = 150, ROWS = 10 };
    bel_str mark = {0};
    bel_csv_set all, passing, later;
    for (int i = 1; i <= FILES; i++)
        put(i, ROWS);
    open_set(&all, path_of("*.csv"));
    open_set(&passing, path_of("*.csv"));
    for (int64_t rows = 0; rows < FILES * ROWS - 30; rows += 30) {
        (void)look(&all, rows + 30);
        (void)look(&passing, rows + 30);
        compare(&all, &passing, rows, rows + 30);
        bel_csv_set_pass(&passing, rows + 25);
    }
    mark_of(&all, 1005, &mark);
    for (int i = 1; i < 101; i++) {
        char name[16];
        bel_snprintf(name, sizeof name, "%03d.csv", i);
        assert_int_equal(remove(path_of(name)), 0);
    }
    open_set(&later, path_of("*.csv"));
    BEL_ASSERT_OK(bel_csv_set_begin(&later, 1005, mark.text));
    assert_true(look(&later, FILES * ROWS) == FILES * ROWS);
    compare(&passing, &later, FILES * ROWS - 20, FILES * ROWS);
    BEL_ASSERT_FAILS(look_fails(&all, 10000), BEL_DATA_LOSS, "001.csv: it was removed");
    put(FILES + 1, ROWS);
    assert_int_equal(look(&later, FILES * ROWS + ROWS), FILES * ROWS + ROWS);
    assert_int_equal(look(&passing, FILES * ROWS + ROWS), FILES * ROWS + ROWS);
    put(3, ROWS);
    BEL_ASSERT_FAILS(look_fails(&later, 10000), BEL_DATA_LOSS, "rising names");
    bel_csv_set_close(&later);
    bel_csv_set_close(&passing);
    bel_csv_set_close(&all);
    bel_str_deinit(&mark);
}

// A file that was passed, and is still open for the mark, may be removed.
static void test_a_passed_file_is_removed(void **state)
{
    (void)state;
    bel_csv_set set;
    bel_str mark = {0};
    for (int i = 1; i <= 3; i++)
        put(i, 10);
    open_set(&set, path_of("*.csv"));
    assert_int_equal(look(&set, 30), 30);
    bel_csv_set_pass(&set, 10);
    assert_int_equal(remove(path_of("001.csv")), 0);
    put(4, 10);
    assert_int_equal(look(&set, 40), 40);
    put(5, 10);
    assert_int_equal(look(&set, 50), 50);
    mark_of(&set, 10, &mark);
    bel_csv_set_pass(&set, 25);
    put(6, 10);
    assert_int_equal(look(&set, 60), 60);
    assert_int_equal(remove(path_of("003.csv")), 0);
    BEL_ASSERT_FAILS(look_fails(&set, 10000), BEL_DATA_LOSS, "003.csv: it was removed");
    bel_csv_set_close(&set);
    bel_str_deinit(&mark);
}

// Files of one name in several folders, with equal first bytes.
static void test_folders_that_appear(void **state)
{
    (void)state;
    bel_csv_set all, later;
    bel_str mark = {0};
    for (int i = 1; i <= 4; i++) {
        char name[24];
        bel_snprintf(name, sizeof name, "in%d", i);
        BEL_ASSERT_OK(bel_dir_create(path_of(name)));
        bel_str text = {0};
        bel_str_puts(&text, "a,b,c\n");
        add_rows(&text, 0, 10);
        bel_snprintf(name, sizeof name, "in%d/data.csv", i);
        write_to(name, "w", &text);
        bel_str_deinit(&text);
    }
    open_set(&all, path_of("in*/data.csv"));
    assert_int_equal(look(&all, 40), 40);
    mark_of(&all, 25, &mark);
    assert_non_null(strstr(mark.text, " before in3/data.csv"));
    open_set(&later, path_of("in*/data.csv"));
    BEL_ASSERT_OK(bel_csv_set_begin(&later, 25, mark.text));
    assert_int_equal(look(&later, 40), 40);
    compare(&all, &later, 25, 40);
    assert_string_equal(bel_csv_appear_name("*.csv", "a.csv"), "a.csv");
    assert_string_equal(bel_csv_appear_name("/x/y*/**/z", "/x/y1/u/z"), "y1/u/z");
    assert_string_equal(bel_csv_appear_name("x/**/z", "x/z"), "z");
    bel_csv_set_close(&later);
    bel_csv_set_close(&all);
    bel_str_deinit(&mark);
}

static void test_marks_as_text(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "none",
        "4000 rows, 81205 bytes, 9a0c11d3aa120b41",
        "0 rows, 0 bytes, 0 lines, 00",
        "-1 rows, 1 bytes, 1 lines, 00",
        "9999999999999999999 rows, 1 bytes, 1 lines, 00",
        "4 rows, 1 bytes, 1 lines, 00, 4 rows of 1 files 00 before a",
        "4 rows, 1 bytes, 1 lines, 00, 3 rows of 1 files 00 before ",
    };
    static const char *const right[] = {
        "4000 rows, 81205 bytes, 4001 lines, 9a0c11d3aa120b41",
        "5 rows, 40 bytes, 201 lines, 62fd08bb20a9b7e4, 4 rows of 9 files 0f5ca38ee2b1d970 before "
        "a, b",
    };
    bel_csv_mark mark;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(bel_csv_mark_read(wrong[i], &mark));
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        bel_str text = {0};
        assert_true(bel_csv_mark_read(right[i], &mark));
        bel_csv_mark_write(&mark, &text);
        assert_string_equal(text.text, right[i]);
        bel_str_deinit(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_as_text),
        cmocka_unit_test_setup_teardown(test_a_file_that_grows, begin_test, end_test),
        cmocka_unit_test_setup_teardown(test_rows_beside_a_move, begin_test, end_test),
        cmocka_unit_test_setup_teardown(test_a_move_in_another_file, begin_test, end_test),
        cmocka_unit_test_setup_teardown(test_a_mark_of_before, begin_test, end_test),
        cmocka_unit_test_setup_teardown(test_a_passed_file_is_removed, begin_test, end_test),
        cmocka_unit_test_setup_teardown(test_folders_that_appear, begin_test, end_test),
        cmocka_unit_test_setup_teardown(test_other_rows, begin_test, end_test),
        cmocka_unit_test_setup_teardown(test_files_that_appear, begin_test, end_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
