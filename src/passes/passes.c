// Order of the passes: one walk simplifies, folds, shares and hoists over Concat (rewrite.c), and a
// second one fuses the rest. Fusing comes last because a group hides its steps from every other
// rule. Nodes that no output needs never reach the new graph. A cast to a 16-bit float moves right
// after the node that it reads, so that the wide value need not live on. The graph before fusing is
// kept with the fused one, whose constants are views of it.
#include "passes/passes.h"

#include "base/alloc.h"
#include "passes/chunk.h"
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

// The walk over the old graph.
typedef struct walker {
    const bel_graph *graph;
    bel_rewriter *r;
    bel_value **values;      // by id of the old graph
    bool *needed;            // by node of the old graph, as the next two
    bool *done;              // the new graph has what it needs of the node
    bel_chunk_match *chunks; // if the node is a product or cross entropy; all NULL: no chunks
    int *uses;               // readers by value of the old graph
    narrowing casts;
} walker;

static void walk_node(walker *w, const bel_node *node);

// Notes the readers of a node's results, and rewrites the casts that move after it. Uses are those
// of the old graph, added up if several values became one: some rules change an operation only if
// it has a single reader.
static void finish_node(walker *w, const bel_node *node)
{
    w->done[node->index] = true;
    for (int i = 0; i < node->output_count; i++) {
        const bel_value *old = node->outputs[i];
        if (w->values[old->id] == NULL) continue; // replaced by values of chunks
        w->r->uses[w->values[old->id]->id] += w->uses[old->id];
        for (int n = w->casts.first[old->id]; n > 0; n = w->casts.next[n - 1]) {
            rewrite_node(w->r, w->graph->nodes[n - 1], w->values);
            finish_node(w, w->graph->nodes[n - 1]);
        }
    }
}

// Makes a value of the old graph now, with the values that it depends on.
static void walk_to(walker *w, const bel_value *value)
{
    const bel_node *node = value->node;
    if (w->values[value->id] != NULL) return;
    for (int i = 0; i < node->input_count; i++)
        walk_to(w, node->inputs[i]);
    if (w->values[value->id] == NULL) walk_node(w, node); // else a cast that moved
}

// Replaces the nodes around a cross entropy by chunks.
static void walk_chunks(walker *w, const bel_chunk_match *m)
{
    walk_to(w, m->entropy->inputs[1]);
    bel_chunk_shape(w->r, m, w->values);
    if (m->gradient != NULL) {
        walk_to(w, m->gradient->inputs[0]);
        for (int i = 0; i < 2; i++)
            if (m->w_gradient->inputs[i] != m->gradient->outputs[0])
                walk_to(w, m->w_gradient->inputs[i]);
    }
    bel_chunk_build(w->r, m, w->values);
    const bel_node *made[] = {m->entropy, m->gradient, m->x_gradient, m->w_gradient};
    for (int i = 0; i < 4; i++)
        if (made[i] != NULL) finish_node(w, made[i]);
}

static void walk_node(walker *w, const bel_node *node)
{
    const bel_chunk_match *m = &w->chunks[node->index];
    if (w->done[node->index] || narrows(node)) return;
    if (m->product == node &&
        bel_chunk_pays(w->values[node->inputs[0]->id], w->values[node->inputs[1]->id])) {
        w->chunks[m->entropy->index] = *m;
        w->done[node->index] = true;
    } else if (m->entropy == node) {
        walk_chunks(w, m);
    } else {
        rewrite_node(w->r, node, w->values);
        finish_node(w, node);
    }
}

static void find_chunks(walker *w)
{
    if (!bel_pass_is_on(w->r->off, BEL_PASS_CHUNK) || w->r->reference) return;
    bool *marked = bel_xcalloc(w->graph->node_count, sizeof *marked);
    for (size_t n = 0; n < w->graph->node_count; n++) {
        const bel_node *node = w->graph->nodes[n];
        bel_chunk_match match;
        if (!w->needed[n] || node->op != BEL_OP_SOFTMAX_CROSS_ENTROPY) continue;
        if (bel_chunk_find(w->graph, w->needed, w->uses, node, marked, &match))
            w->chunks[match.product->index] = match;
    }
    bel_free(marked);
}

// Builds the new graph, node by node. The caller owns it; values point into it.
static bel_graph *walk(const bel_graph *graph, const bel_shape *input_shapes,
                       bel_value *const *outputs, int output_count, bel_rewriter *r,
                       bel_value **values)
{
    walker w = {.graph = graph,
                .r = r,
                .values = values,
                .needed = bel_xcalloc(graph->node_count, sizeof *w.needed),
                .done = bel_xcalloc(graph->node_count, sizeof *w.done),
                .chunks = bel_xcalloc(graph->node_count, sizeof *w.chunks),
                .uses = bel_xcalloc(graph->value_count, sizeof *w.uses)};
    bel_graph_mark(graph, outputs, output_count, w.needed);
    count_uses(graph, w.needed, outputs, output_count, w.uses);
    r->to = bel_graph_create();
    bel_copy_leaves(graph, input_shapes, r->to, values);
    bel_rewriter_keep_up(r);
    w.casts = find_narrowing(graph, w.needed);
    find_chunks(&w);
    for (size_t n = 0; n < graph->node_count; n++)
        if (w.needed[n]) walk_node(&w, graph->nodes[n]);
    bel_free(w.casts.first);
    bel_free(w.casts.next);
    bel_free(w.uses);
    bel_free(w.chunks);
    bel_free(w.done);
    bel_free(w.needed);
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
