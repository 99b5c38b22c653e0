// Growth of the times of a step and of the first step with the number of variables: a chain of
// layers [8 × 8] with bias and a final layer of classes, batch 8, SGD, one thread. It runs all of
// bel_train: seconds of a run of one step with its two checkpoints, and ms a step, from the
// difference between a long run and a short one. In turns with PyTorch's eager step of the same
// chain (variables_torch.py); medians of the rounds, and quartiles of their ratios. Without PyTorch
// only Belfry's figures.
// usage: bench_variables [ROUNDS [VARIABLES]] (in the repository's root, for the script)
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "figures.h"
#include "mlp.h"

enum { WIDTH = 8, CLASSES = 4, BATCH = 8, RECORDS = 64, MAX_ROUNDS = 99 };

static int layer_count; // layers of the model

// Orthogonal kernels preserve the norm of activations through thousands of layers.
static bel_value *layer(bel_graph *g, bel_value *x, int64_t units, const char *name)
{
    bel_shape kernel_shape = BEL_SHAPE(WIDTH, units), bias_shape = BEL_SHAPE(units);
    bel_graph_push_scope(g, name);
    bel_value *kernel = bel_variable(g, "kernel", &kernel_shape,
                                     (bel_initializer){.kind = BEL_INIT_ORTHOGONAL, .value = 1},
                                     BEL_VARIABLE_TRAINABLE);
    bel_value *bias = bel_variable(
        g, "bias", &bias_shape, (bel_initializer){.kind = BEL_INIT_ZEROS}, BEL_VARIABLE_TRAINABLE);
    bel_graph_pop_scope(g);
    return bel_gemm(g, x, kernel, bias, 1, 1, false, false);
}

static bel_status *model_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_context_feature(context, "x");
    for (int i = 0; i < layer_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "layer_%d", i);
        x = layer(g, x, WIDTH, name);
    }
    x = layer(g, x, CLASSES, "classes");
    bel_loss_set(spec, bel_mean(g, bel_softmax_cross_entropy(g, x, bel_context_labels(context))));
    const bel_optimizer sgd = {
        .size = sizeof sgd, .kind = BEL_OPTIMIZER_SGD, .learning_rate = 1e-6};
    bel_optimizer_use(spec, NULL, &sgd);
    return NULL;
}

static bel_status *input_fn(void *user, const bel_estimator *estimator, bel_mode mode,
                            bel_dataset **out_dataset)
{
    (void)estimator;
    static float x[RECORDS * WIDTH];
    static int64_t labels[RECORDS];
    (void)user;
    (void)mode;
    for (int i = 0; i < RECORDS * WIDTH; i++)
        x[i] = (float)(i * 29 % 31) / 15.0f - 1.0f;
    for (int i = 0; i < RECORDS; i++)
        labels[i] = i % CLASSES;
    const bel_memory_field fields[] = {{"x", {BEL_DTYPE_F32, BEL_SHAPE(RECORDS, WIDTH), x}},
                                       {"label", {BEL_DTYPE_I64, BEL_SHAPE(RECORDS), labels}}};
    *out_dataset = bel_dataset_from_memory(fields, 2);
    bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, BATCH);
    return NULL;
}

// Measures seconds of a run, and of its steps.
static bel_status *train(int64_t steps, double *out_seconds, double *out_step_seconds)
{
    char folder[] = "/tmp/belfry-bench-XXXXXX";
    if (mkdtemp(folder) == NULL) return BEL_ERR(BEL_INTERNAL, "cannot make a folder");
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.num_threads = 1;
    config.report = false;
    config.save_summary_steps = 0;
    const bel_train_spec spec = {.size = sizeof spec, .input_fn = input_fn, .max_steps = steps};
    bel_result result = {.size = sizeof result};
    bel_estimator *estimator;
    int64_t begun = bel_clock_ns();
    BEL_TRY(bel_estimator_create(model_fn, &config, NULL, 0, &estimator));
    bel_status *status = bel_train(estimator, &spec, &result);
    *out_seconds = (double)(bel_clock_ns() - begun) * 1e-9;
    *out_step_seconds = result.train_seconds;
    bel_estimator_destroy(estimator);
    bel_status_ignore(bel_dir_remove(folder)); // a leftover in /tmp is harmless
    return status;
}

// Measures the peer's ms a step; 0: no PyTorch.
static double theirs(int64_t steps)
{
    char command[512];
    double ms = 0;
    snprintf(command, sizeof command, "bench/torch 1 bench/variables_torch.py %d %lld 2>/dev/null",
             layer_count, (long long)steps);
    FILE *pipe = popen(command, "r");
    if (pipe == NULL) return 0;
    if (fscanf(pipe, "%lf", &ms) != 1) ms = 0;
    pclose(pipe);
    return ms;
}

static bel_status *compare(int variables, int rounds)
{
    double first[MAX_ROUNDS], own[MAX_ROUNDS], peer[MAX_ROUNDS];
    bool has_peer = true;
    int64_t steps = 2000000 / variables, peer_steps = 60000 / variables + 3;
    layer_count = variables / 2 - 1;
    for (int i = 0; i < rounds; i++) {
        double seconds, one, all;
        BEL_TRY(train(1, &first[i], &one));
        BEL_TRY(train(1 + steps, &seconds, &all));
        own[i] = (all - one) / (double)steps * 1e3;
        peer[i] = theirs(peer_steps);
        has_peer = has_peer && peer[i] > 0;
    }
    bench_spread ratio = bench_ratio_of(own, peer, rounds);
    printf("%6d variables: first step after %.3f s, %.3f ms a step", variables,
           bench_median(first, rounds), bench_median(own, rounds));
    if (has_peer) {
        printf("; PyTorch %.2f ms, ratio %.3f [%.3f, %.3f]\n", bench_median(peer, rounds),
               ratio.median, ratio.low, ratio.high);
        bench_figuref(&ratio, "variables.%d", variables);
    } else {
        printf("; no PyTorch for /usr/bin/python3 to compare with\n");
    }
    fflush(stdout);
    return NULL;
}

int main(int count, char **arguments)
{
    static const int sizes[] = {102, 1002, 2002, 5002, 10002};
    int rounds = count > 1 ? (int)strtol(arguments[1], NULL, 10) : 5;
    if (rounds < 1 || rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
    bel_log_configure(BEL_LOG_ERROR, BEL_LOG_TEXT);
    if (count > 2) return bench_end(compare((int)strtol(arguments[2], NULL, 10), rounds));
    bel_status *status = NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && status == NULL; i++)
        status = compare(sizes[i], rounds);
    return bench_end(status);
}
