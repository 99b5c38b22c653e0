// Converts a graph of one closed batch, node by node, to one for any batch.
//
// A file whose input is [1, 3, 8, 8] describes the model for one example. This walk copies its
// graph with an open dimension 0, and tracks the form of each value (batch_inner.h). A node that
// keeps examples separate in their present form is copied unchanged. Other nodes would mix them: a
// sum over all dimensions, a Transpose, a Reshape to [3, 64]. For these, examples are first stacked
// on a new dimension 0, if the closed batch is one example, whose size 1 then multiplies nothing.
// Nothing is guessed: an operation without a rule (batch_rules.c) is refused, and with it every
// output that needs it.
#include "onnx/batch.h"

#include "base/alloc.h"
#include "belfry/ops.h"
#include "onnx/batch_inner.h"

// --- Nodes ---------------------------------------------------------------------------------------

static void copy_leaf(bel_batch_walk *walk, const bel_graph *closed, const bel_node *node,
                      bel_value *const *values)
{
    bel_batch_place *place = &walk->places[node->outputs[0]->id];
    const bel_spec *spec = &node->outputs[0]->spec;
    if (node->op == BEL_OP_CONSTANT) {
        place->value = bel_graph_add_view(walk->graph, NULL, &node->constant);
    } else if (node->op == BEL_OP_VARIABLE) {
        const bel_graph_variable *variable = &closed->variables[node->leaf];
        size_t before = walk->graph->variable_count;
        place->value = bel_variable(walk->graph, variable->name, &spec->shape,
                                    variable->initializer, variable->kind);
        if (walk->graph->variable_count > before)
            walk->graph->variables[before].elements = variable->elements;
    } else {
        place->value = values[node->leaf];
        bool open = !bel_shape_equal(&place->value->spec.shape, &spec->shape);
        place->form = open ? BEL_BATCH_FLAT : BEL_BATCH_NONE;
    }
}

static void copy_node(bel_batch_walk *walk, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    const bel_node *refused = NULL;
    bool depends = false;
    for (int i = 0; i < node->input_count; i++) {
        const bel_batch_place *place = &walk->places[node->inputs[i]->id];
        inputs[i] = place->value;
        depends = depends || place->form != BEL_BATCH_NONE;
        if (place->form == BEL_BATCH_LOST && refused == NULL) refused = place->refused;
    }
    if (refused == NULL && !depends) {
        (void)bel_batch_emit(walk, node, &node->attrs, inputs, BEL_BATCH_NONE); // all inputs exist
        return;
    }
    if (refused == NULL && bel_batch_rule(walk, node)) return;
    for (int o = 0; o < node->output_count; o++)
        walk->places[node->outputs[o]->id] =
            (bel_batch_place){.form = BEL_BATCH_LOST, .refused = refused != NULL ? refused : node};
}

static bel_value *find_open(const bel_graph *closed, bel_value *const *values)
{
    for (size_t i = 0; i < closed->input_count; i++) {
        const bel_shape *shape = &closed->inputs[i].value->spec.shape;
        if (!bel_shape_equal(&values[i]->spec.shape, shape)) return values[i];
    }
    return NULL;
}

void bel_onnx_open_batch(const bel_graph *closed, bel_value *const *values, int64_t batch,
                         bel_graph *graph, bel_value *const *outputs, int count,
                         bel_value **out_outputs, const bel_node **out_refused)
{
    bel_batch_walk walk = {.graph = graph,
                           .batch = batch,
                           .like = find_open(closed, values),
                           .places = bel_xcalloc(closed->value_count + 1, sizeof *walk.places)};
    *out_refused = NULL;
    for (size_t n = 0; n < closed->node_count && graph->error_code == BEL_OK; n++) {
        const bel_node *node = closed->nodes[n];
        bool leaf = (bel_op_get(node->op)->flags & BEL_OP_LEAF) != 0;
        if (leaf) copy_leaf(&walk, closed, node, values);
        if (!leaf) copy_node(&walk, node);
    }
    for (int o = 0; o < count && graph->error_code == BEL_OK; o++) {
        bel_batch_place place = walk.places[outputs[o]->id];
        bel_value *flat = place.form == BEL_BATCH_APART ? bel_batch_flat(&walk, outputs[o]) : NULL;
        if (place.form == BEL_BATCH_LOST && *out_refused == NULL) *out_refused = place.refused;
        out_outputs[o] = flat != NULL ? flat : place.value;
    }
    bel_free(walk.places);
}
