// Names in a model folder, private to src/checkpoint.
//
//   ckpt-00001000               a checkpoint: complete when it was renamed to this
//   ckpt-00001000.tmp-g0-i0     being written by generation 0, incarnation 0 of the master
//   ckpt-00001000.replaced      stepped aside for a new one of the same step; counts as the
//                               checkpoint until that one exists (the commit was killed between its
//                               two renames)
//   ckpt-00001000.removed       on its way out: a removal never leaves half a checkpoint visible
#ifndef BELFRY_CHECKPOINT_FOLDER_H
#define BELFRY_CHECKPOINT_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "belfry/status.h"

// "<model_dir>/ckpt-<8-digit step>"; free with bel_free.
char *bel_ckpt_folder_path(const char *model_dir, int64_t step);

// Path of the checkpoint of a listed step: as above, or stepped aside. Free with bel_free.
char *bel_ckpt_find_folder(const char *model_dir, int64_t step);

// Reads the step from the name of a checkpoint's folder, in place or stepped aside. Returns false
// for any other name.
bool bel_ckpt_step_of_folder(const char *folder, int64_t *out_step);

// Lets a checkpoint step aside for a new one, lets it come back, or removes the one that stepped
// aside. All three succeed if there is nothing to do.
bel_status *bel_ckpt_step_aside(const char *folder) BEL_MUST_USE;
bel_status *bel_ckpt_step_back(const char *folder) BEL_MUST_USE;
bel_status *bel_ckpt_remove_replaced(const char *folder) BEL_MUST_USE;

// Removes the checkpoint of a listed step.
bel_status *bel_ckpt_remove(const char *model_dir, int64_t step) BEL_MUST_USE;

// Logs a folder that cannot be removed (a file that is open on NFS, a mount), and frees the status;
// NULL: nothing to log. Such a folder takes space and does no harm.
void bel_ckpt_say_stays(bel_log_level level, bel_status *status);

#endif
