// Benchmark of batches from a CSV file with columns of floats, and of padded batches from records
// of varying length. bench/input compares it with PyTorch.
//   bench_input csv FILE THREADS SECONDS     1: the caller reads the blocks; else prefetch does
//   bench_input copies FILE THREADS SECONDS  THREADS threads, each with a separate input
//   bench_input padded THREADS SECONDS       20 to 100 steps of 40 floats, batches of 32
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "input/batch/input.h"
#include "mlp.h"

enum { CSV_BATCH = 256, PADDED_BATCH = 32, WIDTH = 40, LEAST = 20, MOST = 100, RECORDS = 4096 };

static bel_status *open_csv(const char *path, int threads, bel_input **out_input)
{
    const bel_csv_options csv = {
        .size = sizeof csv, .paths = &path, .path_count = 1, .label_column = "label"};
    bel_dataset *data = bel_dataset_from_csv(&csv);
    bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
    bel_dataset_batch(data, CSV_BATCH);
    bel_dataset_prefetch(data, 8, threads);
    bel_status *status = bel_input_open(data, NULL, out_input);
    bel_dataset_destroy(data);
    return status;
}

// --- Records of varying length -------------------------------------------------------------------

static float pool[MOST * WIDTH];

static bel_status *make_steps(void *user, int64_t number, bel_record *record)
{
    (void)user;
    int64_t steps = LEAST + number * 7919 % (MOST - LEAST + 1);
    bel_shape shape = BEL_SHAPE(steps, WIDTH);
    float *to = bel_record_add(record, "x", BEL_DTYPE_F32, &shape);
    memcpy(to, pool, (size_t)(steps * WIDTH) * sizeof *to);
    return NULL;
}

static bel_status *open_padded(int threads, bel_input **out_input)
{
    for (int i = 0; i < MOST * WIDTH; i++)
        pool[i] = (float)i;
    bel_dataset *data = bel_dataset_from_function(make_steps, NULL, RECORDS);
    bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
    bel_dataset_padded_batch(data, PADDED_BATCH, NULL, 0);
    bel_dataset_prefetch(data, 8, threads);
    bel_status *status = bel_input_open(data, NULL, out_input);
    bel_dataset_destroy(data);
    return status;
}

// --- Reading -------------------------------------------------------------------------------------

typedef struct reading {
    const bel_input *input;
    double seconds;
    double rate; // records/s
    bel_status *status;
    pthread_t thread;
} reading;

static bel_status *read_here(reading *r)
{
    bel_batch *batch = bel_batch_create(r->input);
    bel_status *status = bel_input_read(r->input, 0, batch);
    int64_t begun = bel_clock_ns(), records = 0;
    double taken = 0;
    for (int64_t block = 1; taken < r->seconds && status == NULL; block++) {
        status = bel_input_read(r->input, block, batch);
        records += batch->example_count;
        taken = (double)(bel_clock_ns() - begun) * 1e-9;
    }
    r->rate = (double)records / taken;
    bel_batch_destroy(batch);
    return status;
}

static int64_t in_order(void *context, int64_t index)
{
    (void)context;
    return index;
}

static bel_status *read_ahead(reading *r)
{
    bel_prefetch *prefetch;
    const bel_batch *batch;
    BEL_TRY(bel_prefetch_start(r->input, in_order, NULL, 1, NULL, 1, &prefetch));
    bel_status *status = bel_prefetch_take(prefetch, &batch);
    int64_t begun = bel_clock_ns(), records = 0;
    double taken = 0;
    while (taken < r->seconds && status == NULL) {
        status = bel_prefetch_take(prefetch, &batch);
        if (status == NULL) records += batch->example_count;
        taken = (double)(bel_clock_ns() - begun) * 1e-9;
    }
    r->rate = (double)records / taken;
    bel_prefetch_stop(prefetch);
    return status;
}

static void *read_alone(void *argument)
{
    reading *r = argument;
    r->status = read_here(r);
    return NULL;
}

static bel_status *read_copies(const char *path, int threads, double seconds, double *out_rate)
{
    reading *all = bel_xcalloc((size_t)threads, sizeof *all);
    bel_input **inputs = bel_xcalloc((size_t)threads, sizeof(bel_input *));
    bel_status *status = NULL;
    int started = 0;
    for (int t = 0; t < threads && status == NULL; t++) {
        status = open_csv(path, 1, &inputs[t]);
        all[t] = (reading){.input = inputs[t], .seconds = seconds};
    }
    for (int t = 0; t < threads && status == NULL; t++) {
        status = bel_thread_start(&all[t].thread, read_alone, &all[t]);
        if (status == NULL) started++;
    }
    *out_rate = 0;
    for (int t = 0; t < started; t++) {
        pthread_join(all[t].thread, NULL);
        *out_rate += all[t].rate;
        if (status == NULL) {
            status = all[t].status;
        } else {
            bel_status_destroy(all[t].status);
        }
    }
    for (int t = 0; t < threads; t++)
        bel_input_destroy(inputs[t]);
    bel_free(inputs);
    bel_free(all);
    return status;
}

static bel_status *run(const char *kind, const char *path, int threads, double seconds)
{
    reading r = {.seconds = seconds};
    if (strcmp(kind, "copies") == 0) {
        BEL_TRY(read_copies(path, threads, seconds, &r.rate));
    } else {
        bool csv = strcmp(kind, "csv") == 0;
        bel_input *input;
        BEL_TRY(csv ? open_csv(path, threads, &input) : open_padded(threads, &input));
        r.input = input;
        bel_status *status = threads == 1 && csv ? read_here(&r) : read_ahead(&r);
        bel_input_destroy(input);
        BEL_TRY(status);
    }
    printf("{\"bench\":\"input\",\"kind\":\"%s\",\"threads\":%d,\"records_per_second\":%.1f}\n",
           kind, threads, r.rate);
    return NULL;
}

int main(int argc, char **argv)
{
    bool padded = argc > 1 && strcmp(argv[1], "padded") == 0;
    int at = padded ? 2 : 3;
    if (argc != at + 2) {
        fprintf(stderr, "usage: bench_input csv|copies FILE THREADS SECONDS\n"
                        "       bench_input padded THREADS SECONDS\n");
        return 2;
    }
    return bench_end(
        run(argv[1], padded ? NULL : argv[2], atoi(argv[at]), strtod(argv[at + 1], NULL)));
}
