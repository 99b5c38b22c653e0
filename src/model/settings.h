// Settings that determine the bits of a run, as names and texts: stored in every checkpoint,
// compared on resume.
#ifndef BELFRY_ESTIMATOR_SETTINGS_H
#define BELFRY_ESTIMATOR_SETTINGS_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/setting_names.h"
#include "estimator/estimator_inner.h"
#include "model/model.h"
#include "ps/layout/layout.h"

typedef struct bel_settings {
    char **names;
    char **values;
    int count;
    size_t name_capacity, value_capacity;
} bel_settings;

// Collects seed, replicas, batch size, input and its columns, layout, optimizer, model parameters,
// arithmetic.
void bel_settings_gather(bel_settings *settings, const bel_estimator *estimator,
                         const bel_built *built, const bel_input *input, const bel_layout *layout);
void bel_settings_deinit(bel_settings *settings);

// Adds the settings of a run that do not change the bits, by the names of the command's flags or
// else of bel_run_config. They are for people: no checkpoint stores them.
void bel_settings_gather_others(bel_settings *settings, const bel_estimator *estimator);

// Compares with the checkpoint's settings. FAILED_PRECONDITION: settings differ; the message lists
// each with both values; with `allowed` the log lists them instead. Differences of a training of
// this input that is only longer are no error: they are appended to `longer` (NULL: discarded),
// with semicolons between them.
bel_status *bel_settings_compare(const bel_settings *settings, const bel_input *input,
                                 const bel_ckpt_reader *reader, bool allowed,
                                 bel_str *longer) BEL_MUST_USE;

#endif
