// Two parallel towers of dense layers, with two inputs, and the product of their outputs: a
// training step's program on both executors with two threads, in turns, medians of pairs and
// quartiles. Some batches are so small that a layer is one tile, others larger.
// usage: bench_towers [PAIRS]
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "belfry/ops.h"
#include "figures.h"
#include "graph/graph.h"
#include "mlp.h"
#include "runtime/program.h"

enum { TOWERS = 2, LAYERS = 4, WIDTH = 256, MAX_PAIRS = 999, MOST_OUTPUTS = 40 };

typedef struct model {
    bel_graph *graph;
    bel_program_output outputs[MOST_OUTPUTS];
    int output_count;
} model;

typedef struct running {
    bel_program *program;
    bel_instance *instance;
    void *arena;
} running;

static void make_model(model *m)
{
    bel_graph *g = m->graph = bel_graph_create();
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, WIDTH);
    bel_value *tops[TOWERS];
    for (int t = 0; t < TOWERS; t++) {
        char name[32];
        snprintf(name, sizeof name, "input_%d", t);
        tops[t] = bel_input_value(g, name, BEL_DTYPE_F32, &shape);
        for (int i = 0; i < LAYERS; i++) {
            snprintf(name, sizeof name, "tower_%d_%d", t, i);
            tops[t] = bel_relu(g, bel_dense(g, tops[t], WIDTH, name));
        }
    }
    bel_value *loss = bel_mean(g, bel_mul(g, tops[0], tops[1]));
    bel_value *wanted[MOST_OUTPUTS], *gradients[MOST_OUTPUTS];
    int count = (int)g->variable_count;
    for (int v = 0; v < count; v++)
        wanted[v] = g->variables[v].value;
    bel_gradients(g, loss, wanted, count, gradients);
    bench_check(bel_graph_check(g));
    m->outputs[m->output_count++].value = loss;
    for (int v = 0; v < count; v++)
        m->outputs[m->output_count++].value = gradients[v];
}

static running start(const model *m, int64_t batch, bool asynchronous)
{
    running r;
    bel_shape shapes[TOWERS];
    for (int t = 0; t < TOWERS; t++)
        shapes[t] = BEL_SHAPE(batch, WIDTH);
    const bel_program_options options = {.asynchronous = asynchronous, .threads = 2};
    bench_check(
        bel_program_compile(m->graph, shapes, m->outputs, m->output_count, &options, &r.program));
    bench_check(
        bel_pages_create(bel_program_arena_bytes(r.program), true, "activations", &r.arena));
    r.instance = bel_instance_create(r.program, r.arena);
    static float x[TOWERS][1024 * WIDTH], weights[WIDTH * WIDTH];
    for (int i = 0; i < WIDTH * WIDTH; i++)
        weights[i] = (float)(i % 13 - 6) / 100;
    for (int t = 0; t < TOWERS; t++) {
        for (int64_t i = 0; i < batch * WIDTH; i++)
            x[t][i] = (float)(i % 7) / 7;
        bel_instance_bind_input(r.instance, t, x[t]);
    }
    for (size_t v = 0; v < m->graph->variable_count; v++)
        bel_instance_bind_variable(r.instance, (int)v, weights);
    return r;
}

static void stop(running *r)
{
    bel_instance_destroy(r->instance);
    bel_pages_destroy(r->arena, bel_program_arena_bytes(r->program));
    bel_program_destroy(r->program);
}

static double time_run(const running *r, bel_team *team)
{
    bel_run_context context = {.seed = 1};
    int64_t begun = bel_clock_ns();
    bench_check(bel_instance_run(r->instance, team, &context, NULL, NULL));
    return (double)(bel_clock_ns() - begun) / 1000;
}

static void compare(const model *m, int64_t batch, bel_team *team, int pairs)
{
    running plain = start(m, batch, false), streams = start(m, batch, true);
    double sync[MAX_PAIRS], async[MAX_PAIRS];
    for (int i = -2; i < pairs; i++) { // two warm-up rounds, overwritten
        sync[i < 0 ? 0 : i] = time_run(&plain, team);
        async[i < 0 ? 0 : i] = time_run(&streams, team);
    }
    bench_spread ratio = bench_ratio_of(async, sync, pairs);
    printf("two towers, batch %4lld, 2 threads: synchronous %.0f us, asynchronous %.0f us; ratio "
           "%.2f [%.2f, %.2f]; memory %.2f times as much\n",
           (long long)batch, bench_median(sync, pairs), bench_median(async, pairs), ratio.median,
           ratio.low, ratio.high,
           (double)bel_program_arena_bytes(streams.program) /
               (double)bel_program_arena_bytes(plain.program));
    bench_figuref(&ratio, "towers.%lld", (long long)batch);
    stop(&plain);
    stop(&streams);
}

int main(int count, char **arguments)
{
    int pairs = count > 1 ? atoi(arguments[1]) : 301;
    if (pairs < 1 || pairs > MAX_PAIRS) pairs = MAX_PAIRS;
    model m = {0};
    make_model(&m);
    bel_team *team;
    bench_check(bel_team_create(2, &team));
    static const int64_t batches[] = {1, 8, 32, 128, 512};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++)
        compare(&m, batches[i], team, pairs);
    bel_team_destroy(team);
    bel_graph_destroy(m.graph);
    return 0;
}
