// Verb export: writes a checkpoint's model, or its training, as files for other programs. The
// checkpoint is chosen once, as in evaluate. It describes its features, so no data are needed.
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "command/results.h"
#include "command/verbs.h"
#include "estimator/estimator_inner.h"
#include "export/export_folder.h"
#include "launch/folder/stored.h"
#include "predict/gpt_features.h"
#include "setup/huggingface.h"
#include "setup/setup.h"

static bel_status *default_folder(const bel_setup *setup, const char *suffix, char **out_folder)
{
    bel_ckpt_reader *reader;
    BEL_TRY(bel_ckpt_open(setup->checkpoint, &reader));
    *out_folder = bel_strf("%s/export/%lld%s", setup->model_dir,
                           (long long)bel_ckpt_reader_info(reader)->step, suffix);
    bel_ckpt_close(reader);
    return NULL;
}

static bel_status *fill_huggingface(void *context, const char *folder)
{
    const bel_setup *setup = context;
    return bel_huggingface_write(setup->estimator, setup->checkpoint,
                                 setup->estimator->config.averages, setup->tokenizer, folder);
}

// Refuses flags of the other format, in which no part reads them.
static bel_status *check_format(const bel_options *options)
{
    static const char *const flags[] = {"training", "opset", "tables", "external_data",
                                        "with_past"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (bel_options_is_given(options, flags[i]))
            return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s has no effect with --format huggingface",
                           flags[i]);
    return NULL;
}

// Exports the graph that takes and gives keys and values of earlier tokens.
static bel_status *take_past(const bel_setup *setup, bel_gpt_features *out_features,
                             bel_export_options *how)
{
    bel_gpt_sizes sizes;
    BEL_TRY(bel_gpt_sizes_read(setup, "--with_past", &sizes));
    if (sizes.layers > (BEL_MAX_OUTPUTS - 1) / 2)
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "%s has %lld layers; --with_past is for at most %d, as a model has %d outputs",
            setup->checkpoint, (long long)sizes.layers, (BEL_MAX_OUTPUTS - 1) / 2, BEL_MAX_OUTPUTS);
    *out_features = bel_gpt_features_of_past(&sizes);
    how->features = out_features->items;
    how->feature_count = out_features->count;
    return NULL;
}

bel_status *bel_verb_export(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // stays 0
    bel_setup *setup;
    BEL_TRY(bel_setup_for_reading(options, &setup));
    const char *named = bel_options_string(options, "export_dir");
    const char *tables = bel_options_string(options, "tables");
    char *folder = named != NULL ? bel_xstrdup(named) : NULL;
    bel_export_options how = {.size = sizeof how,
                              .opset = bel_options_int(options, "opset"),
                              .external_data = bel_options_bool(options, "external_data"),
                              .inline_tables = strcmp(tables, "inline") == 0,
                              .training = bel_options_bool(options, "training")};
    bool face = strcmp(bel_options_string(options, "format"), "huggingface") == 0;
    bel_status *status = face ? check_format(options) : NULL;
    if (how.training && bel_options_is_given(options, "averages"))
        status =
            BEL_ERR(BEL_INVALID_ARGUMENT, "--averages is not read with --training, which keeps "
                                          "parameters and averages");
    bel_gpt_features past = {.count = 0};
    bool with_past = bel_options_bool(options, "with_past");
    if (status == NULL && with_past) status = take_past(setup, &past, &how);
    const char *suffix = face           ? "-huggingface"
                         : how.training ? "-training"
                         : with_past    ? "-with-past"
                                        : "";
    if (status == NULL && folder == NULL) status = default_folder(setup, suffix, &folder);
    if (status == NULL)
        status = face ? bel_export_to_folder(folder, false, fill_huggingface, setup)
                      : bel_export(setup->estimator, setup->checkpoint, &how, folder);
    if (status == NULL) {
        char *url = named == NULL ? bel_stored_url(setup->model_dir) : NULL;
        const char *shown = named != NULL ? bel_options_text(options, "export_dir") : folder;
        char *line = url == NULL
                         ? bel_strf("export_dir %s\n", shown)
                         : bel_strf("export_dir %s%s\n", url, folder + strlen(setup->model_dir));
        status = bel_results_write(line);
        bel_free(line);
        bel_free(url);
    }
    bel_free(past.items);
    bel_free(folder);
    bel_setup_destroy(setup);
    return status;
}
