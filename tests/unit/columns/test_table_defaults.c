// Default settings for training on a table (docs/columns.md).
#include <math.h>

#include "columns/defaults.h"
#include "support/bel_test.h"

static bel_table_defaults of(int64_t rows, int columns, bool numbers, int class_count)
{
    const bel_table_size size = {rows, columns, numbers, class_count};
    return bel_table_defaults_of(&size);
}

static void assert_near(double value, double expected)
{
    assert_true(fabs(value - expected) < 1e-12);
}

static void test_layers_follow_from_rows_and_kinds(void **state)
{
    (void)state;
    assert_string_equal(of(499, 8, true, 3).hidden_units, "16");
    assert_string_equal(of(500, 8, true, 3).hidden_units, "128,64");
    assert_string_equal(of(500, 8, true, 0).hidden_units, "128,64");
    assert_string_equal(of(5000, 8, true, 0).hidden_units, "256,128");
    assert_string_equal(of(499, 8, true, 2).hidden_units, "64"); // two classes
    assert_string_equal(of(4999, 8, true, 2).hidden_units, "64");
    assert_string_equal(of(5000, 8, true, 2).hidden_units, "64,32");
    assert_string_equal(of(500, 8, false, 3).hidden_units, "64,32"); // one of them a category
    assert_string_equal(of(19999, 8, false, 2).hidden_units, "64,32");
    assert_string_equal(of(499, 8, false, 0).hidden_units, "16"); // a number
    assert_string_equal(of(500, 8, false, 0).hidden_units, "64");
    assert_string_equal(of(4999, 8, false, 0).hidden_units, "64");
    assert_string_equal(of(5000, 8, false, 0).hidden_units, "64,32");
    assert_string_equal(of(20000, 8, false, 2).hidden_units, "256,128");
    assert_string_equal(of(19999, 8, false, 2).dropout, "0.2");
    assert_string_equal(of(20000, 8, false, 2).dropout, "0");
    assert_string_equal(of(19999, 8, false, 2).learning_rate, "0.01");
    assert_string_equal(of(20000, 8, false, 2).learning_rate, "0.003");
    assert_string_equal(of(499, 8, false, 0).learning_rate, "0.01");
    assert_string_equal(of(500, 8, false, 0).learning_rate, "0.003");
    assert_string_equal(of(4999, 8, false, 0).learning_rate, "0.003");
    assert_string_equal(of(5000, 8, false, 0).learning_rate, "0.01");
    assert_string_equal(of(500, 8, true, 0).learning_rate, "0.01");
}

static void test_the_penalty_is_that_of_columns_for_each_row(void **state)
{
    (void)state;
    assert_near(of(999, 10, false, 2).l2, 0.003);
    assert_near(of(999, 10, false, 5).l2, 0.003);
    assert_near(of(999, 10, true, 5).l2, 0.0003);
    assert_near(of(999, 10, false, 0).l2, 0.01);
    assert_near(of(999, 10, true, 0).l2, 0.001);
    assert_near(of(399, 4, true, 3).l2, 0.01); // minimum for tiny tables
    assert_near(of(399, 4, true, 0).l2, 0.01); // 4 / 400
    assert_near(of(99, 90, false, 0).l2, 0.1); // the maximum
    assert_near(of(0, 0, true, 2).l2, 0.01);   // for a description written by hand
    assert_near(of(99, 60, true, 2).l2, 0.01); // two classes of numbers: only rows count
    assert_near(of(999, 60, true, 2).l2, 0.01);
    assert_near(of(3999, 60, true, 2).l2, 0.0025);
    assert_near(of(7999, 80, true, 2).l2, 0.003);
}

static void test_small_tables_have_more_passes(void **state)
{
    (void)state;
    const struct {
        int64_t rows;
        bool numbers;
        int64_t epochs, batch;
    } cases[] = {{0, false, 300, 32},           {199, false, 300, 32},   {999, false, 100, 32},
                 {999, true, 200, 64},          {4999, true, 40, 64},    {5000, false, 19, 128},
                 {15002, true, 30, 128},        {40000, true, 10, 128},  {50000, false, 10, 128},
                 {99999, false, 10, 128},       {100000, false, 3, 512}, {100000, true, 10, 512},
                 {INT64_MAX - 1, true, 10, 512}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_table_defaults d = of(cases[i].rows, 10, cases[i].numbers, 5);
        assert_int_equal(d.epochs, cases[i].epochs);
        assert_int_equal(d.batch_size, cases[i].batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_follow_from_rows_and_kinds),
        cmocka_unit_test(test_the_penalty_is_that_of_columns_for_each_row),
        cmocka_unit_test(test_small_tables_have_more_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
