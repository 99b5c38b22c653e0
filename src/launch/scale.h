// How many workers a running job is to have: what `belfry jobs scale` asks for, in
// model_dir/job.scale.
//
//   {"workers": 3}    the master included when it trains
//
// By it the supervisor starts processes and lets them go, and the master assigns replicas; both
// look about once a second. Without the file the job has the workers of its description. The
// supervisor removes it before it starts the job; it outlives a master that is replaced. Where the
// wish cannot be met the master says so and writes the number that there will be in its place.
#ifndef BELFRY_LAUNCH_SCALE_H
#define BELFRY_LAUNCH_SCALE_H

#include <stdint.h>

#include "belfry/status.h"

#define BEL_SCALE_FILE "job.scale"

// Replaces the file as a whole. Errors: those of files.
bel_status *bel_scale_write(const char *model_dir, int workers) BEL_MUST_USE;

// 0: nobody has asked, or the file cannot be read.
int bel_scale_read(const char *model_dir);

// Which wish was read last; all 0 before the first.
typedef struct bel_scale_mark {
    int64_t file, written_ns;
} bel_scale_mark;

// The same once for each time the file is written, also with an equal number: 0 when the wish that
// stands there is `mark`, which becomes the one that is read.
int bel_scale_read_new(const char *model_dir, bel_scale_mark *mark);

void bel_scale_remove(const char *model_dir);

#endif
