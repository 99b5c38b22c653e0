// The checkpoint of a model folder that is kept in addition to the newest ones: the best, named in
// best.json (docs/formats/checkpoint.md).
#ifndef BELFRY_CHECKPOINT_BEST_H
#define BELFRY_CHECKPOINT_BEST_H

#include "checkpoint/checkpoint.h"

#define BEL_BEST_FILE "best.json"

// The best checkpoint, and the metric that chose it.
typedef struct bel_ckpt_best {
    int64_t step;
    char metric[64];
    float value; // the metric in its evaluation
    bool higher; // whether higher is better
    char evaluation[256];
} bel_ckpt_best;

// Writes best.json, synced and atomically. The caller writes it before the previous best checkpoint
// may be removed.
bel_status *bel_ckpt_best_write(const char *model_dir, const bel_ckpt_best *best) BEL_MUST_USE;

// Reads best.json. *out_found is false if no best checkpoint is recorded. DATA_LOSS: the file is
// malformed.
bel_status *bel_ckpt_best_read(const char *model_dir, bel_ckpt_best *out_best,
                               bool *out_found) BEL_MUST_USE;

// Forgets the best checkpoint, as another training begins in the folder.
bel_status *bel_ckpt_best_forget(const char *model_dir) BEL_MUST_USE;

// Opens the best checkpoint. NOT_FOUND: no best checkpoint is recorded, or it was removed.
bel_status *bel_ckpt_open_best(const char *model_dir, bel_ckpt_reader **out_reader) BEL_MUST_USE;

#endif
