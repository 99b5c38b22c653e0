// Gathering and comparing settings. A setting that does not change the bits must not be here, or
// resuming is refused for nothing; one that does must be, or it goes on silently with other
// bits. Settings at their default are mostly left out, so that checkpoints of versions without
// them still compare equal; ARITHMETIC stands for what no setting says.
//
// Numbers are compared as texts with nine digits. A text that is missing on either side counts
// as a change. Names and values are part of the checkpoint's format: one that is renamed makes
// every older checkpoint differ.
#include "estimator/settings.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "optim/multiplier.h"
#include "optim/rule.h"

// One more whenever a version of Belfry computes other bits than the one before.
enum { ARITHMETIC = 4 };

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
static void add(bel_settings *settings, const char *name, const char *format, ...)
{
    char text[BEL_MULTIPLIERS_TEXT]; // the longest
    va_list args;
    va_start(args, format);
    bel_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add_text(settings, name, text);
}

// "piecewise: 0.1 up to step 1000, 0.01 up to step 2000, 0.001"
static void add_pieces(bel_settings *settings, const bel_schedule *s)
{
    bel_str text = {0};
    bel_str_puts(&text, "piecewise: ");
    for (int i = 0; i < BEL_SCHEDULE_MAX_PIECES && s->rates[i] != 0; i++) {
        if (i > 0) bel_str_printf(&text, " up to step %lld, ", (long long)s->boundaries[i - 1]);
        bel_str_printf(&text, "%.9g", s->rates[i]);
    }
    add(settings, "schedule", "%s", text.text);
    bel_str_deinit(&text);
}

static void add_optimizer(bel_settings *settings, const bel_optimizer *o)
{
    add(settings, "optimizer", "%s%s", bel_rule_get(o)->name, o->nesterov ? " nesterov" : "");
    if (o->schedule.kind != BEL_SCHEDULE_PIECEWISE) {
        add(settings, "learning_rate", "%.9g", o->learning_rate);
    }
    if (o->kind == BEL_OPTIMIZER_MOMENTUM) add(settings, "momentum", "%.9g", o->momentum);
    if (o->kind == BEL_OPTIMIZER_ADAM || o->kind == BEL_OPTIMIZER_ADAMW ||
        o->kind == BEL_OPTIMIZER_LAMB) {
        add(settings, bel_rule_get(o)->name, "beta1 %.9g, beta2 %.9g, epsilon %.9g", o->beta1,
            o->beta2, o->epsilon);
    }
    if (o->kind == BEL_OPTIMIZER_LARS) {
        add(settings, "lars", "momentum %.9g, trust %.9g", o->momentum, o->lars_trust);
    }
    if (o->kind == BEL_OPTIMIZER_ADAGRAD) {
        add(settings, "adagrad", "epsilon %.9g, initial accumulator %.9g", o->epsilon,
            o->initial_accumulator);
    }
    if (o->kind == BEL_OPTIMIZER_RMSPROP) {
        add(settings, "rmsprop", "decay %.9g, momentum %.9g, epsilon %.9g%s", o->rmsprop_decay,
            o->rmsprop_momentum, o->epsilon, o->rmsprop_centered ? ", centered" : "");
    }
    if (o->kind == BEL_OPTIMIZER_FTRL) {
        add(settings, "ftrl",
            "power %.9g, l1 %.9g, l2 %.9g, shrinkage %.9g, initial accumulator %.9g",
            o->learning_rate_power, o->ftrl_l1, o->ftrl_l2, o->ftrl_l2_shrinkage,
            o->initial_accumulator);
    }
    if (o->weight_decay > 0) add(settings, "weight_decay", "%.9g", o->weight_decay);
    if (o->moving_average_decay > 0) {
        add(settings, "moving_average_decay", "%.9g%s", o->moving_average_decay,
            o->moving_average_ramp ? ", ramp" : "");
    }
    if (o->mean_by_contributors) add(settings, "table_mean", "contributors");
    if (o->clip_value > 0) add(settings, "clip_value", "%.9g", o->clip_value);
    if (o->clip_norm > 0) add(settings, "clip_norm", "%.9g", o->clip_norm);
    if (o->clip_global_norm > 0) add(settings, "clip_global_norm", "%.9g", o->clip_global_norm);
    const bel_schedule *s = &o->schedule;
    if (s->kind == BEL_SCHEDULE_EXPONENTIAL) {
        add(settings, "schedule", "exponential, rate %.9g, steps %lld%s", s->decay_rate,
            (long long)s->decay_steps, s->staircase ? ", staircase" : "");
    }
    if (s->kind == BEL_SCHEDULE_COSINE) {
        add(settings, "schedule", "cosine, steps %lld, alpha %.9g", (long long)s->decay_steps,
            s->alpha);
    }
    if (s->kind == BEL_SCHEDULE_PIECEWISE) add_pieces(settings, s);
    char text[BEL_MULTIPLIERS_TEXT];
    bel_multipliers_text(o->lr_mults, text);
    if (text[0] != '\0') add(settings, "lr_mult", "%s", text);
    bel_multipliers_text(o->decay_mults, text);
    if (text[0] != '\0') add(settings, "decay_mult", "%s", text);
    if (s->warmup_steps > 0) add(settings, "warmup_steps", "%lld", (long long)s->warmup_steps);
}

void bel_settings_gather(bel_settings *settings, const bel_estimator *estimator,
                         const bel_built *built, const bel_input *input, const bel_layout *layout)
{
    add(settings, "seed", "%llu", (unsigned long long)estimator->config.seed);
    const bel_run_config *config = &estimator->config;
    if (config->elastic_rescale) {
        add(settings, "elastic_rescale", "linear"); // then replicas may change, by that rule
    } else {
        add(settings, "replicas", "%d", estimator->replica_count);
    }
    if (config->aggregation != BEL_AGGREGATE_SYNC) {
        add(settings, "mode", "%s",
            config->aggregation == BEL_AGGREGATE_ASYNC ? "async" : "bounded");
    }
    bool backups = config->replicas_to_aggregate < config->worker_count;
    if (config->replicas_to_aggregate > 0 && backups) {
        add(settings, "replicas_to_aggregate", "%d", config->replicas_to_aggregate);
    }
    if (config->average == BEL_AVERAGE_REPLICAS) add(settings, "average", "replicas");
    if (config->drop_remainder) add(settings, "drop_remainder", "true");
    if (config->precision == BEL_PRECISION_BF16) add(settings, "precision", "bf16");
    add(settings, "train_batch_size", "%lld", (long long)bel_input_batch_size(input));
    add_optimizer(settings, &built->spec.optimizer);
    for (int i = 0; i < estimator->param_count; i++) {
        // "param.": a parameter may have the name of another setting. Whole, however long: what is
        // cut would compare as equal.
        char *name = bel_strf("param.%s", estimator->params[i].name);
        add_text(settings, name, estimator->params[i].value);
        bel_free(name);
    }
    add(settings, "variables", "%016llx", (unsigned long long)bel_layout_fingerprint(layout));
    const bel_column_names *names = bel_input_names(input);
    if (names != NULL) {
        bel_str text = {0};
        bel_column_names_write(names, &text);
        add_text(settings, BEL_SETTING_COLUMNS, text.text);
        bel_str_deinit(&text);
    }
    add(settings, "input", "%016llx", (unsigned long long)bel_input_fingerprint(input));
    add(settings, "arithmetic", "%d", ARITHMETIC);
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

static const char *value_of(const bel_settings *settings, const char *name)
{
    for (int i = 0; i < settings->count; i++)
        if (strcmp(settings->names[i], name) == 0) return settings->values[i];
    return NULL;
}

static void note(bel_str *list, const char *name, const char *was, const char *is)
{
    if (strcmp(name, "input") == 0) name = "input (the data, their order, the number of epochs)";
    bel_str_printf(list, "%s%s was %s and is %s", list->length > 0 ? "; " : "", name,
                   was != NULL ? was : "not set", is != NULL ? is : "not set");
}

bel_status *bel_settings_compare(const bel_settings *settings, const bel_ckpt_reader *reader)
{
    bel_str list = {0};
    for (int i = 0; i < settings->count; i++) {
        const char *was = bel_ckpt_setting(reader, settings->names[i]);
        const char *is = settings->values[i];
        if (was == NULL || strcmp(was, is) != 0) note(&list, settings->names[i], was, is);
    }
    const bel_ckpt_info *info = bel_ckpt_reader_info(reader);
    for (int i = 0; i < info->setting_count; i++) {
        if (value_of(settings, info->setting_names[i]) == NULL) {
            note(&list, info->setting_names[i], info->setting_values[i], NULL);
        }
    }
    if (list.length == 0) return NULL;
    bel_status *status =
        BEL_ERR(BEL_FAILED_PRECONDITION,
                "%s was trained with other settings, so resuming would change the result: %s; "
                "hint: use another model_dir, or --allow_changes to resume all the same",
                bel_ckpt_folder(reader), list.text);
    bel_str_deinit(&list);
    return status;
}
