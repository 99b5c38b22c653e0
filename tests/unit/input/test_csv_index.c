// Index of the rows of a CSV file. It must equal the index that a loop over fields makes, for any
// size of parts and any number of threads, also if quotes hide line breaks at the borders of parts.
// So must the first error. The vectorized scan must find the same rows at each level.
#include "input/table/csv_index.h"

#include "base/isa.h"
#include "base/str.h"
#include "input/table/csv_row.h"
#include "input/table/csv_scan.h"
#include "input/table/csv_set.h"
#include "unit/input/test_fixture.h"

enum { COLUMNS = 3 };

static uint64_t noise;

static uint64_t draw(uint64_t below)
{
    noise = noise * 6364136223846793005u + 1442695040888963407u;
    return (noise >> 33) % below;
}

// --- Texts ---------------------------------------------------------------------------------------

static void put_field(bel_str *to, uint64_t quotes)
{
    static const char *const inside[] = {"a",        ",",    "\n", "\r\n",           "\"\"",
                                         "x,1\n2,y", "\n\n", "\r", "1,2,3\n4,5,6\n", "é"};
    bool quoted = draw(100) < quotes;
    if (!quoted && draw(3) == 0) {
        bel_str_puts(to, "-1.5");
        return;
    }
    if (quoted) bel_str_puts(to, "\"");
    for (uint64_t i = draw(5); i > 0; i--)
        bel_str_puts(to, quoted ? inside[draw(sizeof inside / sizeof *inside)] : &"b\r1"[draw(3)]);
    if (quoted) bel_str_puts(to, "\"");
}

// Rows of two texts or numbers and a label in 0..4; `quotes` of 100 fields are quoted. `fault` > 0
// puts that fault into one row.
static bel_str make_text(int rows, uint64_t quotes, int fault, int faulty_row)
{
    static const char *const faults[] = {
        NULL, "a,b,7\n", "a,b\n", "a,b,1,\n", "a,b\"c,1\n", "\"a\"b,c,1\n", "a,\"b,1\n", "\n", ""};
    bel_str text = {0};
    for (int i = 0; i < rows; i++) {
        if (fault > 0 && i == faulty_row) bel_str_puts(&text, faults[fault]);
        if (fault == 8 && i == faulty_row) bel_str_append(&text, "a\0,b,1\n", 7);
        put_field(&text, quotes);
        bel_str_puts(&text, ",");
        put_field(&text, quotes);
        bel_str_printf(&text, ",%d%s", (int)draw(5), draw(4) == 0 ? "\r\n" : "\n");
    }
    if (draw(2) == 0 && rows > 0) text.length--; // the last line break may be missing
    return text;
}

static bel_csv_file file_of(const bel_str *text)
{
    const char *first = text->text != NULL ? text->text : "";
    return (bel_csv_file){.path = "rows.csv",
                          .delimiter = ',',
                          .column_count = COLUMNS,
                          .text = first,
                          .rows = first,
                          .end = first + text->length};
}

static void clear(bel_csv_file *file)
{
    bel_offset_list_deinit(&file->row_starts);
    bel_number_list_deinit(&file->tall_rows);
    bel_number_list_deinit(&file->tall_breaks);
    bel_number_list_deinit(&file->numbers);
}

// --- The plain loop ------------------------------------------------------------------------------

// Rows up to the first fault; *out_end: where it is, or the end.
static bel_number_list naive_index(const bel_csv_file *file, const bel_csv_label *label,
                                   const char **out_end)
{
    bel_number_list rows = {0};
    const char *row = file->rows;
    while (row < file->end) {
        bel_csv_look look = bel_csv_row_look(file, row, label);
        if (look.fault != BEL_CSV_NO_FAULT) break;
        BEL_ASSERT_OK(bel_number_list_append(&rows, row - file->text));
        row = look.next;
    }
    *out_end = row;
    return rows;
}

static int64_t naive_line(const bel_csv_file *file, int64_t offset)
{
    int64_t line = 1;
    for (int64_t i = 0; i < offset; i++)
        line += file->text[i] == '\n';
    return line;
}

// The scan of one plain row gives it, too.
static bool is_numbers(const bel_csv_file *file, const char *row)
{
    const bel_csv_scan scan = {file->delimiter, -1};
    bel_csv_scanned found;
    return bel_csv_scan_rows(&scan, row, file->end, 1, &found) == 1 && found.numbers;
}

static bool noted_as_numbers(const bel_csv_file *file, size_t row)
{
    return file->numbers.count > row / 64 &&
           ((uint64_t)file->numbers.items[row / 64] >> row % 64 & 1) != 0;
}

// --- Comparing -----------------------------------------------------------------------------------

// Compares rows, lines, plain numbers and the error in parts of `part` bytes.
static void assert_index(const bel_str *text, const bel_csv_label *label, size_t part, int threads)
{
    bel_csv_file file = file_of(text);
    const char *end;
    bel_number_list rows = naive_index(&file, label, &end);
    bel_status *status = bel_csv_file_index_parts(&file, label, label == NULL, part, threads);
    assert_true((status == NULL) == (end == file.end));
    assert_int_equal(file.row_starts.count, rows.count);
    for (size_t i = 0; i < rows.count; i++) {
        assert_int_equal(bel_offset_list_at(&file.row_starts, i), rows.items[i]);
        assert_int_equal(bel_csv_file_line(&file, file.text + rows.items[i]),
                         naive_line(&file, rows.items[i]));
        assert_true(noted_as_numbers(&file, i) ==
                    (label != NULL && is_numbers(&file, file.text + rows.items[i])));
    }
    if (status != NULL) { // it equals the error of the row, made after indexing those before it
        bel_csv_look look = bel_csv_row_look(&file, end, label);
        bel_status *expected = bel_csv_row_error(&file, end, label, &look);
        assert_string_equal(bel_status_message(status), bel_status_message(expected));
        char *line =
            bel_strf(":%lld:", (long long)naive_line(&file, look.fault == BEL_CSV_WRONG_LABEL
                                                                ? look.label.text - file.text
                                                                : look.at - file.text));
        assert_non_null(strstr(bel_status_message(status), line));
        bel_free(line);
        bel_status_destroy(expected);
    }
    bel_status_destroy(status);
    bel_number_list_deinit(&rows);
    clear(&file);
}

static void assert_any_parts(const bel_str *text, const bel_csv_label *label)
{
    static const size_t parts[] = {1, 2, 7, 64, 100, 1000, 1 << 20};
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
        for (int threads = 1; threads <= 3; threads++)
            assert_index(text, label, parts[p], threads);
}

static const bel_csv_label good = {.column = 2, .name = "label", .class_count = 5};

static void test_any_parts_give_the_same_index(void **state)
{
    (void)state;
    noise = 1;
    for (uint64_t quotes = 0; quotes <= 100; quotes += 25) {
        for (int rows = 0; rows <= 400; rows += 100) {
            bel_str text = make_text(rows, quotes, 0, 0);
            const bel_csv_label any = {.column = -1};
            assert_any_parts(&text, &good);
            assert_any_parts(&text, &any);
            assert_any_parts(&text, NULL);
            bel_str_deinit(&text);
        }
    }
}

// The fault is in the first row, in the middle and near the end. Wrong guesses find other faults.
static void test_the_first_fault_is_the_error(void **state)
{
    (void)state;
    noise = 2;
    for (int fault = 1; fault <= 8; fault++) {
        for (int row = 0; row < 60; row += 29) {
            bel_str text = make_text(60, row == 29 ? 40 : 10, fault == 8 ? 8 : fault, row);
            assert_any_parts(&text, &good);
            assert_any_parts(&text, NULL);
            bel_str_deinit(&text);
        }
    }
}

// A row covers whole parts: the guesses in it are no rows.
static void test_a_row_longer_than_parts(void **state)
{
    (void)state;
    bel_str text = {0};
    bel_str_puts(&text, "a,b,1\nc,\"");
    for (int i = 0; i < 500; i++)
        bel_str_puts(&text, "x,y,2\n");
    bel_str_puts(&text, "\",3\nd,e,4\n");
    assert_any_parts(&text, &good);
    bel_csv_file file = file_of(&text);
    BEL_ASSERT_OK(bel_csv_file_index_parts(&file, &good, false, 64, 3));
    assert_int_equal(file.row_starts.count, 3);
    assert_int_equal(bel_csv_file_line(&file, file.text + text.length - 2), 503);
    clear(&file);
    bel_str_deinit(&text);
}

// --- Files that grow -----------------------------------------------------------------------------

// The end of the whole rows before `cut`, row by row; `cut` itself after a wrong quote.
static const char *naive_complete_end(const bel_str *text, const char *cut)
{
    bel_csv_file file = file_of(text);
    const char *row = file.rows, *end = row;
    file.end = cut;
    while (row < cut) {
        bel_csv_look look = bel_csv_row_look(&file, row, NULL);
        if (look.stop > BEL_CSV_OPEN_QUOTE) return cut;
        if (look.stop == BEL_CSV_OPEN_QUOTE || look.next[-1] != '\n') break;
        bool blank = *row == '\n' || (*row == '\r' && row[1] == '\n');
        row = look.next;
        if (!blank) end = row;
    }
    return end;
}

// A file is cut anywhere, as a writer leaves it.
static void test_the_whole_rows_of_a_growing_file(void **state)
{
    (void)state;
    noise = 4;
    int cuts = 0, faults = 0;
    for (int round = 0; round < 60; round++) {
        int fault = round % 3 == 0 ? 4 + round % 2 : round % 3 == 1 ? 7 : 0;
        bel_str text = make_text(12, (uint64_t)(round % 5) * 25, fault, (int)draw(12));
        for (size_t size = 0; size <= text.length; size++) {
            const char *cut = text.text + size, *end = naive_complete_end(&text, cut);
            assert_ptr_equal(bel_csv_complete_end(text.text, cut, ','), end);
            cuts += end < cut;
            faults += end == cut && size > 0 && cut[-1] != '\n';
        }
        bel_str_deinit(&text);
    }
    assert_true(cuts > 1000 && faults > 1000);
}

// --- The fast pass -------------------------------------------------------------------------------

static size_t naive_scan(const bel_csv_scan *scan, const char *row, const char *end, size_t most,
                         bel_csv_scanned *out_rows)
{
    size_t count = 0;
    int64_t delimiters = 0;
    for (const char *at = row; at < end && count < most; at++) {
        bool alone = *at == '\r' && (at + 1 == end || at[1] != '\n');
        if (*at == '"' || *at == '\0' || alone) break;
        delimiters += *at == scan->delimiter;
        if (*at != '\n') continue;
        if (scan->delimiters >= 0 && delimiters != scan->delimiters) break;
        delimiters = 0;
        out_rows[count++].end = at - row;
    }
    return count;
}

static void test_each_level_passes_the_same_rows(void **state)
{
    (void)state;
    enum { MOST_BYTES = 400 };
    static const bel_csv_scan_kernels *const levels[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_csv_scan_kernels)};
    static const char bytes[] = {',', '\n', 'a', '\r', '"', '\0', '\n', 'b', ',', (char)0xC3};
    noise = 3;
    for (int round = 0; round < 20000; round++) {
        size_t size = (size_t)draw(MOST_BYTES), rare = 1 + (size_t)draw(200);
        // Separate memory, so that a sanitizer sees reads after the end.
        char *text = bel_xmalloc(size + 1);
        for (size_t i = 0; i < size; i++)
            text[i] = draw(rare) == 0 ? bytes[draw(sizeof bytes)] : bytes[draw(3)];
        for (size_t i = 0; round % 3 == 0 && i + 3 < size; i += 3) // rows that fit
            memcpy(text + i, "a,\n", 3);
        const bel_csv_scan scan = {',', round % 2 == 0 ? (int64_t)draw(3) : -1};
        size_t most = 1 + (size_t)draw(MOST_BYTES);
        bel_csv_scanned expected[MOST_BYTES], got[MOST_BYTES];
        size_t count = naive_scan(&scan, text, text + size, most, expected);
        for (size_t level = 0; level <= (size_t)bel_isa_get(); level++) {
            assert_int_equal(levels[level]->rows(&scan, text, text + size, most, got), count);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(got[i].end, expected[i].end);
        }
        bel_free(text);
    }
}

// Several threads check the values. The first wrong value is the error in every run.
static void test_the_first_wrong_value_is_the_error(void **state)
{
    (void)state;
    enum { ROWS = 60000, FIRST = 29000 };
    char *folder = bel_test_folder();
    bel_str text = {0};
    bel_str_puts(&text, "a,b\n");
    for (int i = 0; i < ROWS; i++) {
        bool wrong = i == FIRST || i == FIRST + 1 || i == FIRST + 5000 || i == ROWS - 1;
        bel_str_printf(&text, "%d,%s\n", i, wrong ? "x" : "1");
    }
    char *path = bel_test_file(folder, "wrong.csv", text.text, text.length);
    bel_str_deinit(&text);
    char *expected = bel_strf("wrong.csv:%d:7: column \"b\"", FIRST + 2);
    for (int run = 0; run < 5; run++) {
        bel_dataset *data = bel_dataset_from_csv(&(bel_csv_options){
            .size = sizeof(bel_csv_options), .paths = (const char *const *)&path, .path_count = 1});
        bel_dataset_batch(data, 10);
        BEL_ASSERT_FAILS(open_failing(data), BEL_DATA_LOSS, expected);
    }
    bel_free(expected);
    bel_free(path);
    bel_test_remove_folder(folder);
}

// --- Objects -------------------------------------------------------------------------------------

static bel_status *open_objects(const char *text, size_t size, bel_csv_file *file)
{
    char *folder = bel_test_folder(), *path = bel_test_file(folder, "a.jsonl", text, size);
    *file = (bel_csv_file){0};
    bel_status *status = bel_csv_file_open(file, path, ';');
    bel_free(path);
    bel_test_remove_folder(folder);
    return status;
}

static void test_objects(void **state)
{
    (void)state;
    static const char values[] = "{\"a\": 0.30000000000000004, \"b\": 1234567890.1234567}\n"
                                 "{\"a\": 1e5, \"b\": 2.0}\n"
                                 "{\"b\": true, \"a\": \"2.0\"}\n"
                                 "{\"a\": null, \"b\": -9223372036854775808}\n\n";
    static const char csv[] = "a,b\n0.30000000000000004,1234567890.1234567\n100000,2\n2.0,true\n"
                              ",-9223372036854775808\n";
    static const char lost[] = "{\"a\": 1}\n\0\0\0", large[] = "{\"a\": 18446744073709551615}";
    bel_csv_file file;
    BEL_ASSERT_OK(open_objects(values, sizeof values - 1, &file));
    assert_int_equal(file.view.size, sizeof csv - 1);
    assert_memory_equal(file.view.data, csv, sizeof csv - 1);
    bel_csv_file_close(&file);
    BEL_ASSERT_FAILS(open_objects(lost, sizeof lost - 1, &file), BEL_DATA_LOSS, "a.jsonl:2");
    bel_csv_file_close(&file);
    BEL_ASSERT_FAILS(open_objects(large, sizeof large - 1, &file), BEL_DATA_LOSS, "a.jsonl:1");
    bel_csv_file_close(&file);
}

static void test_follow_objects(void **state)
{
    (void)state;
    bel_csv_set set = {0};
    bel_arena *arena = bel_arena_create();
    const char *const *found;
    BEL_ASSERT_FAILS(
        bel_csv_set_open_growing(&set, arena, (const char *const[]){"x.jsonl"}, 1, ',', &found),
        BEL_INVALID_ARGUMENT, "x.jsonl: expected CSV");
    bel_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_follow_objects),
        cmocka_unit_test(test_any_parts_give_the_same_index),
        cmocka_unit_test(test_the_first_fault_is_the_error),
        cmocka_unit_test(test_a_row_longer_than_parts),
        cmocka_unit_test(test_the_whole_rows_of_a_growing_file),
        cmocka_unit_test(test_each_level_passes_the_same_rows),
        cmocka_unit_test(test_the_first_wrong_value_is_the_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
