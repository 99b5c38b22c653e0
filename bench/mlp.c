// Shared code of the benchmarks.
#include "mlp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "figures.h"

static float images[BENCH_RECORDS * BENCH_PIXELS];
static int64_t labels[BENCH_RECORDS];

void bench_fill(void)
{
    bel_log_configure(BEL_LOG_ERROR, BEL_LOG_TEXT);
    bel_rng_key key = bel_rng_key_make(1, "bench", 0);
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i += 4) {
        uint32_t words[4];
        bel_rng_block(key, 0, i, words);
        for (size_t j = 0; j < 4; j++)
            images[i + j] = 2.0f * bel_rng_unit(words[j]) - 1.0f;
    }
    for (size_t i = 0; i < BENCH_RECORDS; i++)
        labels[i] = (int64_t)(i * 7 % 10);
}

float *bench_images(void)
{
    return images;
}

int64_t *bench_labels(void)
{
    return labels;
}

static bel_device_choice used_device = BEL_DEVICE_CPU;
static bel_gpu_math used_math;
static int used_towers = 1;

void bench_use(bel_device_choice device, bel_gpu_math math, int towers)
{
    used_device = device;
    used_math = math;
    used_towers = towers;
}

bel_status *bench_input(void *user, const bel_estimator *estimator, bel_mode mode,
                        bel_dataset **out_dataset)
{
    (void)mode, (void)estimator;
    const bel_memory_field fields[] = {
        {"x", {BEL_DTYPE_F32, BEL_SHAPE(BENCH_RECORDS, BENCH_PIXELS), images}},
        {"label", {BEL_DTYPE_I64, BEL_SHAPE(BENCH_RECORDS), labels}}};
    *out_dataset = bel_dataset_from_memory(fields, 2);
    bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, *(const int64_t *)user);
    return NULL;
}

bel_status *bench_run(const char *model, const bel_param *params, int param_count, int threads,
                      const bel_train_spec *train, const bel_eval_spec *evaluate,
                      bel_result *out_result)
{
    char folder[] = "/tmp/belfry-bench-XXXXXX";
    if (mkdtemp(folder) == NULL) return BEL_ERR(BEL_INTERNAL, "cannot make a folder");
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.num_threads = threads;
    config.report = false;
    config.device = used_device;
    config.gpu_math = used_math;
    if (used_towers > 1) config.num_gpus = used_towers;
    config.virtual_devices = used_towers > 1;
    bel_estimator *estimator;
    BEL_TRY(bel_estimator_create(bel_model_find(model)->model_fn, &config, params, param_count,
                                 &estimator));
    bel_status *status = evaluate != NULL
                             ? bel_train_and_evaluate(estimator, train, evaluate, 1, out_result)
                             : bel_train(estimator, train, out_result);
    bel_estimator_destroy(estimator);
    bel_status_ignore(bel_dir_remove(folder)); // a leftover in /tmp is harmless
    return status;
}

bel_status *bench_train(const char *model, int64_t batch, int threads, int64_t steps,
                        double *out_seconds)
{
    enum { COMMON = 3 };
    bool wide = strcmp(model, "wide") == 0, resnet = strcmp(model, "resnet") == 0;
    const bel_param params[] = {{"optimizer", "momentum"},
                                {"learning_rate", "0.01"},
                                {"class_count", "10"},
                                wide ? (bel_param){"hidden_units", "4096,4096,4096"}
                                     : (bel_param){"width", "64"}};
    bel_train_spec spec = {
        .size = sizeof spec, .input_fn = bench_input, .input_user = &batch, .max_steps = steps};
    bel_result result = {.size = sizeof result};
    BEL_TRY(bench_run(wide ? "dnn" : model, params, wide || resnet ? COMMON + 1 : COMMON, threads,
                      &spec, NULL, &result));
    *out_seconds = result.train_seconds;
    return NULL;
}

int bench_end(bel_status *status)
{
    if (status == NULL) return 0;
    fprintf(stderr, "%s\n", bel_status_message(status));
    bel_status_destroy(status);
    return 1;
}

typedef struct beside {
    const char *bench, *model;
    int64_t batch, steps;
    int threads, rounds;
    bench_alone_fn *alone;
} beside;

static bel_status *measure(const beside *b)
{
    enum { MOST = 64 };
    double rates[MOST], ratios[MOST];
    if (b->rounds < 1 || b->rounds > MOST) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "1 to %d rounds", MOST);
    }
    for (int i = 0; i < b->rounds; i++) {
        double step, alone;
        BEL_TRY(bench_train(b->model, b->batch, b->threads, b->steps, &step));
        BEL_TRY(b->alone(b->batch, b->threads, &alone));
        rates[i] = (double)(b->steps * b->batch) / step;
        ratios[i] = step / alone;
    }
    bench_spread ratio = bench_spread_of(ratios, b->rounds);
    printf("{\"bench\":\"%s\",\"batch\":%lld,\"threads\":%d,\"examples_per_second\":%.0f,"
           "\"step_over_products\":%.3f,\"quartiles\":[%.3f,%.3f]}\n",
           b->bench, (long long)b->batch, b->threads, bench_median(rates, b->rounds), ratio.median,
           ratio.low, ratio.high);
    if (b->rounds > 1)
        bench_figuref(&ratio, "%s.%lld.%d.products", b->bench, (long long)b->batch, b->threads);
    return NULL;
}

int bench_beside(int argc, char **argv, const char *bench, const char *model, int64_t steps,
                 bench_alone_fn *alone)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s BATCH THREADS [ROUNDS]\n", argv[0]);
        return 2;
    }
    bench_fill();
    const beside b = {.bench = bench,
                      .model = model,
                      .batch = strtol(argv[1], NULL, 10),
                      .steps = steps,
                      .threads = (int)strtol(argv[2], NULL, 10),
                      .rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 7,
                      .alone = alone};
    return bench_end(measure(&b));
}

bel_value *bench_square_layers(bel_graph *graph, int layers, int64_t width)
{
    bel_shape row = BEL_SHAPE(BEL_DIM_BATCH, width), square = BEL_SHAPE(width, width);
    bel_value *y = bel_input_value(graph, "x", BEL_DTYPE_F32, &row);
    for (int l = 0; l < layers; l++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", l);
        bel_value *w = bel_variable(graph, name, &square, (bel_initializer){BEL_INIT_ZEROS, 0},
                                    BEL_VARIABLE_FROZEN);
        y = bel_relu(graph, bel_matmul(graph, y, w));
    }
    return y;
}
