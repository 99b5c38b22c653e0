// Tests of complete models that other tools wrote, with a symbolic batch (tests/golden/onnx:
// make.py). Each is built once without its inputs' values, and run at two batches on the plain and
// on the fast kernels.
#include <stdio.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "onnx/onnx_case.h"
#include "support/bel_test.h"

enum { SETS = 2, LEAST_MODELS = 26, LEAST_CLOSED = 22, LEAST_CLOSED_PAIRS = 10 };

static bel_status *run_set(const char *folder, int set)
{
    onnx_case opened;
    BEL_TRY(onnx_case_open(folder, set, &opened));
    bel_status *status = NULL;
    for (int way = 0; way < 4 && status == NULL; way++) {
        double difference = 0;
        bool reference = way % 2 == 0, variables = way >= 2;
        status = onnx_case_run_open(&opened, reference, variables, &difference);
        if (status == NULL && difference > 1e-5)
            status = BEL_ERR(BEL_INTERNAL, "off by %g", difference);
    }
    onnx_case_close(&opened);
    return status;
}

// Runs a model as if its file closed the batch at 1, and at 2.
static int closed_models[2];
static bel_status *run_closed(const char *folder, int set)
{
    onnx_case opened;
    BEL_TRY(onnx_case_open(folder, set, &opened));
    bel_status *status = NULL;
    for (int way = 0; way < 4 && status == NULL; way++) {
        double difference = 0;
        bool fits, variables = way >= 2, pairs = way % 2 == 1;
        status = onnx_case_run_closed(&opened, pairs ? 2 : 1, variables, &fits, &difference);
        if (pairs && bel_status_code(status) == BEL_UNIMPLEMENTED) {
            bel_status_ignore(status); // the build cannot prove that the two stay apart
            status = NULL;
            continue;
        }
        if (status == NULL && difference > 1e-5)
            status = BEL_ERR(BEL_INTERNAL, "closed at %d: off by %g", pairs ? 2 : 1, difference);
        if (fits && !variables) closed_models[pairs]++;
    }
    onnx_case_close(&opened);
    return status;
}

static void test_each_model(bel_status *run(const char *folder, int set))
{
    char *root = bel_xstrdup("tests/golden/onnx"), **names;
    size_t count;
    int models = 0, failed = 0;
    BEL_ASSERT_OK(bel_dir_list(root, &names, &count));
    for (size_t i = 0; i < count; i++) {
        char *folder = bel_path_join(root, names[i]);
        char *model = bel_path_join(folder, "model.onnx");
        bool is_model = bel_file_exists(model);
        models += is_model;
        for (int set = 0; set < SETS && is_model; set++) {
            bel_status *status = run(folder, set);
            if (status != NULL) {
                failed++;
                printf("FAILED %s, set %d: %s\n", names[i], set, bel_status_message(status));
            }
            bel_status_destroy(status);
        }
        bel_free(model);
        bel_free(folder);
        bel_free(names[i]);
    }
    bel_free(names);
    bel_free(root);
    assert_int_equal(failed, 0);
    assert_true(models >= LEAST_MODELS);
}

static void test_models(void **state)
{
    (void)state;
    test_each_model(run_set);
}

static void test_closed_batches_are_opened(void **state)
{
    (void)state;
    test_each_model(run_closed);
    printf("closed at 1: %d models, at 2: %d\n", closed_models[0], closed_models[1]);
    assert_true(closed_models[0] >= LEAST_CLOSED);
    assert_true(closed_models[1] >= LEAST_CLOSED_PAIRS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models),
                                       cmocka_unit_test(test_closed_batches_are_opened)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
