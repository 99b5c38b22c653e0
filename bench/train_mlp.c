// MLP 784-512-512-10 with SGD momentum on synthetic images: examples per second of the whole training
// path (batches in memory, programs, aggregation, update), and the step's time over the time of its
// own matrix products alone. usage: bench_train_mlp BATCH THREADS [SECONDS]
// bench/train_mlp.sh runs it beside PyTorch and prints the ratio.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/thread.h"
#include "belfry/belfry.h"
#include "runtime/program.h"

enum { RECORDS = 8 * 256, PIXELS = 784, STEPS = 300 };

static float images[RECORDS * PIXELS];
static int64_t labels[RECORDS];

static void fill(void)
{
    bel_rng_key key = bel_rng_key_make(1, "bench", 0);
    for (size_t i = 0; i < RECORDS * (size_t)PIXELS; i += 4) {
        uint32_t words[4];
        bel_rng_block(key, 0, i, words);
        for (size_t j = 0; j < 4; j++)
            images[i + j] = 2.0f * bel_rng_unit(words[j]) - 1.0f;
    }
    for (size_t i = 0; i < RECORDS; i++)
        labels[i] = (int64_t)(i * 7 % 10);
}

static bel_status *input(void *user, bel_mode mode, bel_dataset **out_dataset)
{
    (void)mode;
    const bel_memory_field fields[] = {
        {"x", {BEL_DTYPE_F32, BEL_SHAPE(RECORDS, PIXELS), images}},
        {"label", {BEL_DTYPE_I64, BEL_SHAPE(RECORDS), labels}}};
    *out_dataset = bel_dataset_from_memory(fields, 2);
    bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, *(const int64_t *)user);
    return NULL;
}

// Seconds of STEPS training steps.
static bel_status *train(int64_t batch, int threads, double *out_seconds)
{
    const bel_param params[] = {{"hidden_units", "512,512"},
                                {"optimizer", "momentum"},
                                {"learning_rate", "0.01"},
                                {"class_count", "10"}};
    char folder[] = "/tmp/belfry-bench-XXXXXX";
    if (mkdtemp(folder) == NULL) return BEL_ERR(BEL_INTERNAL, "cannot make a folder");
    bel_run_config config;
    bel_run_config_init(&config);
    config.model_dir = folder;
    config.thread_count = threads;
    config.report = false;
    config.save_checkpoints_secs = 0;
    bel_estimator *estimator;
    BEL_TRY(bel_estimator_create(bel_model_find("dnn")->model_fn, &config, params, 4, &estimator));
    bel_train_spec spec = {.input_fn = input, .input_user = &batch, .max_steps = STEPS};
    bel_result result;
    bel_status *status = bel_train(estimator, &spec, &result);
    bel_estimator_destroy(estimator);
    bel_status_ignore(bel_dir_remove(folder)); // a leftover in /tmp does not matter
    if (status == NULL) *out_seconds = result.train_seconds;
    return status;
}

typedef struct product {
    int64_t m, n, k;
    bool transpose_a, transpose_b;
} product;

// Seconds of STEPS times the step's nine products, by the same kernels and tiles.
static bel_status *products(int64_t batch, int threads, double *out_seconds)
{
    const product all[] = {{batch, 512, 784, false, false}, {batch, 512, 512, false, false},
                           {batch, 10, 512, false, false},  {batch, 512, 10, false, true},
                           {512, 10, batch, true, false},   {batch, 512, 512, false, true},
                           {512, 512, batch, true, false},  {784, 512, batch, true, false}};
    enum { COUNT = sizeof all / sizeof all[0] };
    bel_graph *graph = bel_graph_create();
    bel_program_output outputs[COUNT] = {{0}};
    bel_shape shapes[2 * COUNT];
    for (int i = 0; i < COUNT; i++) {
        const product *p = &all[i];
        bel_shape a = p->transpose_a ? BEL_SHAPE(p->k, p->m) : BEL_SHAPE(p->m, p->k);
        bel_shape b = p->transpose_b ? BEL_SHAPE(p->n, p->k) : BEL_SHAPE(p->k, p->n);
        char name[2][16];
        snprintf(name[0], 16, "a%d", i);
        snprintf(name[1], 16, "b%d", i);
        shapes[2 * i] = a;
        shapes[2 * i + 1] = b;
        bel_value *left = bel_input_value(graph, name[0], BEL_DTYPE_F32, &a);
        bel_value *right = bel_input_value(graph, name[1], BEL_DTYPE_F32, &b);
        outputs[i].value = bel_gemm(graph, left, right, NULL, 1, 0, p->transpose_a, p->transpose_b);
    }
    bel_program *program;
    BEL_TRY(bel_program_compile(graph, shapes, outputs, COUNT, NULL, &program));
    void *arena;
    BEL_TRY(bel_pages_create(bel_program_arena_bytes(program), true, "arena", &arena));
    bel_instance *instance = bel_instance_create(program, arena);
    for (int i = 0; i < 2 * COUNT; i++)
        bel_instance_bind_input(instance, i, images + 64 * PIXELS * i);
    bel_team *team;
    BEL_TRY(bel_team_create(threads, &team));
    bel_run_context context = {.seed = 1};
    int64_t begun = 0;
    for (int step = -20; step < STEPS; step++) {
        if (step == 0) begun = bel_clock_ns();
        BEL_TRY(bel_instance_run(instance, team, &context, NULL, NULL));
    }
    *out_seconds = (double)(bel_clock_ns() - begun) * 1e-9;
    bel_team_destroy(team);
    bel_instance_destroy(instance);
    bel_pages_destroy(arena, bel_program_arena_bytes(program));
    bel_program_destroy(program);
    bel_graph_destroy(graph);
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

static bel_status *measure(int64_t batch, int threads)
{
    enum { ROUNDS = 7 };
    double rates[ROUNDS], ratios[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double step, alone;
        BEL_TRY(train(batch, threads, &step));
        BEL_TRY(products(batch, threads, &alone));
        rates[i] = (double)(STEPS * batch) / step;
        ratios[i] = step / alone;
    }
    qsort(rates, ROUNDS, sizeof rates[0], by_value);
    qsort(ratios, ROUNDS, sizeof ratios[0], by_value);
    printf("{\"bench\":\"train_mlp\",\"batch\":%lld,\"threads\":%d,\"examples_per_second\":%.0f,"
           "\"step_over_products\":%.3f}\n",
           (long long)batch, threads, rates[ROUNDS / 2], ratios[ROUNDS / 2]);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s BATCH THREADS\n", argv[0]);
        return 2;
    }
    bel_log_configure(BEL_LOG_ERROR, BEL_LOG_TEXT);
    fill();
    bel_status *status = measure(strtol(argv[1], NULL, 10), (int)strtol(argv[2], NULL, 10));
    if (status == NULL) return 0;
    fprintf(stderr, "%s\n", bel_status_message(status));
    bel_status_destroy(status);
    return 1;
}
