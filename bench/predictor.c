// One example at a time through a predictor: dnn 512,512 on 64 numbers, as for the digits. The
// baseline is the bare arithmetic in plain C, rows of the weights times numbers of the example,
// with nothing around it; both read 1.2 MB of weights for each example. Interleaved, best of all
// rounds, one thread. usage: bench_predictor [ROUNDS]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "mlp.h"

enum { CALLS = 2000, IN = 64, UNITS = 512, OUT = 10, RECORDS = 64 };

static float images[RECORDS][IN];
static int64_t labels[RECORDS];

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)user, (void)estimator, (void)mode;
    const bel_memory_field fields[] = {{"x", {BEL_DTYPE_F32, BEL_SHAPE(RECORDS, IN), images}},
                                       {"label", {BEL_DTYPE_I64, BEL_SHAPE(RECORDS), labels}}};
    *out_dataset = bel_dataset_from_memory(fields, 2);
    bel_dataset_batch(*out_dataset, RECORDS);
    return NULL;
}

// --- The baseline --------------------------------------------------------------------------------

static float *weights; // all three matrices

static const float *layer(const float *x, int in, int out, bool relu, const float *w, float *y)
{
    memset(y, 0, (size_t)out * sizeof *y);
    for (int i = 0; i < in; i++)
        for (int j = 0; j < out; j++)
            y[j] += x[i] * w[(size_t)i * (size_t)out + (size_t)j];
    for (int j = 0; relu && j < out; j++)
        y[j] = y[j] > 0 ? y[j] : 0;
    return w + (size_t)in * (size_t)out;
}

static double bare_us(void)
{
    static float first[UNITS], second[UNITS], last[OUT];
    int64_t begun = bel_clock_ns();
    for (int i = 0; i < CALLS; i++) {
        const float *w = layer(images[i % RECORDS], IN, UNITS, true, weights, first);
        w = layer(first, UNITS, UNITS, true, w, second);
        layer(second, UNITS, OUT, false, w, last);
    }
    return (double)(bel_clock_ns() - begun) * 1e-3 / CALLS;
}

// --- The predictor -------------------------------------------------------------------------------

static bel_status *predictor_us(bel_predictor *predictor, double *out_us)
{
    int64_t begun = bel_clock_ns();
    for (int i = 0; i < CALLS; i++) {
        const bel_tensor x = {BEL_DTYPE_F32, BEL_SHAPE(1, IN), images[i % RECORDS]};
        BEL_TRY(bel_predictor_bind(predictor, 0, &x));
        BEL_TRY(bel_predictor_run(predictor));
    }
    *out_us = (double)(bel_clock_ns() - begun) * 1e-3 / CALLS;
    return NULL;
}

static bel_status *measure(bel_predictor *predictor, int rounds)
{
    double best = 1e9, best_bare = 1e9;
    for (int r = 0; r < rounds; r++) {
        double us, bare = bare_us();
        BEL_TRY(predictor_us(predictor, &us));
        best = us < best ? us : best;
        best_bare = bare < best_bare ? bare : best_bare;
    }
    printf("predictor: %.1f us an example, bare arithmetic %.1f us, ratio %.2f\n", best, best_bare,
           best / best_bare);
    return NULL;
}

static bel_status *run(bel_estimator *estimator, int rounds)
{
    const bel_train_spec train = {.input_fn = input, .max_steps = 1};
    const bel_feature feature = {"x", BEL_DTYPE_F32, BEL_SHAPE(IN)};
    bel_predictor *predictor;
    BEL_TRY(bel_train(estimator, &train, NULL));
    BEL_TRY(bel_estimator_predictor(estimator, &feature, 1, NULL, &predictor));
    bel_status *status = measure(predictor, rounds);
    bel_predictor_destroy(predictor);
    return status;
}

int main(int argc, char **argv)
{
    const bel_param params[] = {{"hidden_units", "512,512"}, {"class_count", "10"}};
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 20;
    char folder[] = "/tmp/belfry-bench-XXXXXX";
    size_t count = (size_t)IN * UNITS + (size_t)UNITS * UNITS + (size_t)UNITS * OUT;
    bel_run_config config;
    bel_estimator *estimator;
    bel_run_config_init(&config);
    config.model_dir = mkdtemp(folder);
    config.report = false;
    config.thread_count = 1;
    weights = bel_xcalloc(count, sizeof *weights);
    for (size_t i = 0; i < count; i++)
        weights[i] = (float)(i % 13) * 0.01F - 0.06F;
    for (int i = 0; i < RECORDS * IN; i++)
        images[i / IN][i % IN] = (float)(i * 31 % 17) / 16;
    for (int i = 0; i < RECORDS; i++)
        labels[i] = i % OUT;
    bel_status *status =
        bel_estimator_create(bel_model_find("dnn")->model_fn, &config, params, 2, &estimator);
    if (status == NULL) {
        status = run(estimator, rounds);
        bel_estimator_destroy(estimator);
    }
    bel_free(weights);
    bel_status_ignore(bel_dir_remove(folder));
    return bench_end(status);
}
