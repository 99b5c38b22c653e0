// Optimizations on request, for models that are only run. A normalization with known statistics is
// merged into the preceding convolution: its scale into the weights and the rest into the bias.
// This rounds differently from the two operations, by about a unit in the last place. Transposed
// weights, which exporters like to write, are transposed back, so that kernels read them
// sequentially.
#include <math.h>

#include "base/alloc.h"
#include "onnx/build.h"

// Returns the elements of a constant in f32 with `count` elements, or NULL.
static const float *floats_of(const bel_value *value, int64_t count)
{
    const bel_tensor *tensor = &value->node->constant;
    bool fits = value->node->op == BEL_OP_CONSTANT && tensor->dtype == BEL_DTYPE_F32 &&
                bel_shape_elements(&tensor->shape) == count;
    return fits ? tensor->data : NULL;
}

// Merges scale, offset, mean and variance (`by`) of each of the `channels` channels into weights
// and bias of the convolution `node`.
static bel_value *convolution(bel_graph *graph, const bel_node *node, const float *const by[4],
                              double epsilon, int64_t channels)
{
    const bel_tensor *from = &node->inputs[1]->node->constant;
    const float *w = from->data, *bias = NULL;
    if (node->input_count > 2) bias = floats_of(node->inputs[2], channels);
    int64_t taps = bel_shape_elements(&from->shape) / channels;
    float *weights = bel_xmalloc(bel_tensor_bytes(from));
    float *offsets = bel_xmalloc((size_t)channels * sizeof *offsets);
    for (int64_t c = 0; c < channels; c++) {
        double factor = (double)by[0][c] / sqrt((double)by[3][c] + epsilon);
        double before = bias != NULL ? (double)bias[c] : 0;
        for (int64_t t = 0; t < taps; t++)
            weights[c * taps + t] = (float)((double)w[c * taps + t] * factor);
        offsets[c] = (float)((before - (double)by[2][c]) * factor + (double)by[1][c]);
    }
    const bel_tensor tensors[] = {{BEL_DTYPE_F32, from->shape, weights},
                                  {BEL_DTYPE_F32, BEL_SHAPE(channels), offsets}};
    bel_value *inputs[3] = {node->inputs[0]};
    for (int i = 0; i < 2; i++)
        inputs[1 + i] = bel_constant(graph, &tensors[i]);
    bel_free(weights);
    bel_free(offsets);
    return bel_graph_add(graph, BEL_OP_CONV, &node->attrs, inputs, 3);
}

bel_value *bel_onnx_merge_norm(bel_onnx_call *call)
{
    bel_value *inputs[5];
    if (!bel_onnx_may_merge(call, 0)) return NULL;
    bel_onnx_ins(call, 5, inputs);
    for (int i = 0; i < 5; i++)
        if (inputs[i] == NULL) return NULL; // the graph has failed
    const bel_node *node = inputs[0]->node;
    if (node->op != BEL_OP_CONV) return NULL;
    int64_t channels = node->inputs[1]->spec.shape.dims[0];
    int64_t elements = bel_shape_elements(&node->inputs[1]->spec.shape);
    const float *by[4];
    if (floats_of(node->inputs[1], elements) == NULL) return NULL;
    if (node->input_count > 2 && floats_of(node->inputs[2], channels) == NULL) return NULL;
    for (int i = 0; i < 4; i++) {
        by[i] = floats_of(inputs[1 + i], channels);
        if (by[i] == NULL) return NULL;
    }
    return convolution(call->graph, node, by, bel_onnx_number(call, "epsilon"), channels);
}

bel_value *bel_onnx_turned(bel_onnx_call *call, int input)
{
    const bel_value *value = bel_onnx_in(call, input);
    if (!bel_onnx_merges(call) || value == NULL || value->spec.shape.rank != 2) return NULL;
    const bel_shape *shape = &value->spec.shape;
    int64_t elements = bel_shape_elements(shape), rows = shape->dims[0], columns = shape->dims[1];
    const float *from = floats_of(value, elements);
    if (from == NULL || elements <= 0) return NULL;
    float *to = bel_xmalloc((size_t)elements * sizeof *to);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            to[c * rows + r] = from[r * columns + c];
    bel_value *turned =
        bel_constant(call->graph, &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(columns, rows), to});
    bel_free(to);
    return turned;
}
