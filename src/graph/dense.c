// Dense layer: a product with a kernel [in, units] and a bias [units], in a scope of the layer's
// name, which determines their initial values. It is not in builder.c, whose operations read
// variables: the files of this folder have no circular calls.
#include "belfry/ops.h"
#include "graph/graph.h"

bel_value *bel_dense(bel_graph *graph, bel_value *x, int64_t units, const char *name)
{
    bel_shape shape = bel_value_shape(x);
    if (x != NULL && (shape.rank != 2 || shape.dims[1] < 1 || units < 1)) {
        char text[BEL_SHAPE_TEXT];
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "dense layer \"%s\" needs an input [n, in] and at least one unit, got %s "
                       "and %lld units",
                       name, bel_shape_text(&shape, text), (long long)units);
    }
    if (x == NULL || graph->error_code != BEL_OK) return NULL;
    bel_shape kernel_shape = BEL_SHAPE(shape.dims[1], units), bias_shape = BEL_SHAPE(units);
    bel_graph_push_scope(graph, name);
    bel_value *kernel =
        bel_variable(graph, "kernel", &kernel_shape,
                     (bel_initializer){.kind = BEL_INIT_GLOROT_UNIFORM}, BEL_VARIABLE_TRAINABLE);
    bel_value *bias =
        bel_variable(graph, "bias", &bias_shape, (bel_initializer){.kind = BEL_INIT_ZEROS},
                     BEL_VARIABLE_TRAINABLE);
    bel_value *y = bel_gemm(graph, x, kernel, bias, 1, 1, false, false);
    bel_graph_pop_scope(graph);
    return y;
}
