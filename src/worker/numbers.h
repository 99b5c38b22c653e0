// What a worker of this process has counted, as it travels and is shown (monitoring/numbers.h).
#ifndef BELFRY_WORKER_NUMBERS_H
#define BELFRY_WORKER_NUMBERS_H

#include "monitoring/numbers.h"
#include "worker/worker.h"

// Any thread, while the worker runs. Fills the rows of BEL_OF_WORKER that a worker knows itself.
void bel_numbers_of_worker(const bel_worker *worker, double values[BEL_NUMBER_COUNT]);

// Any thread, while the worker runs: how many cards its towers are on. One that does not answer is
// left out.
int bel_devices_of_worker(const bel_worker *worker, bel_device_numbers devices[BEL_MOST_DEVICES]);

#endif
