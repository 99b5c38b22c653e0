// One example at a time through a predictor: dnn 512,512 on 64 numbers, as for the digits. The
// baseline is the bare arithmetic in plain C of the processor's level (bare.h), rows of the weights
// times numbers of the example, with nothing around it; both read 1.2 MB of weights for each
// example. Rounds in turns, one thread; medians, and quartiles of the ratio.
// usage: bench_predictor [ROUNDS]
#include <stdio.h>
#include <stdlib.h>

#include "bare.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "figures.h"
#include "mlp.h"

enum { CALLS = 2000, IN = 64, UNITS = 512, OUT = 10, RECORDS = 64, MOST_ROUNDS = 99 };
enum { WEIGHTS = IN * UNITS + UNITS * UNITS + UNITS * OUT };

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

static double bare_us(void)
{
    static _Alignas(64) float first[UNITS], second[UNITS], last[OUT];
    const bench_bare *bare = bench_bare_get();
    const float *second_weights = weights + IN * UNITS;
    int64_t begun = bel_clock_ns();
    for (int i = 0; i < CALLS; i++) {
        bare->dense(images[i % RECORDS], IN, UNITS, weights, true, first);
        bare->dense(first, UNITS, UNITS, second_weights, true, second);
        bare->dense(second, UNITS, OUT, second_weights + UNITS * UNITS, false, last);
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
    double ours[MOST_ROUNDS], bare[MOST_ROUNDS];
    for (int r = -1; r < rounds; r++) { // one warm-up round, overwritten
        int at = r < 0 ? 0 : r;
        bare[at] = bare_us();
        BEL_TRY(predictor_us(predictor, &ours[at]));
    }
    bench_spread ratio = bench_ratio_of(ours, bare, rounds);
    printf("predictor: %.1f us an example, bare arithmetic %.1f us, ratio %.2f [%.2f, %.2f]\n",
           bench_median(ours, rounds), bench_median(bare, rounds), ratio.median, ratio.low,
           ratio.high);
    bench_figure("predictor", &ratio);
    return NULL;
}

static bel_status *run(bel_estimator *estimator, int rounds)
{
    const bel_train_spec train = {.size = sizeof train, .input_fn = input, .max_steps = 1};
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
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 21;
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    char folder[] = "/tmp/belfry-bench-XXXXXX";
    void *pages;
    bel_run_config config;
    bel_estimator *estimator;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = mkdtemp(folder);
    config.report = false;
    config.num_threads = 1;
    if (bench_end(bel_pages_create(WEIGHTS * sizeof *weights, true, "weights", &pages)) != 0)
        return 1;
    weights = pages;
    for (int i = 0; i < WEIGHTS; i++)
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
    bel_pages_destroy(weights, WEIGHTS * sizeof *weights);
    bel_status_ignore(bel_dir_remove(folder));
    return bench_end(status);
}
