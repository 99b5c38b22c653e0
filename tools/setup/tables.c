// Descriptions of a training's tables. One rule decides whether a training reads a table by a
// description: always with --columns, and without it if the model is one for tables and no flag
// describes numbers and labels. So older commands, with --feature_scale or --class_count, train to
// the same bits.
#include "setup/tables.h"

#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "columns/description.h"
#include "columns/guess.h"
#include "input/table/table_look.h"
#include "model/settings.h"
#include "models/gpt.h"
#include "setup/follow.h"
#include "setup/inputs.h"
#include "setup/warm_start.h"

// Returns the first given flag of a list that ends with NULL; NULL: no flag is given.
static const char *first_given(const bel_options *options, const char *const *flags)
{
    for (; *flags != NULL; flags++)
        if (bel_options_has(options, *flags) && bel_options_is_given(options, *flags))
            return *flags;
    return NULL;
}

// Flags that describe numbers and labels, and so exclude a description.
static const char *const other_flags[] = {
    "feature_scale", "class_count",     "id_columns",    "id_list_columns",
    "id_list_most",  "id_list_weights", "length_column", NULL};

// Returns a given flag that only inference of columns reads.
static const char *looking_flag(const bel_options *options)
{
    static const char *const flags[] = {"categorical", "numeric",       "log_columns", "ignore",
                                        "key_columns", "weight_column", "missing",     "delimiter",
                                        "decimal",     "label_columns", "text_column", NULL};
    return first_given(options, flags);
}

// --- Which columns -------------------------------------------------------------------------------

static bel_label_kind wanted_kind(const bel_options *options)
{
    if (!bel_options_is_given(options, "objective")) return BEL_LABEL_NONE;
    const char *objective = bel_options_string(options, "objective");
    bool classes = strcmp(objective, "classification") == 0 || strcmp(objective, "binary") == 0;
    if (strcmp(objective, "multi_label") == 0) return BEL_LABEL_SEVERAL;
    return classes ? BEL_LABEL_CLASSES : BEL_LABEL_NUMBER;
}

// 0: not given.
static bel_status *read_delimiter(const bel_options *options, char *out_delimiter)
{
    const char *text = bel_options_string(options, "delimiter");
    bool tab = text != NULL && (strcmp(text, "tab") == 0 || strcmp(text, "\\t") == 0);
    *out_delimiter = '\0';
    if (text == NULL) return NULL;
    *out_delimiter = tab ? '\t' : text[0];
    if (tab || strlen(text) == 1) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "--delimiter: expected one character, or tab, got %s",
                   text);
}

static int take_list(const bel_options *options, const char *flag, const char *const **out_list)
{
    size_t count;
    *out_list = bel_options_list(options, flag, &count);
    return (int)count;
}

// Sets the column whose tokens are learned from. No other column is, so flags that say how others
// are read would have no effect.
static bel_status *take_text(const bel_options *options, bel_columns_options *o)
{
    static const char *const flags[] = {"categorical", "numeric", "log_columns", NULL};
    bool has = bel_options_has(options, "text_column");
    if (has) o->text = bel_options_string(options, "text_column");
    if (o->text == NULL) return NULL;
    if (strcmp(bel_options_string(options, "model"), "encoder") != 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--text_column has no effect without --model encoder");
    o->text_most = bel_options_int(options, "context");
    if (o->text_most == 0) BEL_TRY(bel_warm_start_context(options, &o->text_most));
    if (o->text_most == 0) o->text_most = bel_gpt_preset_at(0)->context;
    if (o->text_most > BEL_COLUMN_MOST_TOKENS)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--context %lld: with --text_column expected at most %d tokens",
                       (long long)o->text_most, BEL_COLUMN_MOST_TOKENS);
    const char *flag = first_given(options, flags);
    if (flag == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "--%s has no effect with --text_column: only the text is learned from", flag);
}

bel_status *bel_table_infer(const bel_options *options, const char *const *paths, int count,
                            bool labeled, bel_columns **out_columns)
{
    bel_csv_options csv = {.size = sizeof csv,
                           .paths = paths,
                           .path_count = count,
                           .no_header = !bel_options_bool(options, "header"),
                           .delimiter = '\0'};
    const char *decimal = bel_options_string(options, "decimal");
    BEL_TRY(bel_flag_inputs_holdout(options, false, &csv.holdout));
    BEL_TRY(read_delimiter(options, &csv.delimiter));
    bel_columns_options o = {.size = sizeof o,
                             .no_label = !labeled,
                             .label = bel_options_string(options, "label_column"),
                             .label_kind = wanted_kind(options),
                             .weight = bel_options_string(options, "weight_column"),
                             .decimal = decimal == NULL ? '\0' : *decimal};
    BEL_TRY(take_text(options, &o));
    o.ignored_count = take_list(options, "ignore", &o.ignored);
    o.category_count = take_list(options, "categorical", &o.categories);
    o.number_count = take_list(options, "numeric", &o.numbers);
    o.log_count = take_list(options, "log_columns", &o.logs);
    o.key_count = take_list(options, "key_columns", &o.keys);
    o.label_count = take_list(options, "label_columns", &o.labels);
    if (o.label_count > 0 && o.label != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--label_column and --label_columns exclude each other");
    }
    o.missing_count = take_list(options, "missing", &o.missing);
    if (o.missing_count == 0) o.missing = NULL;
    o.skip_bad = bel_options_has(options, "skip_bad_records") &&
                 bel_options_int(options, "skip_bad_records") > 0;
    return bel_columns_infer(&csv, &o, out_columns);
}

// Appends "label "grade", classes".
static void put_labels(const bel_columns *columns, bel_str *text)
{
    static const char *const kinds[] = {[BEL_LABEL_NONE] = "none",
                                        [BEL_LABEL_CLASSES] = "classes",
                                        [BEL_LABEL_NUMBER] = "a number",
                                        [BEL_LABEL_SEVERAL] = "two classes each"};
    int count = bel_columns_label_count(columns);
    bel_str_puts(text, count > 1 ? "labels " : "label ");
    for (int i = 0; i < count; i++)
        bel_str_printf(text, "%s\"%s\"", i > 0 ? ", " : "", bel_columns_label_at(columns, i));
    bel_str_printf(text, ", %s", kinds[bel_columns_label_kind(columns)]);
    if (bel_columns_class_count(columns) == 2)
        bel_str_printf(text, ", \"%s\" is the second", bel_columns_class(columns, 1));
}

// Logs that a few different numbers are read as classes, which may be unintended.
static void say_number_classes(const bel_options *options, const bel_columns *columns)
{
    int count = bel_columns_class_count(columns);
    bool asked = bel_options_is_given(options, "objective"), numbers = count > 2 && !asked;
    double number;
    for (int c = 0; c < count && numbers; c++) {
        const char *text = bel_columns_class(columns, c);
        numbers = bel_parse_f64(text, strlen(text), &number);
    }
    if (!numbers) return;
    bel_log_write(BEL_LOG_INFO,
                  "label \"%s\": its %d different numbers are taken for classes; hint: "
                  "--objective regression learns them as numbers",
                  bel_columns_label(columns), count);
}

static void tables_say(const bel_options *options, const bel_columns *columns, const char *path)
{
    int counts[BEL_COLUMN_KINDS] = {0};
    bel_str text = {0};
    for (int i = 0; i < columns->count; i++)
        counts[columns->items[i].kind]++;
    for (int k = 0; k < BEL_COLUMN_KINDS; k++)
        if (counts[k] > 0 && k != BEL_COLUMN_LABEL)
            bel_str_printf(&text, "%s%s %d", text.length > 0 ? ", " : "", bel_column_kind_names[k],
                           counts[k]);
    bel_str labels = {0};
    put_labels(columns, &labels);
    bel_log_write(BEL_LOG_INFO, "%s: %lld rows; %s; columns: %s", path, (long long)columns->rows,
                  labels.text, text.text);
    bel_str_deinit(&labels);
    bel_str_deinit(&text);
    say_number_classes(options, columns);
    for (int i = 0; i < columns->count; i++) {
        const bel_column *c = &columns->items[i];
        bool said = c->kind == BEL_COLUMN_IGNORE && c->note != NULL;
        bool untimed = c->kind == BEL_COLUMN_DATE && (c->parts & BEL_DATE_TIME) == 0;
        if (said) bel_log_write(BEL_LOG_INFO, "column \"%s\" is left out: %s", c->name, c->note);
        if (untimed && c->note != NULL)
            bel_log_write(BEL_LOG_INFO, "column \"%s\": %s", c->name, c->note);
    }
}

// Finds the files to train on. *out_files: they are regular ones, which can be read beforehand.
static bel_status *find_training(const bel_options *options, bel_arena *arena,
                                 const char *const **out_paths, int *out_count, bool *out_files)
{
    *out_files = true;
    BEL_TRY(bel_flag_inputs_paths(options, BEL_MODE_TRAIN, arena, out_paths, out_count));
    for (int i = 0; i < *out_count; i++) {
        struct stat info;
        if (stat((*out_paths)[i], &info) == 0 && !S_ISREG(info.st_mode)) *out_files = false;
    }
    return NULL;
}

// Infers the columns of the files to train on. A pipe can be read only once, and inference would
// read it: then *out_columns stays NULL.
static bel_status *infer_training(const bel_options *options, bel_columns **out_columns)
{
    bel_arena *arena = bel_arena_create();
    const char *const *paths;
    int count;
    bool files = true;
    bel_status *status = find_training(options, arena, &paths, &count, &files);
    if (status == NULL && files) {
        status = bel_table_infer(options, paths, count, true, out_columns);
        if (status == NULL) status = bel_table_check_label(options, *out_columns);
        if (status == NULL) tables_say(options, *out_columns, paths[0]);
    }
    bel_arena_destroy(arena);
    return status;
}

// A text that is read in another way would be another text for the model.
static bel_status *check_text(const bel_options *options, const bel_columns *columns)
{
    if (columns->tokens < 0 || !bel_options_has(options, "text_column")) return NULL;
    const bel_column *column = &columns->items[columns->tokens];
    const char *given = bel_options_string(options, "text_column");
    int64_t context = bel_options_int(options, "context");
    if (given != NULL && strcmp(given, column->name) != 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--text_column %s: the training began with \"%s\"",
                       given, column->name);
    }
    if (context == 0 || context == column->most) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "--context %lld: the columns have %d tokens of \"%s\"",
                   (long long)context, column->most, column->name);
}

// Takes the description of files on other hosts; *out_columns stays NULL without one.
static bel_status *take_remote(const bel_options *options, const bel_remote_input *remote,
                               bel_columns **out_columns)
{
    const char *text = bel_remote_input_table(remote);
    if (text == NULL) return NULL;
    BEL_TRY(bel_columns_parse(text, "the workers' columns", out_columns));
    tables_say(options, *out_columns, "the workers' data");
    return check_text(options, *out_columns);
}

// Reads a description, and counts the rows of the files: defaults follow from the count, and the
// description may be of a few rows, or handwritten.
static bel_status *read_given(const bel_options *options, const char *path,
                              bel_columns **out_columns)
{
    BEL_TRY(bel_columns_read(path, out_columns));
    bel_arena *arena = bel_arena_create();
    const char *const *paths;
    int count;
    bool files = false;
    bel_holdout holdout;
    bel_status *status = find_training(options, arena, &paths, &count, &files);
    if (status == NULL) status = bel_flag_inputs_holdout(options, false, &holdout);
    if (status == NULL && files && !bel_follows(options)) {
        int64_t rows = 0;
        status = bel_csv_table_count(*out_columns, paths, count, &holdout, &rows);
        if (status == NULL) bel_columns_set_rows(*out_columns, rows);
    }
    bel_arena_destroy(arena);
    if (status == NULL) return NULL;
    bel_columns_destroy(*out_columns);
    *out_columns = NULL;
    return status;
}

// Reads the checkpoint's columns. *out_other: it was trained without a description.
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

static bool is_column(const void *columns, const char *name)
{
    return bel_columns_find(columns, name) >= 0;
}

// A resumed training must describe columns as before; other flags would have no effect.
static bel_status *check_pattern(const char *flag, const char *pattern, unsigned kinds,
                                 const bel_columns *columns)
{
    bool found = false;
    for (int i = 0; i < columns->count; i++) {
        const bel_column *c = &columns->items[i];
        bool other = (kinds >> c->kind & 1) == 0;
        if (strcmp(pattern, c->name) != 0 && fnmatch(pattern, c->name, 0) != 0) continue;
        found = true;
        if (strcmp(flag, "log_columns") == 0 && c->scale != BEL_SCALE_LOG) other = true;
        if (!other) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--%s %s: the training began with column \"%s\" as %s; hint: another "
                       "model_dir to begin anew",
                       flag, pattern, c->name, bel_column_kind_names[c->kind]);
    }
    if (found) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s %s: the training began without such a column", flag,
                   pattern);
}

static bel_status *check_agrees(const bel_options *options, const char *flag, unsigned kinds,
                                const bel_columns *columns)
{
    size_t count;
    const char *const *patterns = bel_options_list(options, flag, &count);
    for (size_t p = 0; p < count;) {
        char *name;
        p += (size_t)bel_guess_join_name(patterns + p, (int)(count - p), is_column, columns, &name);
        bel_status *status =
            check_pattern(flag, name != NULL ? name : patterns[p - 1], kinds, columns);
        bel_free(name);
        if (status != NULL) return status;
    }
    return NULL;
}

// The same check for flags that describe the whole table.
static bel_status *check_form(const bel_options *options, const bel_columns *columns)
{
    const char *weight = bel_options_string(options, "weight_column");
    const char *had = columns->weight >= 0 ? columns->items[columns->weight].name : NULL;
    if (weight != NULL && (had == NULL || fnmatch(weight, had, 0) != 0)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--weight_column %s: the training began with %s%s; hint: another model_dir "
                       "to begin anew",
                       weight, had == NULL ? "no weights" : "those of ", had == NULL ? "" : had);
    }
    char delimiter;
    BEL_TRY(read_delimiter(options, &delimiter));
    bool header = bel_options_bool(options, "header");
    if (delimiter != '\0' && delimiter != columns->delimiter) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--delimiter: the training began with another one");
    }
    const char *decimal = bel_options_string(options, "decimal");
    if (decimal != NULL && *decimal != columns->decimal) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--decimal: the training began with another one");
    }
    if (bel_options_is_given(options, "header") && header != columns->header) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--%sheader: the training began with%s header",
                       header ? "" : "no_", header ? "out a" : " a");
    }
    return NULL;
}

static bel_status *check_remembered(const bel_options *options, const bel_columns *columns)
{
    BEL_TRY(check_text(options, columns));
    BEL_TRY(check_agrees(options, "ignore", 1U << BEL_COLUMN_IGNORE, columns));
    BEL_TRY(check_agrees(options, "label_columns", 1U << BEL_COLUMN_LABEL, columns));
    BEL_TRY(check_agrees(options, "key_columns", 1U << BEL_COLUMN_KEY, columns));
    BEL_TRY(check_agrees(options, "numeric", 1U << BEL_COLUMN_NUMBER, columns));
    BEL_TRY(check_agrees(options, "log_columns", 1U << BEL_COLUMN_NUMBER, columns));
    BEL_TRY(check_agrees(options, "categorical", 1U << BEL_COLUMN_CATEGORY | 1U << BEL_COLUMN_HASH,
                         columns));
    BEL_TRY(check_form(options, columns));
    size_t count;
    const char *const *missing = bel_options_list(options, "missing", &count);
    for (size_t i = 0; i < count; i++) {
        if (bel_columns_is_missing(columns, missing[i], strlen(missing[i]))) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--missing %s: the training began without; hint: another model_dir to begin "
                       "anew",
                       missing[i]);
    }
    return NULL;
}

static bool takes_tables(const bel_options *options)
{
    static const char *const models[] = {"linear", "dnn", "wide_deep"};
    if (bel_options_string(options, "package") != NULL) return false;
    if (!bel_options_is_given(options, "model")) return true;
    if (strcmp(bel_options_string(options, "model"), "encoder") == 0)
        return bel_options_string(options, "text_column") != NULL;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        if (strcmp(bel_options_string(options, "model"), models[i]) == 0) return true;
    return false;
}

bel_status *bel_table_for_training(const bel_options *options, const char *model_dir,
                                   const bel_remote_input *remote, bel_columns **out_columns,
                                   bool *out_remembered)
{
    const char *given = bel_options_string(options, "columns");
    const char *other = first_given(options, other_flags), *looking = looking_flag(options);
    bool automatic = strcmp(given, "auto") == 0, none = strcmp(given, "none") == 0;
    bool csv = strcmp(bel_flag_inputs_format(options, false), "csv") == 0, without = false;
    *out_columns = NULL;
    *out_remembered = false;
    if (!automatic && !none) {
        const char *beside = other != NULL ? other : looking;
        if (beside == NULL && bel_options_is_given(options, "header")) beside = "header";
        if (beside == NULL && remote != NULL) return take_remote(options, remote, out_columns);
        if (beside == NULL) BEL_TRY(read_given(options, given, out_columns));
        if (beside == NULL) return check_text(options, *out_columns);
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--columns and --%s exclude each other", beside);
    }
    bool table = automatic && csv && other == NULL && takes_tables(options) &&
                 bel_options_is_given(options, "train_files");
    if (table) BEL_TRY(remembered(model_dir, out_columns, &without));
    *out_remembered = *out_columns != NULL;
    if (*out_remembered) return check_remembered(options, *out_columns);
    if (table && !without && remote != NULL) BEL_TRY(take_remote(options, remote, out_columns));
    if (table && !without && remote == NULL) BEL_TRY(infer_training(options, out_columns));
    if (*out_columns == NULL && csv && bel_options_is_given(options, "check_input")) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--check_input has no effect here: cells are looked at beforehand only in "
                       "tables whose columns are described or looked at");
    }
    if (*out_columns != NULL || looking == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s is for tables whose columns are looked at, and %s%s",
                   looking, other != NULL ? "they are not with --" : "these are not",
                   other != NULL ? other : "");
}

// --- Other checks --------------------------------------------------------------------------------

bel_status *bel_table_check_reading(const bel_options *options)
{
    const char *given = first_given(options, other_flags);
    if (given == NULL && bel_options_is_given(options, "header")) given = "header";
    if (given == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "--%s is not read: the model was trained with a description of its columns",
                   given);
}

bel_status *bel_table_check_model(const bel_columns *columns, const char *model)
{
    bool reads = strcmp(model, "encoder") == 0, has = columns->tokens >= 0;
    if (strcmp(model, "gpt") == 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--model gpt learns from files of texts, and has no columns");
    if (reads == has) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   reads ? "--model %s learns from the tokens of a text, and no column is of kind "
                           "tokens; hint: --text_column"
                         : "--model %s does not read tokens, and a column is of kind tokens; hint: "
                           "--model encoder",
                   model);
}

bel_status *bel_table_check_label(const bel_options *options, const bel_columns *columns)
{
    const char *asked = bel_options_string(options, "label_column");
    const char *label = bel_columns_label(columns);
    if (label == NULL) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "the columns have no label: there is nothing to learn; hint: --label_column");
    }
    bel_label_kind wanted = wanted_kind(options), kind = bel_columns_label_kind(columns);
    if (wanted != BEL_LABEL_NONE && wanted != kind) {
        static const char *const kinds[] = {[BEL_LABEL_NONE] = "nothing",
                                            [BEL_LABEL_CLASSES] = "classes",
                                            [BEL_LABEL_NUMBER] = "numbers",
                                            [BEL_LABEL_SEVERAL] = "several labels"};
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--objective %s: expected a label of %s, and \"%s\" is one of %s",
                       bel_options_string(options, "objective"), kinds[wanted], label, kinds[kind]);
    }
    if (asked == NULL || strcmp(asked, label) == 0 || fnmatch(asked, label, 0) == 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "--label_column %s: the label of the columns is \"%s\"; hint: another model_dir "
                   "to train for another label",
                   asked, label);
}

// --- Text ----------------------------------------------------------------------------------------

static size_t character_count(const char *text)
{
    size_t count = 0;
    for (const char *c = text; *c != '\0'; c++)
        count += ((unsigned char)*c & 0xC0) != 0x80;
    return count;
}

static void put_padded(bel_str *out, const char *text, size_t width)
{
    bel_str_puts(out, text);
    bel_str_puts(out, "  ");
    for (size_t shown = character_count(text); shown < width; shown++)
        bel_str_puts(out, " ");
}

void bel_table_print(const bel_columns *columns, bel_str *out)
{
    enum { MOST = 32 };
    size_t width = 6;
    for (int i = 0; i < columns->count; i++) {
        size_t length = character_count(columns->items[i].name);
        if (length > width) width = length < MOST ? length : MOST;
    }
    for (int i = 0; i < columns->count; i++) {
        const bel_column *c = &columns->items[i];
        put_padded(out, c->name, width);
        put_padded(out, bel_column_kind_names[c->kind], 8);
        bel_str_printf(out, "%s\n", c->note != NULL ? c->note : "");
    }
}

void bel_table_print_json(const bel_columns *columns, bel_str *out)
{
    for (int i = 0; i < columns->count; i++) {
        const bel_column *c = &columns->items[i];
        bel_str_puts(out, "{\"name\":");
        bel_json_write_string(out, c->name);
        bel_str_printf(out, ",\"kind\":\"%s\"", bel_column_kind_names[c->kind]);
        if (c->note != NULL) {
            bel_str_puts(out, ",\"note\":");
            bel_json_write_string(out, c->note);
        }
        if (c->warning != NULL) {
            bel_str_puts(out, ",\"warning\":");
            bel_json_write_string(out, c->warning);
        }
        bel_str_puts(out, "}\n");
    }
}
