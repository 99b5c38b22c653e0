// Cells of a served table: a number has the meaning of its text in a file, in every protocol.
#include <math.h>

#include "base/alloc.h"
#include "base/str.h"
#include "serve/cells.h"
#include "support/bel_test.h"

static const char table[] =
    "missing: [\"\", \"-999\"]\n"
    "columns:\n"
    "  - {name: age, kind: number, mean: 40, deviation: 10, missing: constant, fill: 30}\n"
    "  - {name: size, kind: number, missing: error}\n"
    "  - {name: y, kind: label, classes: [\"no\", \"yes\"]}\n";

static void test_numbers(void **state)
{
    (void)state;
    bel_columns *columns;
    double value = 0;
    const bel_tensor out = {.dtype = BEL_DTYPE_F64, .shape = BEL_SHAPE(1), .data = &value};
    BEL_ASSERT_OK(bel_columns_parse(table, "c.yaml", &columns));
    const bel_column *age = &columns->items[0], *size = &columns->items[1];
    BEL_ASSERT_OK(bel_cells_put_number(columns, age, 0.1, 0, &out));
    assert_true(value == 0.1);
    BEL_ASSERT_OK(bel_cells_put_number(columns, age, -999, 0, &out));
    assert_true(isnan(value));
    BEL_ASSERT_OK(bel_cells_put_number(columns, age, NAN, 0, &out));
    assert_true(isnan(value));
    BEL_ASSERT_OK(bel_cells_put_number(columns, size, 1e300, 0, &out));
    assert_true(value == 1e300);
    BEL_ASSERT_FAILS(bel_cells_put_number(columns, size, -999, 0, &out), BEL_INVALID_ARGUMENT,
                     "\"size\"");
    BEL_ASSERT_FAILS(bel_cells_put_number(columns, size, NAN, 0, &out), BEL_INVALID_ARGUMENT,
                     "\"size\"");
    bel_columns_destroy(columns);
}

// The cells are those of a JSONL file with the same values.
static void test_json(void **state)
{
    (void)state;
    static const struct {
        const char *json, *text;
    } same[] = {{"true", "true"},   {"false", "false"},
                {"2.0", "2"},       {"1e5", "100000"},
                {"1.50", "1.5"},    {"0.30000000000000004", "0.30000000000000004"},
                {"\"2.0\"", "2.0"}, {"9007199254740993", "9007199254740993"}};
    bel_columns *columns;
    int64_t id = 0, expected = 0;
    BEL_ASSERT_OK(bel_columns_parse("columns:\n  - {name: m, kind: hash}\n"
                                    "  - {name: y, kind: label, classes: [\"no\", \"yes\"]}\n",
                                    "c.yaml", &columns));
    bel_cell_rows rows = {.columns = columns,
                          .column = &columns->items[0],
                          .tensor = {BEL_DTYPE_I64, BEL_SHAPE(1), &id},
                          .ids = true};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char *list = bel_strf("[%s]", same[i].json);
        bel_json *json;
        BEL_ASSERT_OK(bel_json_parse(list, strlen(list), "list", &json));
        BEL_ASSERT_OK(bel_cells_take_json(&rows, 0, bel_json_at(bel_json_root(json), 0)));
        bel_json_destroy(json);
        bel_free(list);
        rows.tensor.data = &expected;
        const bel_cell cell = {same[i].text, strlen(same[i].text)};
        BEL_ASSERT_OK(bel_cells_put(&rows, cell, 0));
        rows.tensor.data = &id;
        assert_int_equal(id, expected);
    }
    bel_columns_destroy(columns);
}

// true is the value that the table has for it, and others that it does not have are counted.
static void test_unknown(void **state)
{
    (void)state;
    static const char text[] =
        "columns:\n"
        "  - {name: f, kind: category, as: one_hot, values: [\"no\", \"True\"]}\n"
        "  - {name: y, kind: label, classes: [\"no\", \"yes\"]}\n";
    bel_columns *columns;
    bel_json *json;
    int64_t id = 0;
    _Atomic uint64_t unknown = 0;
    BEL_ASSERT_OK(bel_columns_parse(text, "c.yaml", &columns));
    bel_cell_rows rows = {.columns = columns,
                          .column = &columns->items[0],
                          .tensor = {BEL_DTYPE_I64, BEL_SHAPE(1), &id},
                          .model = "m",
                          .unknown = &unknown};
    static const char list[] = "[true, \"True\", null, false, \"maybe\", 501]";
    static const int64_t expected[] = {1, 1, -1, -1, -1, -1};
    BEL_ASSERT_OK(bel_json_parse(list, strlen(list), "list", &json));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        BEL_ASSERT_OK(bel_cells_take_json(&rows, 0, bel_json_at(bel_json_root(json), i)));
        assert_int_equal(id, expected[i]);
    }
    assert_int_equal(unknown, 3);
    bel_json_destroy(json);
    bel_columns_destroy(columns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_json),
                                       cmocka_unit_test(test_unknown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
