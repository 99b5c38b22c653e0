// Operations that move or compare elements, on one thread: nanoseconds for each element of the
// larger side, by the fast kernel and by the plain one that is its oracle, in turns; medians and
// quartiles of rounds. A round counts the shortest of three runs of a kernel, because the first
// finds the other kernel's memory in the caches.
// usage: bench_elements [ROUNDS]
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "belfry/ops.h"
#include "figures.h"
#include "mlp.h"
#include "runtime/program.h"

enum { MOST_ROUNDS = 99 };

typedef bel_value *build_fn(bel_graph *graph, bel_value *x);

typedef struct row {
    const char *name, *figure;
    bel_shape shape; // shape of x, f32
    build_fn *build;
} row;

static bel_value *zero(bel_graph *g)
{
    return bel_scalar(g, BEL_DTYPE_F32, 0);
}

static bel_value *greater_same(bel_graph *g, bel_value *x)
{
    return bel_greater(g, x, x);
}

static bel_value *greater_number(bel_graph *g, bel_value *x)
{
    return bel_greater(g, x, zero(g));
}

static bel_value *add_column(bel_graph *g, bel_value *x)
{
    const int64_t axes[] = {1};
    return bel_add(g, x, bel_reduce_sum(g, x, axes, 1, true));
}

static bel_value *choose(bel_graph *g, bel_value *x)
{
    return bel_where(g, bel_greater(g, x, zero(g)), x, zero(g));
}

static bel_value *to_integers(bel_graph *g, bel_value *x)
{
    return bel_cast(g, x, BEL_DTYPE_I64);
}

static bel_value *from_integers(bel_graph *g, bel_value *x)
{
    return bel_cast(g, bel_cast(g, x, BEL_DTYPE_I32), BEL_DTYPE_F32);
}

static bel_value *turn(bel_graph *g, bel_value *x)
{
    return bel_transpose(g, x, (const int64_t[]){1, 0});
}

static bel_value *turn_heads(bel_graph *g, bel_value *x)
{
    return bel_transpose(g, x, (const int64_t[]){0, 2, 1, 3});
}

static bel_value *turn_keys(bel_graph *g, bel_value *x)
{
    return bel_transpose(g, x, (const int64_t[]){0, 2, 3, 1});
}

static bel_value *sum_middle(bel_graph *g, bel_value *x)
{
    const int64_t axes[] = {1};
    return bel_reduce_sum(g, x, axes, 1, false);
}

static bel_value *max_middle(bel_graph *g, bel_value *x)
{
    const int64_t axes[] = {1};
    return bel_reduce_max(g, x, axes, 1, false);
}

static bel_value *mean_channels(bel_graph *g, bel_value *x)
{
    const int64_t axes[] = {0, 2, 3};
    return bel_reduce_mean(g, x, axes, 3, true);
}

static bel_value *sum_running(bel_graph *g, bel_value *x)
{
    return bel_cum_sum(g, x, 1, false, false);
}

static bel_value *sine(bel_graph *g, bel_value *x)
{
    return bel_sin(g, x);
}

static bel_value *root(bel_graph *g, bel_value *x)
{
    return bel_pow(g, bel_abs(g, x), bel_scalar(g, BEL_DTYPE_F32, 0.3));
}

// A program that ends with the row's operation.
typedef struct running {
    bel_graph *graph;
    bel_program *program;
    bel_instance *instance;
    void *arena, *x;
    size_t x_bytes;
} running;

static bel_status *start(const row *r, bool reference, running *out)
{
    bel_graph *graph = out->graph = bel_graph_create();
    bel_value *x = bel_input_value(graph, "x", BEL_DTYPE_F32, &r->shape);
    const bel_program_output output = {.value = r->build(graph, x)};
    const bel_program_options options = {.reference = reference, .no_groups = true};
    BEL_TRY(bel_program_compile(graph, &r->shape, &output, 1, &options, &out->program));
    out->x_bytes = (size_t)bel_shape_elements(&r->shape) * sizeof(float);
    BEL_TRY(
        bel_pages_create(bel_program_arena_bytes(out->program) + 64, true, "arena", &out->arena));
    BEL_TRY(bel_pages_create(out->x_bytes, true, "x", &out->x));
    for (size_t i = 0; i < out->x_bytes / sizeof(float); i++)
        ((float *)out->x)[i] = (float)(i * 7919 % 2003) / 100.0f - 10.0f;
    out->instance = bel_instance_create(out->program, out->arena);
    bel_instance_bind_input(out->instance, 0, out->x);
    return NULL;
}

static void stop(running *r)
{
    bel_instance_destroy(r->instance);
    bel_pages_destroy(r->x, r->x_bytes);
    bel_pages_destroy(r->arena, bel_program_arena_bytes(r->program) + 64);
    bel_program_destroy(r->program);
    bel_graph_destroy(r->graph);
}

// Measures the last call.
static bel_status *time_last(const running *r, double *out_ns)
{
    enum { RUNS = 3, MOST_CALLS = 8 };
    bel_run_context context = {.seed = 1};
    int64_t each[MOST_CALLS], all;
    BEL_TRY(bel_instance_profile(r->instance, &context, RUNS, each, &all));
    *out_ns = (double)each[bel_program_instruction_count(r->program) - 1];
    return NULL;
}

static bel_status *measure(const row *r, int rounds)
{
    double fast[MOST_ROUNDS], plain[MOST_ROUNDS];
    running sides[2];
    BEL_TRY(start(r, false, &sides[0]));
    BEL_TRY(start(r, true, &sides[1]));
    for (int i = -1; i < rounds; i++) { // one warm-up round, overwritten
        BEL_TRY(time_last(&sides[0], &fast[i < 0 ? 0 : i]));
        BEL_TRY(time_last(&sides[1], &plain[i < 0 ? 0 : i]));
    }
    double elements = (double)bel_shape_elements(&r->shape);
    bench_spread ratio = bench_ratio_of(plain, fast, rounds);
    printf("%-44s %6.2f ns, plain %6.2f, ratio %.1f [%.1f, %.1f]\n", r->name,
           bench_median(fast, rounds) / elements, bench_median(plain, rounds) / elements,
           ratio.median, ratio.low, ratio.high);
    bench_figuref(&ratio, "elements.%s", r->figure);
    stop(&sides[0]);
    stop(&sides[1]);
    return NULL;
}

int main(int argc, char **argv)
{
    const row rows[] = {
        {"Greater of two tensors", "greater", BEL_SHAPE(256, 1024), greater_same},
        {"Greater than a number", "greater_number", BEL_SHAPE(256, 1024), greater_number},
        {"Add a column", "add_column", BEL_SHAPE(256, 1024), add_column},
        {"Where, one side a number", "where", BEL_SHAPE(256, 1024), choose},
        {"Cast f32 to i64", "cast_to_i64", BEL_SHAPE(256, 1024), to_integers},
        {"Cast i32 to f32", "cast_to_f32", BEL_SHAPE(256, 1024), from_integers},
        {"Transpose [512, 512]", "transpose", BEL_SHAPE(512, 512), turn},
        {"Transpose [16, 64, 8, 32] to [16, 8, 64, 32]", "transpose_heads",
         BEL_SHAPE(16, 64, 8, 32), turn_heads},
        {"Transpose [16, 64, 8, 32] to [16, 8, 32, 64]", "transpose_keys", BEL_SHAPE(16, 64, 8, 32),
         turn_keys},
        {"Sum of [64, 32, 128] over 32", "sum_middle", BEL_SHAPE(64, 32, 128), sum_middle},
        {"Max of [64, 32, 128] over 32", "max_middle", BEL_SHAPE(64, 32, 128), max_middle},
        {"Mean of [32, 16, 14, 14] but for 16", "mean_channels", BEL_SHAPE(32, 16, 14, 14),
         mean_channels},
        {"CumSum of [256, 1024] along 1024", "cumsum_1024", BEL_SHAPE(256, 1024), sum_running},
        {"CumSum of [64, 32, 128] along 32", "cumsum_32", BEL_SHAPE(64, 32, 128), sum_running},
        {"Sin", "sin", BEL_SHAPE(256, 1024), sine},
        {"Pow to a number", "pow", BEL_SHAPE(256, 1024), root},
    };
    int rounds = argc > 1 ? atoi(argv[1]) : 31;
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int code = bench_end(measure(&rows[i], rounds));
        if (code != 0) return code;
    }
    return 0;
}
