// Requested numbers of a running job's workers and parameter servers, from `belfry jobs scale`, in
// model_dir/job.scale.
//
//   {"workers": 3, "parameter_servers": 2}    workers with the master when it trains
//
// A number that is absent or 0 is no request. The supervisor starts processes and lets them exit
// accordingly, and the master assigns replicas; both look about once a second. For another number
// of servers the supervisor lets the job save and end, and starts it again. Without the file the
// job has the numbers of its description. The supervisor removes the file before it starts the job;
// the file outlives a replaced master. If the master cannot satisfy a request for workers, it logs
// that and writes the possible number instead.
#ifndef BELFRY_LAUNCH_FOLDER_SCALE_H
#define BELFRY_LAUNCH_FOLDER_SCALE_H

#include <stdint.h>

#include "belfry/status.h"

#define BEL_SCALE_FILE "job.scale"

// Numbers of processes that are wanted; 0: no request.
typedef struct bel_scale {
    int workers, servers;
} bel_scale;

// Replaces the file as a whole. Errors: those of files.
bel_status *bel_scale_write(const char *model_dir, bel_scale wish) BEL_MUST_USE;

// All 0: no request, or an unreadable file.
bel_scale bel_scale_read(const char *model_dir);

// Identifies the request read last; all 0 before the first.
typedef struct bel_scale_mark {
    int64_t file, written_ns;
} bel_scale_mark;

// Like bel_scale_read, but once for each write of the file, even of equal numbers. Returns zeros if
// the request is `mark`; otherwise sets `mark` to it.
bel_scale bel_scale_read_new(const char *model_dir, bel_scale_mark *mark);

void bel_scale_remove(const char *model_dir);

#endif
