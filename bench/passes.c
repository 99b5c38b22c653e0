// See passes.h.
#include "passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "figures.h"
#include "mlp.h"
#include "passes/passes.h"
#include "runtime/program.h"

enum { MAX_ROUNDS = 99 };

typedef struct running {
    bel_program *program;
    bel_instance *instance;
    void *arena;
    double ns[MAX_ROUNDS], compile_us;
} running;

static float *numbers(const bel_shape *shape)
{
    int64_t count = bel_shape_elements(shape);
    float *made = bel_xcalloc((size_t)count + 1, sizeof *made);
    for (int64_t i = 0; i < count; i++)
        made[i] = (float)(i * 7919 % 2003) / 1000.0f - 1.0f;
    return made;
}

static void start(const bench_graph *g, unsigned off, running *r)
{
    bel_shape shapes[BENCH_MOST_INPUTS];
    for (size_t i = 0; i < g->graph->input_count; i++)
        shapes[i] = g->graph->inputs[i].value->spec.shape;
    const bel_program_output output = {.value = g->output};
    const bel_program_options options = {.passes_off = off, .fixed_variables = true};
    int64_t begun = bel_clock_ns();
    bench_check(bel_program_compile(g->graph, shapes, &output, 1, &options, &r->program));
    r->compile_us = (double)(bel_clock_ns() - begun) * 1e-3;
    bench_check(
        bel_pages_create(bel_program_arena_bytes(r->program) + 64, true, "arena", &r->arena));
    r->instance = bel_instance_create(r->program, r->arena);
    for (size_t i = 0; i < g->graph->input_count; i++)
        bel_instance_bind_input(r->instance, (int)i, numbers(&shapes[i]));
    for (size_t v = 0; v < g->graph->variable_count; v++) {
        const bel_shape *shape = &g->graph->variables[v].value->spec.shape;
        bel_instance_bind_variable(r->instance, (int)v, numbers(shape));
    }
}

static double run(const bench_graph *g, running *r, bel_team *team)
{
    bel_run_context context = {.seed = 1};
    int64_t begun = bel_clock_ns();
    for (int i = 0; i < g->runs; i++)
        bench_check(bel_instance_run(r->instance, team, &context, NULL, NULL));
    return (double)(bel_clock_ns() - begun) / g->runs;
}

static void show(const bench_graph *g, running *plain, running *made, const char *off_name,
                 const bench_spread *ratio)
{
    double before = bench_median(plain->ns, ratio->count);
    double after = bench_median(made->ns, ratio->count);
    printf("%s: %.0f ns without %s, %.0f ns with; ratio %.2f [%.2f, %.2f]; %d and %d instructions "
           "(%d of these once); memory %.1f and %.1f KB; compiled in %.0f and %.0f us\n",
           g->name, before, off_name, after, ratio->median, ratio->low, ratio->high,
           bel_program_instruction_count(plain->program),
           bel_program_instruction_count(made->program), bel_program_prologue_count(made->program),
           (double)bel_program_arena_bytes(plain->program) * 1e-3,
           (double)bel_program_arena_bytes(made->program) * 1e-3, plain->compile_us,
           made->compile_us);
}

void bench_passes(const bench_graph *g, unsigned off, const char *off_name, const char *figure,
                  int rounds)
{
    static running plain, made;
    if (rounds < 1 || rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
    bench_check(bel_graph_check(g->graph));
    bel_team *team;
    bench_check(bel_team_create(1, &team));
    start(g, off, &plain);
    start(g, 0, &made);
    for (int i = -1; i < rounds; i++) { // one warm-up round, overwritten
        plain.ns[i < 0 ? 0 : i] = run(g, &plain, team);
        made.ns[i < 0 ? 0 : i] = run(g, &made, team);
    }
    bel_tensor expected = bel_instance_output(plain.instance, 0);
    bel_tensor got = bel_instance_output(made.instance, 0);
    if (memcmp(expected.data, got.data, bel_tensor_bytes(&got)) != 0) {
        fprintf(stderr, "%s: the results differ\n", g->name);
        exit(1);
    }
    bench_spread ratio = bench_ratio_of(plain.ns, made.ns, rounds);
    show(g, &plain, &made, off_name, &ratio);
    bench_figure(figure, &ratio);
    bel_team_destroy(team);
}
