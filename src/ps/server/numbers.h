// Counters of a shard of this process, in the form in which they travel and are shown
// (monitoring/numbers.h).
#ifndef BELFRY_PS_SERVER_NUMBERS_H
#define BELFRY_PS_SERVER_NUMBERS_H

#include "monitoring/numbers.h"
#include "ps/server/shard.h"

// Any thread, while the shard runs. Fills the rows of BEL_OF_SHARD.
void bel_numbers_of_shard(bel_shard *shard, double values[BEL_NUMBER_COUNT]);

// Adds those of a mirror in the same process.
void bel_numbers_add_mirror(bel_shard *mirror, double values[BEL_NUMBER_COUNT]);

// Fills shard 0's counts of a worker's reports: counted, stale, dropped.
void bel_numbers_of_reports(bel_shard *shard, int worker, double values[BEL_NUMBERS_BY_WORKER]);

#endif
