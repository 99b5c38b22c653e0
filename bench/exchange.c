// Cost of an all-reduce of 64 floats inside a step: a chain of them in a model with little
// computation, over the same chain without, between two towers and between two workers of one
// process. The baseline is a bare round trip of two threads that wake each other by a futex.
// Medians of interleaved runs with quartiles. usage: bench_exchange [ROUNDS]
#define _DEFAULT_SOURCE // syscall
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "figures.h"
#include "mlp.h"

enum { CHAIN = 50, STEPS = 200, FLOATS = 64, WARM = 1000, HAND_OVERS = 20000, MOST_ROUNDS = 101 };

// --- The round trip ------------------------------------------------------------------------------

static atomic_uint turn; // even: the first thread's turn

static void pass_on(unsigned now)
{
    atomic_store(&turn, now + 1);
    (void)syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void await(unsigned parity)
{
    for (unsigned seen; (seen = atomic_load(&turn)) % 2 != parity;)
        (void)syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void *answer(void *unused)
{
    for (int i = 0; i < WARM + HAND_OVERS; i++) {
        await(1);
        pass_on(atomic_load(&turn));
    }
    return unused;
}

// Measures nanoseconds of a round trip.
static double hand_over(void)
{
    pthread_t other;
    atomic_store(&turn, 0);
    if (pthread_create(&other, NULL, answer, NULL) != 0) return 0;
    int64_t begun = 0;
    for (int i = 0; i < WARM + HAND_OVERS; i++) {
        if (i == WARM) begun = bel_clock_ns(); // the other thread is running
        pass_on(atomic_load(&turn));
        await(0);
    }
    int64_t spent = bel_clock_ns() - begun;
    (void)pthread_join(other, NULL);
    return (double)spent / HAND_OVERS;
}

// --- The chain -----------------------------------------------------------------------------------

static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bool exchanges = strcmp(bel_context_param(context, "exchanges", "no"), "yes") == 0;
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_value *w = bel_variable(g, "w", &BEL_SHAPE(FLOATS), zeros, BEL_VARIABLE_TRAINABLE);
    bel_value *x = bel_stop_gradient(g, w);
    for (int i = 0; i < CHAIN; i++) {
        x = bel_add(g, x, bel_scalar(g, BEL_DTYPE_F32, 1 + i));
        if (exchanges) x = bel_all_reduce(g, x, BEL_REDUCE_MEAN);
        x = bel_tanh(g, x); // so that additions are not merged
    }
    bel_value *input = bel_mean(g, bel_context_only_feature(context));
    bel_value *loss = bel_mul(g, input, bel_mean(g, bel_mul(g, w, x)));
    bel_loss_set(spec, loss);
    bel_predictions_set(spec, loss);
    const bel_optimizer sgd = {
        .size = sizeof sgd, .kind = BEL_OPTIMIZER_SGD, .learning_rate = 1e-6};
    bel_optimizer_use(spec, NULL, &sgd);
    return NULL;
}

static bel_status *input_fn(void *user, const bel_estimator *estimator, bel_mode mode,
                            bel_dataset **out_dataset)
{
    static float examples[8];
    (void)user, (void)estimator, (void)mode;
    const bel_memory_field field = {"x", {BEL_DTYPE_F32, BEL_SHAPE(8), examples}};
    *out_dataset = bel_dataset_from_memory(&field, 1);
    bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, 1);
    return NULL;
}

// Measures nanoseconds of a step.
static bel_status *run(int workers, int towers, const char *exchanges, double *out_ns)
{
    char folder[64];
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    (void)bel_snprintf(folder, sizeof folder, "/tmp/bench-exchange-%d", (int)getpid());
    config.model_dir = folder;
    config.num_workers = workers;
    config.num_gpus = towers;
    config.num_threads = 1;
    config.report = false;
    config.log_step_count_steps = 0;
    config.save_summary_steps = 0;
    const bel_param param = {"exchanges", exchanges};
    bel_estimator *estimator;
    bel_result result = {.size = sizeof result};
    BEL_TRY(bel_estimator_create(model, &config, &param, 1, &estimator));
    const bel_train_spec spec = {.size = sizeof spec, .input_fn = input_fn, .max_steps = STEPS};
    bel_status *status = bel_train(estimator, &spec, &result);
    bel_estimator_destroy(estimator);
    bel_status_ignore(bel_dir_remove(folder));
    if (status == NULL) *out_ns = result.train_seconds * 1e9 / STEPS;
    return status;
}

static bel_status *measure(int rounds)
{
    static const struct {
        const char *name, *figure;
        int workers, towers;
    } rows[] = {{"two towers", "exchange.towers", 1, 2},
                {"two workers of a process", "exchange.workers", 2, 1}};
    double bare[MOST_ROUNDS], each[2][MOST_ROUNDS];
    for (int i = 0; i < rounds; i++) {
        bare[i] = hand_over();
        for (int r = 0; r < 2; r++) {
            double with, without;
            BEL_TRY(run(rows[r].workers, rows[r].towers, "yes", &with));
            BEL_TRY(run(rows[r].workers, rows[r].towers, "no", &without));
            each[r][i] = (with - without) / CHAIN;
        }
    }
    bench_spread ratios[2];
    for (int r = 0; r < 2; r++)
        ratios[r] = bench_ratio_of(each[r], bare, rounds);
    printf("a round trip of two threads: %.0f ns\n", bench_median(bare, rounds));
    for (int r = 0; r < 2; r++) {
        printf("an all-reduce of %d floats, %s: %.0f ns = %.2f [%.2f, %.2f] round trips\n", FLOATS,
               rows[r].name, bench_median(each[r], rounds), ratios[r].median, ratios[r].low,
               ratios[r].high);
        bench_figure(rows[r].figure, &ratios[r]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 11;
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = 11;
    bel_log_configure(BEL_LOG_WARN, BEL_LOG_TEXT);
    return bench_end(measure(rounds));
}
