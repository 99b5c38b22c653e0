// Reverse-mode differentiation as a rewriting of the graph: gradient rules add ordinary operations.
// Contributions to one value are added in the reverse order of the operations that made them, so
// the gradient's bits are fixed by the graph.
//
// If activations are kept as bf16, every rule gets values that are cast back from them. Each rule
// gets separate casts, which passes keep only if they are read; values that a rule does not read,
// or uses only for their shape, are left out of programs.
#include "autodiff/autodiff.h"

#include <string.h>

#include "autodiff/rules.h"
#include "base/alloc.h"
#include "belfry/ops.h"

typedef struct autodiff {
    bel_graph *graph;
    size_t node_count;   // in the graph before differentiation
    bool *depends;       // by value id: depends on a wanted value
    bel_value **grads;   // by value id: the gradient so far
    bel_dtype kept;      // type of activations between the passes
    bool *computed;      // by value id: depends on an input
    bel_value **rounded; // by value id: rounded to `kept`, or NULL
} autodiff;

// --- Activations ---------------------------------------------------------------------------------

// A value that depends on no input, such as a weight or a function of weights only, is no
// activation.
static void mark_computed(autodiff *ad)
{
    for (size_t n = 0; n < ad->node_count; n++) {
        const bel_node *node = ad->graph->nodes[n];
        bool any = node->op == BEL_OP_INPUT;
        for (int i = 0; i < node->input_count; i++)
            any = any || ad->computed[node->inputs[i]->id];
        for (int i = 0; i < node->output_count; i++)
            ad->computed[node->outputs[i]->id] = any;
    }
}

static bool is_activation(const autodiff *ad, const bel_value *value)
{
    int flags = bel_op_get(value->node->op)->flags;
    bool exact = (flags & BEL_OP_EXACT) != 0 && value->output > 0;
    return ad->computed[value->id] && (flags & BEL_OP_LEAF) == 0 && !exact &&
           value->spec.dtype == BEL_DTYPE_F32 && value->spec.shape.rank > 0;
}

// Returns a value as a gradient rule reads it. Aliases of one value share its rounded copy.
static bel_value *autodiff_keep(autodiff *ad, bel_value *value)
{
    if (ad->kept == BEL_DTYPE_F32 || !is_activation(ad, value)) return value;
    bel_node *node = value->node;
    if ((bel_op_get(node->op)->flags & BEL_OP_ALIAS) != 0) {
        bel_value *inputs[BEL_OP_MAX_INPUTS];
        memcpy(inputs, node->inputs, sizeof inputs);
        inputs[0] = autodiff_keep(ad, inputs[0]);
        if (inputs[0] == node->inputs[0]) return value;
        return bel_graph_add(ad->graph, node->op, &node->attrs, inputs, node->input_count);
    }
    bel_value **rounded = &ad->rounded[value->id];
    if (*rounded == NULL) *rounded = bel_cast(ad->graph, value, ad->kept);
    return bel_cast(ad->graph, *rounded, BEL_DTYPE_F32);
}

// --- Gradients -----------------------------------------------------------------------------------

// Marks every value that depends on one of the wanted values.
static void mark_dependents(autodiff *ad, bel_value *const *values, int count)
{
    for (int i = 0; i < count; i++)
        if (values[i] != NULL) ad->depends[values[i]->id] = true;
    for (size_t n = 0; n < ad->node_count; n++) {
        const bel_node *node = ad->graph->nodes[n];
        bool any = false;
        for (int i = 0; i < node->input_count; i++)
            any = any || ad->depends[node->inputs[i]->id];
        for (int i = 0; any && i < node->output_count; i++)
            ad->depends[node->outputs[i]->id] = true;
    }
}

static void add_grad(autodiff *ad, const bel_value *value, bel_value *grad)
{
    bel_value **slot = &ad->grads[value->id];
    *slot = *slot == NULL ? grad : bel_add(ad->graph, *slot, grad);
}

// Calls a node's rule if the loss depends on it and it depends on a wanted value. A rule rounds
// each value at most once, even if a node reads it twice.
static void differentiate(autodiff *ad, const bel_node *node)
{
    const bel_op_def *def = bel_op_get(node->op);
    bel_gradient_fn *rule = bel_gradient_rule(node->op);
    bel_gradient g = {.graph = ad->graph, .attrs = &node->attrs, .input_count = node->input_count};
    bool reached = false, wanted = false;
    for (int i = 0; i < node->output_count; i++) {
        g.output_grads[i] = ad->grads[node->outputs[i]->id];
        reached = reached || g.output_grads[i] != NULL;
    }
    for (int i = 0; i < node->input_count; i++) {
        g.needed[i] = ad->depends[node->inputs[i]->id];
        wanted = wanted || g.needed[i];
    }
    if (!reached || !wanted) return;
    if (rule == NULL) {
        bel_graph_fail(ad->graph, BEL_UNIMPLEMENTED,
                       "%s: operation %s has no gradient, but the loss depends on variables "
                       "through it",
                       node->name, def->name);
        return;
    }
    bool exact = (def->flags & BEL_OP_EXACT_INPUTS) != 0;
    for (int i = 0; i < node->output_count; i++)
        g.outputs[i] = exact ? node->outputs[i] : autodiff_keep(ad, node->outputs[i]);
    for (int i = 0; i < node->input_count; i++) {
        bool again = i > 0 && node->inputs[i] == node->inputs[i - 1];
        g.inputs[i] = exact   ? node->inputs[i]
                      : again ? g.inputs[i - 1]
                              : autodiff_keep(ad, node->inputs[i]);
    }
    rule(&g);
    for (int i = 0; i < node->input_count; i++)
        if (g.needed[i] && g.input_grads[i] != NULL)
            add_grad(ad, node->inputs[i], g.input_grads[i]);
}

static bool loss_ok(bel_graph *graph, const bel_value *loss)
{
    if (graph->error_code != BEL_OK) return false;
    bool is_float =
        loss != NULL && (loss->spec.dtype == BEL_DTYPE_F32 || loss->spec.dtype == BEL_DTYPE_F64);
    if (is_float && loss->spec.shape.rank == 0) return true;
    char text[BEL_SHAPE_TEXT] = "nothing";
    if (loss != NULL) bel_shape_text(&loss->spec.shape, text);
    bel_graph_fail(graph, BEL_INVALID_ARGUMENT, "the loss must be a scalar of floats, got %s",
                   text);
    return false;
}

void bel_gradients(bel_graph *graph, bel_value *loss, bel_value *const *values, int count,
                   bel_value **out_gradients)
{
    bel_gradients_keeping(graph, BEL_DTYPE_F32, loss, values, count, out_gradients);
}

void bel_gradients_keeping(bel_graph *graph, bel_dtype kept, bel_value *loss,
                           bel_value *const *values, int count, bel_value **out_gradients)
{
    memset(out_gradients, 0, (size_t)count * sizeof *out_gradients);
    if (!loss_ok(graph, loss)) return;
    size_t value_count = graph->value_count;
    autodiff ad = {.graph = graph,
                   .node_count = graph->node_count,
                   .depends = bel_xcalloc(value_count, sizeof(bool)),
                   .grads = bel_xcalloc(value_count, sizeof(bel_value *)),
                   .kept = kept,
                   .computed = bel_xcalloc(value_count, sizeof(bool)),
                   .rounded = bel_xcalloc(value_count, sizeof(bel_value *))};
    mark_dependents(&ad, values, count);
    mark_computed(&ad);
    bel_graph_push_scope(graph, "gradients");
    ad.grads[loss->id] = bel_scalar(graph, loss->spec.dtype, 1.0);
    for (size_t n = ad.node_count; n-- > 0 && graph->error_code == BEL_OK;)
        differentiate(&ad, graph->nodes[n]);
    bel_graph_pop_scope(graph);
    for (int i = 0; i < count && graph->error_code == BEL_OK; i++)
        if (values[i] != NULL) out_gradients[i] = ad.grads[values[i]->id];
    bel_free(ad.depends);
    bel_free(ad.grads);
    bel_free(ad.computed);
    bel_free(ad.rounded);
}
