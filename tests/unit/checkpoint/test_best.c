// Best checkpoint of a folder: its statement is read back, retention keeps it, and opening it
// succeeds or names the reason.
#include "checkpoint/best.h"

#include <math.h>
#include <unistd.h>

#include "base/str.h"
#include "belfry/checkpoint.h"
#include "unit/checkpoint/test_fixture.h"

static void state_best(int64_t step, float value)
{
    const bel_ckpt_best best = {.step = step,
                                .metric = "accuracy",
                                .value = value,
                                .higher = true,
                                .evaluation = "eval_\"test\""};
    BEL_ASSERT_OK(bel_ckpt_best_write(bel_test_own_folder(), &best));
}

static void write_best(const char *text)
{
    bel_free(bel_test_file(bel_test_own_folder(), BEL_BEST_FILE, text, strlen(text)));
}

static void save(int64_t first, int64_t last)
{
    model made;
    bel_hash128 digest;
    model_init(&made, 0);
    for (int64_t step = first; step <= last; step++)
        BEL_ASSERT_OK(model_save(&made, bel_test_own_folder(), step, 1, &digest));
    model_deinit(&made);
}

static void expect_steps(const char *expected)
{
    int64_t *steps;
    size_t count;
    bel_str text = {0};
    BEL_ASSERT_OK(bel_ckpt_list(bel_test_own_folder(), &steps, &count));
    bel_str_puts(&text, "");
    for (size_t i = 0; i < count; i++)
        bel_str_printf(&text, "%s%lld", i > 0 ? " " : "", (long long)steps[i]);
    assert_string_equal(text.text, expected);
    bel_str_deinit(&text);
    bel_free(steps);
}

static void test_it_comes_back(void **state)
{
    (void)state;
    bel_ckpt_best best;
    bool found = true;
    BEL_ASSERT_OK(bel_ckpt_best_read(bel_test_own_folder(), &best, &found));
    assert_false(found);
    state_best(40, 0.9F);
    char *text, *path = bel_path_join(bel_test_own_folder(), BEL_BEST_FILE);
    size_t size;
    BEL_ASSERT_OK(bel_file_read(path, &text, &size));
    assert_string_equal(text, "{\"step\": 40, \"metric\": \"accuracy\", \"value\": 0.9, "
                              "\"goal\": \"max\", \"evaluation\": \"eval_\\\"test\\\"\"}\n");
    bel_free(text);
    bel_free(path);
    BEL_ASSERT_OK(bel_ckpt_best_read(bel_test_own_folder(), &best, &found));
    assert_true(found && best.step == 40 && best.value == 0.9F && best.higher);
    assert_string_equal(best.metric, "accuracy");
    assert_string_equal(best.evaluation, "eval_\"test\"");
    state_best(50, INFINITY);
    BEL_ASSERT_OK(bel_ckpt_best_read(bel_test_own_folder(), &best, &found));
    assert_true(best.step == 50 && isnan(best.value));
    BEL_ASSERT_OK(bel_ckpt_best_forget(bel_test_own_folder()));
    BEL_ASSERT_OK(bel_ckpt_best_forget(bel_test_own_folder())); // no file remains
    BEL_ASSERT_OK(bel_ckpt_best_read(bel_test_own_folder(), &best, &found));
    assert_false(found);
}

static void test_damage(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"step\": -1, \"metric\": \"a\", \"goal\": \"max\", \"evaluation\": \"e\"}",
        "{\"step\": \"40\", \"metric\": \"a\", \"goal\": \"max\", \"evaluation\": \"e\"}"};
    save(1, 3);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bel_ckpt_best best;
        bool found;
        write_best(texts[i]);
        BEL_ASSERT_FAILS(bel_ckpt_best_read(bel_test_own_folder(), &best, &found), BEL_DATA_LOSS,
                         BEL_BEST_FILE);
        bel_ckpt_retain(bel_test_own_folder(), 1, 0, -1); // unknown which ones may go
        expect_steps("1 2 3");
    }
}

static void test_retention(void **state)
{
    (void)state;
    save(1, 6);
    state_best(2, 0.5F);
    bel_ckpt_retain(bel_test_own_folder(), 2, 0, -1);
    expect_steps("2 5 6");
    save(7, 7);
    bel_ckpt_retain(bel_test_own_folder(), 2, 0, 5); // step 5 is being evaluated
    expect_steps("2 5 6 7");
    state_best(6, 0.6F); // one of the newest anyway
    bel_ckpt_retain(bel_test_own_folder(), 2, 0, -1);
    expect_steps("6 7");
    save(8, 9);
    bel_ckpt_retain(bel_test_own_folder(), 1, 0, -1);
    expect_steps("6 9");
    state_best(9, 0.7F);
    bel_ckpt_retain(bel_test_own_folder(), 1, 0, -1);
    expect_steps("9");
}

static void test_opening(void **state)
{
    (void)state;
    bel_checkpoint *checkpoint;
    save(1, 3);
    BEL_ASSERT_FAILS(bel_checkpoint_open_best(bel_test_own_folder(), &checkpoint), BEL_NOT_FOUND,
                     "no checkpoint that is kept as the best");
    state_best(2, 0.5F);
    BEL_ASSERT_OK(bel_checkpoint_open_best(bel_test_own_folder(), &checkpoint));
    assert_int_equal(bel_checkpoint_step(checkpoint), 2);
    bel_checkpoint_close(checkpoint);
    state_best(7, 0.5F);
    BEL_ASSERT_FAILS(bel_checkpoint_open_best(bel_test_own_folder(), &checkpoint), BEL_NOT_FOUND,
                     "the best checkpoint, that of step 7, is not there");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_it_comes_back),
        BEL_TEST_IN_FOLDER(test_damage),
        BEL_TEST_IN_FOLDER(test_retention),
        BEL_TEST_IN_FOLDER(test_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
