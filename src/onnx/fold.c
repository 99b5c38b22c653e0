// Computes a graph without inputs node by node with the plain kernels. Speed does not matter for
// shapes and axes, and those kernels support every type. It computes everything or nothing: a
// random node, or a too large value, leaves the node to the program. Limits keep a small file from
// requesting hours of work; a graph with a product has the lower limit throughout. Memory is
// allocated as pages, so a lack of it is an error.
#include "onnx/fold.h"

#include "base/alloc.h"
#include "onnx/build.h"
#include "passes/compute.h"

enum { HEAVY_ELEMENTS = 1 << 12 };

static bool is_worth_it(const bel_graph *graph)
{
    int64_t limit = BEL_ONNX_CONSTANT_ELEMENTS;
    for (size_t i = 0; i < graph->node_count; i++) {
        bel_op op = graph->nodes[i]->op;
        if ((bel_op_get(op)->flags & BEL_OP_RANDOM) != 0) return false;
        if (bel_compute_is_heavy(op)) limit = HEAVY_ELEMENTS;
    }
    int64_t sum = 0; // everything in memory at once
    for (size_t i = 0; i < graph->value_count; i++) {
        const bel_value *value = graph->values[i];
        int64_t elements = bel_shape_elements(&value->spec.shape);
        bool kept = (bel_op_get(value->node->op)->flags & (BEL_OP_LEAF | BEL_OP_ALIAS)) == 0;
        if (elements < 0 || elements > limit - (kept ? sum : 0)) return false;
        if (kept) sum += elements;
    }
    return true;
}

static bel_status *compute_node(const bel_node *node, bel_tensor *tensors, void **memory)
{
    int flags = bel_op_get(node->op)->flags;
    bel_tensor inputs[BEL_OP_MAX_INPUTS], outputs[BEL_OP_MAX_OUTPUTS];
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = tensors[node->inputs[i]->id];
    for (int i = 0; i < node->output_count; i++) {
        const bel_value *value = node->outputs[i];
        outputs[i] = (bel_tensor){value->spec.dtype, value->spec.shape, node->constant.data};
        if ((flags & BEL_OP_ALIAS) != 0) {
            outputs[i].data = inputs[0].data;
        } else if ((flags & BEL_OP_LEAF) == 0) {
            BEL_TRY(bel_pages_create(bel_tensor_bytes(&outputs[i]), false, "a constant",
                                     &memory[value->id]));
            outputs[i].data = memory[value->id];
        }
        tensors[value->id] = outputs[i];
    }
    if ((flags & (BEL_OP_ALIAS | BEL_OP_LEAF)) != 0) return NULL;
    return bel_compute(node, inputs, true, outputs);
}

bel_status *bel_onnx_compute(const bel_graph *graph, bel_value **values, int count, bel_graph *to,
                             bool *out_done)
{
    *out_done = is_worth_it(graph);
    if (!*out_done) return NULL;
    bel_tensor *tensors = bel_xcalloc(graph->value_count + 1, sizeof *tensors);
    void **memory = bel_xcalloc(graph->value_count + 1, sizeof *memory);
    bel_status *status = NULL;
    for (size_t n = 0; n < graph->node_count && status == NULL; n++)
        status = compute_node(graph->nodes[n], tensors, memory);
    for (int i = 0; i < count && status == NULL; i++)
        if (values[i] != NULL) values[i] = bel_constant(to, &tensors[values[i]->id]);
    for (size_t v = 0; v < graph->value_count; v++)
        bel_pages_destroy(memory[v], bel_tensor_bytes(&tensors[v]));
    bel_free(memory);
    bel_free(tensors);
    return status;
}
