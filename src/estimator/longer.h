// A training that continues over more data than its checkpoint was to see: the settings that differ
// by that, and by nothing else.
#ifndef BELFRY_ESTIMATOR_LONGER_H
#define BELFRY_ESTIMATOR_LONGER_H

#include "estimator/settings.h"

// The checkpoint's value of settings[i] where the two values differ only as this training is
// longer: more epochs of the same data, or a schedule over the length of the training. Else the
// value of settings[i]. Adds "num_epochs was 2 and is 4" to `list`, unless that is NULL.
const char *bel_longer_value(const bel_settings *settings, int i, const bel_input *input,
                             const bel_ckpt_reader *reader, bel_str *list);

#endif
