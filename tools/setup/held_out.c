// The held out rows follow only from the files, the share and the seed, so the training's flags
// determine them: they are in job.yaml, which each training writes. Relative paths of files are
// resolved where the command runs, as in the training.
#include "setup/held_out.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "columns/description.h"
#include "command/flags.h"
#include "input/table/holdout.h"

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
