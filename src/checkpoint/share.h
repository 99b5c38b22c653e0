// Checkpoints under a second name. Their files are shared (hard links) instead of copied, so
// removing one leaves the other complete. If a file system has no links, the bytes are copied.
#ifndef BELFRY_CHECKPOINT_SHARE_H
#define BELFRY_CHECKPOINT_SHARE_H

#include "belfry/status.h"

// In the folder of a shared delta: the files of its base.
#define BEL_CKPT_SHARED_BASE "base"

bel_status *bel_ckpt_share_file(const char *from, const char *to) BEL_MUST_USE;

// Shares all files of a checkpoint's folder; creates `to`. A delta is shared with its base.
bel_status *bel_ckpt_share_folder(const char *from, const char *to) BEL_MUST_USE;

#endif
