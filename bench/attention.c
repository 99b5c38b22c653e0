// Attention, forward and backward, as one operation and composed of products and MaskedSoftmax: 64
// matrices of [t × 64], in turns, medians of pairs with quartiles; time and the memory of the plan.
// Variants: all keys visible, causal, and lengths.
// usage: bench_attention [PAIRS]
#include "graph/attention.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "figures.h"
#include "graph/graph.h"
#include "mlp.h"
#include "runtime/program.h"

enum { N = 8, HEADS = 8, WIDTH = 64, OPERANDS = 3, MAX_PAIRS = 999 };

typedef struct hiding {
    const char *name, *figure;
    bool lengths, causal;
} hiding;

typedef struct running {
    bel_graph *graph;
    bel_program *program;
    bel_instance *instance;
    void *arena, *inputs[OPERANDS + 1];
} running;

static running start(bool fused, int64_t t, const hiding *h, int threads)
{
    running r = {.graph = bel_graph_create()};
    bel_graph *g = r.graph;
    bel_shape shape = BEL_SHAPE(N, HEADS, t, WIDTH), list = BEL_SHAPE(N);
    bel_shape shapes[OPERANDS + 1] = {shape, shape, shape, list};
    static const char *const names[OPERANDS] = {"query", "key", "value"};
    bel_value *x[OPERANDS], *lengths = NULL, *gradients[OPERANDS];
    for (int i = 0; i < OPERANDS; i++)
        x[i] = bel_input_value(g, names[i], BEL_DTYPE_F32, &shape);
    if (h->lengths) lengths = bel_input_value(g, "lengths", BEL_DTYPE_I64, &list);
    bel_value *y = fused ? bel_attention_fused(g, x[0], x[1], x[2], lengths, h->causal, 0)
                         : bel_attention_composed(g, x[0], x[1], x[2], NULL, lengths, h->causal, 0);
    bel_program_output outputs[1 + OPERANDS] = {
        {.value = bel_reduce_sum_square(g, y, NULL, 0, false)}};
    bel_gradients(g, outputs[0].value, x, OPERANDS, gradients);
    for (int i = 0; i < OPERANDS; i++)
        outputs[1 + i].value = gradients[i];
    bench_check(bel_graph_check(g));
    const bel_program_options options = {.threads = threads};
    bench_check(bel_program_compile(g, shapes, outputs, 1 + OPERANDS, &options, &r.program));
    bench_check(
        bel_pages_create(bel_program_arena_bytes(r.program), true, "activations", &r.arena));
    r.instance = bel_instance_create(r.program, r.arena);
    for (int i = 0; i < OPERANDS; i++) {
        float *numbers = r.inputs[i] =
            bel_xcalloc((size_t)(N * HEADS * t * WIDTH), sizeof *numbers);
        for (int64_t k = 0; k < N * HEADS * t * WIDTH; k++)
            numbers[k] = (float)((k + i) * 7919 % 2003) / 1000.0f - 1.0f;
        bel_instance_bind_input(r.instance, i, numbers);
    }
    if (!h->lengths) return r;
    int64_t *numbers = r.inputs[OPERANDS] = bel_xcalloc(N, sizeof *numbers);
    for (int i = 0; i < N; i++)
        numbers[i] = t * (i + 1) / N;
    bel_instance_bind_input(r.instance, OPERANDS, numbers);
    return r;
}

static void stop(running *r)
{
    bel_instance_destroy(r->instance);
    bel_pages_destroy(r->arena, bel_program_arena_bytes(r->program));
    bel_program_destroy(r->program);
    bel_graph_destroy(r->graph);
    for (int i = 0; i <= OPERANDS; i++)
        bel_free(r->inputs[i]);
}

static double time_run(const running *r, bel_team *team)
{
    bel_run_context context = {.seed = 1};
    int64_t begun = bel_clock_ns();
    bench_check(bel_instance_run(r->instance, team, &context, NULL, NULL));
    return (double)(bel_clock_ns() - begun) * 1e-6;
}

static void compare(int64_t t, const hiding *h, int threads, int pairs)
{
    running composed = start(false, t, h, threads), fused = start(true, t, h, threads);
    double before[MAX_PAIRS], after[MAX_PAIRS];
    bel_team *team;
    bench_check(bel_team_create(threads, &team));
    for (int i = -2; i < pairs; i++) { // two warm-up rounds
        double first = time_run(&composed, team), second = time_run(&fused, team);
        if (i < 0) continue;
        before[i] = first;
        after[i] = second;
    }
    bench_spread ratio = bench_ratio_of(before, after, pairs);
    printf("attention, %s, t %3lld, %d thread%s: composed %.2f ms, one operation %.2f ms; ratio "
           "%.2f [%.2f, %.2f]; memory %.1f and %.1f MB\n",
           h->name, (long long)t, threads, threads > 1 ? "s" : "", bench_median(before, pairs),
           bench_median(after, pairs), ratio.median, ratio.low, ratio.high,
           (double)bel_program_arena_bytes(composed.program) * 1e-6,
           (double)bel_program_arena_bytes(fused.program) * 1e-6);
    bench_figuref(&ratio, "attention.%s.%lld.%d", h->figure, (long long)t, threads);
    bel_team_destroy(team);
    stop(&composed);
    stop(&fused);
}

int main(int count, char **arguments)
{
    static const hiding hidings[] = {{"all seen", "all", false, false},
                                     {"causal", "causal", false, true},
                                     {"lengths", "lengths", true, false}};
    int pairs = count > 1 ? atoi(arguments[1]) : 21;
    if (pairs < 1 || pairs > MAX_PAIRS) pairs = MAX_PAIRS;
    for (size_t i = 0; i < sizeof hidings / sizeof hidings[0]; i++)
        for (int threads = 1; threads <= 2; threads++)
            for (int64_t t = 32; t <= 512; t *= 2)
                compare(t, &hidings[i], threads, pairs);
    return 0;
}
