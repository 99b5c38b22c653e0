// MLP 784-512-512-10 with SGD momentum on synthetic images: examples per second of the whole
// training path (batches in memory, programs, aggregation, update), and the step's time over the
// time of only its matrix products. usage: bench_train_mlp BATCH THREADS [ROUNDS]
// bench/train runs it beside PyTorch and prints the ratio.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "mlp.h"
#include "runtime/program.h"

enum { STEPS = 300 };

// Operands of a step's products, each in separate memory as in the step.
enum { X, W1, H1, W2, H2, W3, D3, D2, D1, OPERANDS };

typedef struct product {
    int a, b; // operands
    bool transpose_a, transpose_b;
} product;

static const product products_of_a_step[] = {
    {X, W1, false, false}, {H1, W2, false, false}, {H2, W3, false, false}, {D3, W3, false, true},
    {H2, D3, true, false}, {D2, W2, false, true},  {H1, D2, true, false},  {X, D1, true, false}};
enum { PRODUCTS = sizeof products_of_a_step / sizeof products_of_a_step[0] };

static bel_status *compile_products(int64_t batch, bel_graph *graph, bel_program **out_program)
{
    const bel_shape shapes[OPERANDS] = {
        [X] = BEL_SHAPE(batch, BENCH_PIXELS), [W1] = BEL_SHAPE(BENCH_PIXELS, 512),
        [H1] = BEL_SHAPE(batch, 512),         [W2] = BEL_SHAPE(512, 512),
        [H2] = BEL_SHAPE(batch, 512),         [W3] = BEL_SHAPE(512, 10),
        [D3] = BEL_SHAPE(batch, 10),          [D2] = BEL_SHAPE(batch, 512),
        [D1] = BEL_SHAPE(batch, 512)};
    bel_value *operands[OPERANDS];
    bel_program_output outputs[PRODUCTS] = {{0}};
    for (int i = 0; i < OPERANDS; i++) {
        char name[24];
        snprintf(name, sizeof name, "operand%d", i);
        operands[i] = bel_input_value(graph, name, BEL_DTYPE_F32, &shapes[i]);
    }
    for (int i = 0; i < PRODUCTS; i++) {
        const product *p = &products_of_a_step[i];
        outputs[i].value = bel_gemm(graph, operands[p->a], operands[p->b], NULL, 1, 0,
                                    p->transpose_a, p->transpose_b);
    }
    const bel_program_options one_by_one = {.no_groups = true};
    return bel_program_compile(graph, shapes, outputs, PRODUCTS, &one_by_one, out_program);
}

// Measures seconds of STEPS times the step's eight products, by the same kernels and tiles.
static bel_status *products(int64_t batch, int threads, double *out_seconds)
{
    enum { OPERAND_FLOATS = BENCH_PIXELS * 512 };
    bel_graph *graph = bel_graph_create();
    bel_program *program;
    BEL_TRY(compile_products(batch, graph, &program));
    size_t arena_bytes = bel_program_arena_bytes(program);
    size_t operand_bytes = OPERANDS * (size_t)OPERAND_FLOATS * sizeof(float);
    void *arena, *operands;
    BEL_TRY(bel_pages_create(arena_bytes, true, "arena", &arena));
    BEL_TRY(bel_pages_create(operand_bytes, true, "operands", &operands));
    bel_instance *instance = bel_instance_create(program, arena);
    for (int i = 0; i < OPERANDS; i++) {
        float *operand = (float *)operands + (size_t)i * OPERAND_FLOATS;
        memcpy(operand, bench_images(), OPERAND_FLOATS * sizeof *operand);
        bel_instance_bind_input(instance, i, operand);
    }
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
    bel_pages_destroy(operands, operand_bytes);
    bel_pages_destroy(arena, arena_bytes);
    bel_program_destroy(program);
    bel_graph_destroy(graph);
    return NULL;
}

int main(int argc, char **argv)
{
    return bench_beside(argc, argv, "train_mlp", "dnn", STEPS, products);
}
