// Tables in memory: the description, the records and the features of a file with the same cells.
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "belfry/columns.h"
#include "columns/description.h"
#include "unit/input/test_fixture.h"

enum { ROWS = 9000, TEXTS = 3 }; // several grains of rows

static const char *const cities[] = {"Oslo", " Rome ", "NA"};
static const char *const days[] = {"2020-02-01 10:00", "2021-03-05 11:30", "2019-07-20"};
static const char *const classes[] = {"no", "yes"};

// Cells of a table of five columns. The numbers are the columns of one array in C order.
typedef struct table {
    double numbers[ROWS][2];
    int32_t city[ROWS], day[ROWS], label[ROWS];
    bel_memory_column columns[5];
    bel_memory_table table;
} table;

static table *table_create(void)
{
    table *t = bel_xcalloc(1, sizeof *t);
    for (int i = 0; i < ROWS; i++) {
        t->numbers[i][0] = i % 7 == 3 ? (double)NAN : i * 0.37 - 5;
        t->numbers[i][1] = (i * 31) % 13;
        t->city[i] = i % 5 == 4 ? -1 : i % TEXTS;
        t->day[i] = i / 4 % TEXTS;
        t->label[i] = (i * 11) % 3 == 0;
    }
    const bel_memory_column columns[] = {
        {.name = "a", .numbers = t->numbers[0], .dtype = BEL_DTYPE_F64, .stride = 2},
        {.name = "b", .numbers = t->numbers[0] + 1, .dtype = BEL_DTYPE_F64, .stride = 2},
        {.name = "city", .codes = t->city, .texts = cities, .text_count = TEXTS},
        {.name = "day", .codes = t->day, .texts = days, .text_count = TEXTS},
        {.name = "y", .codes = t->label, .texts = classes, .text_count = 2}};
    memcpy(t->columns, columns, sizeof columns);
    t->table = (bel_memory_table){
        .size = sizeof t->table, .columns = t->columns, .column_count = 5, .row_count = ROWS};
    return t;
}

// Writes the same table as a file; free the path with bel_free.
static char *write_table(const table *t)
{
    bel_str text = {0};
    bel_str_puts(&text, "a,b,city,day,y\n");
    for (int i = 0; i < ROWS; i++) {
        if (!isnan(t->numbers[i][0])) bel_str_printf(&text, "%.17g", t->numbers[i][0]);
        bel_str_printf(&text, ",%g,%s,%s,%s\n", t->numbers[i][1],
                       t->city[i] < 0 ? "" : cities[t->city[i]], days[t->day[i]],
                       classes[t->label[i]]);
    }
    char *path = bel_test_file(bel_test_own_folder(), "t.csv", text.text, text.length);
    bel_str_deinit(&text);
    return path;
}

static bel_columns *infer(const table *t)
{
    bel_columns *columns = NULL;
    const bel_columns_options known = {.size = sizeof known, .label = "y"};
    BEL_ASSERT_OK(bel_columns_infer_memory(&t->table, &known, &columns));
    return columns;
}

static void test_the_description_is_that_of_a_file(void **state)
{
    (void)state;
    table *t = table_create();
    char *path = write_table(t);
    bel_columns *columns = infer(t), *of_file = NULL;
    BEL_ASSERT_OK(bel_columns_infer(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                       .paths = (const char *const[]){path},
                                                       .path_count = 1},
                                    NULL, &of_file));
    assert_string_equal(bel_columns_text(columns), bel_columns_text(of_file));
    assert_int_equal(columns->items[2].kind, BEL_COLUMN_CATEGORY);
    assert_int_equal(columns->items[3].kind, BEL_COLUMN_DATE);
    bel_columns_destroy(columns);
    bel_columns_destroy(of_file);
    bel_free(path);
    bel_free(t);
}

// Reads the first batch of a dataset, all of its rows.
static bel_batch *read_batch(bel_dataset *dataset, bel_input **out_input)
{
    bel_dataset_shuffle(dataset, 0, 3);
    bel_dataset_batch(dataset, ROWS);
    BEL_ASSERT_OK(open_and_destroy(dataset, out_input));
    bel_batch *batch = bel_batch_create(*out_input);
    BEL_ASSERT_OK(bel_input_read(*out_input, 0, batch));
    return batch;
}

static void test_records_are_those_of_a_file(void **state)
{
    (void)state;
    table *t = table_create();
    char *path = write_table(t);
    bel_columns *columns = infer(t);
    bel_input *input, *of_file;
    bel_batch *batch = read_batch(bel_dataset_from_memory_table(&t->table, columns, false), &input);
    bel_batch *expected =
        read_batch(bel_dataset_from_csv(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                           .paths = (const char *const[]){path},
                                                           .path_count = 1,
                                                           .table = columns}),
                   &of_file);
    static const char *const fields[] = {"x", "label"};
    for (int i = 0; i < 2; i++) {
        const bel_tensor *a = batch_field(input, batch, fields[i]);
        const bel_tensor *b = batch_field(of_file, expected, fields[i]);
        assert_int_equal(bel_tensor_bytes(a), bel_tensor_bytes(b));
        assert_memory_equal(a->data, b->data, bel_tensor_bytes(a));
    }
    bel_batch_destroy(batch);
    bel_batch_destroy(expected);
    bel_input_destroy(input);
    bel_input_destroy(of_file);
    bel_columns_destroy(columns);
    bel_free(path);
    bel_free(t);
}

static void test_features_and_inputs_of_all_rows(void **state)
{
    (void)state;
    table *t = table_create();
    bel_columns *columns = infer(t);
    bel_columns_widths widths = bel_columns_feature_widths(columns);
    size_t width = (size_t)widths.x;
    float *x = bel_xcalloc(ROWS * width, sizeof *x);
    double *input = bel_xcalloc(ROWS * width, sizeof *input);
    assert_int_equal(widths.ids + widths.id_lists, 0);
    assert_string_equal(bel_columns_feature_name(columns, 0), "a");
    assert_string_equal(bel_columns_feature_name(columns, 3), "day");
    assert_null(bel_columns_feature_name(columns, 4)); // not the label
    t->table.column_count = 4;                         // without the label
    BEL_ASSERT_OK(bel_columns_features(columns, &t->table, x, NULL, NULL));
    const bel_column *a = &columns->items[0], *city = &columns->items[2], *day = &columns->items[3];
    BEL_ASSERT_OK(bel_columns_input(columns, &t->table, "a", 1, input));
    for (size_t i = 0; i < ROWS; i++) {
        double filled = isnan(t->numbers[i][0]) ? a->fill : t->numbers[i][0];
        assert_true(isnan(input[i]) == isnan(t->numbers[i][0]));
        assert_true(isnan(input[i]) || input[i] == filled);
        assert_true(fabs((filled - a->mean) / a->deviation - (double)x[i * width]) < 1e-5);
    }
    // "NA" and an empty cell are missing, which training had; spaces do not count.
    BEL_ASSERT_OK(bel_columns_input(columns, &t->table, "city", 1, input));
    for (size_t i = 0; i < ROWS; i++) {
        int place = (int)input[i];
        assert_true(x[i * width + (size_t)(city->x_place + place)] == 1);
        bool missing = t->city[i] < 0 || t->city[i] == 2;
        assert_int_equal(place == city->value_count, missing);
        if (!missing) assert_non_null(strstr(cities[t->city[i]], city->values[place]));
    }
    BEL_ASSERT_OK(bel_columns_input(columns, &t->table, "day", day->x_width, input));
    for (size_t i = 0; i < ROWS; i++)
        for (size_t p = 0; p < (size_t)day->x_width; p++)
            assert_true((float)input[i * (size_t)day->x_width + p] ==
                        x[i * width + (size_t)day->x_place + p]);
    bel_columns_destroy(columns);
    bel_free(input);
    bel_free(x);
    bel_free(t);
}

// Reversed rows in the order by their cells are the same rows.
static void test_the_order_by_cells_does_not_depend_on_that_of_the_rows(void **state)
{
    (void)state;
    table *t = table_create();
    int64_t *order = bel_xcalloc(ROWS, sizeof *order), *again = bel_xcalloc(ROWS, sizeof *again);
    int64_t *reversed = bel_xcalloc(ROWS, sizeof *reversed);
    BEL_ASSERT_OK(bel_memory_table_order(&t->table, order));
    for (int64_t i = 0; i < ROWS; i++)
        reversed[i] = ROWS - 1 - i;
    t->table.order = reversed;
    BEL_ASSERT_OK(bel_memory_table_order(&t->table, again));
    assert_memory_equal(order, again, ROWS * sizeof *order);
    int64_t moved = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        moved += order[i] != i;
        again[order[i]] = -1; // each row once
    }
    assert_true(moved > ROWS / 2);
    for (int64_t i = 0; i < ROWS; i++)
        assert_int_equal(again[i], -1);

    t->table.order = NULL;
    bel_columns *columns = infer(t);
    size_t width = (size_t)bel_columns_feature_widths(columns).x;
    float *x = bel_xcalloc(ROWS * width, sizeof *x), *back = bel_xcalloc(ROWS * width, sizeof *x);
    BEL_ASSERT_OK(bel_columns_features(columns, &t->table, x, NULL, NULL));
    t->table.order = reversed;
    BEL_ASSERT_OK(bel_columns_features(columns, &t->table, back, NULL, NULL));
    for (size_t i = 0; i < ROWS; i++)
        assert_memory_equal(x + i * width, back + (ROWS - 1 - i) * width, width * sizeof *x);
    bel_columns_destroy(columns);
    bel_free(x);
    bel_free(back);
    bel_free(order);
    bel_free(again);
    bel_free(reversed);
    bel_free(t);
}

static void test_classes_may_be_given(void **state)
{
    (void)state;
    static const char *const given[] = {"NA", "yes", "no", "other"};
    static const char *const texts[] = {"no", "yes", "NA"};
    table *t = table_create();
    t->columns[4].texts = texts;
    t->columns[4].text_count = 3;
    t->label[5] = 2;
    bel_columns_options known = {
        .size = sizeof known, .label = "y", .classes = given, .class_count = 4};
    bel_columns *columns = NULL, *unused;
    BEL_ASSERT_OK(bel_columns_infer_memory(&t->table, &known, &columns));
    assert_int_equal(bel_columns_class_count(columns), 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(bel_columns_class(columns, i), given[i]);
    assert_true(bel_columns_class_rows(columns, 0) == 1);
    assert_true(bel_columns_class_rows(columns, 3) == 0);
    bel_input *input;
    bel_batch *batch = read_batch(bel_dataset_from_memory_table(&t->table, columns, false), &input);
    const int64_t *labels = batch_field(input, batch, "label")->data;
    int64_t counts[4] = {0};
    for (int i = 0; i < ROWS; i++)
        counts[labels[i]]++;
    for (int i = 0; i < 4; i++)
        assert_true(bel_columns_class_rows(columns, i) == (double)counts[i]);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    known.class_count = 2;
    BEL_ASSERT_FAILS(bel_columns_infer_memory(&t->table, &known, &unused), BEL_DATA_LOSS,
                     "the label \"y\" has values beside the given classes");
    bel_columns_destroy(columns);
    bel_free(t);
}

static void test_wrong_cells_are_named(void **state)
{
    (void)state;
    table *t = table_create();
    bel_columns *columns = infer(t), *unused;
    const bel_columns_options known = {.size = sizeof known, .label = "y"};
    double one = 0, kept = t->numbers[4321][1];
    bel_dataset *dataset = bel_dataset_from_memory_table(&t->table, columns, false);
    bel_dataset_batch(dataset, 32);
    t->numbers[4321][1] = (double)INFINITY;
    BEL_ASSERT_FAILS(bel_columns_infer_memory(&t->table, &known, &unused), BEL_INVALID_ARGUMENT,
                     "row 4321, column \"b\": expected a finite number");
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT, "row 4321, column \"b\"");
    t->numbers[4321][1] = kept;
    t->label[77] = -1;
    BEL_ASSERT_FAILS(bel_columns_infer_memory(&t->table, &known, &unused), BEL_INVALID_ARGUMENT,
                     "row 77, column \"y\": expected a label");
    t->label[77] = 2;
    BEL_ASSERT_FAILS(bel_columns_infer_memory(&t->table, &known, &unused), BEL_INVALID_ARGUMENT,
                     "row 77, column \"y\": expected a code below 2, got 2");
    t->label[77] = 1;
    t->columns[0].name = "b";
    BEL_ASSERT_FAILS(bel_columns_infer_memory(&t->table, &known, &unused), BEL_INVALID_ARGUMENT,
                     "columns 0 and 1 have the same name");
    t->columns[0].name = "c";
    BEL_ASSERT_FAILS(bel_columns_features(columns, &t->table, NULL, NULL, NULL),
                     BEL_INVALID_ARGUMENT, "no column \"a\"");
    t->columns[0].name = "a";
    BEL_ASSERT_FAILS(bel_columns_input(columns, &t->table, "nothing", 1, &one),
                     BEL_INVALID_ARGUMENT, "no column \"nothing\" in the description");
    BEL_ASSERT_FAILS(bel_columns_input(columns, &t->table, "day", 1, &one), BEL_INVALID_ARGUMENT,
                     "column \"day\": expected a width of");
    BEL_ASSERT_FAILS(
        bel_columns_infer_memory(&t->table,
                                 &(bel_columns_options){.size = sizeof known,
                                                        .label = "y",
                                                        .numbers = (const char *const[]){"city"},
                                                        .number_count = 1},
                                 &unused),
        BEL_DATA_LOSS, "row 0: \"Oslo\"");
    bel_columns_destroy(columns);
    bel_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_the_description_is_that_of_a_file),
        BEL_TEST_IN_FOLDER(test_records_are_those_of_a_file),
        cmocka_unit_test(test_features_and_inputs_of_all_rows),
        cmocka_unit_test(test_the_order_by_cells_does_not_depend_on_that_of_the_rows),
        cmocka_unit_test(test_classes_may_be_given),
        cmocka_unit_test(test_wrong_cells_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
