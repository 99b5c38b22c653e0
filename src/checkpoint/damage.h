// Mark in a model folder whose checkpoints were made of damaged data: job.damage
// (docs/formats/checkpoint.md). It is where the checkpoints are, so every host that reads the
// folder finds it.
#ifndef BELFRY_CHECKPOINT_DAMAGE_H
#define BELFRY_CHECKPOINT_DAMAGE_H

#include "belfry/status.h"

#define BEL_DAMAGE_FILE "job.damage"

// Writes the mark, synced and atomically: `what` is one line that names the data. "": lifts it. The
// file stays then, empty, as files of a folder in a store are replaced and never removed.
bel_status *bel_ckpt_damage_write(const char *model_dir, const char *what) BEL_MUST_USE;

// Reads the mark; NULL: no mark. Free with bel_free.
bel_status *bel_ckpt_damage_read(const char *model_dir, char **out_what) BEL_MUST_USE;

// Warns of a mark beside a checkpoint's folder, once for each model folder, for readers.
void bel_ckpt_damage_warn(const char *folder);

#endif
