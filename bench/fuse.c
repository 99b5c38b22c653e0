// Programs with many element-wise operations, without fusing and with: a chain as in an optimizer,
// layers with GELU of single operations, and normalized rows.
// usage: bench_fuse [ROUNDS]
#include <stdio.h>
#include <stdlib.h>

#include "belfry/ops.h"
#include "passes.h"
#include "passes/passes.h"

static bel_value *number(bel_graph *graph, double value)
{
    return bel_scalar(graph, BEL_DTYPE_F32, value);
}

// p - rate · m' / (sqrt(v') + epsilon), with m' and v' moving averages of g and g².
static bench_graph adam_like(void)
{
    bel_graph *g = bel_graph_create();
    bel_shape shape = BEL_SHAPE(1 << 20);
    bel_value *p = bel_input_value(g, "p", BEL_DTYPE_F32, &shape);
    bel_value *gradient = bel_input_value(g, "g", BEL_DTYPE_F32, &shape);
    bel_value *m = bel_input_value(g, "m", BEL_DTYPE_F32, &shape);
    bel_value *v = bel_abs(g, bel_input_value(g, "v", BEL_DTYPE_F32, &shape));
    m = bel_add(g, bel_mul(g, m, number(g, 0.9)), bel_mul(g, gradient, number(g, 0.1)));
    bel_value *square = bel_mul(g, gradient, gradient);
    v = bel_add(g, bel_mul(g, v, number(g, 0.999)), bel_mul(g, square, number(g, 0.001)));
    bel_value *step = bel_div(g, m, bel_add(g, bel_sqrt(g, v), number(g, 1e-8)));
    bel_value *result = bel_sub(g, p, bel_mul(g, step, number(g, 0.01)));
    return (bench_graph){.name = "adam on 1 M elements", .graph = g, .output = result, .runs = 5};
}

static bench_graph gelu_layers(const char *name, int64_t batch, int64_t width, int runs)
{
    bel_graph *g = bel_graph_create();
    bel_shape shape = BEL_SHAPE(batch, width);
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &shape);
    for (int i = 0; i < 3; i++) {
        char layer[32];
        snprintf(layer, sizeof layer, "layer%d", i);
        x = bel_dense(g, x, width, layer);
        bel_value *erf = bel_erf(g, bel_mul(g, x, number(g, 0.7071067811865476)));
        bel_value *half = bel_mul(g, x, number(g, 0.5));
        x = bel_mul(g, half, bel_add(g, erf, number(g, 1)));
    }
    return (bench_graph){.name = name, .graph = g, .output = x, .runs = runs};
}

// (x - mean) / deviation · scale + bias by column, and Relu.
static bench_graph normalized_rows(const char *name, int64_t batch, int64_t width, int runs)
{
    bel_graph *g = bel_graph_create();
    bel_shape shape = BEL_SHAPE(batch, width), row = BEL_SHAPE(width);
    bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &shape), *rows[4];
    for (int i = 0; i < 4; i++) {
        char variable[16];
        snprintf(variable, sizeof variable, "row%d", i);
        rows[i] = bel_variable(g, variable, &row, zeros, BEL_VARIABLE_TRAINABLE);
    }
    bel_value *deviation = bel_sqrt(g, bel_add(g, bel_abs(g, rows[1]), number(g, 1e-5)));
    x = bel_div(g, bel_sub(g, x, rows[0]), deviation);
    x = bel_relu(g, bel_add(g, bel_mul(g, x, rows[2]), rows[3]));
    return (bench_graph){.name = name, .graph = g, .output = x, .runs = runs};
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 31;
    const bench_graph graphs[] = {
        adam_like(),
        gelu_layers("3 layers of 512 with GELU by hand, batch 256", 256, 512, 3),
        gelu_layers("the same of 64, batch 64", 64, 64, 200),
        normalized_rows("normalized rows 1024 x 1024", 1024, 1024, 10),
        normalized_rows("the same 64 x 512", 64, 512, 500),
    };
    static const char *const figures[] = {"fuse.adam", "fuse.gelu.512", "fuse.gelu.64",
                                          "fuse.rows.1024", "fuse.rows.64"};
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
        bench_passes(&graphs[i], 1u << BEL_PASS_FUSE, "fuse", figures[i], rounds);
    return 0;
}
