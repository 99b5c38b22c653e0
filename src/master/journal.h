// job.journal: what happened to a job, one JSON object a line, in its model's folder. Members read
// nothing here; a master that takes over learns the highest generation there was.
//
//   {"time": 1790000000.123, "event": "generation", "generation": 2, "step": 100,
//    "text": "runs/a/ckpt-00000100"}
//
// A generation: the step at which it begins and the checkpoint that all load.
#ifndef BELFRY_MASTER_JOURNAL_H
#define BELFRY_MASTER_JOURNAL_H

#include <stdint.h>

#include "belfry/status.h"

#define BEL_JOURNAL_FILE "job.journal"

// Appends a line; a generation is on the disk when this returns. Errors: those of files.
bel_status *bel_journal_write(const char *model_dir, const char *event, uint32_t generation,
                              int64_t step, const char *text) BEL_MUST_USE;

// The highest generation that was written; 0 when there is none. A line that is not whole, the last
// one of a master that was killed, is passed over.
bel_status *bel_journal_generation(const char *model_dir, uint32_t *out_generation) BEL_MUST_USE;

#endif
