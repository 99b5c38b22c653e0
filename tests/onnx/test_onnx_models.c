// Whole models as other tools write them, with a symbolic batch (tests/golden/onnx: make.py): each
// is built once without knowing its inputs, and run at two batches on the plain and on the fast
// kernels.
#include <stdio.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "onnx/onnx_case.h"
#include "support/bel_test.h"

enum { SETS = 2, LEAST_MODELS = 26 };

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

static void test_models(void **state)
{
    (void)state;
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
            bel_status *status = run_set(folder, set);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
