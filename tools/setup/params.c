// Parameters. A model of Belfry receives every flag, so that its checkpoints are complete; a
// package receives only given flags, so that the package's defaults apply. Later sources replace
// earlier ones: the checkpoint's, then flags that are given, then --param. Defaults only fill
// absent parameters. A --param with the name of a flag is refused, because it would bypass the
// checks of the flag.
#include "setup/params.h"

#include <string.h>

#include "base/alloc.h"
#include "command/flags.h"

#define PREFIX "param." // prefix of a parameter's name among a checkpoint's settings

void bel_params_set(bel_params *params, const char *name, const char *value)
{
    value = bel_arena_strdup(params->arena, value);
    for (size_t i = 0; i < params->count; i++) {
        if (strcmp(params->items[i].name, name) != 0) continue;
        params->items[i].value = value;
        return;
    }
    params->items =
        bel_xgrow(params->items, &params->capacity, params->count + 1, sizeof *params->items);
    params->items[params->count++] =
        (bel_param){.name = bel_arena_strdup(params->arena, name), .value = value};
}

const char *bel_params_get(const bel_params *params, const char *name)
{
    for (size_t i = 0; i < params->count; i++)
        if (strcmp(params->items[i].name, name) == 0) return params->items[i].value;
    return NULL;
}

void bel_params_deinit(bel_params *params)
{
    bel_free(params->items);
    params->items = NULL;
    params->count = params->capacity = 0;
}

void bel_params_from_checkpoint(bel_params *params, const bel_ckpt_reader *reader)
{
    const bel_ckpt_info *info = bel_ckpt_reader_info(reader);
    for (int i = 0; i < info->setting_count; i++) {
        const char *name = info->setting_names[i];
        if (strncmp(name, PREFIX, strlen(PREFIX)) != 0) continue;
        bel_params_set(params, name + strlen(PREFIX), info->setting_values[i]);
    }
}

// Flags of the model's group that are not parameters: the model's name, the package's sources, and
// the parameters themselves.
static bool is_parameter(const char *flag)
{
    static const char *const others[] = {"model", "package", "package_path", "module_name",
                                         "param"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(flag, others[i]) == 0) return false;
    return true;
}

// Flags that are newer than some readable checkpoints. They are stored only when given, so that a
// checkpoint without them compares equal.
static bool is_young(const char *flag)
{
    static const char *const young[] = {"beta1",
                                        "beta2",
                                        "staircase",
                                        "schedule_formula",
                                        "rate_scale",
                                        "wide_optimizer",
                                        "wide_learning_rate",
                                        "id_list_combiner",
                                        "batch_norm",
                                        "objective",
                                        "quantile",
                                        "huber_delta",
                                        "tweedie_power",
                                        "wide_numbers",
                                        "class_weights",
                                        "threshold",
                                        "freeze",
                                        "train",
                                        "positive_class",
                                        "preset",
                                        "layers",
                                        "heads",
                                        "kv_heads",
                                        "token_width",
                                        "context",
                                        "vocabulary",
                                        "positions",
                                        "norm",
                                        "activation",
                                        "bias",
                                        "tied"};
    for (size_t i = 0; i < sizeof young / sizeof young[0]; i++)
        if (strcmp(flag, young[i]) == 0) return true;
    return false;
}

// Data flags that checkpoints store when given.
static const char *const remembered[] = {"id_columns", "id_list_columns", "id_list_most",
                                         "id_list_weights", "length_column"};
enum { REMEMBERED_COUNT = sizeof remembered / sizeof *remembered };

static void set_flag(bel_params *params, const bel_options *options, const char *flag,
                     bool defaults)
{
    bool missing = defaults && !is_young(flag) && bel_params_get(params, flag) == NULL;
    if (missing || bel_options_is_given(options, flag)) {
        bel_params_set(params, flag, bel_options_text(options, flag));
    }
}

static bool has_own_flag(const char *name)
{
    static const char *const groups[] = {BEL_FLAG_GROUP_MODEL, BEL_FLAG_GROUP_OPTIMIZER};
    for (size_t g = 0; g < 2; g++) {
        const char *flag;
        for (size_t i = 0; (flag = bel_flags_in_group(groups[g], i)) != NULL; i++)
            if (strcmp(flag, name) == 0) return true;
    }
    for (int i = 0; i < REMEMBERED_COUNT; i++)
        if (strcmp(remembered[i], name) == 0) return true;
    return strcmp(name, "feature_scale") == 0;
}

static bool is_package_flag(const bel_package *package, const char *name)
{
    for (int i = 0; package != NULL && i < package->flag_count; i++)
        if (strcmp(package->flags[i].name, name) == 0) return true;
    return false;
}

bel_status *bel_params_from_flags(bel_params *params, const bel_options *options, bool defaults,
                                  const bel_package *package)
{
    static const char *const groups[] = {BEL_FLAG_GROUP_MODEL, BEL_FLAG_GROUP_OPTIMIZER};
    for (size_t g = 0; g < 2; g++) {
        const char *flag;
        for (size_t i = 0; (flag = bel_flags_in_group(groups[g], i)) != NULL; i++)
            if (is_parameter(flag)) set_flag(params, options, flag, defaults);
    }
    for (int i = 0; package != NULL && i < package->flag_count; i++)
        set_flag(params, options, package->flags[i].name, true);
    set_flag(params, options, "feature_scale", defaults);
    for (int i = 0; i < REMEMBERED_COUNT; i++)
        set_flag(params, options, remembered[i], false);

    size_t count;
    const char *const *pairs = bel_options_list(options, "param", &count);
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(pairs[i], '='); // present: the option's type checks it
        char *name = bel_xstrndup(pairs[i], (size_t)(equals - pairs[i]));
        bool taken = has_own_flag(name) || is_package_flag(package, name);
        bel_status *status =
            taken ? BEL_ERR(BEL_INVALID_ARGUMENT, "--param %s: use --%s", pairs[i], name) : NULL;
        if (!taken) bel_params_set(params, name, equals + 1);
        bel_free(name);
        if (status != NULL) return status;
    }
    return NULL;
}
