// Models that several benchmarks train (dnn: 784-512-512-10), on synthetic images in memory.
#ifndef BELFRY_BENCH_MLP_H
#define BELFRY_BENCH_MLP_H

#include "belfry/belfry.h"

enum { BENCH_RECORDS = 2048, BENCH_PIXELS = 784 };

void bench_fill(void); // makes the images and labels; call first
float *bench_images(void);
int64_t *bench_labels(void);

// Dataset of the images, repeated forever, in batches of *(int64_t *)user.
bel_status *bench_input(void *user, bel_mode mode, bel_dataset **out_dataset);

// Seconds in `steps` training steps of a canned model with its own defaults, momentum 0.9.
bel_status *bench_train(const char *model, int64_t batch, int threads, int64_t steps,
                        double *out_seconds);

// The middle of `count` values; sorts them.
double bench_median(double *values, int count);

// Prints a status and gives the exit code.
int bench_end(bel_status *status);

#endif
