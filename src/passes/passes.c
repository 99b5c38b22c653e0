// Order of the passes: one walk simplifies, folds, shares and hoists over Concat (rewrite.c), and a
// second one fuses the rest. Fusing comes last because a group hides its steps from every other
// rule. Nodes that no output needs never reach the new graph. A cast to a 16-bit float moves right
// after the node that it reads, so that the wide value need not live on. The graph before fusing is
// kept with the fused one, whose constants are views of it.
#include "passes/passes.h"

#include "base/alloc.h"
#include "passes/rewrite.h"

const char *bel_pass_name(bel_pass pass)
{
    static const char *const names[BEL_PASS_COUNT] = {
#define ROW(id, name) #name,
        BEL_PASSES(ROW)
#undef ROW
    };
    return names[pass];
}

// Counts the nodes and outputs that read each value.
static void count_uses(const bel_graph *graph, const bool *needed, bel_value *const *outputs,
                       int output_count, int *out_uses)
{
    for (int i = 0; i < output_count; i++)
        out_uses[outputs[i]->id]++;
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        for (int i = 0; needed[n] && i < node->input_count; i++)
            out_uses[node->inputs[i]->id]++;
    }
}

// `values` by id in the old graph.
static void rewrite_node(bel_rewriter *r, const bel_node *node, bel_value **values)
{
    if (node->op == BEL_OP_CONSTANT) {
        values[node->outputs[0]->id] = bel_rewrite_constant(r, node->name, &node->constant, false);
        return;
    }
    if ((bel_op_get(node->op)->flags & BEL_OP_LEAF) != 0) return; // copied before
    bel_node wanted = *node;
    bel_value *made[BEL_OP_MAX_OUTPUTS];
    for (int i = 0; i < node->input_count; i++)
        wanted.inputs[i] = values[node->inputs[i]->id];
    bel_rewrite(r, &wanted, made);
    for (int i = 0; i < node->output_count; i++)
        values[node->outputs[i]->id] = made[i];
}

// Casts to 16-bit floats, which move right after the node that they read so that the larger value
// need not be kept. Lists by the value that they read: the first cast, and for each cast the next,
// as index plus one.
typedef struct narrowing {
    int *first, *next;
} narrowing;

static bool narrows(const bel_node *node)
{
    if (node->op != BEL_OP_CAST) return false;
    bel_dtype to = node->outputs[0]->spec.dtype;
    bool leaf = (bel_op_get(node->inputs[0]->node->op)->flags & BEL_OP_LEAF) != 0;
    return (to == BEL_DTYPE_F16 || to == BEL_DTYPE_BF16) && !leaf;
}

// Goes backwards, so that each list is in the order of the nodes.
static narrowing find_narrowing(const bel_graph *graph, const bool *needed)
{
    narrowing found = {.first = bel_xcalloc(graph->value_count, sizeof(int)),
                       .next = bel_xcalloc(graph->node_count, sizeof(int))};
    for (size_t n = graph->node_count; n-- > 0;) {
        if (!needed[n] || !narrows(graph->nodes[n])) continue;
        int *first = &found.first[graph->nodes[n]->inputs[0]->id];
        found.next[n] = *first;
        *first = (int)n + 1;
    }
    return found;
}

// Rewrites a node and the casts that move after it. Uses are those of the old graph, added up if
// several values became one: some rules change an operation only if it has a single reader.
static void rewrite_with_casts(bel_rewriter *r, const bel_node *node, const narrowing *casts,
                               const int *uses, bel_value **values)
{
    rewrite_node(r, node, values);
    for (int i = 0; i < node->output_count; i++) {
        r->uses[values[node->outputs[i]->id]->id] += uses[node->outputs[i]->id];
        for (int n = casts->first[node->outputs[i]->id]; n > 0; n = casts->next[n - 1])
            rewrite_with_casts(r, node->outputs[i]->graph->nodes[n - 1], casts, uses, values);
    }
}

// Builds the new graph, node by node. The caller owns it; values point into it.
static bel_graph *walk(const bel_graph *graph, const bel_shape *input_shapes,
                       bel_value *const *outputs, int output_count, bel_rewriter *r,
                       bel_value **values)
{
    bool *needed = bel_xcalloc(graph->node_count, sizeof *needed);
    int *uses = bel_xcalloc(graph->value_count, sizeof *uses);
    bel_graph_mark(graph, outputs, output_count, needed);
    count_uses(graph, needed, outputs, output_count, uses);
    r->to = bel_graph_create();
    bel_copy_leaves(graph, input_shapes, r->to, values);
    bel_rewriter_keep_up(r);
    narrowing casts = find_narrowing(graph, needed);
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        if (needed[n] && !narrows(node)) rewrite_with_casts(r, node, &casts, uses, values);
    }
    bel_free(casts.first);
    bel_free(casts.next);
    bel_free(uses);
    bel_free(needed);
    return r->to;
}

// Replaces the graph by the fused one.
static void fuse(const bel_graph *graph, bel_value *const *outputs, int output_count,
                 bel_rewritten *rewritten)
{
    bel_graph *first = rewritten->graph;
    bel_value **wanted = bel_xcalloc((size_t)output_count + 1, sizeof *wanted);
    bel_value **values = bel_xcalloc(first->value_count, sizeof *values);
    for (int i = 0; i < output_count; i++)
        wanted[i] = rewritten->values[outputs[i]->id];
    rewritten->graph =
        bel_fuse(first, wanted, output_count, &rewritten->counts[BEL_PASS_FUSE], values);
    for (size_t v = 0; v < graph->value_count; v++) {
        const bel_value *value = rewritten->values[v];
        rewritten->values[v] = value == NULL ? NULL : values[value->id];
    }
    rewritten->first = first;
    bel_free(values);
    bel_free(wanted);
}

bel_status *bel_passes_run(const bel_graph *graph, const bel_shape *input_shapes,
                           bel_value *const *outputs, int output_count, unsigned off,
                           bool reference, bel_rewritten *out)
{
    bel_spec *specs = bel_xcalloc(graph->value_count, sizeof *specs);
    bel_status *status = bel_graph_verify(graph);
    if (status == NULL) status = bel_graph_infer(graph, input_shapes, specs);
    bel_free(specs);
    if (status != NULL) return status;
    *out = (bel_rewritten){.values = bel_xcalloc(graph->value_count, sizeof *out->values)};
    bel_rewriter r = {.off = off, .reference = reference, .counts = out->counts};
    out->graph = walk(graph, input_shapes, outputs, output_count, &r, out->values);
    bel_rewriter_deinit(&r);
    if (bel_pass_is_on(off, BEL_PASS_FUSE) && !reference) fuse(graph, outputs, output_count, out);
    return NULL;
}

void bel_rewritten_deinit(bel_rewritten *rewritten)
{
    bel_graph_destroy(rewritten->graph);
    bel_graph_destroy(rewritten->first);
    bel_free(rewritten->values);
    *rewritten = (bel_rewritten){.graph = NULL};
}

void bel_passes_find_fixed(const bel_graph *graph, const bool *fresh, bool *out_fixed)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        bool random = (bel_op_get(node->op)->flags & BEL_OP_RANDOM) != 0;
        out_fixed[n] = node->op != BEL_OP_INPUT && !random && !fresh[n];
        for (int i = 0; i < node->input_count; i++)
            out_fixed[n] = out_fixed[n] && out_fixed[node->inputs[i]->node->index];
    }
}
