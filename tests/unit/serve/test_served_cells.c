// Cells of a served table: a number has the meaning of its text in a file, in every protocol.
#include <math.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
