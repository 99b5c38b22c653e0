// MLP 784-512-512-10 with SGD momentum on synthetic images: examples per second of the whole
// training path (batches in memory, programs, aggregation, update), and the step's time over the
// time of its own matrix products alone. usage: bench_train_mlp BATCH THREADS [ROUNDS]
// bench/train_mlp.sh runs it beside PyTorch and prints the ratio.
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "mlp.h"
#include "runtime/program.h"

enum { STEPS = 300 };

typedef struct product {
    int64_t m, n, k;
    bool transpose_a, transpose_b;
} product;

// Seconds of STEPS times the step's eight products, by the same kernels and tiles.
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
        bel_instance_bind_input(instance, i, bench_images() + 64 * BENCH_PIXELS * i);
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

static bel_status *measure(int64_t batch, int threads, int rounds)
{
    enum { MOST = 64 };
    double rates[MOST], ratios[MOST];
    if (rounds < 1 || rounds > MOST) return BEL_ERR(BEL_INVALID_ARGUMENT, "1 to %d rounds", MOST);
    for (int i = 0; i < rounds; i++) {
        double step, alone;
        BEL_TRY(bench_train(batch, threads, STEPS, &step));
        BEL_TRY(products(batch, threads, &alone));
        rates[i] = (double)(STEPS * batch) / step;
        ratios[i] = step / alone;
    }
    printf("{\"bench\":\"train_mlp\",\"batch\":%lld,\"threads\":%d,\"examples_per_second\":%.0f,"
           "\"step_over_products\":%.3f}\n",
           (long long)batch, threads, bench_median(rates, rounds), bench_median(ratios, rounds));
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s BATCH THREADS [ROUNDS]\n", argv[0]);
        return 2;
    }
    bench_fill();
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 7;
    return bench_end(measure(strtol(argv[1], NULL, 10), (int)strtol(argv[2], NULL, 10), rounds));
}
