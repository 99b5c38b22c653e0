// Tables as datasets: the rows left out, missing cells, and rows that arrive one by one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "belfry/columns.h"
#include "columns/description.h"
#include "input/table/csv_set.h"
#include "input/table/table_rows.h"
#include "unit/input/test_fixture.h"

// Writes a file in the test's folder; free with bel_free.
static char *file_of(const char *text)
{
    return bel_test_file(bel_test_own_folder(), "t.csv", text, strlen(text));
}

static bel_columns *infer(const char *path, const bel_columns_options *options)
{
    bel_columns *columns = NULL;
    BEL_ASSERT_OK(bel_columns_infer(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                       .paths = (const char *const[]){path},
                                                       .path_count = 1},
                                    options, &columns));
    return columns;
}

static bel_dataset *dataset_of(const char *path, const bel_columns *columns)
{
    bel_dataset *dataset =
        bel_dataset_from_csv(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                .paths = (const char *const[]){path},
                                                .path_count = 1,
                                                .table = columns});
    bel_dataset_batch(dataset, 64);
    return dataset;
}

// Reads at most 64 rows of a dataset, destroys it, and returns their number. Copies "x" to `out_x`
// (NULL to skip).
static int64_t read_all(bel_dataset *dataset, float *out_x)
{
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    int64_t count = batch->example_count;
    const bel_tensor *x = batch_field(input, batch, "x");
    size_t bytes = (size_t)bel_shape_elements(&x->shape) * sizeof *out_x;
    if (out_x != NULL) memcpy(out_x, x->data, bytes);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    return count;
}

// --- Cells ---------------------------------------------------------------------------------------

static void test_numbers_may_be_missing(void **state)
{
    (void)state;
    static const char *const missing[] = {"-999"};
    char *path = file_of("a,b,y\n-999,1,0\n1,-999,1\n3,2,0\n3,-999,1\n-999,5,1\n");
    bel_columns *columns = infer(path, &(bel_columns_options){.size = sizeof(bel_columns_options),
                                                              .missing = missing,
                                                              .missing_count = 1});
    float x[5][4];
    assert_int_equal(read_all(dataset_of(path, columns), x[0]), 5);
    static const float indicators[5][2] = {{1, 0}, {0, 1}, {0, 0}, {0, 1}, {1, 0}};
    for (int i = 0; i < 5; i++)
        assert_true(x[i][1] == indicators[i][0] && x[i][3] == indicators[i][1]);
    bel_columns_destroy(columns);
    bel_free(path);
}

// Bare numbers take a shorter path, and differ if commas are decimal points.
static void test_decimal_commas_are_read(void **state)
{
    (void)state;
    char *path = file_of("a;b;y\n1,5;1.500;3,5\n2;7;4,5\n\"-1.234,5\";10;1\n");
    bel_columns *columns = infer(path, NULL), *plain;
    assert_int_equal(columns->decimal, ',');
    assert_true(bel_columns_label_mean(columns) == 3);
    BEL_ASSERT_OK(bel_columns_parse("{delimiter: ;, decimal: ',', columns: ["
                                    "{name: a, kind: number}, {name: b, kind: number}, "
                                    "{name: y, kind: label}]}\n",
                                    "c.yaml", &plain));
    float x[6];
    assert_int_equal(read_all(dataset_of(path, plain), x), 3);
    static const float expected[6] = {1.5F, 1500, 2, 7, -1234.5F, 10};
    for (int i = 0; i < 6; i++)
        assert_true(x[i] == expected[i]);
    bel_free(path);
    path = file_of("a;b;y\n1.5;1;1\n");
    BEL_ASSERT_FAILS(open_failing(dataset_of(path, plain)), BEL_DATA_LOSS,
                     "t.csv:2:1: column \"a\": expected a number");
    bel_columns_destroy(columns);
    bel_columns_destroy(plain);
    bel_free(path);
}

// --- Rows ----------------------------------------------------------------------------------------

// Rows of sums at a table's end have no label, and texts instead of numbers.
static void test_rows_without_label_are_no_errors(void **state)
{
    (void)state;
    char *path = file_of("a,b,y\n1,5,no\n2,6,yes\n3,7,no\n2,8,yes\ntotal,26,\n4,x,NA\n");
    bel_columns *columns = infer(path, NULL);
    assert_int_equal(bel_columns_rows(columns), 4);
    assert_int_equal(read_all(dataset_of(path, columns), NULL), 4);
    bel_free(path);
    path = file_of("a,b,y\n1,5,no\nx,6,perhaps\n");
    BEL_ASSERT_FAILS(open_failing(dataset_of(path, columns)), BEL_DATA_LOSS, "t.csv:3:1:");
    bel_columns_destroy(columns);
    bel_free(path);
}

// A class named in the description is a class, even if its name looks missing.
static void test_classes_may_look_missing(void **state)
{
    (void)state;
    char *path = file_of("a,y\n1,None\n2,x\n3,None\n");
    bel_columns *columns;
    BEL_ASSERT_OK(bel_columns_parse("columns: [{name: a, kind: number}, "
                                    "{name: y, kind: label, classes: [None, x]}]\n",
                                    "c.yaml", &columns));
    assert_int_equal(read_all(dataset_of(path, columns), NULL), 3);
    bel_columns_destroy(columns);
    bel_free(path);
}

// Bad rows are skipped. Rows without a label are left out and do not count as bad.
static void test_bad_rows_are_left_out(void **state)
{
    (void)state;
    char *path = file_of("a,y\n1,no\n2,yes\n3\n4,\n5,no\n6,NA\n7,yes\n1,2,\n8,no\n9,yes\n");
    bel_columns *columns = NULL;
    const bel_csv_options csv = {
        .size = sizeof csv, .paths = (const char *const[]){path}, .path_count = 1};
    BEL_ASSERT_FAILS(bel_columns_infer(&csv, NULL, &columns), BEL_DATA_LOSS, "t.csv:4:");
    columns =
        infer(path, &(bel_columns_options){.size = sizeof(bel_columns_options), .skip_bad = true});
    assert_int_equal(bel_columns_rows(columns), 6);
    bel_dataset *dataset = dataset_of(path, columns);
    bel_dataset_skip_bad_records(dataset, 2);
    assert_int_equal(read_all(dataset, NULL), 6);
    bel_columns_destroy(columns);
    bel_free(path);
}

// Grains after the tenth error have separate errors that are never read (asan finds leaks).
static void test_many_errors_are_one(void **state)
{
    (void)state;
    bel_str text = {0};
    bel_str_puts(&text, "a,y\n");
    for (int i = 0; i < 40000; i++)
        bel_str_printf(&text, "%s,%s\n", i % 1000 == 0 ? "x" : "1", i % 100 == 7 ? "z" : "u");
    char *path = file_of(text.text);
    bel_columns *columns;
    BEL_ASSERT_OK(bel_columns_parse("columns: [{name: a, kind: number}, "
                                    "{name: y, kind: label, classes: [u, v]}]\n",
                                    "c.yaml", &columns));
    BEL_ASSERT_FAILS(open_failing(dataset_of(path, columns)), BEL_DATA_LOSS, "t.csv:2:1:");
    bel_columns_destroy(columns);
    bel_free(path);
    bel_str_deinit(&text);
}

// The first of several columns with the same name counts everywhere.
static void test_first_of_two_names_counts(void **state)
{
    (void)state;
    char *path = file_of("a,y,a,y\n1,no,s,5\n2,yes,t,5\n3,no,u,5\n4,yes,v,5\n");
    for (int named = 0; named < 2; named++) {
        bel_columns *columns =
            infer(path, &(bel_columns_options){.size = sizeof(bel_columns_options),
                                               .label = named ? "y" : NULL});
        assert_string_equal(bel_columns_label(columns), "y");
        assert_int_equal(bel_columns_class_count(columns), 2);
        assert_int_equal(columns->count, 2);
        assert_int_equal(columns->items[0].kind, BEL_COLUMN_NUMBER);
        float x[4];
        assert_int_equal(read_all(dataset_of(path, columns), x), 4);
        assert_true(x[0] < x[1] && x[2] < x[3]);
        bel_columns_destroy(columns);
    }
    bel_free(path);
}

// --- Blocks --------------------------------------------------------------------------------------

static const char mixed[] =
    "columns:\n"
    "  - {name: a, kind: number, scale: standard, mean: 3, deviation: 7, clip: 10, indicator: "
    "true}\n"
    "  - {name: c, kind: category, values: [x, \"y,z\", \"say \\\"w\\\"\"], missing: value}\n"
    "  - {name: b, kind: number, scale: standard, mean: 0.5, deviation: 0.25}\n"
    "  - {name: h, kind: hash}\n"
    "  - {name: k, kind: cross, of: [c, h]}\n"
    "  - {name: t, kind: list, most: 3}\n"
    "  - {name: y, kind: label, classes: [no, yes]}\n";

// Appends row `i` of a table of `mixed`: short, long and missing numbers, quotes, spaces.
static void put_mixed_row(bel_str *text, int i)
{
    static const char *const a[] = {"1",     "-20", "NA",  "3.25",
                                    "\"4\"", " 5 ", "1e2", "0.1234567890123456"};
    static const char *const c[] = {"x", "\"y,z\"", "\"say \"\"w\"\"\"", "", "other"};
    static const char *const t[] = {"p", "p|q", "", "q|r|s"};
    bel_str_printf(text, "%s,%s,0.%d,k%d,%s,%s", a[i % 8], c[i % 5], i, i % 7, t[i % 4],
                   i % 3 == 0 ? "yes" : "no");
}

static char *mixed_file(int rows, bool newline)
{
    bel_str text = {0};
    bel_str_puts(&text, "a,c,b,h,t,y\n");
    for (int i = 0; i < rows; i++) {
        put_mixed_row(&text, i);
        if (i + 1 < rows || newline) bel_str_puts(&text, i % 11 == 0 ? "\r\n" : "\n");
    }
    char *path = file_of(text.text);
    bel_str_deinit(&text);
    return path;
}

// Appends the rows of a dataset, read in batches of `size`, to `fields`, one string per field.
static void gather(const char *path, const bel_columns *columns, int64_t size, bel_str *fields,
                   int *out_count)
{
    bel_dataset *dataset =
        bel_dataset_from_csv(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                .paths = (const char *const[]){path},
                                                .path_count = 1,
                                                .table = columns});
    bel_dataset_batch(dataset, size);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    *out_count = bel_input_field_count(input);
    for (int64_t b = 0; b < bel_input_block_count(input, true); b++) {
        BEL_ASSERT_OK(bel_input_read(input, b, batch));
        for (int f = 0; f < batch->field_count; f++)
            bel_str_append(&fields[f], batch->fields[f].data, bel_tensor_bytes(&batch->fields[f]));
    }
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

// Rows are the same in a block of any size, and with or without a newline after the last one.
static void test_blocks_are_as_single_rows(void **state)
{
    (void)state;
    static const int rows[] = {1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 257, 300};
    bel_columns *columns;
    BEL_ASSERT_OK(bel_columns_parse(mixed, "c.yaml", &columns));
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof rows[0]); i++) {
        char *path = mixed_file(rows[i / 2], i % 2 == 0);
        bel_str one[8] = {{0}}, many[8] = {{0}};
        int count;
        gather(path, columns, 1, one, &count);
        gather(path, columns, 300, many, &count);
        assert_int_equal(count, 4); // x, ids, lists, label
        for (int f = 0; f < count; f++) {
            assert_int_equal(one[f].length, many[f].length);
            assert_memory_equal(one[f].text, many[f].text, one[f].length);
            bel_str_deinit(&one[f]);
            bel_str_deinit(&many[f]);
        }
        bel_free(path);
    }
    bel_columns_destroy(columns);
}

// Numbers equal those of strtod after scaling, also in files of plain numbers.
static void test_blocks_of_numbers(void **state)
{
    (void)state;
    static const char *const cells[] = {"0",           "16",       "-7", "0.5",
                                        "1234.56",     "12345678", "1.", "123456789",
                                        "0.100000001", "-0.25",    "3e2"};
    bel_columns *columns;
    bel_str text = {0};
    float x[64];
    BEL_ASSERT_OK(bel_columns_parse("columns: [{name: a, kind: number, mean: 3, deviation: 7, "
                                    "scale: standard, clip: 10}, {name: b, kind: ignore}]\n",
                                    "c.yaml", &columns));
    for (int plain = 0; plain < 2; plain++) {
        text.length = 0;
        bel_str_puts(&text, "b,a\n");
        for (int i = 0; i < 64; i++)
            bel_str_printf(&text, "%s,%s\n", plain ? "1" : "x", cells[i % (plain ? 6 : 11)]);
        char *path = file_of(text.text);
        assert_int_equal(read_all(dataset_of(path, columns), x), 64);
        for (int i = 0; i < 64; i++) {
            double value = (strtod(cells[i % (plain ? 6 : 11)], NULL) - 3) / 7;
            assert_true(x[i] == (float)(value > 10 ? 10 : value < -10 ? -10 : value));
        }
        bel_free(path);
    }
    bel_columns_destroy(columns);
    bel_str_deinit(&text);
}

// Rows of files that have the columns at different places may be in one block.
static void test_blocks_of_several_files(void **state)
{
    (void)state;
    bel_columns *columns;
    BEL_ASSERT_OK(bel_columns_parse(
        "columns: [{name: a, kind: number, scale: none}, {name: b, kind: number, scale: none}]\n",
        "c.yaml", &columns));
    char *paths[3] = {bel_test_file(bel_test_own_folder(), "1.csv", "a,b\n1,2\n3,4\n", 12),
                      bel_test_file(bel_test_own_folder(), "2.csv", "b,x,a\n6,q,5\n8,q,7", 17),
                      bel_test_file(bel_test_own_folder(), "3.csv", "a,b\n9,10\n", 9)};
    bel_dataset *dataset =
        bel_dataset_from_csv(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                .paths = (const char *const *)paths,
                                                .path_count = 3,
                                                .table = columns});
    bel_dataset_batch(dataset, 64);
    float x[10];
    assert_int_equal(read_all(dataset, x), 5);
    for (int i = 0; i < 10; i++)
        assert_true(x[i] == (float)(i + 1));
    for (int i = 0; i < 3; i++)
        bel_free(paths[i]);
    bel_columns_destroy(columns);
}

// A wrong cell at any place of a block is reported with its line and column. Only a row's first
// wrong cell is reported, and rows come in their order. The check of all cells reports several
// errors, reading only the first.
static void test_errors_within_blocks(void **state)
{
    (void)state;
    static const int at[] = {0, 1, 31, 32, 33, 63, 64, 99};
    bel_columns *columns;
    BEL_ASSERT_OK(bel_columns_parse("columns: [{name: a, kind: number, clip: 10}, {name: d, kind: "
                                    "date, mean: 0, deviation: 1, parts: [time]}, "
                                    "{name: b, kind: number, scale: none}]\n",
                                    "c.yaml", &columns));
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        bel_str text = {0};
        bel_str_puts(&text, "a,d,b\n");
        for (int row = 0; row < 100; row++)
            bel_str_puts(&text, row == at[i]       ? "1,soon,x\n"
                                : row == at[i] + 1 ? "1,2020-01-01,1e300\n"
                                                   : "1,2020-01-01,2\n");
        char *path = file_of(text.text);
        char *first =
            bel_strf("t.csv:%d:3: column \"d\": expected a date, got \"soon\"", at[i] + 2);
        char *second = bel_strf("t.csv:%d:14: column \"b\": expected a number that fits f32 when "
                                "it is scaled, got \"1e300\"",
                                at[i] + 3);
        BEL_ASSERT_FAILS(open_failing(dataset_of(path, columns)), BEL_DATA_LOSS, first);
        if (at[i] < 99)
            BEL_ASSERT_FAILS(open_failing(dataset_of(path, columns)), BEL_DATA_LOSS, second);
        bel_dataset *dataset =
            bel_dataset_from_csv(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                    .paths = (const char *const[]){path},
                                                    .path_count = 1,
                                                    .table = columns,
                                                    .unchecked = true});
        bel_dataset_batch(dataset, 100);
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(dataset, &input));
        bel_batch *batch = bel_batch_create(input);
        BEL_ASSERT_FAILS(bel_input_read(input, 0, batch), BEL_DATA_LOSS, first);
        bel_batch_destroy(batch);
        bel_input_destroy(input);
        bel_free(first);
        bel_free(second);
        bel_free(path);
        bel_str_deinit(&text);
    }
    bel_columns_destroy(columns);
}

// Indexing checks the structure of rows, also among rows of numbers.
static void test_rows_of_another_length(void **state)
{
    (void)state;
    bel_columns *columns;
    BEL_ASSERT_OK(bel_columns_parse("columns: [{name: a, kind: number}]\n", "c.yaml", &columns));
    static const struct {
        const char *text, *says;
    } cases[] = {{"a,b\n1,2\n3\n", "t.csv:3:2: expected 2 fields, got 1"},
                 {"a,b\n1,2\n3,4,5\n", "t.csv:3:5: expected 2 fields, got 3"},
                 {"a,b\n1,2\n3,4,", "t.csv:3:5: expected 2 fields, got 3"},
                 {"a,b\n", "the header, got none"},
                 {"a,b\n\"1,2\n", "t.csv:2:1: expected a closing quote"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *path = file_of(cases[i].text);
        BEL_ASSERT_FAILS(open_failing(dataset_of(path, columns)), BEL_DATA_LOSS, cases[i].says);
        bel_free(path);
    }
    bel_columns_destroy(columns);
}

// --- Rows one by one -----------------------------------------------------------------------------

// Returns the rows of a text that arrives in pieces of `piece` bytes, each followed by "|".
static char *rows_in_pieces(bel_table_lines *lines, const char *text, size_t piece)
{
    bel_str rows = {0};
    size_t begin = 0, end = 0, length = strlen(text);
    bel_str_puts(&rows, "");
    for (bool last = false; !last;) {
        last = end == length;
        end = end + piece < length ? end + piece : length;
        for (size_t bytes;
             (bytes = bel_table_lines_next(lines, text + begin, end - begin, last)) > 0;
             begin += bytes)
            bel_str_printf(&rows, "%.*s|", (int)bytes, text + begin);
    }
    return rows.text;
}

static void test_rows_come_in_pieces(void **state)
{
    (void)state;
    static const struct {
        const char *text, *rows;
    } cases[] = {
        {"a,b\n1,2\n", "a,b\n|1,2\n|"},
        {"a,b\n1,2", "a,b\n|1,2|"},
        {"1.5,a 5\" pipe,p\n2,b\n", "1.5,a 5\" pipe,p\n|2,b\n|"},
        {"\"a\nb\",\"c\"\"\n\"\n2\n", "\"a\nb\",\"c\"\"\n\"\n|2\n|"},
        {"\"a\" b\"\n2\n", "\"a\" b\"\n|2\n|"},
        {"1\n\n\r\n2\r\n\n", "1\n|\n|\r\n|2\r\n|"},
        {"1\n\r\n\n\r\n", "1\n|"},
        {"\n", ""},
        {"\xEF\xBB\xBF\"a\nb\",c\n", "\xEF\xBB\xBF\"a\nb\",c\n|"},
    };
    bel_columns *columns;
    BEL_ASSERT_OK(bel_columns_parse("columns: [{name: a, kind: number}]\n", "c.yaml", &columns));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t piece = 1; piece < 8; piece++) {
            bel_table_lines *lines = bel_table_lines_create(columns, NULL, 0);
            char *rows = rows_in_pieces(lines, cases[i].text, piece);
            assert_string_equal(rows, cases[i].rows);
            bel_free(rows);
            bel_table_lines_destroy(lines);
        }
    }
    bel_columns_destroy(columns);
}

static void test_wanted_cells_are_of_the_first_of_two_names(void **state)
{
    (void)state;
    bel_columns *columns;
    BEL_ASSERT_OK(bel_columns_parse("columns: [{name: a, kind: number}]\n", "c.yaml", &columns));
    bel_table_lines *lines = bel_table_lines_create(columns, (const char *const[]){"k"}, 1);
    float x[1];
    bool header;
    const bel_columns_block row = {.x = x};
    BEL_ASSERT_OK(bel_table_lines_take(lines, "k,a,k\n", 6, &row, &header));
    assert_true(header);
    BEL_ASSERT_OK(bel_table_lines_take(lines, "one,2,two\n", 10, &row, &header));
    assert_string_equal(bel_table_lines_cell(lines, 0)->text, "one");
    bel_table_lines_destroy(lines);
    bel_columns_destroy(columns);
}

// --- Files that change --------------------------------------------------------------------------

static bel_dataset *unchanged(const char *path, const bel_columns *columns)
{
    bel_dataset *dataset =
        bel_dataset_from_csv(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                .paths = (const char *const[]){path},
                                                .path_count = 1,
                                                .table = columns,
                                                .unchanged = true});
    bel_dataset_batch(dataset, 64);
    return dataset;
}

// Facts about a file do not apply to a file that replaces it, nor to another file.
static void test_a_file_that_was_replaced(void **state)
{
    (void)state;
    char *path = file_of("a,y\n1,0\n2,1\n3,0\n4,1\n");
    char *other = bel_test_file(bel_test_own_folder(), "o.csv", "a,y\n9,0\n8,1\n", 12);
    bel_columns *columns =
        infer(path, &(bel_columns_options){.size = sizeof(bel_columns_options), .label = "y"});
    assert_int_equal(read_all(unchanged(path, columns), NULL), 4);
    assert_int_equal(read_all(unchanged(other, columns), NULL), 2);
    bel_free(file_of("a,y\n1,0\n2,1\n3,0\n5,1\n"));
    BEL_ASSERT_FAILS(open_failing(unchanged(path, columns)), BEL_DATA_LOSS,
                     "t.csv: it was changed since its columns were looked at");
    assert_int_equal(read_all(dataset_of(path, columns), NULL), 4); // accepted without `unchanged`
    bel_columns_destroy(columns);
    bel_free(other);
    bel_free(path);
}

static void test_a_file_that_is_written_while_it_is_read(void **state)
{
    (void)state;
    char *path = file_of("a,y\n1,0\n2,1\n");
    bel_csv_set set = {0};
    bel_arena *arena = bel_arena_create();
    const char *const *found;
    BEL_ASSERT_OK(bel_csv_set_open(&set, arena, (const char *const[]){path}, 1, ',', &found));
    BEL_ASSERT_OK(bel_csv_set_check_content(&set));
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 4, SEEK_SET), 0);
    fputc('7', file);
    assert_int_equal(fclose(file), 0);
    BEL_ASSERT_FAILS(bel_csv_set_check_content(&set), BEL_DATA_LOSS,
                     "t.csv: it was written to while it was read");
    bel_csv_set_close(&set);
    bel_arena_destroy(arena);
    bel_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_numbers_may_be_missing),
        BEL_TEST_IN_FOLDER(test_decimal_commas_are_read),
        BEL_TEST_IN_FOLDER(test_rows_without_label_are_no_errors),
        BEL_TEST_IN_FOLDER(test_classes_may_look_missing),
        BEL_TEST_IN_FOLDER(test_bad_rows_are_left_out),
        BEL_TEST_IN_FOLDER(test_many_errors_are_one),
        BEL_TEST_IN_FOLDER(test_first_of_two_names_counts),
        BEL_TEST_IN_FOLDER(test_blocks_are_as_single_rows),
        BEL_TEST_IN_FOLDER(test_blocks_of_numbers),
        BEL_TEST_IN_FOLDER(test_blocks_of_several_files),
        BEL_TEST_IN_FOLDER(test_errors_within_blocks),
        BEL_TEST_IN_FOLDER(test_rows_of_another_length),
        cmocka_unit_test(test_rows_come_in_pieces),
        cmocka_unit_test(test_wanted_cells_are_of_the_first_of_two_names),
        BEL_TEST_IN_FOLDER(test_a_file_that_was_replaced),
        BEL_TEST_IN_FOLDER(test_a_file_that_is_written_while_it_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
