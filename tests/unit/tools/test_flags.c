// The command's table of flags: each row with a `when` refuses its flag if no condition holds. The
// conditions name existing flags and values.
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "command/flags.h"
#include "support/bel_test.h"

enum { VERBS = 38 }; // bits of bel_option.uses

static const bel_option_meaning nothing_else[] = {{NULL, NULL}};

static void give(bel_options *options, const char *name, const char *value)
{
    const bel_option *option = bel_options_find(options, name);
    bool is_switch = option->type == BEL_OPTION_BOOL;
    char *word = is_switch ? bel_strf("--%s%s", strcmp(value, "true") == 0 ? "" : "no_", name)
                           : bel_strf("--%s=%s", name, value);
    BEL_ASSERT_OK(bel_options_parse(options, 1, &word));
    bel_free(word);
}

// Gives an option another accepted value than its default.
static void give_other(bel_options *options, const char *name)
{
    static const char *const tries[] = {"true", "false", "2", "0.5", "0.2", "x", "a=b", "best"};
    const bel_option *option = bel_options_find(options, name);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        bel_options *trial = bel_options_create_like(options);
        char *word = bel_strf("--%s=%s", name, tries[i]);
        bel_status *status = bel_options_parse(trial, 1, &word);
        bool taken = status == NULL && strcmp(option->otherwise, tries[i]) != 0;
        bel_status_ignore(status); // try the next one
        bel_options_destroy(trial);
        bel_free(word);
        if (!taken) continue;
        give(options, name, tries[i]);
        return;
    }
    const char *choices = option->accepts, *bar = choices != NULL ? strrchr(choices, '|') : NULL;
    assert_non_null(bar); // no value was found for this flag
    give(options, name, bar + 1);
}

// A condition of a row's `when`, parsed independently of the code under test.
typedef struct condition {
    char name[64], first[64]; // first accepted value; "": any other than the default
    bool negated, by_default; // by_default: it holds at the option's default
} condition;

enum { MOST_CONDITIONS = 4 };

// Reads the conditions on flags that the verb has.
static int read_conditions(const bel_options *options, const char *when, condition *out)
{
    int count = 0;
    char *copy = bel_xstrdup(when);
    for (char *at = copy, *next; at != NULL; at = next) {
        next = strstr(at, " or ");
        if (next != NULL) *next = '\0', next += strlen(" or ");
        assert_true(count < MOST_CONDITIONS);
        condition *c = &out[count];
        *c = (condition){.negated = strchr(at, '!') != NULL};
        at += at[0] == '!';
        char *values = strchr(at, '=');
        bel_snprintf(c->name, sizeof c->name, "%.*s", (int)strcspn(at, "!="), at);
        if (values != NULL)
            bel_snprintf(c->first, sizeof c->first, "%.*s", (int)strcspn(values + 1, "|"),
                         values + 1);
        const bel_option *option = bel_options_find(options, c->name);
        if (option == NULL) continue;
        bool listed = values != NULL && bel_list_find(values + 1, "|", option->otherwise) >= 0;
        c->by_default = listed != c->negated;
        count++;
    }
    bel_free(copy);
    return count;
}

static void make_hold(bel_options *options, const condition *c)
{
    if (c->by_default) return;
    if (c->first[0] == '\0' || c->negated) {
        give_other(options, c->name);
    } else {
        give(options, c->name, c->first);
    }
}

// Whether the error is about this flag: flags in a condition may have conditions themselves.
static bool is_about(const bel_status *status, const char *name)
{
    char *words = bel_strf("%s has no effect with", name); // after -- or --no_
    const char *at = status != NULL ? strstr(bel_status_message(status), words) : NULL;
    size_t before = at != NULL ? (size_t)(at - bel_status_message(status)) : 0;
    bel_free(words);
    return before == strlen("--") || before == strlen("--no_");
}

static bool is_refused(const bel_options *options, const char *name)
{
    bel_status *status = bel_options_check_read(options, nothing_else);
    bool refused = is_about(status, name);
    bel_status_ignore(status); // an error of this flag, or of another
    return refused;
}

// Checks that the flag is refused if no condition holds by default, and accepted if one is met.
static bool look_at(uint64_t verb, const bel_option *row)
{
    condition conditions[MOST_CONDITIONS];
    bel_options *bare = bel_flags_create(verb);
    int count = read_conditions(bare, row->when, conditions);
    bool by_default = count == 0;
    for (int i = 0; i < count; i++)
        by_default = by_default || conditions[i].by_default;
    give(bare, row->name, row->otherwise);
    assert_int_equal(is_refused(bare, row->name), !by_default);
    bel_options_destroy(bare);
    for (int i = 0; i < count; i++) {
        if (strcmp(conditions[i].first, "onnx") == 0) continue; // stands for names of files
        bel_options *options = bel_flags_create(verb);
        give(options, row->name, row->otherwise);
        make_hold(options, &conditions[i]);
        assert_false(is_refused(options, row->name));
        bel_options_destroy(options);
    }
    return !by_default;
}

static void flags_without_effect_are_refused(void **state)
{
    (void)state;
    int refused = 0;
    for (unsigned v = 0; v < VERBS; v++) {
        bel_options *all = bel_flags_create(UINT64_C(1) << v);
        const bel_option *row;
        for (size_t i = 0; (row = bel_options_at(all, i)) != NULL; i++)
            refused += row->when != NULL && look_at(UINT64_C(1) << v, row);
        bel_options_destroy(all);
    }
    assert_true(refused > 100);
}

// The error for each flag that has no effect without another.
static void they_are_named(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"--best_goal=max",
         "--best_goal has no effect without --early_stopping or --export or --keep_best"},
        {"--best_metric=accuracy",
         "--best_metric has no effect without --early_stopping or --export or --best_goal"},
        {"--min_delta=0.1", "--min_delta has no effect without --early_stopping"},
        {"--decay_steps=9", "--decay_steps has no effect without --schedule exponential or cosine"},
        {"--eval_batch_size=9",
         "--eval_batch_size has no effect without --eval_files or --eval_share"},
        {"--evaluate_on_workers",
         "--evaluate_on_workers has no effect without --eval_files or --eval_share"},
        {"--id_list_most=9", "--id_list_most has no effect without --id_list_columns"},
        {"--clip_each_replica", "--clip_each_replica has no effect without --clip_value or "
                                "--clip_norm or --clip_global_norm"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bel_options *options = bel_flags_create(BEL_VERB_TRAIN_AND_EVALUATE);
        char *word = bel_xstrdup(rows[i][0]);
        BEL_ASSERT_OK(bel_options_parse(options, 1, &word));
        BEL_ASSERT_FAILS(bel_options_check_read(options, nothing_else), BEL_INVALID_ARGUMENT,
                         rows[i][1]);
        bel_free(word);
        bel_options_destroy(options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_without_effect_are_refused),
        cmocka_unit_test(they_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
