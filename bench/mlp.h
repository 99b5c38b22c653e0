// Models that several benchmarks train on synthetic images in memory (dnn: 784-512-512-10; wide: a
// dnn of three layers of 4096).
#ifndef BELFRY_BENCH_MLP_H
#define BELFRY_BENCH_MLP_H

#include "belfry/belfry.h"

enum { BENCH_RECORDS = 2048, BENCH_PIXELS = 784 };

void bench_fill(void); // makes the images and labels; call first
float *bench_images(void);
int64_t *bench_labels(void);

// Dataset of the images, repeated forever, in batches of *(int64_t *)user.
bel_status *bench_input(void *user, const bel_estimator *estimator, bel_mode mode,
                        bel_dataset **out_dataset);

// Trains a canned model in a temporary folder of /tmp. If `evaluate` is not NULL, evaluates it too.
bel_status *bench_run(const char *model, const bel_param *params, int param_count, int threads,
                      const bel_train_spec *train, const bel_eval_spec *evaluate,
                      bel_result *out_result);

// Sets the device of later runs, the GPU's arithmetic, and the number of towers that share the
// first GPU. Defaults: the processor, exact, one.
void bench_use(bel_device_choice device, bel_gpu_math math, int towers);

// Measures the seconds of `steps` training steps of a canned model with its default parameters,
// momentum 0.9.
bel_status *bench_train(const char *model, int64_t batch, int threads, int64_t steps,
                        double *out_seconds);

// Runs a whole benchmark, called with BATCH THREADS [ROUNDS]: steps of a canned model, in turns
// with a callback that measures the same number of steps of only its products. Prints the
// examples/s and the ratio of the two; returns the exit code. It records the figure
// BENCH.BATCH.THREADS.products, unless ROUNDS is 1: such a caller counts rounds itself.
typedef bel_status *bench_alone_fn(int64_t batch, int threads, double *out_seconds);
int bench_beside(int argc, char **argv, const char *bench, const char *model, int64_t steps,
                 bench_alone_fn *alone);

// Adds `layers` products with [width × width], each with a Relu, to input "x" [batch, width]. The
// variables w0, w1 … are frozen.
bel_value *bench_square_layers(bel_graph *graph, int layers, int64_t width);

// Prints a status and returns the exit code.
int bench_end(bel_status *status);

#endif
