// Tests of a program whose locale has a decimal comma. Numbers still have a point in every text,
// and training gives the same bits, saved in one locale and resumed in the other. The test makes
// the locale with localedef's input (part of the C library's package), so none must be installed.
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/linux_process.h"
#include "base/str.h"
#include "master/backend/journal.h"
#include "support/bel_test.h"
#include "support/digits.h"

static const char numbers[] = "LC_NUMERIC\n"
                              "decimal_point \"<U002C>\"\n"
                              "thousands_sep \"<U002E>\"\n"
                              "grouping 3;3\n"
                              "END LC_NUMERIC\n";

static char *characters(void)
{
    bel_str text = {0};
    bel_str_puts(&text, "<code_set_name> PLAIN\n<mb_cur_min> 1\n<mb_cur_max> 1\n"
                        "<escape_char> /\nCHARMAP\n");
    for (int i = 0; i < 128; i++)
        bel_str_printf(&text, "<U%04X> /x%02x\n", i, i);
    bel_str_puts(&text, "END CHARMAP\n");
    return text.text;
}

static char *folder;

// Makes "comma" in `folder`. localedef also warns about every missing definition, and exits with 1.
static int make_locale(void **state)
{
    (void)state;
    folder = bel_test_folder();
    char *map_text = characters(), *locale = bel_path_join(folder, "comma");
    char *source = bel_test_file(folder, "source", numbers, sizeof numbers - 1);
    char *map = bel_test_file(folder, "map", map_text, strlen(map_text));
    char program[] = "localedef", plain[] = "--no-archive", go_on[] = "-c", quiet[] = "--quiet",
         input[] = "-i", charmap[] = "-f";
    char *arguments[] = {program, plain, go_on, quiet, input, source, charmap, map, locale, NULL};
    bel_linux_process process;
    bel_linux_end end;
    BEL_ASSERT_OK(bel_linux_process_spawn(&(bel_linux_spawn){.program = "/usr/bin/localedef",
                                                             .arguments = arguments,
                                                             .standard = {-1, -1, -1}},
                                          &process));
    assert_true(bel_linux_process_wait(&process, 60000, &end));
    assert_int_equal(setenv("LOCPATH", folder, 1), 0);
    bel_free(map_text);
    bel_free(locale);
    bel_free(source);
    bel_free(map);
    return 0;
}

static int remove_locale(void **state)
{
    (void)state;
    bel_test_remove_folder(folder);
    return 0;
}

static void comma(void)
{
    char text[8];
    assert_non_null(setlocale(LC_NUMERIC, "comma"));
    snprintf(text, sizeof text, "%.1f", 0.5);
    assert_string_equal(text, "0,5");
}

static void point(void)
{
    assert_non_null(setlocale(LC_NUMERIC, "C"));
}

static void assert_text(char *owned, const char *expected)
{
    assert_string_equal(owned, expected);
    bel_free(owned);
}

static void test_texts(void **state)
{
    (void)state;
    bel_str json = {0};
    double number = 0;
    comma();
    assert_text(bel_strf("%.2f", 0.25), "0.25");
    assert_true(bel_parse_f64("0.25", 4, &number) && number == 0.25);
    assert_false(bel_parse_f64("0,25", 4, &number));
    BEL_ASSERT_FAILS(BEL_ERR(BEL_INTERNAL, "got %g", 0.25), BEL_INTERNAL, "got 0.25");
    bel_json_write_number(&json, 0.1);
    assert_text(json.text, "0.1");
    bel_json *read;
    BEL_ASSERT_OK(bel_json_parse("{\"rate\": 0.25}", 14, "text", &read));
    bel_json_destroy(read);
    point();
}

static void test_journal(void **state)
{
    (void)state;
    uint32_t generation = 0;
    const bel_journal_line line = {.event = "generation", .generation = 3, .text = "x"};
    char *at = bel_test_folder();
    comma();
    BEL_ASSERT_OK(bel_journal_write(at, &line)); // its time has a fraction
    BEL_ASSERT_OK(bel_journal_generation(at, &generation));
    point();
    assert_int_equal(generation, 3);
    bel_test_remove_folder(at);
}

static void train(const char *model_dir, int64_t steps, bel_result *out_result)
{
    const bel_param params[] = {{"hidden_units", "16"},     {"class_count", "10"},
                                {"optimizer", "adamw"},     {"learning_rate", "0.001"},
                                {"weight_decay", "0.0001"}, {"dropout", "0.25"}};
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    BEL_ASSERT_OK(bel_test_digits_train(config, model_dir, 32, steps, params,
                                        sizeof params / sizeof params[0], true, out_result));
}

static void test_training(void **state)
{
    (void)state;
    bel_result plain = {.size = sizeof plain}, first = {.size = sizeof first},
               second = {.size = sizeof second};
    char *undisturbed = bel_test_folder(), *changing = bel_test_folder();
    train(undisturbed, 30, &plain);
    comma();
    train(changing, 10, &first);
    point();
    train(changing, 20, &first);
    comma();
    train(changing, 30, &second);
    point();
    assert_string_equal(plain.digest, second.digest);
    assert_true(plain.loss == second.loss);
    assert_true(isfinite(second.loss) && second.metric_count == 1);
    assert_true(plain.metrics[0].value == second.metrics[0].value);
    bel_test_remove_folder(undisturbed);
    bel_test_remove_folder(changing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_journal),
                                       cmocka_unit_test(test_training)};
    return cmocka_run_group_tests(tests, make_locale, remove_locale);
}
