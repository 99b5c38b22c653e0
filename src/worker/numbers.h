// Counters of a worker of this process, in the form in which they travel and are shown
// (monitoring/numbers.h).
#ifndef BELFRY_WORKER_NUMBERS_H
#define BELFRY_WORKER_NUMBERS_H

#include "monitoring/numbers.h"
#include "worker/worker.h"

// Fills the rows of BEL_OF_WORKER that a worker counts. Any thread, while the worker runs.
void bel_numbers_of_worker(const bel_worker *worker, double values[BEL_NUMBER_COUNT]);

// Returns the number of GPUs that run its towers. Skips a GPU that does not answer. Any thread,
// while the worker runs.
int bel_devices_of_worker(const bel_worker *worker, bel_device_numbers devices[BEL_MOST_DEVICES]);

#endif
