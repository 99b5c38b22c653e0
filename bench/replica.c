// Overhead of a user's loop (belfry/replica.h): seconds of the same number of steps of bel_train,
// of a loop that never waits for a step, and of one that waits for each. dnn on 784 pixels, batch
// 64: a large one, and one whose step takes a fraction of a millisecond. In turns; medians and
// quartiles.
// usage: bench_replica [THREADS [ROUNDS]]
#include <stdio.h>
#include <stdlib.h>

#include "figures.h"
#include "mlp.h"

enum { BATCH = 64, MAX_ROUNDS = 99, KINDS = 3 };

typedef struct course {
    int64_t steps;
    bool waits;
} course;

static bel_status *loop(void *user, bel_replicator *replicator)
{
    const course *c = user;
    const bel_step_result *result;
    while (bel_replicator_step(replicator) < c->steps)
        BEL_TRY(bel_replicator_run(replicator, 0, c->waits ? &result : NULL));
    return NULL;
}

// Kind 0: bel_train; 1: a loop without waits; 2: a loop with waits.
static bel_status *train(int kind, const char *hidden, int threads, int64_t steps,
                         double *out_seconds)
{
    const bel_param params[] = {{"optimizer", "momentum"},
                                {"learning_rate", "0.01"},
                                {"class_count", "10"},
                                {"hidden_units", hidden}};
    const bel_step_function function = {"train", bel_model_find("dnn")->model_fn, NULL};
    course c = {.steps = steps, .waits = kind == 2};
    const bel_loop own = {
        .size = sizeof own, .functions = &function, .function_count = 1, .run = loop, .user = &c};
    int64_t batch = BATCH;
    const bel_train_spec spec = {.size = sizeof spec,
                                 .input_fn = bench_input,
                                 .input_user = &batch,
                                 .max_steps = steps,
                                 .loop = kind > 0 ? &own : NULL};
    bel_result result = {.size = sizeof result};
    BEL_TRY(bench_run("dnn", params, 4, threads, &spec, NULL, &result));
    *out_seconds = result.train_seconds;
    return NULL;
}

static bel_status *compare(const char *figure, const char *hidden, int threads, int64_t steps,
                           int rounds)
{
    double seconds[MAX_ROUNDS], free_ratios[MAX_ROUNDS], waiting_ratios[MAX_ROUNDS];
    for (int i = 0; i < rounds; i++) {
        double took[KINDS];
        for (int k = 0; k < KINDS; k++)
            BEL_TRY(train(k, hidden, threads, steps, &took[k]));
        seconds[i] = took[0];
        free_ratios[i] = took[1] / took[0];
        waiting_ratios[i] = took[2] / took[0];
    }
    bench_spread loose = bench_spread_of(free_ratios, rounds);
    bench_spread waiting = bench_spread_of(waiting_ratios, rounds);
    printf("{\"bench\":\"replica\",\"hidden_units\":\"%s\",\"threads\":%d,\"step_us\":%.1f,"
           "\"loop_over_bel_train\":%.3f,\"loop_quartiles\":[%.3f,%.3f],"
           "\"waiting_loop_over_bel_train\":%.3f,\"waiting_loop_quartiles\":[%.3f,%.3f]}\n",
           hidden, threads, bench_median(seconds, rounds) * 1e6 / (double)steps, loose.median,
           loose.low, loose.high, waiting.median, waiting.low, waiting.high);
    fflush(stdout);
    bench_figuref(&loose, "replica.%s.%d.free", figure, threads);
    bench_figuref(&waiting, "replica.%s.%d.waiting", figure, threads);
    return NULL;
}

int main(int count, char **arguments)
{
    int threads = count > 1 ? (int)strtol(arguments[1], NULL, 10) : 1;
    int rounds = count > 2 ? (int)strtol(arguments[2], NULL, 10) : 7;
    if (rounds < 1 || rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
    bench_fill();
    bel_status *status = compare("512_512", "512,512", threads, 400, rounds);
    if (status == NULL) status = compare("64", "64", threads, 4000, rounds);
    return bench_end(status);
}
