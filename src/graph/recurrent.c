// Layers of GRU and LSTM. ONNX's operations have a dimension for the direction in weights and
// results. Variables omit it and are reshaped, so that a checkpoint has plain matrices [gates ·
// units, in]. Glorot's fans are those of this entire matrix, all gates together. The reset gate of
// GRU is after the recurrent product (linear_before_reset = 1), as in PyTorch and cuDNN: the same
// weights with 0 would be another function.
#include "belfry/ops.h"
#include "graph/graph.h"

// Makes a variable [rows, columns] or, without columns, [rows], with a dimension of 1 for the
// direction.
static bel_value *weights(bel_graph *graph, const char *name, int64_t rows, int64_t columns)
{
    bel_shape flat = columns > 0 ? BEL_SHAPE(rows, columns) : BEL_SHAPE(rows);
    bel_shape shape = columns > 0 ? BEL_SHAPE(1, rows, columns) : BEL_SHAPE(1, rows);
    bel_init_kind kind = columns > 0 ? BEL_INIT_GLOROT_UNIFORM : BEL_INIT_ZEROS;
    bel_value *variable =
        bel_variable(graph, name, &flat, (bel_initializer){.kind = kind}, BEL_VARIABLE_TRAINABLE);
    return bel_reshape(graph, variable, &shape);
}

static bel_value *recurrent_layer(bel_graph *graph, bel_op op, int64_t gates, bel_value *x,
                                  bel_value *lengths, int64_t units, const char *name,
                                  bel_value **out_last)
{
    bel_shape shape = bel_value_shape(x);
    if (out_last != NULL) *out_last = NULL;
    if (x == NULL) return NULL;
    if (shape.rank != 3 || shape.dims[2] < 1 || units < 1) {
        char text[BEL_SHAPE_TEXT];
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "recurrent layer \"%s\" needs an input [n, t, in] and at least one unit, "
                       "got %s and %lld units",
                       name, bel_shape_text(&shape, text), (long long)units);
        return NULL;
    }
    bel_attr_list attrs = {.count = 2,
                           .items = {{.name = "hidden_size", .number = (double)units},
                                     {.name = "layout", .number = 1}}};
    if (op == BEL_OP_GRU) {
        attrs.items[attrs.count++] = (bel_attr){.name = "linear_before_reset", .number = 1};
    }
    bel_graph_push_scope(graph, name);
    bel_value *kernel = weights(graph, "kernel", gates * units, shape.dims[2]);
    bel_value *recurrent_kernel = weights(graph, "recurrent_kernel", gates * units, units);
    bel_value *bias = weights(graph, "bias", 2 * gates * units, 0);
    bel_value *inputs[] = {x, kernel, recurrent_kernel, bias, lengths};
    bel_value *y = bel_graph_add(graph, op, &attrs, inputs, lengths == NULL ? 4 : 5);
    bel_shape sequence = BEL_SHAPE(0, 0, units), state = BEL_SHAPE(0, units);
    if (y != NULL && out_last != NULL) {
        *out_last = bel_reshape(graph, bel_graph_output(y, 1), &state);
    }
    y = bel_reshape(graph, y, &sequence);
    bel_graph_pop_scope(graph);
    return y;
}

bel_value *bel_gru(bel_graph *graph, bel_value *x, bel_value *lengths, int64_t units,
                   const char *name, bel_value **out_last)
{
    return recurrent_layer(graph, BEL_OP_GRU, 3, x, lengths, units, name, out_last);
}

bel_value *bel_lstm(bel_graph *graph, bel_value *x, bel_value *lengths, int64_t units,
                    const char *name, bel_value **out_last)
{
    return recurrent_layer(graph, BEL_OP_LSTM, 4, x, lengths, units, name, out_last);
}
