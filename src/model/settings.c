// Collecting and comparing settings. A setting that does not change the bits must not be here, or
// it makes resume refuse needlessly. One that does must be here, or resume continues silently with
// other bits. Settings at their default are mostly omitted, so that checkpoints of versions without
// them still compare equal. BEL_ARITHMETIC covers differences that no setting describes.
//
// Numbers are compared as texts with nine digits. A text that is missing on either side counts as a
// change. Names and values are part of the checkpoint's format: renaming one makes every older
// checkpoint differ.
#include "model/settings.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arithmetic.h"
#include "base/log.h"
#include "base/number.h"
#include "base/openblas.h"
#include "base/str.h"
#include "belfry/columns.h"
#include "estimator/run_flags.h"
#include "model/feature_list.h"
#include "model/longer.h"
#include "optim/settings.h"
#include "ps/layout/shard_settings.h"

static void add_text(bel_settings *settings, const char *name, const char *text)
{
    size_t count = (size_t)settings->count + 1;
    settings->names =
        bel_xgrow(settings->names, &settings->name_capacity, count, sizeof *settings->names);
    settings->values =
        bel_xgrow(settings->values, &settings->value_capacity, count, sizeof *settings->values);
    settings->names[settings->count] = bel_xstrdup(name);
    settings->values[settings->count++] = bel_xstrdup(text);
}

BEL_PRINTF(3, 4)
static void settings_add(bel_settings *settings, const char *name, const char *format, ...)
{
    char text[32]; // the longest is a fingerprint
    va_list args;
    va_start(args, format);
    bel_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add_text(settings, name, text);
}

// Adds when rows of tables come and go.
static void add_life(bel_settings *settings, const bel_run_config *config)
{
    if (config->table_admit_after > 1)
        settings_add(settings, BEL_SETTING_ADMIT, "%lld", (long long)config->table_admit_after);
    if (config->table_expire_after > 0)
        settings_add(settings, BEL_SETTING_EXPIRE, "%lld", (long long)config->table_expire_after);
    if (config->table_expire_below > 0) {
        char text[32], *end; // 0.1 as it was typed, if that is the number
        bel_snprintf(text, sizeof text, "%.15g", config->table_expire_below);
        if (bel_strtod(text, &end) != config->table_expire_below)
            bel_snprintf(text, sizeof text, "%.17g", config->table_expire_below);
        add_text(settings, BEL_SETTING_EXPIRE_BELOW, text);
    }
}

typedef struct function_settings {
    bel_settings *settings;
    const char *function; // function of a loop; NULL: the model function
} function_settings;

// Adds "optimizer", or "generator.optimizer" for a step function.
static void take_setting(void *context, const char *name, const char *text)
{
    const function_settings *of = context;
    char *full = of->function != NULL ? bel_strf("%s.%s", of->function, name) : bel_xstrdup(name);
    add_text(of->settings, full, text);
    bel_free(full);
}

void bel_settings_gather(bel_settings *settings, const bel_estimator *estimator,
                         const bel_built *built, const bel_input *input, const bel_layout *layout)
{
    settings_add(settings, "seed", "%llu", (unsigned long long)estimator->config.seed);
    const bel_run_config *config = &estimator->config;
    if (config->elastic_rescale) {
        settings_add(settings, BEL_SETTING_ELASTIC,
                     BEL_SETTING_LINEAR); // replicas may change by that rule
    } else {
        settings_add(settings, BEL_SETTING_REPLICAS, "%d", estimator->replica_count);
    }
    if (config->mode != BEL_AGGREGATE_SYNC) {
        settings_add(settings, BEL_SETTING_MODE, "%s",
                     config->mode == BEL_AGGREGATE_ASYNC ? "async" : "bounded");
    }
    bool backups = config->replicas_to_aggregate < config->num_workers;
    if (config->replicas_to_aggregate > 0 && backups) {
        settings_add(settings, BEL_SETTING_BACKUPS, "%d", config->replicas_to_aggregate);
    }
    if (config->average == BEL_AVERAGE_REPLICAS)
        settings_add(settings, BEL_SETTING_AVERAGE, "replicas");
    if (config->local_steps > 1)
        settings_add(settings, BEL_SETTING_LOCAL_STEPS, "%d", config->local_steps);
    if (config->average == BEL_AVERAGE_SUM) settings_add(settings, BEL_SETTING_AVERAGE, "sum");
    if (config->scale_learning_rate != BEL_SCALE_NONE) {
        settings_add(settings, BEL_SETTING_RATE_SCALE,
                     BEL_SETTING_LINEAR); // scaled by BEL_SETTING_REPLICAS
    }
    if (config->drop_remainder) settings_add(settings, BEL_SETTING_REMAINDER, "true");
    if (config->precision == BEL_PRECISION_BF16)
        settings_add(settings, BEL_SETTING_PRECISION, "bf16");
    if (config->exchange_precision != BEL_EXCHANGE_F32) {
        bel_str word = {0};
        bel_run_flag_word("exchange_precision", (int)config->exchange_precision, &word);
        add_text(settings, BEL_SETTING_EXCHANGE, word.text);
        bel_str_deinit(&word);
    }
    if (config->products == BEL_PRODUCTS_OPENBLAS) {
        add_text(settings, BEL_SETTING_PRODUCTS, bel_openblas_text());
    }
    if (config->gpu_math != BEL_GPU_MATH_EXACT) {
        bel_str math = {0};
        bel_run_flag_word("gpu_math", (int)config->gpu_math, &math);
        add_text(settings, BEL_SETTING_GPU_MATH, math.text);
        bel_str_deinit(&math);
    }
    settings_add(settings, BEL_SETTING_BATCH, "%lld", (long long)bel_input_batch_size(input));
    if (layout->table_count > 0) add_life(settings, config);
    for (int f = 0; f < built->function_count; f++) {
        function_settings of = {.settings = settings, .function = built->functions[f].name};
        bel_optimizers_describe(&built->optimizers[f], take_setting, &of);
    }
    for (int i = 0; i < estimator->param_count; i++) {
        // "param.": a parameter may have the name of another setting. The text is never truncated,
        // as truncated texts could compare equal.
        char *name = bel_strf("param.%s", estimator->params[i].name);
        add_text(settings, name, estimator->params[i].value);
        bel_free(name);
    }
    settings_add(settings, BEL_SETTING_VARIABLES, "%016llx",
                 (unsigned long long)bel_layout_fingerprint(layout));
    const bel_column_names *names = bel_input_names(input);
    if (names != NULL) {
        bel_str text = {0};
        bel_column_names_write(names, &text);
        add_text(settings, BEL_SETTING_COLUMNS, text.text);
        bel_str_deinit(&text);
    }
    bel_str features = {0};
    bel_feature_list_write(input, &features);
    add_text(settings, BEL_SETTING_FEATURES, features.text);
    bel_str_deinit(&features);
    const bel_columns *table = bel_input_table(input);
    if (table != NULL) add_text(settings, BEL_SETTING_TABLE, bel_columns_text(table));
    settings_add(settings, BEL_SETTING_INPUT, BEL_SETTING_FINGERPRINT,
                 (unsigned long long)bel_input_fingerprint(input));
    if (bel_input_epochs(input) != 0)
        settings_add(settings, BEL_SETTING_EPOCHS, "%lld", (long long)bel_input_epochs(input));
    settings_add(settings, "arithmetic", "%d", BEL_ARITHMETIC);
}

static void add_bytes(bel_settings *settings, const char *name, int64_t bytes)
{
    char text[32];
    if (bytes > 0) add_text(settings, name, bel_bytes_text((uint64_t)bytes, text));
}

static void add_flag(bel_settings *settings, const char *name, bool value)
{
    add_text(settings, name, value ? "true" : "false");
}

static void gather_processes(bel_settings *settings, const bel_estimator *estimator)
{
    static const char *const lanes[] = {"auto", "shm", "grpc"};
    const bel_run_config *config = &estimator->config;
    bel_str towers = {0};
    for (int w = 0; w < config->num_workers; w++)
        bel_str_printf(&towers, "%s%d", w > 0 ? "," : "", estimator->towers_of[w]);
    settings_add(settings, "num_workers", "%d", config->num_workers);
    add_text(settings, "towers_of_workers", towers.text);
    settings_add(settings, "num_threads", "%d", estimator->thread_count);
    settings_add(settings, "parameter_server_count", "%d", config->parameter_server_count);
    settings_add(settings, "min_shard_bytes", "%lld", (long long)config->min_shard_bytes);
    add_text(settings, "executor", config->executor == BEL_EXECUTOR_ASYNC ? "async" : "sync");
    add_text(settings, "lane", lanes[config->lane]);
    bel_str_deinit(&towers);
}

void bel_settings_gather_others(bel_settings *settings, const bel_estimator *estimator)
{
    const bel_run_config *config = &estimator->config;
    gather_processes(settings, estimator);
    if (config->save_checkpoints_steps > 0) {
        settings_add(settings, "save_checkpoints_steps", "%lld",
                     (long long)config->save_checkpoints_steps);
    } else {
        settings_add(settings, "save_checkpoints_secs", "%g", config->save_checkpoints_secs);
    }
    settings_add(settings, "keep_checkpoint_max", "%d", config->keep_checkpoint_max);
    settings_add(settings, "keep_checkpoint_every_n_hours", "%g",
                 config->keep_checkpoint_every_n_hours);
    settings_add(settings, "save_summary_steps", "%lld", (long long)config->save_summary_steps);
    settings_add(settings, "log_step_count_steps", "%lld", (long long)config->log_step_count_steps);
    add_flag(settings, "train_metrics", config->train_metrics);
    add_flag(settings, "audit_input", config->audit_input);
    if (config->check_replicas > 0) {
        settings_add(settings, "check_replicas", "%lld", (long long)config->check_replicas);
    }
    add_flag(settings, "allow_changes", config->allow_changes);
    settings_add(settings, "stall_timeout", "%g", config->stall_timeout);
    add_bytes(settings, "activation_memory", config->activation_memory);
    add_bytes(settings, "table_memory", config->table_memory);
    if (config->table_disk != NULL) add_text(settings, BEL_SETTING_TABLE_DISK, config->table_disk);
    if (config->mode == BEL_AGGREGATE_BOUNDED) {
        settings_add(settings, "max_staleness", "%d", config->max_staleness);
    }
    if (config->metrics_port != 0)
        settings_add(settings, "metrics_port", "%d", config->metrics_port);
    if (config->trace != NULL) add_text(settings, "trace", config->trace);
}

void bel_settings_deinit(bel_settings *settings)
{
    for (int i = 0; i < settings->count; i++) {
        bel_free(settings->names[i]);
        bel_free(settings->values[i]);
    }
    bel_free(settings->names);
    bel_free(settings->values);
    *settings = (bel_settings){0};
}

bel_status *bel_settings_compare(const bel_settings *settings, const bel_input *input,
                                 const bel_ckpt_reader *reader, bool allowed, bel_str *longer)
{
    bel_str list = {0};
    char **values = bel_xcalloc((size_t)settings->count, sizeof *values);
    for (int i = 0; i < settings->count; i++)
        values[i] = bel_xstrdup(bel_longer_value(settings, i, input, reader, longer));
    bel_settings_differences(reader, settings->names, values, settings->count,
                             bel_setting_is_compared, &list);
    for (int i = 0; i < settings->count; i++)
        bel_free(values[i]);
    bel_free(values);
    if (list.length == 0) return NULL;
    if (allowed) {
        bel_log_write(BEL_LOG_INFO, "%s was trained with other settings: %s",
                      bel_ckpt_folder(reader), list.text);
        bel_str_deinit(&list);
        return NULL;
    }
    bel_status *status =
        BEL_ERR(BEL_FAILED_PRECONDITION,
                "%s was trained with other settings, so resuming would change the result: %s; "
                "hint: use another model_dir (--warm_start %s begins with the values there are), "
                "or allow_changes (--allow_changes) to resume all the same",
                bel_ckpt_folder(reader), list.text, bel_ckpt_folder(reader));
    bel_str_deinit(&list);
    return status;
}
