// Rows held out of a training: each row is in one part, each class gives its share, and the order
// of the file does not matter.
#include "base/str.h"
#include "belfry/columns.h"
#include "unit/input/test_fixture.h"

enum { ROWS = 1000, CLASSES = 4 };

// Line i holds i and its label. The classes form blocks; the last class is rare.
static int class_of(int row)
{
    return row < 400 ? 0 : row < 700 ? 1 : row < 980 ? 2 : 3;
}

typedef struct table {
    char *folder, *path;
    const char *paths[1];
} table;

static void table_init(table *t, int rows)
{
    bel_str text = {0};
    bel_str_puts(&text, "number,label\n");
    for (int i = 0; i < rows; i++)
        bel_str_printf(&text, "%d,%d\n", i, class_of(i));
    t->folder = bel_test_folder();
    t->path = bel_test_file(t->folder, "a.csv", text.text, text.length);
    t->paths[0] = t->path;
    bel_str_deinit(&text);
}

static void table_deinit(table *t)
{
    bel_free(t->path);
    bel_test_remove_folder(t->folder);
}

static bel_dataset *dataset_of(const table *t, const bel_holdout *holdout)
{
    bel_dataset *dataset = bel_dataset_from_csv(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                                   .paths = t->paths,
                                                                   .path_count = 1,
                                                                   .label_column = "label",
                                                                   .holdout = *holdout});
    bel_dataset_batch(dataset, ROWS);
    return dataset;
}

// Counts each row read, and checks that its label still belongs to it.
static int count_rows(const table *t, const bel_holdout *holdout, int *counts)
{
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset_of(t, holdout), &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    const float *numbers = batch_field(input, batch, "x")->data;
    const int64_t *labels = batch_field(input, batch, BEL_LABEL_FIELD)->data;
    int rows = (int)batch->example_count;
    assert_int_equal(bel_input_epoch_records(input), rows);
    for (int i = 0; i < rows; i++) {
        int row = (int)numbers[i];
        assert_int_equal(labels[i], class_of(row));
        assert_true(i == 0 || numbers[i - 1] < numbers[i]); // in the file's order
        counts[row]++;
    }
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    return rows;
}

static void assert_shares(const int *counts, double share)
{
    int of[CLASSES] = {0}, all[CLASSES] = {0};
    for (int i = 0; i < ROWS; i++) {
        of[class_of(i)] += counts[i];
        all[class_of(i)]++;
    }
    for (int c = 0; c < CLASSES; c++)
        assert_in_range(of[c] + 1000, (int)(all[c] * share) - 1 + 1000,
                        (int)(all[c] * share) + 2 + 1000);
}

static void share_of_each_class(void **state)
{
    (void)state;
    table t;
    table_init(&t, ROWS);
    const double shares[] = {0.2, 0.05, 0.5, 0.731};
    for (int s = 0; s < 4; s++) {
        int held[ROWS] = {0}, others[ROWS] = {0};
        bel_holdout holdout = {.share = shares[s], .seed = 7};
        int trained = count_rows(&t, &holdout, others);
        holdout.held = true;
        int evaluated = count_rows(&t, &holdout, held);
        assert_int_equal(trained + evaluated, ROWS);
        assert_int_equal(evaluated, (int)(ROWS * shares[s]));
        for (int i = 0; i < ROWS; i++)
            assert_int_equal(held[i] + others[i], 1);
        assert_shares(held, shares[s]);
    }
    table_deinit(&t);
}

static void folds_hold_each_row_once(void **state)
{
    (void)state;
    table t;
    table_init(&t, ROWS);
    for (int folds = 2; folds <= 7; folds++) {
        int counts[ROWS] = {0};
        for (int fold = 0; fold < folds; fold++) {
            int held[ROWS] = {0}, others[ROWS] = {0};
            bel_holdout holdout = {.fold = fold, .fold_count = folds};
            count_rows(&t, &holdout, others);
            holdout.held = true;
            count_rows(&t, &holdout, held);
            assert_shares(held, 1.0 / folds);
            for (int i = 0; i < ROWS; i++) {
                assert_int_equal(held[i] + others[i], 1);
                counts[i] += held[i];
            }
        }
        for (int i = 0; i < ROWS; i++)
            assert_int_equal(counts[i], 1);
    }
    table_deinit(&t);
}

static void seeds_choose_others(void **state)
{
    (void)state;
    table t;
    table_init(&t, ROWS);
    int first[ROWS] = {0}, again[ROWS] = {0}, other[ROWS] = {0}, same = 0;
    bel_holdout holdout = {.share = 0.2, .seed = 1, .held = true};
    count_rows(&t, &holdout, first);
    count_rows(&t, &holdout, again);
    assert_memory_equal(first, again, sizeof first);
    holdout.seed = 2;
    count_rows(&t, &holdout, other);
    for (int i = 0; i < ROWS; i++)
        same += first[i] == 1 && other[i] == 1;
    assert_in_range(same, 10, 80); // 40 by chance
    table_deinit(&t);
}

// The rows to predict are the rows of an evaluation, although their labels are not read.
static void same_rows_without_labels(void **state)
{
    (void)state;
    table t;
    table_init(&t, ROWS);
    bel_columns *columns;
    BEL_ASSERT_OK(bel_columns_parse("columns:\n  - {name: number, kind: number, scale: none}\n"
                                    "  - {name: label, kind: label, classes: [\"0\", \"1\", \"2\", "
                                    "\"3\"]}\n",
                                    "test", &columns));
    float rows[2][ROWS];
    int64_t counts[2];
    for (int unlabeled = 0; unlabeled < 2; unlabeled++) {
        bel_dataset *dataset = bel_dataset_from_csv(
            &(bel_csv_options){.size = sizeof(bel_csv_options),
                               .paths = t.paths,
                               .path_count = 1,
                               .table = columns,
                               .unlabeled = unlabeled,
                               .holdout = {.share = 0.2, .seed = 3, .held = true}});
        bel_dataset_batch(dataset, ROWS);
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(dataset, &input));
        bel_batch *batch = bel_batch_create(input);
        BEL_ASSERT_OK(bel_input_read(input, 0, batch));
        counts[unlabeled] = batch->example_count;
        memcpy(rows[unlabeled], batch_field(input, batch, "x")->data,
               (size_t)batch->example_count * sizeof(float));
        bel_batch_destroy(batch);
        bel_input_destroy(input);
    }
    assert_int_equal(counts[0], ROWS / 5);
    assert_int_equal(counts[1], counts[0]);
    assert_memory_equal(rows[0], rows[1], (size_t)counts[0] * sizeof(float));
    bel_columns_destroy(columns);
    table_deinit(&t);
}

static void refused(void **state)
{
    (void)state;
    table t;
    table_init(&t, 3);
    const bel_holdout wrong[] = {{.share = 1},
                                 {.share = -0.1},
                                 {.share = 0.2, .fold_count = 5},
                                 {.fold = 5, .fold_count = 5},
                                 {.fold_count = 1},
                                 {.fold = -1, .fold_count = 2},
                                 {.share = 0.2}}; // leaves no rows of 3
    bel_input *input;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        BEL_ASSERT_FAILS(open_and_destroy(dataset_of(&t, &wrong[i]), &input), BEL_INVALID_ARGUMENT,
                         i < 6 ? "expected a share" : "takes all 3 rows or none");
    table_deinit(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(share_of_each_class),
        cmocka_unit_test(folds_hold_each_row_once),
        cmocka_unit_test(seeds_choose_others),
        cmocka_unit_test(same_rows_without_labels),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
