// Fills the worker's part of monitoring/numbers.h from its counters: times up to the newest
// version, in seconds. They are read one by one without a lock, so two of them may be a step apart;
// each of them only grows.
#include "worker/numbers.h"

#include "base/trace.h"
#include "cuda/cuda.h"
#include "runtime/device.h"

static const double seconds_of_ns = 1e-9;

void bel_numbers_of_worker(const bel_worker *worker, double values[BEL_NUMBER_COUNT])
{
    bel_worker_times times = bel_worker_time_so_far(worker);
    values[BEL_NUMBER_STEPS] = (double)times.steps;
    values[BEL_NUMBER_INPUT] = (double)times.input_ns * seconds_of_ns;
    values[BEL_NUMBER_COMPUTE] = (double)times.compute_ns * seconds_of_ns;
    values[BEL_NUMBER_PUSH] = (double)times.push_ns * seconds_of_ns;
    values[BEL_NUMBER_EXCHANGE] = (double)times.exchange_ns * seconds_of_ns;
    values[BEL_NUMBER_INPUT_MEMORY] = (double)bel_worker_input_bytes(worker);
    values[BEL_NUMBER_TOTAL] = (double)times.total_ns * seconds_of_ns;
}

_Static_assert((int)BEL_CUDA_MOST_CARDS <= (int)BEL_MOST_DEVICES &&
                   (int)BEL_CUDA_MOST_CARDS <= (int)BEL_TRACE_MOST_CARDS,
               "every GPU that a tower runs on is counted and traced");

int bel_devices_of_worker(const bel_worker *worker, bel_device_numbers devices[BEL_MOST_DEVICES])
{
    int count = 0;
    for (int t = 0; t < bel_worker_tower_count(worker); t++) {
        bel_device *device = bel_worker_device(worker, t);
        bel_device_use use;
        int at = 0;
        if (device == NULL) continue;
        while (at < count && devices[at].number != device->number)
            at++;
        if (at < count) devices[at].towers++;
        if (at < count || count == BEL_MOST_DEVICES) continue;
        if (!device->ops->look(device, &use)) continue;
        devices[count++] = (bel_device_numbers){.number = device->number,
                                                .towers = 1,
                                                .taken = (double)use.taken,
                                                .free = (double)use.free,
                                                .all = (double)use.all};
    }
    return count;
}
