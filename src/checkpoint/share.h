// Checkpoints under a second name: their files are not copied but shared (hard links), so what
// removes one of them leaves the other whole. Where a file system has no links the bytes are
// copied.
#ifndef BELFRY_CHECKPOINT_SHARE_H
#define BELFRY_CHECKPOINT_SHARE_H

#include "belfry/status.h"

bel_status *bel_ckpt_share_file(const char *from, const char *to) BEL_MUST_USE;

// All files of a folder; `to` is made.
bel_status *bel_ckpt_share_folder(const char *from, const char *to) BEL_MUST_USE;

#endif
