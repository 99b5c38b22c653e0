// The better of two metric values: by name, as requested, and for NaN.
#include "evaluate/goal.h"
#include "model/spec.h"

#include <math.h>
#include <string.h>

#include "support/bel_test.h"

static void test_names(void **state)
{
    (void)state;
    static const char *const lower[] = {
        "loss", "root_mean_squared_error", "mean_absolute_error", "mse", "rmse", "mae", "error"};
    static const char *const higher[] = {"accuracy", "auc",   "precision", "recall", "f1",
                                         "r2",       "top_k", "top_5",     "top_10"};
    static const char *const unknown[] = {"",       "top_", "top_x",         "top_5x",
                                          "clicks", "Loss", "accuracy_of_us"};
    for (size_t i = 0; i < sizeof lower / sizeof lower[0]; i++)
        assert_int_equal(bel_goal_of(lower[i]), BEL_GOAL_MIN);
    for (size_t i = 0; i < sizeof higher / sizeof higher[0]; i++)
        assert_int_equal(bel_goal_of(higher[i]), BEL_GOAL_MAX);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        assert_int_equal(bel_goal_of(unknown[i]), BEL_GOAL_AUTO);
}

static void test_resolving(void **state)
{
    (void)state;
    bel_goal goal = BEL_GOAL_AUTO;
    BEL_ASSERT_OK(bel_goal_resolve(BEL_GOAL_AUTO, "auc", "a test", &goal));
    assert_int_equal(goal, BEL_GOAL_MAX);
    BEL_ASSERT_OK(bel_goal_resolve(BEL_GOAL_MIN, "auc", "a test", &goal)); // the caller decides
    assert_int_equal(goal, BEL_GOAL_MIN);
    BEL_ASSERT_OK(bel_goal_resolve(BEL_GOAL_MAX, "clicks", "a test", &goal));
    assert_int_equal(goal, BEL_GOAL_MAX);
    BEL_ASSERT_FAILS(bel_goal_resolve(BEL_GOAL_AUTO, "clicks", "a test", &goal),
                     BEL_INVALID_ARGUMENT, "a test: which of two values of \"clicks\" is better");
    BEL_ASSERT_FAILS(bel_goal_resolve((bel_goal)7, "auc", "a test", &goal), BEL_INVALID_ARGUMENT,
                     "no such goal");
    assert_int_equal(goal, BEL_GOAL_MAX); // an error sets nothing
}

static void test_better(void **state)
{
    (void)state;
    for (int up = 0; up < 2; up++) {
        bel_goal goal = up ? BEL_GOAL_MAX : BEL_GOAL_MIN;
        assert_true(bel_goal_is_better(goal, up ? 2 : 1, up ? 1 : 2));
        assert_false(bel_goal_is_better(goal, up ? 1 : 2, up ? 2 : 1));
        assert_false(bel_goal_is_better(goal, 1, 1));
        assert_false(bel_goal_is_better(goal, NAN, 1));
        assert_false(bel_goal_is_better(goal, NAN, NAN));
        assert_true(bel_goal_is_better(goal, up ? -INFINITY : INFINITY, NAN));
        assert_true(bel_goal_is_better(goal, 1, up ? -INFINITY : INFINITY));
    }
}

static void test_metrics(void **state)
{
    (void)state;
    bel_estimator_spec spec = {.metric_count = 2};
    spec.metrics[0].name = "accuracy";
    spec.metrics[1].name = "auc";
    BEL_ASSERT_OK(bel_goal_check_metric(&spec, "loss", "a test", "eval"));
    BEL_ASSERT_OK(bel_goal_check_metric(&spec, "auc", "a test", "eval"));
    BEL_ASSERT_FAILS(bel_goal_check_metric(&spec, "recall", "a test", "eval"), BEL_INVALID_ARGUMENT,
                     "a test: eval has no metric \"recall\"; it has loss, accuracy, auc");
    const bel_result result = {
        .loss = 3, .metric_count = 1, .metrics = {{.name = "auc", .value = 0.5}}};
    assert_true(bel_goal_value(&result, "loss") == 3);
    assert_true(bel_goal_value(&result, "auc") == 0.5);
    assert_true(isnan(bel_goal_value(&result, "recall")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_resolving),
        cmocka_unit_test(test_better),
        cmocka_unit_test(test_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
