// One rule says whether a training reads a table by a description: always with --columns, and
// without it where the model is one of tables and no flag says what numbers and labels are. So
// commands of before, with --feature_scale or --class_count, train to the same bits.
#include "tables.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/number.h"
#include "checkpoint/checkpoint.h"
#include "columns/description.h"
#include "estimator/settings.h"
#include "inputs.h"

enum { SMALL_TABLE = 20000 }; // rows below which most is learned by heart

const char *bel_table_other_flag(const bel_options *options)
{
    static const char *const flags[] = {"feature_scale",   "class_count",  "id_columns",
                                        "id_list_columns", "id_list_most", "id_list_weights",
                                        "length_column"};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (bel_options_has(options, flags[i]) && bel_options_is_given(options, flags[i]))
            return flags[i];
    return NULL;
}

static const char *column_flag(const bel_options *options)
{
    static const char *const flags[] = {"categorical",   "numeric", "ignore",   "key_columns",
                                        "weight_column", "missing", "objective"};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (bel_options_has(options, flags[i]) && bel_options_is_given(options, flags[i]))
            return flags[i];
    return NULL;
}

// --- Which columns -------------------------------------------------------------------------------

static bel_label_kind wanted_kind(const bel_options *options)
{
    if (!bel_options_is_given(options, "objective")) return BEL_LABEL_NONE;
    const char *objective = bel_options_string(options, "objective");
    bool classes = strcmp(objective, "classification") == 0 || strcmp(objective, "binary") == 0;
    return classes ? BEL_LABEL_CLASSES : BEL_LABEL_NUMBER;
}

static int take_list(const bel_options *options, const char *flag, const char *const **out_list)
{
    size_t count;
    *out_list = bel_options_list(options, flag, &count);
    return (int)count;
}

bel_status *bel_table_infer(const bel_options *options, const char *const *paths, int count,
                            bel_columns **out_columns)
{
    const char *delimiter = bel_options_string(options, "delimiter");
    bel_csv_options csv = {.paths = paths,
                           .path_count = count,
                           .no_header = !bel_options_bool(options, "header"),
                           .delimiter = '\0'};
    if (delimiter != NULL) csv.delimiter = strcmp(delimiter, "tab") == 0 ? '\t' : delimiter[0];
    if (delimiter != NULL && strcmp(delimiter, "tab") != 0 && strlen(delimiter) != 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--delimiter: expected one character, or tab, got %s",
                       delimiter);
    }
    bel_columns_options o = {.label = bel_options_string(options, "label_column"),
                             .label_kind = wanted_kind(options),
                             .weight = bel_options_string(options, "weight_column")};
    o.ignored_count = take_list(options, "ignore", &o.ignored);
    o.category_count = take_list(options, "categorical", &o.categories);
    o.number_count = take_list(options, "numeric", &o.numbers);
    o.key_count = take_list(options, "key_columns", &o.keys);
    o.missing_count = take_list(options, "missing", &o.missing);
    if (o.missing_count == 0) o.missing = NULL;
    return bel_columns_infer(&csv, &o, out_columns);
}

static void say(const bel_columns *columns, const char *path)
{
    int counts[BEL_COLUMN_KINDS] = {0};
    bel_str text = {0};
    for (int i = 0; i < columns->count; i++)
        counts[columns->items[i].kind]++;
    for (int k = 0; k < BEL_COLUMN_KINDS; k++)
        if (counts[k] > 0 && k != BEL_COLUMN_LABEL)
            bel_str_printf(&text, "%s%s %d", text.length > 0 ? ", " : "", bel_column_kind_names[k],
                           counts[k]);
    bel_log_write(BEL_LOG_INFO, "%s: %lld rows; label \"%s\"%s; columns: %s", path,
                  (long long)columns->rows, bel_columns_label(columns),
                  bel_columns_label_kind(columns) == BEL_LABEL_CLASSES ? ", classes" : ", a number",
                  text.text);
    bel_str_deinit(&text);
    for (int i = 0; i < columns->count; i++) {
        const bel_column *c = &columns->items[i];
        bool said = c->kind == BEL_COLUMN_IGNORE && c->note != NULL;
        if (said) bel_log_write(BEL_LOG_INFO, "column \"%s\" is left out: %s", c->name, c->note);
    }
}

static bel_status *infer_training(const bel_options *options, bel_columns **out_columns)
{
    char **paths;
    int count;
    BEL_TRY(bel_flag_inputs_paths(options, BEL_MODE_TRAIN, &paths, &count));
    bel_status *status = bel_table_infer(options, (const char *const *)paths, count, out_columns);
    if (status == NULL) say(*out_columns, paths[0]);
    for (int i = 0; i < count; i++)
        bel_free(paths[i]);
    bel_free(paths);
    return status;
}

// What a checkpoint remembers. *out_other: it was trained without a description.
static bel_status *remembered(const char *model_dir, bel_columns **out_columns, bool *out_other)
{
    char *text, *names;
    *out_other = false;
    BEL_TRY(bel_ckpt_latest_setting(model_dir, BEL_SETTING_TABLE, &text));
    if (text != NULL) {
        bel_status *status = bel_columns_parse(text, model_dir, out_columns);
        bel_free(text);
        return status;
    }
    BEL_TRY(bel_ckpt_latest_setting(model_dir, BEL_SETTING_COLUMNS, &names));
    *out_other = names != NULL;
    bel_free(names);
    return NULL;
}

// A pipe can be read once, and looking at the columns would be that.
static bel_status *are_files(const bel_options *options, bool *out_files)
{
    char **paths;
    int count;
    *out_files = true;
    BEL_TRY(bel_flag_inputs_paths(options, BEL_MODE_TRAIN, &paths, &count));
    for (int i = 0; i < count; i++) {
        struct stat info;
        if (stat(paths[i], &info) == 0 && !S_ISREG(info.st_mode)) *out_files = false;
        bel_free(paths[i]);
    }
    bel_free(paths);
    return NULL;
}

static bool takes_tables(const bel_options *options)
{
    static const char *const models[] = {"linear", "dnn", "wide_deep"};
    if (bel_options_string(options, "package") != NULL) return false;
    if (!bel_options_is_given(options, "model")) return true;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        if (strcmp(bel_options_string(options, "model"), models[i]) == 0) return true;
    return false;
}

bel_status *bel_table_for_training(const bel_options *options, const char *model_dir,
                                   bel_columns **out_columns)
{
    const char *given = bel_options_string(options, "columns");
    const char *other = bel_table_other_flag(options), *beside = column_flag(options);
    bool automatic = strcmp(given, "auto") == 0, none = strcmp(given, "none") == 0;
    bool csv = strcmp(bel_flag_inputs_format(options), "csv") == 0;
    *out_columns = NULL;
    if (!automatic && !none && other != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--columns and --%s exclude each other", other);
    }
    if (!automatic && !none) return bel_columns_read(given, out_columns);
    bool table = automatic && csv && other == NULL && takes_tables(options) &&
                 bel_options_is_given(options, "train_files");
    bool trained_without = false;
    if (table) BEL_TRY(are_files(options, &table));
    if (table) BEL_TRY(remembered(model_dir, out_columns, &trained_without));
    if (*out_columns != NULL) return NULL;
    if (table && !trained_without) return infer_training(options, out_columns);
    if (beside == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s is for tables whose columns are looked at, and %s%s",
                   beside, other != NULL ? "they are not with --" : "these are not",
                   other != NULL ? other : "");
}

// --- Parameters ----------------------------------------------------------------------------------

static void set_number(bel_params *params, const char *name, double value)
{
    char text[32];
    bel_snprintf(text, sizeof text, "%.17g", value);
    bel_params_set(params, name, text);
}

static bel_status *check_label(const bel_options *options, const bel_columns *columns)
{
    const char *asked = bel_options_string(options, "label_column");
    const char *label = bel_columns_label(columns);
    if (label == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "the columns have no label: there is nothing to learn");
    }
    bel_label_kind wanted = wanted_kind(options), kind = bel_columns_label_kind(columns);
    if (wanted != BEL_LABEL_NONE && wanted != kind) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--objective %s: expected a label of %s, and \"%s\" is "
                       "one of %s",
                       bel_options_string(options, "objective"),
                       wanted == BEL_LABEL_CLASSES ? "classes" : "numbers", label,
                       kind == BEL_LABEL_CLASSES ? "classes" : "numbers");
    }
    if (asked == NULL || strcmp(asked, label) == 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "--label_column %s: the label of the columns is \"%s\"; hint: another model_dir "
                   "to train for another label",
                   asked, label);
}

// Steps of a training in one process, where no flag says how many there are.
static int64_t likely_steps(const bel_options *options, const bel_columns *columns)
{
    int64_t steps = bel_options_int(options, "train_steps"), epochs = bel_table_epochs(columns);
    int64_t batch = bel_table_batch_size(columns);
    if (steps > 0) return steps;
    if (bel_options_int(options, "num_epochs") > 0) epochs = bel_options_int(options, "num_epochs");
    if (bel_options_is_given(options, "train_batch_size"))
        batch = bel_options_int(options, "train_batch_size");
    return (epochs * bel_columns_rows(columns) + batch - 1) / batch;
}

// Columns that a model learns from.
static int learned_columns(const bel_columns *columns)
{
    int count = 0;
    for (int i = 0; i < columns->count; i++) {
        const bel_column *c = &columns->items[i];
        count += c->x_place >= 0 || c->id_place >= 0 || c->list_place >= 0;
    }
    return count;
}

// The more columns there are for each row, the more is learned by heart, of numbers still more than
// of classes: found by cross-validation on tables of 100 to 30,000 rows (bench/README.md).
static double penalty_of(const bel_columns *columns)
{
    const double of_classes = 0.3, of_numbers = 1, most = 0.1;
    bool classes = bel_columns_label_kind(columns) == BEL_LABEL_CLASSES;
    double ratio = (double)learned_columns(columns) / (double)(bel_columns_rows(columns) + 1);
    double penalty = (classes ? of_classes : of_numbers) * ratio;
    return penalty < most ? penalty : most;
}

// Flags of the model that tables have other defaults for.
static void set_defaults(bel_params *params, const bel_options *options, const bel_columns *columns)
{
    bool small = bel_columns_rows(columns) < SMALL_TABLE;
    char steps[32], penalty[32];
    bel_snprintf(steps, sizeof steps, "%lld", (long long)likely_steps(options, columns));
    bel_snprintf(penalty, sizeof penalty, "%.3g", penalty_of(columns));
    const struct {
        const char *flag, *value;
    } defaults[] = {{"hidden_units", small ? "64,32" : "256,128"},
                    {"wide_numbers", "true"},
                    {"dropout", small ? "0.2" : "0"},
                    {"l2", penalty},
                    {"learning_rate", small ? "0.01" : "0.003"},
                    {"schedule", "cosine"},
                    {"decay_steps", steps}};
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (!bel_options_is_given(options, defaults[i].flag))
            bel_params_set(params, defaults[i].flag, defaults[i].value);
}

bel_status *bel_table_set_params(bel_params *params, const bel_options *options,
                                 const bel_columns *columns, bool training)
{
    BEL_TRY(check_label(options, columns));
    if (!training) return NULL; // the checkpoint has them
    set_defaults(params, options, columns);
    if (bel_columns_label_kind(columns) == BEL_LABEL_CLASSES) {
        set_number(params, "class_count", bel_columns_class_count(columns));
        return NULL;
    }
    if (!bel_options_is_given(options, "objective"))
        bel_params_set(params, "objective", "regression");
    set_number(params, "label_mean", bel_columns_label_mean(columns));
    set_number(params, "label_deviation", bel_columns_label_deviation(columns));
    return NULL;
}

int64_t bel_table_batch_size(const bel_columns *columns)
{
    int64_t rows = bel_columns_rows(columns);
    return rows < 5000 ? 32 : rows < 100000 ? 128 : 512;
}

// So many passes that a small table is seen by some thousand steps.
int64_t bel_table_epochs(const bel_columns *columns)
{
    enum { EXAMPLES = 100000, MOST = 300 };
    int64_t rows = bel_columns_rows(columns), epochs = EXAMPLES / (rows + 1);
    int64_t least = rows < EXAMPLES ? 10 : 3;
    return epochs < least ? least : epochs > MOST ? MOST : epochs;
}

// --- For people ----------------------------------------------------------------------------------

static void put_padded(bel_str *out, const char *text, size_t width)
{
    size_t shown = 0;
    for (const char *c = text; *c != '\0'; c++)
        shown += ((unsigned char)*c & 0xC0) != 0x80; // characters, not bytes
    bel_str_puts(out, text);
    for (; shown < width + 2; shown++)
        bel_str_puts(out, " ");
}

void bel_table_print(const bel_columns *columns, bel_str *out)
{
    enum { MOST = 32 };
    size_t width = 6;
    for (int i = 0; i < columns->count; i++) {
        size_t length = strlen(columns->items[i].name);
        if (length > width) width = length < MOST ? length : MOST;
    }
    for (int i = 0; i < columns->count; i++) {
        const bel_column *c = &columns->items[i];
        put_padded(out, c->name, width);
        put_padded(out, bel_column_kind_names[c->kind], 8);
        bel_str_printf(out, "%s\n", c->note != NULL ? c->note : "");
    }
}
