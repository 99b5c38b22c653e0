// Names of settings that several folders of src/ use, with their meaning. Each name is defined only
// here. src/model/settings.c collects the settings, and checkpoints store them.
#ifndef BELFRY_CHECKPOINT_SETTING_NAMES_H
#define BELFRY_CHECKPOINT_SETTING_NAMES_H

#include <stdbool.h>

#include "checkpoint/checkpoint.h"

typedef struct bel_str bel_str; // base/str.h

#define BEL_SETTING_COLUMNS "columns"             // text of bel_column_names_write
#define BEL_SETTING_TABLE "table"                 // bel_columns_text, if the input has a table
#define BEL_SETTING_FEATURES "features"           // bel_feature_list_write
#define BEL_SETTING_INPUT "input"                 // fingerprint of the data and their order
#define BEL_SETTING_FINGERPRINT "%016llx"         // format of the fingerprint
#define BEL_SETTING_TABLE_DISK "table_disk"       // folder for rows beyond table_memory
#define BEL_SETTING_FOLLOWED "followed"           // bel_input_mark of the rows that were learned
#define BEL_SETTING_EPOCHS "num_epochs"           // bel_input_epochs, if it repeats
#define BEL_SETTING_DECAY_OVER "param.decay_over" // set if a schedule ends with the training
#define BEL_SETTING_REPLICAS "replicas"           // replicas of a step, if their number is fixed
#define BEL_SETTING_MODE "mode"                   // set if not all replicas count in a step
#define BEL_SETTING_BACKUPS "replicas_to_aggregate"
#define BEL_SETTING_AVERAGE "average"
#define BEL_SETTING_LOCAL_STEPS "local_steps" // set if not 1
#define BEL_SETTING_RATE_SCALE "scale_learning_rate"
#define BEL_SETTING_ELASTIC "elastic_rescale"
#define BEL_SETTING_REMAINDER "drop_remainder"
#define BEL_SETTING_PRODUCTS "products"           // name of the library
#define BEL_SETTING_GPU_MATH "gpu_math"           // set if not exact
#define BEL_SETTING_PRECISION "precision"         // set if not f32
#define BEL_SETTING_EXCHANGE "exchange_precision" // set if not f32
#define BEL_SETTING_BATCH "train_batch_size"
#define BEL_SETTING_ADMIT "table_admit_after"         // set if above 1, with tables
#define BEL_SETTING_EXPIRE "table_expire_after"       // set if above 0, with tables
#define BEL_SETTING_EXPIRE_BELOW "table_expire_below" // the same
#define BEL_SETTING_VARIABLES "variables"             // bel_layout_fingerprint
#define BEL_SETTING_RUNS "step_function_runs"         // with several: runs of each, "120,40"
#define BEL_SETTING_LINEAR "linear" // value of BEL_SETTING_RATE_SCALE and _ELASTIC

// Whether a setting concerns only the combination of several replicas or the multiplication
// library. A single replica that learns without a job has no such settings.
bool bel_setting_is_of_job(const char *name);

// Whether a step of one replica depends on the setting, for any data, order and job.
bool bel_setting_is_of_step(const char *name);

// Whether a resume compares the setting. The others count how far a training is, or are in another
// setting, too.
bool bel_setting_is_compared(const char *name);

// Adds "name was A and is B" to a list, after a semicolon unless it is the first. For long texts it
// shows the first line that differs. NULL: not set.
void bel_setting_note_difference(bel_str *list, const char *name, const char *was, const char *is);

// Appends the differences between a checkpoint's settings and `count` settings to `list`, as "name
// was A and is B" separated by semicolons; "was" is the checkpoint's. Compares only settings for
// which `counts` returns true. A setting that only one side has is also a difference.
void bel_settings_differences(const bel_ckpt_reader *reader, char *const *names,
                              char *const *values, int count, bool (*counts)(const char *name),
                              bel_str *list);

#endif
