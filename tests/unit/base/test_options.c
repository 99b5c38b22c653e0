// Options: every type from every source, precedence, origins, and errors that name the setting to
// change.
#include "support/bel_test.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/str.h"

enum { RING = 1, CAST = 2 };
#define ONLY_HERE BEL_OPTION_COMMAND_LINE_ONLY

static const bel_option table[] = {
    {"train_files", BEL_OPTION_STRINGS, RING | CAST, "", NULL, "FILE", "Data", "What to read.",
     NULL},
    {"batch_size", BEL_OPTION_INT, RING, "128", "[1, 1024]", "examples", "Data", "How many.", NULL},
    {"seed", BEL_OPTION_INT, RING, "1", NULL, NULL, "Data", "Where chance begins.", NULL},
    {"rate", BEL_OPTION_DOUBLE, RING, "0.5", "(0, 1]", NULL, "Model", "How fast.", NULL},
    {"optimizer", BEL_OPTION_STRING, RING, "sgd", "sgd|adam", NULL, "Model", "Which rule.", NULL},
    {"note", BEL_OPTION_STRING, RING, "", NULL, NULL, "Model", "Anything.", NULL},
    {"sizes", BEL_OPTION_INTS, RING, "512,512", "[1, 4096]", "units", "Model", "Layer sizes.",
     NULL},
    {"param", BEL_OPTION_PAIRS, RING, "", NULL, NULL, "Model", "For packages.", NULL},
    {"nesterov", BEL_OPTION_BOOL, RING, "false", NULL, NULL, "Model", "looks ahead.",
     "optimizer=sgd|momentum"},
    {"beta", BEL_OPTION_DOUBLE, RING, "0.9", NULL, NULL, "Model", "decays.", "optimizer=adam"},
    {"ramp", BEL_OPTION_BOOL, RING, "false", NULL, NULL, "Model", "Goes up.", "seed"},
    {"often", BEL_OPTION_INT, RING, "1", NULL, NULL, "Model", "How often.", "!seed"},
    {"report", BEL_OPTION_BOOL, RING, "true", NULL, NULL, "Model", "Writes a report.", NULL},
    {"weight", BEL_OPTION_DOUBLE, CAST, "1", "[0, inf)", "kg", "Bell", "Of the bell.", NULL},
    {"batch_size", BEL_OPTION_INT, CAST, "7", "[0, 9]", "bells", "Bell", "How many at once.", NULL},
    {"keep", BEL_OPTION_INT, RING, "5", NULL, NULL, "Model", "How many.", NULL},
    {"hours", BEL_OPTION_INT, RING, "0", NULL, NULL, "Model", "Also those.", "keep!=0|1"},
    {"goal", BEL_OPTION_STRING, RING, "", NULL, NULL, "Model", "Which way.",
     "seed or weight or optimizer=adam|lamb"},
    {"files", BEL_OPTION_FILES, RING, "", NULL, "FILE", "Data", "Some files.", NULL},
    {"h", BEL_OPTION_BOOL, RING, "false", NULL, NULL, "Bell", "Says little.", NULL},
    {"config_file", BEL_OPTION_STRING, RING | ONLY_HERE, "", NULL, NULL, "Bell", "YAML.", NULL},
};

static bel_options *make(void)
{
    return bel_options_create(table, sizeof table / sizeof table[0], RING);
}

// Parses arguments separated by spaces. No value in these tests contains a space.
static bel_status *parse(bel_options *options, const char *line)
{
    char text[512];
    char *arguments[32];
    int count = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *rest = NULL, *word = strtok_r(text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest))
        arguments[count++] = word;
    return bel_options_parse(options, count, arguments);
}

static void assert_list(const bel_options *options, const char *name, const char *joined,
                        size_t expected_count)
{
    size_t count;
    bel_options_list(options, name, &count);
    assert_int_equal(count, expected_count);
    assert_string_equal(bel_options_text(options, name), joined);
}

static void test_defaults(void **state)
{
    (void)state;
    bel_options *options = make();
    assert_int_equal(bel_options_int(options, "batch_size"), 128);
    assert_true(bel_options_double(options, "rate") == 0.5);
    assert_string_equal(bel_options_string(options, "optimizer"), "sgd");
    assert_null(bel_options_string(options, "note"));
    assert_string_equal(bel_options_text(options, "note"), "");
    assert_true(bel_options_bool(options, "report"));
    assert_false(bel_options_bool(options, "nesterov"));
    assert_list(options, "train_files", "", 0);
    assert_list(options, "sizes", "512,512", 2);
    assert_int_equal(bel_options_list_int(options, "sizes", 1), 512);
    assert_string_equal(bel_options_origin(options, "rate"), "default");
    assert_false(bel_options_is_given(options, "rate"));
    bel_options_destroy(options);
}

static void test_command_line(void **state)
{
    (void)state;
    bel_options *options = make();
    BEL_ASSERT_OK(parse(options, "first --train_files a.csv,b.csv --train-files=c.csv --seed -7 "
                                 "--batch-size 8 --batch_size=16 --rate 1e-3 --nesterov "
                                 "--no-report --sizes=64 --param h=1,2 --param k= --note=x=y "
                                 "-- --last"));
    assert_list(options, "train_files", "a.csv,b.csv,c.csv", 3);
    assert_list(options, "sizes", "64", 1);
    assert_list(options, "param", "h=1,2,k=", 2);
    assert_int_equal(bel_options_int(options, "batch_size"), 16);
    assert_int_equal(bel_options_int(options, "seed"), -7);
    assert_true(bel_options_double(options, "rate") == 1e-3);
    assert_true(bel_options_bool(options, "nesterov"));
    assert_false(bel_options_bool(options, "report"));
    assert_string_equal(bel_options_string(options, "note"), "x=y");
    assert_string_equal(bel_options_origin(options, "rate"), "command line");
    size_t count;
    const char *const *arguments = bel_options_arguments(options, &count);
    assert_int_equal(count, 2);
    assert_string_equal(arguments[0], "first");
    assert_string_equal(arguments[1], "--last");
    assert_int_equal(bel_options_own_argument_count(options), 1);
    bel_options_destroy(options);
}

// Two rows with one name: each command uses its row's default and range.
static void test_same_name(void **state)
{
    (void)state;
    bel_options *options = make();
    BEL_ASSERT_OK(parse(options, "--batch_size 10"));
    assert_int_equal(bel_options_int(options, "batch_size"), 10);
    bel_options_destroy(options);
    options = bel_options_create(table, sizeof table / sizeof table[0], CAST);
    assert_int_equal(bel_options_int(options, "batch_size"), 7);
    BEL_ASSERT_FAILS(parse(options, "--batch_size 10"), BEL_INVALID_ARGUMENT, "[0, 9]");
    bel_options_destroy(options);
}

static void test_command_line_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"--trian_files x", "unknown flag --trian_files; did you mean --train_files?"},
        {"--trian-files=x", "unknown flag --trian-files; did you mean --train_files?"},
        {"-rate 1", "unknown flag -rate; did you mean --rate?"},
        {"--zzzzzzzzzzzz", "unknown flag --zzzzzzzzzzzz; --help lists all flags"},
        {"--weight 3", "flag --weight belongs to another command"},
        {"--batch_size 0", "--batch_size: expected an integer in [1, 1024], got \"0\""},
        {"--batch_size 1025", "got \"1025\""},
        {"--batch_size 1.5", "got \"1.5\""},
        {"--batch_size=", "got \"\""},
        {"--batch_size 99999999999999999999", "got \"99999999999999999999\""},
        {"--batch_size", "--batch_size: expected an integer in [1, 1024], got nothing"},
        {"--batch_size --rate 1", "--batch_size: expected an integer in [1, 1024], got nothing"},
        {"--rate 0", "--rate: expected a number in (0, 1], got \"0\""},
        {"--rate nan", "got \"nan\""},
        {"--rate 1x", "got \"1x\""},
        {"--optimizer adm", "--optimizer: expected one of sgd, adam, got \"adm\""},
        {"--optimizer ad", "got \"ad\""},
        {"--optimizer=", "--optimizer: expected one of sgd, adam, got \"\""},
        {"--sizes 5,x", "--sizes: expected integers in [1, 4096], got \"x\""},
        {"--sizes 5,,5", "got \"\""},
        {"--train_files a,,b", "--train_files: expected a text, got \"\""},
        {"--param hidden", "--param: expected NAME=VALUE, got \"hidden\""},
        {"--param =1", "--param: expected NAME=VALUE, got \"=1\""},
        {"--nesterov=yes", "--nesterov: expected true or false, got \"yes\""},
        {"--no_nesterov=true", "--no_nesterov takes no value"},
        {"--no_rate", "unknown flag --no_rate; did you mean --"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_options *options = make();
        BEL_ASSERT_FAILS(parse(options, cases[i].line), BEL_INVALID_ARGUMENT, cases[i].message);
        bel_options_destroy(options);
    }
}

static bel_status *read_yaml(bel_options *options, const char *text)
{
    char *folder = bel_test_folder();
    char *path = bel_test_file(folder, "c.yaml", text, strlen(text));
    bel_status *status = bel_options_read_yaml(options, path);
    bel_free(path);
    bel_test_remove_folder(folder);
    return status;
}

static void test_yaml_values(void **state)
{
    (void)state;
    bel_options *options = make();
    BEL_ASSERT_OK(read_yaml(options, "train-files: [\"a,b.csv\", c.csv]\n"
                                     "batch_size: 16\n"
                                     "rate:\n"
                                     "nesterov: true\n"
                                     "no_report: true\n"
                                     "sizes: 64,32\n"
                                     "param: {depth: 2, name: x}\n"
                                     "weight: 2\n"));
    assert_list(options, "train_files", "a,b.csv,c.csv", 2);
    assert_list(options, "sizes", "64,32", 2);
    assert_list(options, "param", "depth=2,name=x", 2);
    assert_int_equal(bel_options_int(options, "batch_size"), 16);
    assert_true(bel_options_double(options, "rate") == 0.5);
    assert_true(bel_options_bool(options, "nesterov"));
    assert_false(bel_options_bool(options, "report"));
    assert_non_null(strstr(bel_options_origin(options, "batch_size"), "c.yaml:2:13"));
    bel_options_destroy(options);
}

static void test_command_line_wins_in_any_order(void **state)
{
    (void)state;
    const char *yaml = "rate: 0.25\ntrain_files: [y.csv]\nseed: 9\n";
    for (int yaml_first = 0; yaml_first < 2; yaml_first++) {
        bel_options *options = make();
        if (yaml_first) BEL_ASSERT_OK(read_yaml(options, yaml));
        BEL_ASSERT_OK(parse(options, "--rate 0.75 --train_files c.csv"));
        if (!yaml_first) BEL_ASSERT_OK(read_yaml(options, yaml));
        assert_true(bel_options_double(options, "rate") == 0.75);
        assert_list(options, "train_files", "c.csv", 1);
        assert_int_equal(bel_options_int(options, "seed"), 9);
        assert_string_equal(bel_options_origin(options, "rate"), "command line");
        bel_options_destroy(options);
    }
}

static void test_yaml_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"seed: 1\nbatchsize: 4\n",
         "c.yaml:2:1: unknown key \"batchsize\"; did you mean batch_size?"},
        {"seed: 1\nbatch_size: many\n",
         "c.yaml:2:13: batch_size: expected an integer in [1, 1024], got \"many\""},
        {"seed: [1, 2]\n", "c.yaml:1:7: seed: expected an integer, got a list"},
        {"sizes: {a: 1}\n", "c.yaml:1:8: sizes: expected integers in [1, 4096], got a mapping"},
        {"sizes: [1, [2]]\n", "c.yaml:1:12: sizes: expected"},
        {"batch_size: 1\nbatch-size: 2\n", "c.yaml:2:1: batch_size is given twice"},
        {"config_file: x\n", "c.yaml:1:1: config_file belongs on the command line"},
        {"- a\n- b\n", "c.yaml:1:1: expected lines like"},
        {"weight: -1\n", "weight: expected a number in [0, inf), got \"-1\""},
        {"no_report: maybe\n", "report: expected true or false, got \"maybe\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_options *options = make();
        BEL_ASSERT_FAILS(read_yaml(options, cases[i].text), BEL_INVALID_ARGUMENT, cases[i].message);
        bel_options_destroy(options);
    }
}

static void test_first_error_counts_and_the_rest_is_read(void **state)
{
    (void)state;
    bel_options *options = make();
    BEL_ASSERT_FAILS(parse(options, "--zzzzzzzz --rate 7 --optimizer adam"), BEL_INVALID_ARGUMENT,
                     "unknown flag --zzzzzzzz");
    assert_string_equal(bel_options_string(options, "optimizer"), "adam");
    bel_options_destroy(options);
}

static void test_help(void **state)
{
    (void)state;
    bel_options *options = make();
    bel_str text = {0};
    size_t count = bel_options_help(options, &(bel_options_choice){0}, &text);
    assert_int_equal(count, sizeof table / sizeof table[0] - 2); // two belong to the other command
    assert_non_null(strstr(text.text, "\nData\n  --train_files FILE,..  "));
    assert_non_null(strstr(text.text, "\n  --files FILE ..  "));
    assert_non_null(strstr(text.text, "\n  -h  "));
    assert_non_null(strstr(text.text, " How many. (default: 128; examples; [1, 1024])\n"));
    assert_non_null(strstr(text.text, "\n  --[no_]report "));
    assert_non_null(strstr(text.text, "\n  --optimizer sgd|adam "));
    assert_null(strstr(text.text, "--weight"));
    bel_str_deinit(&text);
    bel_options_destroy(options);
}

// Help about some flags: the common ones, or those whose row contains all words. A word may also
// match through a synonym of the field.
static void test_help_of_some(void **state)
{
    (void)state;
    static const char *const common[] = {"rate", "train_files", NULL};
    static const bel_option_word words[] = {{"speed", "rate"}, {NULL, NULL}};
    static const struct {
        bool common;
        const char *words[2];
        size_t count;
        const char *flags; // the flags shown, in order
    } cases[] = {
        {true, {0}, 0, "train_files rate "},
        {false, {"READ"}, 1, "train_files "},
        {false, {"batch-size"}, 1, "batch_size "},
        {false, {"speed"}, 1, "rate "},
        {false, {"adam"}, 1, "optimizer beta goal "},
        {false, {"adam", "decays"}, 2, "beta "},
        {true, {"adam"}, 1, ""},
        {false, {"nothing like it"}, 1, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_options *options = make();
        bel_options_know_common(options, common);
        bel_options_know_words(options, words);
        bel_str text = {0}, flags = {0};
        bel_str_puts(&text, "");
        bel_str_puts(&flags, "");
        bel_options_choice choice = {cases[i].common, cases[i].words, cases[i].count};
        size_t count = bel_options_help(options, &choice, &text);
        for (const char *at = text.text; (at = strstr(at, "\n  --")) != NULL; count--) {
            at += strlen("\n  --");
            bel_str_printf(&flags, "%.*s ", (int)strcspn(at, " "), at);
        }
        assert_string_equal(flags.text, cases[i].flags);
        assert_int_equal(count, 0);
        bel_str_deinit(&text);
        bel_str_deinit(&flags);
        bel_options_destroy(options);
    }
}

// A shell expands *.csv to several words: a flag of files takes every word up to the next flag.
static void test_files_of_a_shell(void **state)
{
    (void)state;
    bel_options *options = make();
    BEL_ASSERT_OK(parse(options,
                        "--files a.csv b.csv,c.csv - --seed 2 first --files d.csv -h second "
                        "--files=e.csv third --train_files f.csv fourth --files g.csv -- h"));
    assert_list(options, "files", "a.csv,b.csv,c.csv,-,d.csv,e.csv,g.csv", 7);
    assert_list(options, "train_files", "f.csv", 1);
    size_t count;
    const char *const *arguments = bel_options_arguments(options, &count);
    static const char *const expected[] = {"first", "second", "third", "fourth", "h"};
    assert_int_equal(count, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(arguments[i], expected[i]);
    assert_int_equal(bel_options_arguments_before(options, "h"), 1);
    bel_options_destroy(options);
    options = make();
    BEL_ASSERT_FAILS(parse(options, "--files --seed 2"), BEL_INVALID_ARGUMENT,
                     "--files: expected names of files, got nothing");
    bel_options_destroy(options);
}

// A flag without effect is refused, whatever its value, order and source.
static void test_who_reads(void **state)
{
    (void)state;
    static const bel_option_meaning none[] = {{NULL, NULL}};
    static const bel_option_meaning unknown[] = {{"optimizer", NULL}, {NULL, NULL}};
    static const bel_option_meaning adam[] = {{"optimizer", "adam"}, {NULL, NULL}};
    static const struct {
        const char *line, *error; // NULL: accepted
    } rows[] = {
        {"", NULL},
        {"--nesterov", NULL},
        {"--beta 0.5 --optimizer adam", NULL},
        {"--ramp --seed 2", NULL},
        {"--often 3", NULL},
        {"--no_nesterov --optimizer adam",
         "--no_nesterov has no effect without --optimizer sgd or momentum, and that is adam"},
        {"--beta 0.9", "--beta has no effect without --optimizer adam, and that is sgd"},
        {"--ramp", "--ramp has no effect without --seed"},
        {"--often 3 --seed 2", "--often has no effect with --seed: give one of the two"},
        {"--hours 2", NULL},
        {"--hours 2 --keep 1", "--hours has no effect with --keep 1"},
        {"--goal up --seed 2", NULL},
        {"--goal up --optimizer adam", NULL},
        {"--goal up", "--goal has no effect without --seed or --optimizer adam or lamb"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bel_options *options = make();
        BEL_ASSERT_OK(parse(options, rows[i].line));
        if (rows[i].error == NULL) {
            BEL_ASSERT_OK(bel_options_check_read(options, none));
        } else {
            BEL_ASSERT_FAILS(bel_options_check_read(options, none), BEL_INVALID_ARGUMENT,
                             rows[i].error);
        }
        bel_options_destroy(options);
    }
    bel_options *options = make();
    BEL_ASSERT_OK(parse(options, "--beta 0.9"));
    BEL_ASSERT_OK(bel_options_check_read(options, unknown));
    BEL_ASSERT_OK(bel_options_check_read(options, adam));
    bel_options_destroy(options);
    options = make();
    BEL_ASSERT_OK(parse(options, "--nesterov"));
    BEL_ASSERT_FAILS(bel_options_check_read(options, adam), BEL_INVALID_ARGUMENT,
                     "--nesterov has no effect without --optimizer sgd or momentum, and that is "
                     "adam");
    bel_str text = {0};
    bel_options_help(options, &(bel_options_choice){0}, &text);
    assert_non_null(strstr(text.text, "sgd, momentum: looks ahead."));
    bel_str_deinit(&text);
    bel_options_destroy(options);
}

static void test_help_is_wrapped(void **state)
{
    (void)state;
    static const bel_option wide[] = {
        {"a_flag_with_a_name_that_is_too_long", BEL_OPTION_BOOL, 1, "false", NULL, NULL, "G",
         "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
         "sixteen seventeen.",
         NULL},
    };
    bel_options *options = bel_options_create(wide, 1, 1);
    bel_str text = {0};
    bel_options_help(options, &(bel_options_choice){0}, &text);
    for (char *rest = NULL, *line = strtok_r(text.text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        assert_true(strlen(line) <= 100);
    bel_str_deinit(&text);
    bel_options_destroy(options);
}

static void test_dump_reads_back(void **state)
{
    (void)state;
    bel_options *options = make(), *again = make();
    BEL_ASSERT_OK(parse(options, "--note=\"\\ü: --param a=1,2 --train_files x,y --no_report "
                                 "--config_file z --rate 1e-3"));
    bel_str text = {0}, second = {0};
    bel_options_dump(options, &text);
    assert_null(strstr(text.text, "config_file"));
    assert_non_null(strstr(text.text, "rate: 1e-3 # command line\n"));
    BEL_ASSERT_OK(read_yaml(again, text.text));
    for (size_t i = 0; i + 1 < sizeof table / sizeof table[0]; i++)
        assert_string_equal(bel_options_text(options, table[i].name),
                            bel_options_text(again, table[i].name));
    bel_options_dump(again, &second);
    bel_str_deinit(&text);
    bel_str_deinit(&second);
    bel_options_destroy(options);
    bel_options_destroy(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_command_line),
        cmocka_unit_test(test_same_name),
        cmocka_unit_test(test_command_line_refusals),
        cmocka_unit_test(test_yaml_values),
        cmocka_unit_test(test_command_line_wins_in_any_order),
        cmocka_unit_test(test_yaml_refusals),
        cmocka_unit_test(test_first_error_counts_and_the_rest_is_read),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_help_of_some),
        cmocka_unit_test(test_files_of_a_shell),
        cmocka_unit_test(test_who_reads),
        cmocka_unit_test(test_help_is_wrapped),
        cmocka_unit_test(test_dump_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
