// A training that continues over more data than its checkpoint planned: the settings that differ
// only for that reason.
#ifndef BELFRY_ESTIMATOR_LONGER_H
#define BELFRY_ESTIMATOR_LONGER_H

#include "model/settings.h"

// Returns the checkpoint's value of settings[i] if the two values differ only because this training
// is longer: more epochs of the same data, or a schedule over the length of the training. Otherwise
// returns the value of settings[i]. Adds "num_epochs was 2 and is 4" to `list`, unless that is
// NULL.
const char *bel_longer_value(const bel_settings *settings, int i, const bel_input *input,
                             const bel_ckpt_reader *reader, bel_str *list);

#endif
