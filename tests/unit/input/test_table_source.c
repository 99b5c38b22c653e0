// Tables as datasets: which rows are left out, which cells are missing, and rows that come one by
// one.
#include <string.h>

#include "belfry/columns.h"
#include "columns/description.h"
#include "input/table_rows.h"
#include "unit/input/test_fixture.h"

// A file in the test's own folder; free with bel_free.
static char *file_of(const char *text)
{
    return bel_test_file(bel_test_own_folder(), "t.csv", text, strlen(text));
}

static bel_columns *infer(const char *path, const bel_columns_options *options)
{
    bel_columns *columns = NULL;
    BEL_ASSERT_OK(
        bel_columns_infer(&(bel_csv_options){.paths = (const char *const[]){path}, .path_count = 1},
                          options, &columns));
    return columns;
}

static bel_dataset *dataset_of(const char *path, const bel_columns *columns)
{
    bel_dataset *dataset = bel_dataset_from_csv(&(bel_csv_options){
        .paths = (const char *const[]){path}, .path_count = 1, .table = columns});
    bel_dataset_batch(dataset, 64);
    return dataset;
}

// Reads at most 64 rows of a dataset, which is then no longer needed; how many there are. "x" is
// copied to `out_x` (NULL: not).
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
    bel_columns *columns =
        infer(path, &(bel_columns_options){.missing = missing, .missing_count = 1});
    float x[5][4];
    assert_int_equal(read_all(dataset_of(path, columns), x[0]), 5);
    static const float indicators[5][2] = {{1, 0}, {0, 1}, {0, 0}, {0, 1}, {1, 0}};
    for (int i = 0; i < 5; i++)
        assert_true(x[i][1] == indicators[i][0] && x[i][3] == indicators[i][1]);
    bel_columns_destroy(columns);
    bel_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_numbers_may_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
