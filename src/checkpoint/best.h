// Checkpoints of a model folder that stay beside the newest ones: the best, as best.json says
// (docs/formats/checkpoint.md), and the one that an evaluator has in hand.
#ifndef BELFRY_CHECKPOINT_BEST_H
#define BELFRY_CHECKPOINT_BEST_H

#include "checkpoint/checkpoint.h"

#define BEL_BEST_FILE "best.json"

// Which checkpoint is the best, and by what.
typedef struct bel_ckpt_best {
    int64_t step;
    char metric[64];
    float value; // of its evaluation
    bool higher; // is better
    char evaluation[256];
} bel_ckpt_best;

// Synced, and whole at any moment: written before the checkpoint that was the best may go.
bel_status *bel_ckpt_best_write(const char *model_dir, const bel_ckpt_best *best) BEL_MUST_USE;

// *out_found false: none is kept as the best. DATA_LOSS: the file is no such file.
bel_status *bel_ckpt_best_read(const char *model_dir, bel_ckpt_best *out_best,
                               bool *out_found) BEL_MUST_USE;

// Another training begins in the folder.
bel_status *bel_ckpt_best_forget(const char *model_dir) BEL_MUST_USE;

// The reader of that checkpoint. NOT_FOUND: none is kept as the best, or it was removed.
bel_status *bel_ckpt_open_best(const char *model_dir, bel_ckpt_reader **out_reader) BEL_MUST_USE;

// An evaluator holds the checkpoint that it evaluates, one at a time, so that it stays until it is
// known whether it is the best; -1: none any more, or none is held. The hold of an evaluator that
// was killed lasts until its next evaluation ends.
bel_status *bel_ckpt_hold(const char *model_dir, int64_t step) BEL_MUST_USE;
bel_status *bel_ckpt_held(const char *model_dir, int64_t *out_step) BEL_MUST_USE;

#endif
