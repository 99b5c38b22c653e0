// Operations that move or compare elements, on one thread: nanoseconds for each element of the
// larger side, by the fast kernel and by the plain one that is its oracle, in turns.
// usage: bench_elements [ROUNDS]
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "belfry/ops.h"
#include "mlp.h"
#include "runtime/program.h"

typedef bel_value *build_fn(bel_graph *graph, bel_value *x);

typedef struct row {
    const char *name;
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

static bel_status *profile(const row *r, bool reference, int rounds, int64_t *out_ns,
                           bel_program **out_program)
{
    bel_graph *graph = bel_graph_create();
    bel_value *x = bel_input_value(graph, "x", BEL_DTYPE_F32, &r->shape);
    const bel_program_output output = {.value = r->build(graph, x)};
    const bel_program_options options = {.reference = reference, .no_groups = true};
    bel_program *program;
    BEL_TRY(bel_program_compile(graph, &r->shape, &output, 1, &options, &program));
    void *arena, *data;
    size_t bytes = (size_t)bel_shape_elements(&r->shape) * sizeof(float);
    BEL_TRY(bel_pages_create(bel_program_arena_bytes(program) + 64, true, "arena", &arena));
    BEL_TRY(bel_pages_create(bytes, true, "x", &data));
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        ((float *)data)[i] = (float)(i * 7919 % 2003) / 100.0f - 10.0f;
    bel_instance *instance = bel_instance_create(program, arena);
    bel_instance_bind_input(instance, 0, data);
    bel_run_context context = {.seed = 1};
    int64_t all_ns;
    BEL_TRY(bel_instance_profile(instance, &context, rounds, out_ns, &all_ns));
    bel_instance_destroy(instance);
    bel_pages_destroy(data, bytes);
    bel_pages_destroy(arena, bel_program_arena_bytes(program) + 64);
    bel_graph_destroy(graph);
    *out_program = program;
    return NULL;
}

// The last call is the operation of the row.
static bel_status *measure(const row *r, int rounds)
{
    enum { MOST = 8 };
    int64_t fast[MOST], plain[MOST];
    bel_program *programs[2];
    BEL_TRY(profile(r, false, rounds, fast, &programs[0]));
    BEL_TRY(profile(r, true, rounds, plain, &programs[1]));
    double elements = (double)bel_shape_elements(&r->shape);
    double a = (double)fast[bel_program_instruction_count(programs[0]) - 1];
    double b = (double)plain[bel_program_instruction_count(programs[1]) - 1];
    printf("%-44s %6.2f ns, plain %6.2f, ratio %.1f\n", r->name, a / elements, b / elements, b / a);
    for (int i = 0; i < 2; i++)
        bel_program_destroy(programs[i]);
    return NULL;
}

int main(int argc, char **argv)
{
    const row rows[] = {
        {"Greater of two tensors", BEL_SHAPE(256, 1024), greater_same},
        {"Greater than a number", BEL_SHAPE(256, 1024), greater_number},
        {"Add a column", BEL_SHAPE(256, 1024), add_column},
        {"Where, one side a number", BEL_SHAPE(256, 1024), choose},
        {"Cast f32 to i64", BEL_SHAPE(256, 1024), to_integers},
        {"Cast i32 to f32", BEL_SHAPE(256, 1024), from_integers},
        {"Transpose [512, 512]", BEL_SHAPE(512, 512), turn},
        {"Transpose [16, 64, 8, 32] to [16, 8, 64, 32]", BEL_SHAPE(16, 64, 8, 32), turn_heads},
        {"Transpose [16, 64, 8, 32] to [16, 8, 32, 64]", BEL_SHAPE(16, 64, 8, 32), turn_keys},
        {"Sum of [64, 32, 128] over 32", BEL_SHAPE(64, 32, 128), sum_middle},
        {"Max of [64, 32, 128] over 32", BEL_SHAPE(64, 32, 128), max_middle},
        {"Mean of [32, 16, 14, 14] but for 16", BEL_SHAPE(32, 16, 14, 14), mean_channels},
        {"CumSum of [256, 1024] along 1024", BEL_SHAPE(256, 1024), sum_running},
        {"CumSum of [64, 32, 128] along 32", BEL_SHAPE(64, 32, 128), sum_running},
        {"Sin", BEL_SHAPE(256, 1024), sine},
        {"Pow to a number", BEL_SHAPE(256, 1024), root},
    };
    int rounds = argc > 1 ? atoi(argv[1]) : 31;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int code = bench_end(measure(&rows[i], rounds));
        if (code != 0) return code;
    }
    return 0;
}
