// job.journal: the history of a job, one JSON object a line, in its model folder. Members do not
// read it; a master that takes over reads the highest generation from it.
//
//   {"time": 1790000000.123, "event": "generation", "generation": 2, "step": 100,
//    "text": "runs/a/ckpt-00000100", "fan_in": 0, "hosts": [2], "replicas": [2, 0, 1]}
//
// A generation has the step at which it begins, the checkpoint that all load ("held": none, as
// shards continue with the state that they have), the rule of its relays (ps/layout/fan_in.h;
// without "hosts" there are no groups of hosts), and the number of replicas of each worker.
#ifndef BELFRY_MASTER_BACKEND_JOURNAL_H
#define BELFRY_MASTER_BACKEND_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"

#define BEL_JOURNAL_FILE "job.journal"

typedef struct bel_journal_line {
    const char *event;
    uint32_t generation;
    int64_t step;
    const char *text;
    int fan_in;       // written with replicas
    const int *hosts; // the same, if there are any
    int host_count;
    const int *replicas; // by worker; NULL: absent
    int worker_count;
} bel_journal_line;

// Appends a line; a generation is on disk on return. Errors: those of files.
bel_status *bel_journal_write(const char *model_dir, const bel_journal_line *line) BEL_MUST_USE;

// Reads the highest recorded generation; 0: none. An incomplete line, the last one of a killed
// master, is skipped.
bel_status *bel_journal_generation(const char *model_dir, uint32_t *out_generation) BEL_MUST_USE;

// Reads the assignment of a generation, 0: of the highest one, into `worker_count` numbers; workers
// that its line does not have play no replicas. *out_fan_in and out_hosts, which may both be NULL,
// are of its relays: fan_in, and up to `worker_count` sizes of groups of hosts, then zeros. False:
// it is unknown, and all of these are unchanged.
bool bel_journal_assignment(const char *model_dir, uint32_t generation, int worker_count,
                            int *out_replicas, int *out_fan_in, int *out_hosts);

#endif
