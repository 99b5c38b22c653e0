// Names of files in a store's model folder: who may send which.
#include "launch/folder/stored_files.h"
#include "support/bel_test.h"

// One row per kind of name. The columns: owner, evaluator, verb, exporter; a curve.
static void test_senders(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool owner, evaluator, verb, exporter, curve;
    } rows[] = {
        {"ckpt-00000050/manifest.json", true, false, false, false, false},
        {"best.json", true, false, false, true, false},
        {"events.out.tfevents.1", true, false, false, true, false},
        {"eval/events.out.tfevents.1", true, false, false, true, false},
        {"eval_evaluator/events.out.tfevents.1", true, false, false, true, false},
        {"evaluator/events.out.tfevents.1", true, true, false, true, true},
        {"evaluator_other/events.out.tfevents.1", true, true, false, true, true},
        {"evaluator", true, false, false, true, false},
        {"evaluator_other", true, false, false, true, false},
        {"evaluators/x", true, false, false, true, false},
        {"evaluate/events.out.tfevents.1", true, false, true, true, true},
        {"evaluate_other/events.out.tfevents.1", true, false, true, true, true},
        {"export/100/signature.json", true, false, true, true, false},
        {"export/100", true, false, false, true, false},
        {"export/best/100/signature.json", true, false, false, true, false},
        {"signature.json", true, false, false, true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *name = rows[i].name;
        bool good = bel_stored_may_send(BEL_STORED_OWNER, name) == rows[i].owner &&
                    bel_stored_may_send(BEL_STORED_EVALUATOR, name) == rows[i].evaluator &&
                    bel_stored_may_send(BEL_STORED_VERB, name) == rows[i].verb &&
                    bel_stored_may_send(BEL_STORED_EXPORTER, name) == rows[i].exporter &&
                    bel_stored_is_curve(name) == rows[i].curve;
        if (!good) fail_msg("%s", name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_senders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
