// Models that several benchmarks train (dnn: 784-512-512-10; wide: a dnn of three layers of 4096),
// on synthetic images in memory.
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

// Trains a canned model in a folder of /tmp that is removed again; with `evaluate` (else NULL)
// evaluates it too.
bel_status *bench_run(const char *model, const bel_param *params, int param_count, int threads,
                      const bel_train_spec *train, const bel_eval_spec *evaluate,
                      bel_result *out_result);

// What later runs run on, how cards multiply, and how many towers share the first card; at first
// the processor, exactly, and one.
void bench_use(bel_device_choice device, bel_gpu_math math, int towers);

// Seconds in `steps` training steps of a canned model with its own defaults, momentum 0.9.
bel_status *bench_train(const char *model, int64_t batch, int threads, int64_t steps,
                        double *out_seconds);

// The whole of a benchmark that is called with BATCH THREADS [ROUNDS]: steps of a canned model, and
// `alone`, which says the seconds of as many steps of its products and nothing else, in turns.
// Prints the examples/s and the ratio of the two; gives the exit code.
typedef bel_status *bench_alone_fn(int64_t batch, int threads, double *out_seconds);
int bench_beside(int argc, char **argv, const char *bench, const char *model, int64_t steps,
                 bench_alone_fn *alone);

// The middle of `count` values; sorts them.
double bench_median(double *values, int count);

// What `layers` products with [width × width] and a Relu behind each make of input "x"
// [batch, width]; the variables w0, w1 … are frozen.
bel_value *bench_square_layers(bel_graph *graph, int layers, int64_t width);

// Prints a status and gives the exit code.
int bench_end(bel_status *status);

#endif
