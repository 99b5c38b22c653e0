// A chain of products so small that the overhead between them counts: [1 × 8] · [8 × 8], twenty
// times. The executors, synchronous and asynchronous, beside the same kernel called by hand, in
// turns, medians of rounds with quartiles.
// usage: bench_chain [ROUNDS]
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "belfry/ops.h"
#include "figures.h"
#include "graph/graph.h"
#include "mlp.h"
#include "ops/kernels/cpu.h"
#include "runtime/program.h"

enum { WIDTH = 8, LENGTH = 20, RUNS = 1000, MAX_ROUNDS = 999 };

static float weights[LENGTH][WIDTH * WIDTH], x[WIDTH], results[LENGTH][WIDTH];

static bel_value *make_chain(bel_graph *graph)
{
    bel_shape row = BEL_SHAPE(1, WIDTH), square = BEL_SHAPE(WIDTH, WIDTH);
    bel_value *value = bel_input_value(graph, "x", BEL_DTYPE_F32, &row);
    for (int i = 0; i < LENGTH; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        bel_value *w = bel_variable(graph, name, &square, (bel_initializer){BEL_INIT_ZEROS, 0},
                                    BEL_VARIABLE_TRAINABLE);
        value = bel_matmul(graph, value, w);
    }
    if (bench_end(bel_graph_check(graph)) != 0) exit(1);
    return value;
}

static bel_instance *make_instance(bel_graph *graph, bel_value *last, bool asynchronous)
{
    bel_shape row = BEL_SHAPE(1, WIDTH);
    bel_program *program;
    void *arena;
    const bel_program_output output = {.value = last};
    const bel_program_options options = {.asynchronous = asynchronous, .threads = 2};
    if (bench_end(bel_program_compile(graph, &row, &output, 1, &options, &program)) != 0) exit(1);
    size_t bytes = bel_program_arena_bytes(program);
    if (bench_end(bel_pages_create(bytes > 0 ? bytes : 64, true, "arena", &arena)) != 0) exit(1);
    bel_instance *instance = bel_instance_create(program, arena);
    bel_instance_bind_input(instance, 0, x);
    for (int i = 0; i < LENGTH; i++)
        bel_instance_bind_variable(instance, i, weights[i]);
    return instance;
}

static double time_executor(bel_instance *instance, bel_team *team)
{
    bel_run_context context = {0};
    int64_t begun = bel_clock_ns();
    for (int i = 0; i < RUNS; i++)
        if (bench_end(bel_instance_run(instance, team, &context, NULL, NULL)) != 0) exit(1);
    return (double)(bel_clock_ns() - begun) / RUNS;
}

static double time_by_hand(void)
{
    const bel_cpu_kernels *kernels = bel_cpu_kernels_get();
    int64_t begun = bel_clock_ns();
    for (int i = 0; i < RUNS; i++) {
        const float *in = x;
        for (int k = 0; k < LENGTH; k++) {
            kernels->few_rows(1, WIDTH, WIDTH, in, weights[k], NULL, results[k]);
            in = results[k];
        }
    }
    return (double)(bel_clock_ns() - begun) / RUNS;
}

static void report(double *executor, double *asynchronous, double *by_hand, int rounds)
{
    bench_spread over_hand = bench_ratio_of(executor, by_hand, rounds);
    bench_spread over_executor = bench_ratio_of(asynchronous, executor, rounds);
    printf("20 products [1 x 8] [8 x 8]: executor %.0f ns, by hand %.0f ns; ratio %.2f [%.2f, "
           "%.2f]\n",
           bench_median(executor, rounds), bench_median(by_hand, rounds), over_hand.median,
           over_hand.low, over_hand.high);
    printf("the same, asynchronous executor on 2 threads: %.0f ns; over the synchronous %.2f "
           "[%.2f, %.2f] (mark: <= 2)\n",
           bench_median(asynchronous, rounds), over_executor.median, over_executor.low,
           over_executor.high);
    bench_figure("chain", &over_hand);
    bench_figure("chain.async", &over_executor);
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 301;
    if (rounds < 1 || rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
    for (int i = 0; i < LENGTH; i++)
        for (int k = 0; k < WIDTH; k++)
            weights[i][k * WIDTH + k] = 1;
    for (int k = 0; k < WIDTH; k++)
        x[k] = (float)k;
    bel_graph *graph = bel_graph_create();
    bel_value *last = make_chain(graph);
    bel_instance *instance = make_instance(graph, last, false);
    bel_instance *asynchronous = make_instance(graph, last, true);
    bel_team *team, *pair;
    if (bench_end(bel_team_create(1, &team)) != 0) exit(1);
    if (bench_end(bel_team_create(2, &pair)) != 0) exit(1);
    double ours[MAX_ROUNDS], theirs[MAX_ROUNDS], hand[MAX_ROUNDS];
    for (int i = -1; i < rounds; i++) { // one warm-up round, overwritten
        int at = i < 0 ? 0 : i;
        ours[at] = time_executor(instance, team);
        theirs[at] = time_executor(asynchronous, pair);
        hand[at] = time_by_hand();
    }
    report(ours, theirs, hand, rounds);
    return results[LENGTH - 1][1] != 1; // uses the result, so that it is computed
}
