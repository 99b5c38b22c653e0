// Flags of a run that a program removes from its arguments.
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "belfry/belfry.h"
#include "estimator/run_flags.h"
#include "support/bel_test.h"

enum { MOST = 24 };

// Splits words at single blanks, like the arguments of main. The words are stored in `text`.
static int split(const char *words, char *text, size_t room, char **out_list)
{
    int count = 0;
    assert_true(bel_snprintf(text, room, "%s", words) < (int)room);
    for (char *at = text; at != NULL; at = strchr(at, ' ')) {
        if (*at == ' ') *at++ = '\0';
        assert_true(count < MOST);
        out_list[count++] = at;
    }
    return count;
}

static bel_status *take(const char *words, bel_run_config *config, char *left, size_t room)
{
    static char text[512]; // the configuration points into it
    char *list[MOST + 1] = {NULL};
    int count = split(words, text, sizeof text, list);
    bel_run_config_init(config, sizeof *config);
    bel_status *status = bel_run_config_flags(config, &count, list);
    left[0] = '\0';
    for (int i = 0; i < count && status == NULL; i++) {
        strncat(left, list[i], room - strlen(left) - 1);
        strncat(left, " ", room - strlen(left) - 1);
    }
    if (status == NULL) assert_null(list[count]);
    return status;
}

static void flags_are_taken_and_others_stay(void **state)
{
    (void)state;
    bel_run_config config;
    char left[512];
    BEL_ASSERT_OK(take("program --mode async data.csv --num_gpus=4 --own x --noisy --no_report "
                       "--train_metrics --seed 7 --average=sum --stall_timeout 1.5 "
                       "--activation_memory 3 --memory_limit 5 --model_dir here -- --mode sync",
                       &config, left, sizeof left));
    assert_string_equal(left, "program data.csv --own x --noisy -- --mode sync ");
    assert_int_equal(config.mode, BEL_AGGREGATE_ASYNC);
    assert_int_equal(config.num_gpus, 4);
    assert_false(config.report);
    assert_true(config.train_metrics);
    assert_int_equal(config.seed, 7);
    assert_int_equal(config.average, BEL_AVERAGE_SUM);
    assert_true(config.stall_timeout == 1.5);
    assert_int_equal(config.activation_memory, 3 << 20);
    assert_int_equal(config.memory_limit, 5 << 20);
    assert_string_equal(config.model_dir, "here");
    assert_null(config.trace);
    BEL_ASSERT_OK(take("--mode async", &config, left, sizeof left)); // not the program's name
    assert_string_equal(left, "--mode async ");
    BEL_ASSERT_OK(
        take("program --report=false --report --trace= --num_gpus 0", &config, left, sizeof left));
    assert_true(config.report); // the last one counts
    assert_null(config.trace);
    assert_int_equal(config.num_gpus, 0);
}

static void malformed_flags_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *words, *said;
    } cases[] = {
        {"p --mode", "--mode: its value is missing"},
        {"p --mode fast", "--mode: expected sync|async|bounded, got \"fast\""},
        {"p --num_workers two", "--num_workers: expected an integer, got \"two\""},
        {"p --num_workers 99999999999", "--num_workers: expected an integer"},
        {"p --num_workers=", "--num_workers: expected an integer, got \"\""},
        {"p --activation_memory 9999999999999999", "--activation_memory: expected an integer"},
        {"p --stall_timeout nan", "--stall_timeout: expected a number, got \"nan\""},
        {"p --report=maybe", "--report: expected false|true, got \"maybe\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_run_config config;
        char left[64];
        BEL_ASSERT_FAILS(take(cases[i].words, &config, left, sizeof left), BEL_INVALID_ARGUMENT,
                         cases[i].said);
    }
    bel_run_config config;
    BEL_ASSERT_FAILS(bel_run_config_set(&config, "modes", "sync"), BEL_INVALID_ARGUMENT,
                     "there is no setting \"modes\"");
}

static void left_flags_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *words, *said; // NULL: no error
    } cases[] = {
        {"p data.csv 100", NULL},
        {"p -x -", NULL},
        {"p data.csv -- --anything", NULL},
        {"p data.csv --nun_workers 4", "--nun_workers: there is no such flag; did you mean "
                                       "--num_workers?"},
        {"p --sed=4", "--sed: there is no such flag; did you mean --seed?"},
        {"p --entirely_of_its_own", "--entirely_of_its_own: there is no such flag"},
        {"p --towers_of_workers 3", "--towers_of_workers: there is no such flag"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64], *list[MOST];
        int count = split(cases[i].words, text, sizeof text, list);
        bel_status *status = bel_refuse_flags(count, list);
        if (cases[i].said == NULL) {
            BEL_ASSERT_OK(status);
        } else {
            BEL_ASSERT_FAILS(status, BEL_INVALID_ARGUMENT, cases[i].said);
        }
    }
}

// A program's defaults are those of the table, and are in its ranges.
static void defaults_are_accepted(void **state)
{
    (void)state;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    BEL_ASSERT_OK(bel_run_config_check_rows(&config));
    assert_null(config.model_dir);
    assert_int_equal(config.num_workers, 1);
    assert_int_equal(config.num_gpus, 0);
    assert_true(config.save_checkpoints_secs == 600);
    assert_true(config.report && config.averages && config.chief_trains);
    assert_int_equal(config.accumulate_steps, 1);
}

// Every name appears once.
static void names_are_distinct(void **state)
{
    (void)state;
    size_t count = 0;
    for (; bel_run_flag(count) != NULL; count++)
        for (size_t i = 0; i < count; i++)
            assert_string_not_equal(bel_run_flag(i), bel_run_flag(count));
    assert_true(count > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_are_taken_and_others_stay),
        cmocka_unit_test(malformed_flags_are_named),
        cmocka_unit_test(left_flags_are_refused),
        cmocka_unit_test(defaults_are_accepted),
        cmocka_unit_test(names_are_distinct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
