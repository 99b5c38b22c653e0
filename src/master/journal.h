// job.journal: what happened to a job, one JSON object a line, in its model's folder. Members read
// nothing here; a master that takes over learns the highest generation there was.
//
//   {"time": 1790000000.123, "event": "generation", "generation": 2, "step": 100,
//    "text": "runs/a/ckpt-00000100", "replicas": [2, 0, 1]}
//
// A generation: the step at which it begins, the checkpoint that all load, and how many replicas
// each worker plays.
#ifndef BELFRY_MASTER_JOURNAL_H
#define BELFRY_MASTER_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"

#define BEL_JOURNAL_FILE "job.journal"

typedef struct bel_journal_line {
    const char *event;
    uint32_t generation;
    int64_t step;
    const char *text;
    const int *replicas; // by worker; NULL: no list
    int worker_count;
} bel_journal_line;

// Appends a line; a generation is on the disk when this returns. Errors: those of files.
bel_status *bel_journal_write(const char *model_dir, const bel_journal_line *line) BEL_MUST_USE;

// The highest generation that was written; 0 when there is none. A line that is not whole, the last
// one of a master that was killed, is passed over.
bel_status *bel_journal_generation(const char *model_dir, uint32_t *out_generation) BEL_MUST_USE;

// The assignment of a generation, 0: of the highest one, into `worker_count` numbers; workers that
// its line does not name play none. False: it is not known; then the numbers are left alone.
bool bel_journal_assignment(const char *model_dir, uint32_t generation, int worker_count,
                            int *out_replicas);

#endif
