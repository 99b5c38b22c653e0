// The held out rows follow only from the files, the share and the seed, so the training's flags
// determine them: they are in job.yaml, which each training writes. Relative paths of files are
// resolved where the command runs, as in the training. The checkpoint has a fingerprint of its
// input, and so of the files: changed ones are refused, as a resumed training refuses them.
#include "setup/held_out.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/setting_names.h"
#include "columns/description.h"
#include "command/flags.h"
#include "input/table/holdout.h"
#include "model/input_fn.h"

bel_status *bel_held_out_options(const char *model_dir, bel_options **out_training)
{
    char *path = bel_path_join(model_dir, "job.yaml");
    bel_options *training = bel_flags_create(BEL_VERB_TRAIN_AND_EVALUATE);
    bel_status *status = NULL;
    if (!bel_file_exists(path)) {
        status = BEL_ERR(BEL_NOT_FOUND,
                         "--held_out: %s is not there, which says what the training has held out; "
                         "hint: --model_dir names the training's folder",
                         path);
    }
    if (status == NULL) status = bel_options_read_yaml(training, path);
    if (status == NULL && !bel_flag_inputs_hold_out(training)) {
        status =
            BEL_ERR(BEL_FAILED_PRECONDITION,
                    "--held_out: the training in %s held no rows out (--eval_share)", model_dir);
    }
    bel_free(path);
    if (status == NULL) {
        *out_training = training;
    } else {
        bel_options_destroy(training);
    }
    return status;
}

static char *copy_setting(const bel_ckpt_reader *reader, const char *name)
{
    const char *value = bel_ckpt_setting(reader, name);
    return value != NULL ? bel_xstrdup(value) : NULL;
}

static int64_t number_setting(const bel_ckpt_reader *reader, const char *name)
{
    const char *value = bel_ckpt_setting(reader, name);
    int64_t number = 0;
    return value != NULL && bel_parse_i64(value, strlen(value), &number) ? number : 0;
}

void bel_held_out_input_read(const bel_ckpt_reader *reader, bel_held_out_input *out_input)
{
    *out_input = (bel_held_out_input){.fingerprint = copy_setting(reader, BEL_SETTING_INPUT),
                                      .columns = copy_setting(reader, BEL_SETTING_COLUMNS),
                                      .epochs = number_setting(reader, BEL_SETTING_EPOCHS),
                                      .batch_size = number_setting(reader, BEL_SETTING_BATCH)};
}

void bel_held_out_input_deinit(bel_held_out_input *input)
{
    bel_free(input->fingerprint);
    bel_free(input->columns);
}

bel_status *bel_held_out_check(const bel_setup *setup, const bel_held_out_input *was)
{
    if (was->fingerprint == NULL || setup->input_user != &setup->input) return NULL;
    bel_flag_input training = setup->input;
    training.options = setup->training;
    training.training = NULL;
    if (was->batch_size > 0) training.train_batch_size = was->batch_size;
    bel_input *input;
    char now[32];
    BEL_TRY(bel_input_fn_open_like(setup->input_fn, &training, setup->estimator, BEL_MODE_TRAIN,
                                   was->columns, &input));
    bel_snprintf(now, sizeof now, BEL_SETTING_FINGERPRINT,
                 (unsigned long long)(was->epochs > 0
                                          ? bel_input_fingerprint_of_epochs(input, was->epochs)
                                          : bel_input_fingerprint(input)));
    bel_input_destroy(input);
    if (strcmp(now, was->fingerprint) == 0) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "--held_out: the training's input was %s and is %s: its files or flags have "
                   "changed, so the rows held out now are others, which it was trained on; hint: "
                   "the files as they were, or --eval_files",
                   was->fingerprint, now);
}

bel_status *bel_held_out_rows(const bel_setup *setup, int64_t **out_rows)
{
    const bel_columns *columns = setup->columns;
    bel_csv_options csv = {.size = sizeof csv,
                           .delimiter = columns != NULL ? columns->delimiter : ',',
                           .no_header = columns != NULL
                                            ? !columns->header
                                            : !bel_options_bool(setup->training, "header")};
    const char *label = columns != NULL ? bel_columns_label(columns) : setup->label_column;
    bel_arena *arena = bel_arena_create();
    bel_status *status = bel_flag_inputs_holdout(setup->training, true, &csv.holdout);
    if (status == NULL)
        status = bel_flag_inputs_paths(setup->training, BEL_MODE_TRAIN, arena, &csv.paths,
                                       &csv.path_count);
    if (status == NULL) status = bel_holdout_list(&csv, label, out_rows);
    bel_arena_destroy(arena);
    return status;
}
