// Where the numbers of src/sight/numbers.h come from: a worker and a shard of this process.
#ifndef BELFRY_JOB_NUMBERS_H
#define BELFRY_JOB_NUMBERS_H

#include "ps/server/shard.h"
#include "sight/numbers.h"
#include "worker/worker.h"

// Any thread, while they run.
void bel_numbers_of_worker(const bel_worker *worker, double values[BEL_NUMBER_COUNT]);
void bel_numbers_of_shard(bel_shard *shard, double values[BEL_NUMBER_COUNT]);

// What shard 0 knows of a worker's reports.
void bel_numbers_of_reports(bel_shard *shard, int worker, double values[BEL_NUMBERS_BY_WORKER]);

#endif
