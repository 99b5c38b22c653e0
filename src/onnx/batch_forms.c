// Forms of a closed graph's value for any batch (batch_inner.h), and conversions between them.
// Rules ask for the form that they need, so each rule is written once. A conversion must not copy:
// it is a Reshape, which is an alias. The only exception is a value that depends on no example,
// which is repeated for each. If Reshape cannot express a conversion, the result is NULL, and the
// rule refuses its node.
#include "belfry/ops.h"
#include "onnx/batch_inner.h"

bool bel_batch_depends(const bel_batch_walk *walk, const bel_value *closed)
{
    return walk->places[closed->id].form != BEL_BATCH_NONE;
}

bel_shape bel_batch_shape(const bel_batch_walk *walk, const bel_shape *closed, bel_batch_form form)
{
    bel_shape shape = *closed;
    if (form == BEL_BATCH_NONE) return shape;
    int64_t open = walk->like->spec.shape.dims[0];
    if (form == BEL_BATCH_APART) {
        for (int32_t d = shape.rank++; d > 0; d--)
            shape.dims[d] = closed->dims[d - 1];
    }
    shape.dims[0] = open;
    return shape;
}

// Reshape copies open dimensions that keep their place, and computes one more.
bel_value *bel_batch_reshape(const bel_batch_walk *walk, bel_value *x, const bel_shape *to)
{
    bel_shape from = bel_value_shape(x), attr = *to;
    int computed = 0;
    for (int32_t d = 0; d < to->rank; d++) {
        bool open = to->dims[d] < 0, kept = open && d < from.rank && from.dims[d] == to->dims[d];
        if (to->dims[d] == 0) return NULL; // Reshape would copy it
        if (open) attr.dims[d] = kept ? 0 : -1;
        computed += open && !kept;
    }
    return x == NULL || computed > 1 ? NULL : bel_reshape(walk->graph, x, &attr);
}

// Repeats a value that depends on no example, and has dimension 0 of size 1, over the batch.
static bel_value *repeated(const bel_batch_walk *walk, bel_value *x)
{
    bel_shape shape = bel_value_shape(x);
    bel_attr_list attrs = {.count = 1, .items = {{.name = "shape", .ints = shape}}};
    for (int32_t d = 1; d < shape.rank; d++)
        attrs.items[0].ints.dims[d] = 1; // unchanged
    attrs.items[0].ints.dims[0] = -1;    // dimension 0 of the second input
    bel_value *inputs[] = {x, walk->like};
    return bel_graph_add(walk->graph, BEL_OP_EXPAND, &attrs, inputs, 2);
}

bel_value *bel_batch_flat(const bel_batch_walk *walk, const bel_value *closed)
{
    const bel_shape *shape = &closed->spec.shape;
    bel_batch_place place = walk->places[closed->id];
    const int64_t second = 1;
    if (place.form == BEL_BATCH_FLAT) return place.value;
    if (walk->batch != 1 || shape->rank < 1 || shape->dims[0] != 1) return NULL;
    if (place.form == BEL_BATCH_NONE) return repeated(walk, place.value);
    return place.form == BEL_BATCH_APART ? bel_squeeze(walk->graph, place.value, &second, 1) : NULL;
}

bel_value *bel_batch_apart(const bel_batch_walk *walk, const bel_value *closed)
{
    bel_batch_place place = walk->places[closed->id];
    const int64_t first = 0, second = 1;
    if (place.form == BEL_BATCH_APART) return place.value;
    if (walk->batch != 1 || closed->spec.shape.rank >= BEL_MAX_RANK) return NULL;
    if (place.form == BEL_BATCH_NONE)
        return repeated(walk, bel_unsqueeze(walk->graph, place.value, &first, 1));
    return place.form == BEL_BATCH_FLAT ? bel_unsqueeze(walk->graph, place.value, &second, 1)
                                        : NULL;
}

bool bel_batch_emit(bel_batch_walk *walk, const bel_node *node, const bel_attr_list *attrs,
                    bel_value *const *inputs, bel_batch_form form)
{
    for (int i = 0; i < node->input_count; i++)
        if (inputs[i] == NULL) return false;
    const bel_node *made =
        bel_graph_add_node(walk->graph, NULL, node->op, attrs, inputs, node->input_count);
    for (int o = 0; o < node->output_count; o++) {
        bel_value *value = made == NULL ? NULL : made->outputs[o];
        walk->places[node->outputs[o]->id] = (bel_batch_place){.value = value, .form = form};
    }
    return true;
}
