// The labels are compared class by class: a head has one output a class, in their order. Columns
// are compared by the elements that they have in a record. Means, deviations and bounds may differ:
// they only scale what a weight reads. A column with rows in a table is compared by its place only,
// as its rows are found by its name and the value.
#include "setup/warm_start.h"

#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/folder.h"
#include "checkpoint/setting_names.h"
#include "columns/description.h"
#include "master/job/warm_file.h"

// Returns the folder of a checkpoint of Belfry; NULL: the training begins with none.
static const char *folder_of_start(const bel_options *options)
{
    if (!bel_options_has(options, "warm_start")) return NULL;
    const char *folder = bel_options_string(options, "warm_start");
    bool other = folder == NULL || bel_is_warm_file(folder) || bel_is_huggingface(folder);
    return other ? NULL : folder;
}

// Opens a checkpoint to read its settings. Values are checked only when they are read.
static bel_status *open_manifest(const char *folder, bel_ckpt_reader **out_reader)
{
    int64_t *steps = NULL;
    size_t count = 0;
    bel_status *status = bel_ckpt_open_lazily(folder, out_reader);
    if (status == NULL) return NULL;
    bel_status_ignore(status); // a model's folder has none
    status = bel_ckpt_list(folder, &steps, &count);
    if (status == NULL && count > 0) {
        char *newest = bel_ckpt_folder_path(folder, steps[count - 1]);
        status = bel_ckpt_open_lazily(newest, out_reader);
        bel_free(newest);
    } else if (status == NULL) {
        status = BEL_ERR(BEL_NOT_FOUND, "%s: no checkpoint", folder);
    }
    bel_free(steps);
    if (status == NULL) return NULL;
    bel_status_ignore(status); // this finds an older one, or the error
    BEL_TRY_CTX(bel_ckpt_open_any(folder, out_reader), "--warm_start");
    return NULL;
}

// Whether --warm_start_variables takes one of the names of a list that ends with NULL.
static bool takes_any(const bel_options *options, const char *const *names)
{
    size_t count;
    const char *const *patterns = bel_options_list(options, "warm_start_variables", &count);
    for (; *names != NULL && count > 0; names++)
        for (size_t p = 0; p < count; p++)
            if (fnmatch(patterns[p], *names, FNM_NOESCAPE) == 0) return true;
    return count == 0;
}

// --- Labels -------------------------------------------------------------------------------------

static const char *kind_of_label(const bel_columns *columns)
{
    static const char *const kinds[] = {[BEL_LABEL_NONE] = "nothing",
                                        [BEL_LABEL_CLASSES] = "classes",
                                        [BEL_LABEL_NUMBER] = "numbers",
                                        [BEL_LABEL_SEVERAL] = "several labels"};
    return kinds[bel_columns_label_kind(columns)];
}

// Several labels have their names where one label has its classes.
static int output_count(const bel_columns *columns)
{
    bool several = bel_columns_label_kind(columns) == BEL_LABEL_SEVERAL;
    return several ? bel_columns_label_count(columns) : bel_columns_class_count(columns);
}

static const char *output_at(const bel_columns *columns, int i)
{
    bool several = bel_columns_label_kind(columns) == BEL_LABEL_SEVERAL;
    return several ? bel_columns_label_at(columns, i) : bel_columns_class(columns, i);
}

static bel_status *check_labels(const char *folder, const bel_columns *there,
                                const bel_columns *here)
{
    static const char hint[] = "hint: --warm_start_variables names those to take, without the head";
    bool several = bel_columns_label_kind(here) == BEL_LABEL_SEVERAL;
    const char *what = several ? "label" : "class", *all = several ? "labels" : "classes";
    if (bel_columns_label_kind(there) != bel_columns_label_kind(here)) {
        return BEL_ERR(BEL_FAILED_PRECONDITION, "--warm_start %s learned %s, but these are %s; %s",
                       folder, kind_of_label(there), kind_of_label(here), hint);
    }
    int had = output_count(there), has = output_count(here);
    for (int i = 0; i < had && i < has; i++) {
        if (strcmp(output_at(there, i), output_at(here, i)) == 0) continue;
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "--warm_start %s: %s %d is \"%s\" there, but \"%s\" here; %s", folder, what,
                       i, output_at(there, i), output_at(here, i), hint);
    }
    if (had == has) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION, "--warm_start %s has %d %s, but here are %d; %s",
                   folder, had, all, has, hint);
}

// --- Columns ------------------------------------------------------------------------------------

// Numbers, ids and lists of ids are separate inputs, each with its places.
enum { NUMBERS, IDS, LISTS, INPUTS };

static bool is_in(const bel_column *column, int input)
{
    if (input == NUMBERS) return column->x_width > 0;
    return (input == IDS ? column->id_place : column->list_place) >= 0;
}

// Returns the first column of an input at `*place` or after it; NULL: no more.
static const bel_column *next_column(const bel_columns *columns, int input, int *place)
{
    while (*place < columns->count)
        if (is_in(&columns->items[(*place)++], input)) return &columns->items[*place - 1];
    return NULL;
}

// Compares the elements of two columns of one name.
static bel_status *check_values(const char *folder, const bel_column *there, const bel_column *here)
{
    bool lists = here->kind == BEL_COLUMN_CATEGORY && !here->embedded;
    for (int i = 0; lists && i < there->value_count && i < here->value_count; i++) {
        if (strcmp(there->values[i], here->values[i]) == 0) continue;
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "--warm_start %s: column \"%s\": value %d is \"%s\" there, but \"%s\" here",
                       folder, here->name, i, there->values[i], here->values[i]);
    }
    if (there->x_width == here->x_width) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "--warm_start %s: column \"%s\" has %d elements there, but %d here", folder,
                   here->name, there->x_width, here->x_width);
}

static bel_status *check_pair(const char *folder, int number, const bel_column *had,
                              const bel_column *has)
{
    if (strcmp(had->name, has->name) != 0) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "--warm_start %s: input column %d is \"%s\" there, but \"%s\" here", folder,
                       number, had->name, has->name);
    }
    if (had->kind != has->kind && has->x_width > 0) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "--warm_start %s: column \"%s\" is of kind %s there, but %s here", folder,
                       has->name, bel_column_kind_names[had->kind],
                       bel_column_kind_names[has->kind]);
    }
    return check_values(folder, had, has);
}

static bel_status *check_input(const char *folder, int input, const bel_columns *there,
                               const bel_columns *here)
{
    int at = 0, place = 0;
    for (int number = 0;; number++) {
        const bel_column *had = next_column(there, input, &at);
        const bel_column *has = next_column(here, input, &place);
        if (had == NULL && has == NULL) return NULL;
        if (had != NULL && has != NULL) {
            BEL_TRY(check_pair(folder, number, had, has));
            continue;
        }
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "--warm_start %s: its columns have %s \"%s\", and these have %s", folder,
                       had != NULL ? "an input" : "no input", had != NULL ? had->name : has->name,
                       had != NULL ? "none" : "one");
    }
}

static bel_status *compare(const bel_options *options, const char *folder, const bel_setup *setup,
                           const bel_columns *there)
{
    static const char *const heads[] = {"logits/kernel", "logits/bias", "wide", NULL};
    static const char *const readers[] = {"dense_0/kernel", "wide_numbers/kernel", NULL};
    size_t layers = 0;
    if (strcmp(setup->model->name, "linear") != 0)
        (void)bel_options_list(options, "hidden_units", &layers);
    if (takes_any(options, heads)) BEL_TRY(check_labels(folder, there, setup->columns));
    // The tokenizer says what the tokens of a text are.
    if (there->tokens >= 0 || setup->columns->tokens >= 0) return NULL;
    if (!takes_any(options, layers > 0 ? readers : heads)) return NULL;
    for (int input = 0; input < INPUTS; input++)
        BEL_TRY(check_input(folder, input, there, setup->columns));
    return NULL;
}

bel_status *bel_warm_start_check_columns(const bel_options *options, const bel_setup *setup)
{
    const char *folder = folder_of_start(options);
    char *was = NULL;
    bel_ckpt_reader *reader;
    if (folder == NULL || setup->columns == NULL || !setup->is_master) return NULL;
    BEL_TRY(bel_ckpt_latest_setting(setup->model_dir, BEL_SETTING_TABLE, &was));
    bool resumes = was != NULL;
    bel_free(was);
    if (resumes) return NULL;
    BEL_TRY(open_manifest(folder, &reader));
    bel_columns *there = NULL;
    const char *text = bel_ckpt_setting(reader, BEL_SETTING_TABLE);
    bel_status *status = text != NULL ? bel_columns_parse(text, folder, &there) : NULL;
    bel_ckpt_close(reader);
    if (status == NULL && there != NULL) status = compare(options, folder, setup, there);
    bel_columns_destroy(there);
    return status;
}

// --- Settings of models of language --------------------------------------------------------------

// An encoder has neither kv_heads nor a kernel for the next token. Another model's tokens and
// positions may be others.
static bool is_shared(const char *flag, bool same, const char *model)
{
    bool encoder = strcmp(model, "encoder") == 0;
    if (bel_list_find("kv_heads|tied", "|", flag) >= 0) return same && !encoder;
    return same || bel_list_find("context|vocabulary", "|", flag) < 0;
}

// A checkpoint has the settings that were not defaults, and the sizes.
static void read_checkpoint(const bel_ckpt_reader *reader, const bel_options *defaults,
                            const char *model, bel_warm_settings *out)
{
    const char *had = bel_ckpt_setting(reader, "param.model"), *flag;
    bool text = had != NULL && bel_list_find("gpt|encoder", "|", had) >= 0;
    bool same = text && strcmp(had, model) == 0;
    out->has_tokenizer = text && bel_ckpt_setting(reader, "param.tokenizer") != NULL;
    for (int i = 0; text && (flag = bel_huggingface_flag(i)) != NULL; i++) {
        char *name = bel_strf("param.%s", flag);
        const char *value = bel_ckpt_setting(reader, name);
        bool size = bel_list_find("layers|heads|token_width|context|vocabulary", "|", flag) >= 0;
        if (value == NULL && !size) value = bel_options_text(defaults, flag);
        bel_huggingface_setting *next = &out->list.items[out->list.count];
        if (value != NULL && is_shared(flag, same, model)) {
            next->flag = flag;
            bel_snprintf(next->value, sizeof next->value, "%s", value);
            out->list.count++;
        }
        bel_free(name);
    }
}

bel_status *bel_warm_start_read_settings(const bel_options *options, const char *model,
                                         bel_warm_settings *out)
{
    bool has = bel_options_has(options, "warm_start");
    const char *any = has ? bel_options_string(options, "warm_start") : NULL;
    const char *folder = folder_of_start(options);
    bel_ckpt_reader *reader;
    *out = (bel_warm_settings){.has_tokenizer = false};
    if (any != NULL && bel_is_huggingface(any))
        return bel_huggingface_read_settings(any, &out->list);
    if (folder == NULL) return NULL;
    BEL_TRY(open_manifest(folder, &reader));
    bel_options *defaults = bel_options_create_like(options);
    read_checkpoint(reader, defaults, model, out);
    bel_options_destroy(defaults);
    bel_ckpt_close(reader);
    return NULL;
}

// Returns the value of a flag of this training. Without a number of heads, keys have those of
// queries.
static const char *value_here(const bel_options *options, const bel_params *params,
                              const char *flag)
{
    const char *value = bel_params_get(params, flag);
    if (value == NULL) value = bel_options_text(options, flag);
    bool of_heads = strcmp(flag, "kv_heads") == 0 && strcmp(value, "0") == 0;
    return of_heads ? value_here(options, params, "heads") : value;
}

static bel_status *check_setting(const bel_options *options, const bel_params *params,
                                 const char *flag, const char *there)
{
    const char *folder = bel_options_string(options, "warm_start");
    const char *here = value_here(options, params, flag);
    bool is_switch = bel_list_find("tied|bias", "|", flag) >= 0;
    int64_t had, has;
    size_t patterns;
    if (strcmp(flag, "kv_heads") == 0 && strcmp(there, "0") == 0)
        there = value_here(options, params, "heads"); // which were compared
    bool numbers =
        bel_parse_i64(there, strlen(there), &had) && bel_parse_i64(here, strlen(here), &has);
    if (numbers ? had == has : strcmp(there, here) == 0) return NULL;
    (void)bel_options_list(options, "warm_start_variables", &patterns);
    if (strcmp(flag, "layers") == 0 && numbers && had > has) {
        if (patterns == 0)
            bel_log_write(BEL_LOG_WARN,
                          "--warm_start %s has %lld layers, and this model %lld: h.%lld to h.%lld "
                          "are left out",
                          folder, (long long)had, (long long)has, (long long)has,
                          (long long)had - 1);
        return NULL;
    }
    bool rotary = strcmp(value_here(options, params, "positions"), "rotary") == 0;
    if (strcmp(flag, "context") == 0 && rotary) return NULL; // no variable has its size
    char *text = bel_strf("--warm_start %s: %s is %s there, but --%s%s is %s", folder, flag, there,
                          is_switch && strcmp(here, "false") == 0 ? "no_" : "", flag,
                          is_switch ? "given" : here);
    bel_status *status = NULL;
    if (patterns > 0)
        bel_log_write(BEL_LOG_WARN, "%s", text);
    else
        status = BEL_ERR(BEL_FAILED_PRECONDITION, "%s", text);
    bel_free(text);
    return status;
}

bel_status *bel_warm_start_check_settings(const bel_options *options, const bel_params *params,
                                          const bel_warm_settings *there)
{
    if (folder_of_start(options) == NULL) return NULL; // the reader of the folder compares them
    for (int i = 0; i < there->list.count; i++) {
        const bel_huggingface_setting *s = &there->list.items[i];
        BEL_TRY(check_setting(options, params, s->flag, s->value));
    }
    return NULL;
}

bel_status *bel_warm_start_context(const bel_options *options, int64_t *context)
{
    bel_warm_settings settings;
    BEL_TRY(bel_warm_start_read_settings(options, "encoder", &settings));
    for (int i = 0; i < settings.list.count; i++) {
        const bel_huggingface_setting *s = &settings.list.items[i];
        if (strcmp(s->flag, "context") == 0)
            (void)bel_parse_i64(s->value, strlen(s->value), context);
    }
    return NULL;
}
