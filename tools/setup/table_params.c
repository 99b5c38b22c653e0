// Defaults of models that learn from a table: the tables' defaults, and parameters that follow from
// the label. A resumed training uses its checkpoint's values. A model of tokens has other defaults
// (setup_text.c).
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/columns.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/setting_names.h"
#include "columns/description.h"
#include "setup/follow.h"
#include "setup/tables.h"

static void set_number(bel_params *params, const char *name, double value)
{
    char text[32];
    bel_snprintf(text, sizeof text, "%.17g", value);
    bel_params_set(params, name, text);
}

// A file that grows has no number of rows from which defaults could follow: a stream never becomes
// small enough to overfit. Texts have the same ones for any number.
static bel_table_defaults defaults_of(const bel_options *options, const bel_columns *columns)
{
    bel_table_defaults of_table = bel_columns_defaults(columns);
    if (!bel_follows(options) || columns->tokens >= 0) return of_table;
    return (bel_table_defaults){.hidden_units = "256,128",
                                .dropout = "0",
                                .learning_rate = "0.003",
                                .l2 = 0,
                                .batch_size = 128,
                                .epochs = of_table.epochs};
}

int64_t bel_table_batch_size(const bel_options *options, const bel_columns *columns)
{
    return defaults_of(options, columns).batch_size;
}

int64_t bel_table_epochs(const bel_columns *columns)
{
    return bel_columns_defaults(columns).epochs;
}

static int64_t batch_of(const bel_options *options, const bel_columns *columns)
{
    bool given = bel_options_is_given(options, "train_batch_size");
    return given ? bel_options_int(options, "train_batch_size")
                 : bel_table_batch_size(options, columns);
}

int64_t bel_table_steps(const bel_options *options, const bel_columns *columns, int64_t blocks)
{
    int64_t steps = bel_options_int(options, "train_steps"), epochs = bel_table_epochs(columns);
    int64_t batch = batch_of(options, columns) * blocks, rows = bel_columns_rows(columns);
    if (steps > 0) return steps;
    if (bel_options_int(options, "num_epochs") > 0) epochs = bel_options_int(options, "num_epochs");
    if (rows > 0 && epochs > INT64_MAX / 2 / rows) epochs = INT64_MAX / 2 / rows;
    steps = (epochs * rows + batch - 1) / batch;
    return steps > 0 ? steps : 1; // a description by hand may have no row count
}

int64_t bel_table_eval_steps(const bel_options *options, const bel_columns *columns, int64_t blocks)
{
    enum { MOST = 100 };
    static const char *const flags[] = {"eval_every_steps", "save_checkpoints_steps",
                                        "save_checkpoints_secs"};
    if (!bel_options_has(options, "keep_best")) return 0;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (bel_options_is_given(options, flags[i])) return 0;
    bool compares = bel_options_is_given(options, "keep_best") ||
                    bel_options_is_given(options, "early_stopping");
    if (!compares) return 0;
    int64_t steps = bel_table_steps(options, columns, blocks);
    int64_t batch = batch_of(options, columns) * blocks;
    int64_t pass = (bel_columns_rows(columns) + batch - 1) / batch, least = steps / MOST;
    return pass > least ? pass : least > 0 ? least : 1;
}

// Sets a parameter that no flag sets: to the checkpoint's value, or to a default of tables.
static bel_status *set_default(bel_params *params, const char *name, const char *value,
                               const char *remembering)
{
    char *was = NULL, *setting = bel_strf("param.%s", name);
    bel_status *status =
        remembering != NULL ? bel_ckpt_latest_setting(remembering, setting, &was) : NULL;
    if (status == NULL) bel_params_set(params, name, was != NULL ? was : value);
    bel_free(setting);
    bel_free(was);
    return status;
}

// FTRL divides by the rate, and lowers it by its sums: a rate that falls to 0 does not fit it. A
// file that is followed has no last step at which it would be 0.
static const char *schedule_of(const bel_options *options)
{
    if (bel_follows(options)) return "constant";
    return strcmp(bel_options_string(options, "optimizer"), "ftrl") == 0 ? "constant" : "cosine";
}

// If the schedule counts --decay_steps, it ends with the training. "decay_over" reports this to a
// resumed training, which may be longer (model/longer.h). A checkpoint without it had
// --decay_steps.
static bel_status *set_decay(bel_params *params, const bel_options *options,
                             const bel_columns *columns, const char *remembering, int64_t blocks)
{
    const bel_option *flag = bel_options_find(options, "decay_steps");
    const char *schedules = strchr(flag->when, '=') + 1;
    bool decays = bel_list_find(schedules, "|", bel_params_get(params, "schedule")) >= 0;
    char steps[32], *was = NULL;
    if (!decays || bel_options_is_given(options, "decay_steps")) return NULL;
    if (bel_follows(options))
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "--schedule %s: with --follow it needs --decay_steps, as the file has no end",
            bel_params_get(params, "schedule"));
    bel_snprintf(steps, sizeof steps, "%lld", (long long)bel_table_steps(options, columns, blocks));
    if (remembering != NULL)
        BEL_TRY(bel_ckpt_latest_setting(remembering, BEL_SETTING_DECAY_OVER, &was));
    if (remembering != NULL && was == NULL)
        return set_default(params, "decay_steps", steps, remembering);
    bel_free(was);
    bel_params_set(params, "decay_steps", steps);
    bel_params_set(params, "decay_over", "training");
    return NULL;
}

// Sets the model's flags for which tables have other defaults.
static bel_status *set_defaults(bel_params *params, const bel_options *options,
                                const bel_columns *columns, const char *remembering, int64_t blocks)
{
    bel_table_defaults of_table = defaults_of(options, columns);
    char penalty[32];
    bel_snprintf(penalty, sizeof penalty, "%.3g", of_table.l2); // it has three digits
    const struct {
        const char *flag, *value;
    } defaults[] = {{"hidden_units", of_table.hidden_units},
                    {"wide_numbers", "true"},
                    {"dropout", of_table.dropout},
                    {"l2", penalty},
                    {"learning_rate", of_table.learning_rate},
                    {"schedule", schedule_of(options)}};
    bel_str set = {0};
    bel_status *status = NULL;
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0] && status == NULL; i++) {
        if (bel_options_is_given(options, defaults[i].flag)) continue;
        status = set_default(params, defaults[i].flag, defaults[i].value, remembering);
        const char *value = bel_params_get(params, defaults[i].flag);
        if (value != NULL) bel_str_printf(&set, " --%s %s", defaults[i].flag, value);
    }
    bool follows = bel_follows(options);
    if (follows && !bel_options_is_given(options, "train_batch_size"))
        bel_str_printf(&set, " --train_batch_size %lld", (long long)of_table.batch_size);
    if (status == NULL && set.length > 0)
        bel_log_write(BEL_LOG_INFO, "defaults for %s:%s",
                      follows ? "a file that grows" : "this table", set.text);
    bel_str_deinit(&set);
    BEL_TRY(status);
    return set_decay(params, options, columns, remembering, blocks);
}

static void put_weight(bel_str *text, int class_number, double weight)
{
    bel_str_printf(text, "%s%.17g", class_number > 0 ? "," : "", weight);
}

// The weight of a class is rows / (classes · its rows): the sum of the weights over all rows stays
// the same.
static bel_status *balance_classes(const bel_columns *columns, bel_str *text)
{
    int count = bel_columns_class_count(columns);
    double all = 0;
    for (int c = 0; c < count; c++)
        all += bel_columns_class_rows(columns, c);
    for (int c = 0; c < count; c++) {
        double rows = bel_columns_class_rows(columns, c);
        if (rows > 0) {
            put_weight(text, c, all / (count * rows));
            continue;
        }
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--class_weights balanced: the description of the columns does not say how "
                       "many rows the class \"%s\" has",
                       bel_columns_class(columns, c));
    }
    return NULL;
}

// Turns "CLASS=WEIGHT,…" into a number for each class.
static bel_status *weigh_named(const bel_columns *columns, const char *given, bel_str *text)
{
    int count = bel_columns_class_count(columns);
    double *weights = bel_xcalloc((size_t)count, sizeof *weights);
    bel_status *status = NULL;
    for (int c = 0; c < count; c++)
        weights[c] = 1;
    for (const char *at = given; status == NULL && *at != '\0';) {
        size_t length = strcspn(at, ",");
        char *item = bel_xstrndup(at, length), *equals = strrchr(item, '=');
        int found = count;
        if (equals != NULL) *equals = '\0';
        for (int c = 0; c < count && equals != NULL; c++)
            if (strcmp(bel_columns_class(columns, c), item) == 0) found = c;
        if (found == count || !bel_parse_f64(equals + 1, strlen(equals + 1), &weights[found]) ||
            !(weights[found] >= 0)) {
            status = BEL_ERR(BEL_INVALID_ARGUMENT,
                             "--class_weights: expected balanced, or CLASS=WEIGHT with a class of "
                             "\"%s\" and a number of 0 or more, got \"%.*s\"",
                             bel_columns_label(columns), (int)length, at);
        }
        bel_free(item);
        at += length + (at[length] == ',');
    }
    for (int c = 0; c < count && status == NULL; c++)
        put_weight(text, c, weights[c]);
    bel_free(weights);
    return status;
}

static bel_status *set_class_weights(bel_params *params, const bel_options *options,
                                     const bel_columns *columns)
{
    const char *given = bel_options_string(options, "class_weights");
    bel_str text = {0};
    if (given == NULL) return NULL;
    bool balanced = strcmp(given, "balanced") == 0;
    bel_status *status =
        balanced ? balance_classes(columns, &text) : weigh_named(columns, given, &text);
    if (status == NULL) bel_params_set(params, "class_weights", text.text);
    bel_str_deinit(&text);
    return status;
}

// With two classes precision and recall are of one class: the rarer, which is usually the one of
// interest. A resumed training uses its checkpoint's class, if any.
static bel_status *set_positive(bel_params *params, const bel_options *options,
                                const bel_columns *columns, const char *remembering)
{
    const double clearly = 0.9; // so that parts of one table agree
    const char *given = bel_options_string(options, "positive_class");
    int positive = -1;
    int count = bel_columns_class_count(columns);
    if (count != 2 && given != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--positive_class is for two classes, and \"%s\" has %d",
                       bel_columns_label(columns), count);
    }
    if (count != 2) return NULL;
    double first = bel_columns_class_rows(columns, 0), second = bel_columns_class_rows(columns, 1);
    for (int c = 0; c < 2 && given != NULL; c++)
        if (strcmp(bel_columns_class(columns, c), given) == 0) positive = c;
    if (given != NULL && positive < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--positive_class: expected \"%s\" or \"%s\", a class of \"%s\", got \"%s\"",
                       bel_columns_class(columns, 0), bel_columns_class(columns, 1),
                       bel_columns_label(columns), given);
    }
    if (given == NULL && remembering != NULL) {
        char *was = NULL;
        BEL_TRY(bel_ckpt_latest_setting(remembering, "param.positive_class", &was));
        if (was != NULL) bel_params_set(params, "positive_class", was);
        bel_free(was);
        return NULL;
    }
    if (given == NULL) positive = first < clearly * second ? 0 : 1;
    if (given != NULL || positive == 0) set_number(params, "positive_class", positive);
    bool rarer = positive == 0 ? first < second : second < first;
    bel_log_write(BEL_LOG_INFO, "precision and recall are those of class \"%s\"%s",
                  bel_columns_class(columns, positive),
                  given != NULL ? ""
                  : rarer       ? ", the rarer one (--positive_class)"
                                : ", the second one (--positive_class)");
    return NULL;
}

// For a label that is a number.
static bel_status *check_rate(const bel_params *params, const bel_columns *columns)
{
    const char *objective = bel_params_get(params, "objective");
    double low = bel_columns_label_low(columns);
    bool rate = strcmp(objective, "poisson") == 0 || strcmp(objective, "tweedie") == 0;
    if (!rate || low >= 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "--objective %s: expected labels of 0 or more, and the least \"%s\" is %.6g",
                   objective, bel_columns_label(columns), low);
}

bel_status *bel_table_set_params(bel_params *params, const bel_options *options,
                                 const bel_columns *columns, const char *remembering,
                                 int64_t blocks)
{
    if (columns->tokens < 0) BEL_TRY(set_defaults(params, options, columns, remembering, blocks));
    if (bel_columns_weight_mean(columns) != 1)
        set_number(params, "weight_mean", bel_columns_weight_mean(columns));
    if (bel_columns_label_kind(columns) == BEL_LABEL_CLASSES) {
        set_number(params, "class_count", bel_columns_class_count(columns));
        BEL_TRY(set_positive(params, options, columns, remembering));
        return set_class_weights(params, options, columns);
    }
    bool several = bel_columns_label_kind(columns) == BEL_LABEL_SEVERAL;
    if (!bel_options_is_given(options, "objective"))
        BEL_TRY(
            set_default(params, "objective", several ? "multi_label" : "regression", remembering));
    if (several) {
        set_number(params, "label_count", bel_columns_label_count(columns));
        return NULL;
    }
    set_number(params, "label_mean", bel_columns_label_mean(columns));
    set_number(params, "label_deviation", bel_columns_label_deviation(columns));
    return check_rate(params, columns);
}
