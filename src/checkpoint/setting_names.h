// Names of settings that several rooms know, and what they are about. Each is written down here
// once; src/estimator/settings.c gathers them, and checkpoints keep them.
#ifndef BELFRY_CHECKPOINT_SETTING_NAMES_H
#define BELFRY_CHECKPOINT_SETTING_NAMES_H

#include <stdbool.h>

#include "base/str.h"
#include "checkpoint/checkpoint.h"

#define BEL_SETTING_COLUMNS "columns"             // what bel_column_names_write writes
#define BEL_SETTING_TABLE "table"                 // bel_columns_text, where the input has one
#define BEL_SETTING_FEATURES "features"           // bel_feature_list_write
#define BEL_SETTING_INPUT "input"                 // fingerprint of the data and their order
#define BEL_SETTING_FINGERPRINT "%016llx"         // how it is written
#define BEL_SETTING_EPOCHS "num_epochs"           // bel_input_epochs, where it repeats
#define BEL_SETTING_DECAY_OVER "param.decay_over" // there where a schedule ends with the training
#define BEL_SETTING_REPLICAS "replicas"           // of a step, where their number is fixed
#define BEL_SETTING_MODE "mode"                   // where not all replicas count in a step
#define BEL_SETTING_BACKUPS "replicas_to_aggregate"
#define BEL_SETTING_AVERAGE "average"
#define BEL_SETTING_RATE_SCALE "scale_learning_rate"
#define BEL_SETTING_ELASTIC "elastic_rescale"
#define BEL_SETTING_REMAINDER "drop_remainder"
#define BEL_SETTING_PRODUCTS "products"   // of which library
#define BEL_SETTING_GPU_MATH "gpu_math"   // where it is not exact
#define BEL_SETTING_PRECISION "precision" // where it is not f32
#define BEL_SETTING_BATCH "train_batch_size"
#define BEL_SETTING_VARIABLES "variables" // bel_layout_fingerprint
#define BEL_SETTING_LINEAR "linear"       // value of BEL_SETTING_RATE_SCALE and _ELASTIC

// Of how several replicas come together, or of a library that multiplies: of one replica that
// learns by itself there is none.
bool bel_setting_is_of_job(const char *name);

// Whether a step of one replica depends on it: whatever the data, their order and the job are.
bool bel_setting_is_of_step(const char *name);

// Adds "name was A and is B" to a list, with a semicolon before it where it is not the first. Of
// long texts the first line that differs is shown. NULL: not set.
void bel_setting_note_difference(bel_str *list, const char *name, const char *was, const char *is);

// Settings that differ between a checkpoint and a list of `count`, of those that `counts` says true
// of: both ways, as one that only one side has is a difference, too. Each is added to `list` as
// "name was A and is B", with semicolons between them: `was` is the checkpoint's.
void bel_settings_differences(const bel_ckpt_reader *reader, char *const *names,
                              char *const *values, int count, bool (*counts)(const char *name),
                              bel_str *list);

#endif
