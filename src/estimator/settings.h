// What determines the bits of a run, as names and texts: kept in every checkpoint, compared on
// resume.
#ifndef BELFRY_ESTIMATOR_SETTINGS_H
#define BELFRY_ESTIMATOR_SETTINGS_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/setting_names.h"
#include "estimator/estimator_inner.h"
#include "estimator/model.h"
#include "ps/layout/layout.h"

typedef struct bel_settings {
    char **names;
    char **values;
    int count;
    size_t name_capacity, value_capacity;
} bel_settings;

// Seed, replicas, batch size, input and its columns, layout, optimizer, model parameters,
// arithmetic.
void bel_settings_gather(bel_settings *settings, const bel_estimator *estimator,
                         const bel_built *built, const bel_input *input, const bel_layout *layout);
void bel_settings_deinit(bel_settings *settings);

// Adds the settings of a run that leave the bits as they are, by the names of the command's flags
// or else of bel_run_config. For people: no checkpoint keeps them.
void bel_settings_gather_others(bel_settings *settings, const bel_estimator *estimator);

// FAILED_PRECONDITION when the checkpoint was made with other settings: lists each with both
// values. A training of this input that is only longer is none with other settings: how it is
// longer is added to `longer` (NULL: nothing is), with semicolons between.
bel_status *bel_settings_compare(const bel_settings *settings, const bel_input *input,
                                 const bel_ckpt_reader *reader, bel_str *longer) BEL_MUST_USE;

#endif
