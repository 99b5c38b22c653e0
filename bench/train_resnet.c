// The model resnet (residual network of 20 layers) with SGD momentum on synthetic images of 3 × 32
// × 32: examples per second of the whole training path, and seconds from the start to the end of
// the first step, with compilation. usage: bench_train_resnet BATCH THREADS [STEPS]
// bench/train runs it beside PyTorch and prints the ratio.
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "mlp.h"

enum { RECORDS = 256, PIXELS = 3 * 32 * 32 };

static float images[RECORDS * PIXELS];
static int64_t labels[RECORDS];

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)mode, (void)estimator;
    const bel_memory_field fields[] = {{"x", {BEL_DTYPE_F32, BEL_SHAPE(RECORDS, PIXELS), images}},
                                       {"label", {BEL_DTYPE_I64, BEL_SHAPE(RECORDS), labels}}};
    *out_dataset = bel_dataset_from_memory(fields, 2);
    bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, *(const int64_t *)user);
    return NULL;
}

static bel_status *train(int64_t batch, int threads, int64_t steps, double *out_train_seconds,
                         double *out_seconds)
{
    const bel_param params[] = {{"optimizer", "momentum"},
                                {"learning_rate", "0.01"},
                                {"class_count", "10"},
                                {"image_shape", "3,32,32"}};
    bel_train_spec spec = {
        .size = sizeof spec, .input_fn = input, .input_user = &batch, .max_steps = steps};
    bel_result result = {.size = sizeof result};
    int64_t begun = bel_clock_ns();
    BEL_TRY(bench_run("resnet", params, 4, threads, &spec, NULL, &result));
    *out_seconds = (double)(bel_clock_ns() - begun) * 1e-9;
    *out_train_seconds = result.train_seconds;
    return NULL;
}

static bel_status *measure(int64_t batch, int threads, int64_t steps)
{
    double first, one, all, whole;
    BEL_TRY(train(batch, threads, 1, &one, &first));
    BEL_TRY(train(batch, threads, steps + 1, &all, &whole));
    printf("{\"bench\":\"train_resnet\",\"batch\":%lld,\"threads\":%d,"
           "\"examples_per_second\":%.0f,\"first_step_seconds\":%.3f}\n",
           (long long)batch, threads, (double)(steps * batch) / (all - one), first);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s BATCH THREADS [STEPS]\n", argv[0]);
        return 2;
    }
    bench_fill();
    for (int i = 0; i < RECORDS * PIXELS; i++)
        images[i] = bench_images()[i % (BENCH_RECORDS * BENCH_PIXELS)];
    for (int i = 0; i < RECORDS; i++)
        labels[i] = i * 7 % 10;
    int64_t steps = argc > 3 ? strtol(argv[3], NULL, 10) : 20;
    return bench_end(measure(strtol(argv[1], NULL, 10), (int)strtol(argv[2], NULL, 10), steps));
}
