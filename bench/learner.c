// A learner's step over that of a training with one replica and one thread: the same model, batches
// of the same size, in turns, medians and quartiles. Small models show the overhead of a step. The
// training's start and first steps do not count; the learner has no others after a first round.
// usage: bench_learner [ROUNDS]
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "figures.h"
#include "mlp.h"

enum { MOST_ROUNDS = 99, WARM = 20 };

typedef struct pair {
    const char *figure, *units;
    int64_t batch, steps, made; // steps of a round; steps of the training so far
    bel_estimator *estimator;
    bel_learner *learner;
    char *folder;
} pair;

static bel_status *train(pair *p, int64_t steps, double *out_seconds)
{
    bel_result result = {.size = sizeof result};
    const bel_train_spec spec = {.size = sizeof spec,
                                 .input_fn = bench_input,
                                 .input_user = &p->batch,
                                 .max_steps = p->made + steps};
    BEL_TRY(bel_train(p->estimator, &spec, &result));
    p->made += steps;
    *out_seconds = result.train_seconds;
    return NULL;
}

static bel_status *set_up(pair *p)
{
    char folder[] = "/tmp/belfry-bench-XXXXXX";
    if (mkdtemp(folder) == NULL) return BEL_ERR(BEL_INTERNAL, "cannot make a folder");
    p->folder = bel_xstrdup(folder);
    const bel_param params[] = {{"hidden_units", p->units},
                                {"optimizer", "momentum"},
                                {"learning_rate", "0.01"},
                                {"class_count", "10"}};
    const bel_export_options options = {.size = sizeof options, .training = true};
    double seconds;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    char *model_dir = bel_path_join(folder, "model"), *path = bel_path_join(folder, "training");
    config.model_dir = model_dir;
    config.num_threads = 1;
    config.report = false;
    bel_status *status =
        bel_estimator_create(bel_model_find("dnn")->model_fn, &config, params, 4, &p->estimator);
    if (status == NULL) status = train(p, 1, &seconds);
    if (status == NULL) status = bel_export(p->estimator, NULL, &options, path);
    if (status == NULL) status = bel_learner_load(path, NULL, &p->learner);
    bel_free(model_dir);
    bel_free(path);
    return status;
}

static void clean_up(pair *p)
{
    bel_learner_destroy(p->learner);
    bel_estimator_destroy(p->estimator);
    if (p->folder != NULL) bel_status_ignore(bel_dir_remove(p->folder)); // in /tmp
    bel_free(p->folder);
}

static bel_status *learn(const pair *p, double *out_seconds)
{
    int64_t batches = BENCH_RECORDS / p->batch, begun = bel_clock_ns();
    for (int64_t s = 0; s < p->steps; s++) {
        int64_t first = s % batches * p->batch;
        const bel_tensor x = {BEL_DTYPE_F32, BEL_SHAPE(p->batch, BENCH_PIXELS),
                              bench_images() + first * BENCH_PIXELS};
        const bel_tensor label = {BEL_DTYPE_I64, BEL_SHAPE(p->batch), bench_labels() + first};
        BEL_TRY(bel_learner_step(p->learner, &x, &label, NULL));
    }
    *out_seconds = (double)(bel_clock_ns() - begun) * 1e-9;
    return NULL;
}

static bel_status *measure(pair *p, int rounds)
{
    double steps[MOST_ROUNDS], ratios[MOST_ROUNDS];
    BEL_TRY(set_up(p));
    for (int r = -1; r < rounds; r++) { // one warm-up round, overwritten
        double start, training, learning;
        BEL_TRY(train(p, WARM, &start));
        BEL_TRY(train(p, WARM + p->steps, &training));
        BEL_TRY(learn(p, &learning));
        steps[r < 0 ? 0 : r] = 1e6 * learning / (double)p->steps;
        ratios[r < 0 ? 0 : r] = learning / (training - start);
    }
    bench_spread ratio = bench_spread_of(ratios, rounds);
    printf("{\"bench\":\"learner\",\"hidden_units\":\"%s\",\"batch\":%lld,\"step_us\":%.1f,"
           "\"learner_over_train\":%.3f,\"quartiles\":[%.3f,%.3f]}\n",
           p->units, (long long)p->batch, bench_median(steps, rounds), ratio.median, ratio.low,
           ratio.high);
    bench_figure(p->figure, &ratio);
    return NULL;
}

int main(int argc, char **argv)
{
    pair pairs[] = {{.figure = "learner.8", .units = "8", .batch = 1, .steps = 4000},
                    {.figure = "learner.128", .units = "128", .batch = 32, .steps = 1000},
                    {.figure = "learner.512_512", .units = "512,512", .batch = 64, .steps = 200}};
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 11;
    bel_status *status = NULL;
    if (rounds < 1 || rounds > MOST_ROUNDS)
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "1 to %d rounds", MOST_ROUNDS);
    bench_fill();
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0] && status == NULL; i++) {
        status = measure(&pairs[i], rounds);
        clean_up(&pairs[i]);
    }
    return bench_end(status);
}
