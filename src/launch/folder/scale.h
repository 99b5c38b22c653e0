// Requested number of workers of a running job, from `belfry jobs scale`, in model_dir/job.scale.
//
//   {"workers": 3}    the master included when it trains
//
// The supervisor starts processes and lets them exit accordingly, and the master assigns replicas;
// both look about once a second. Without the file the job has the workers of its description. The
// supervisor removes the file before it starts the job; the file outlives a replaced master. If the
// master cannot satisfy the request, it logs that and writes the possible number instead.
#ifndef BELFRY_LAUNCH_FOLDER_SCALE_H
#define BELFRY_LAUNCH_FOLDER_SCALE_H

#include <stdint.h>

#include "belfry/status.h"

#define BEL_SCALE_FILE "job.scale"

// Replaces the file as a whole. Errors: those of files.
bel_status *bel_scale_write(const char *model_dir, int workers) BEL_MUST_USE;

// 0: no request, or an unreadable file.
int bel_scale_read(const char *model_dir);

// Identifies the request read last; all 0 before the first.
typedef struct bel_scale_mark {
    int64_t file, written_ns;
} bel_scale_mark;

// Like bel_scale_read, but once for each write of the file, even of an equal number. Returns 0 if
// the request is `mark`; otherwise sets `mark` to it.
int bel_scale_read_new(const char *model_dir, bel_scale_mark *mark);

void bel_scale_remove(const char *model_dir);

#endif
