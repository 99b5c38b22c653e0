// Finding and building of chunks. The product reads x and w, plain or transposed, adds nothing, and
// only the cross entropy reads its result. Its log softmax is read only by its gradient, which only
// the two products of a Gemm's gradient read. So no other value needs all rows at once.
#include "passes/chunk.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "graph/attrs.h"

enum { CHUNK_BYTES = 64 << 20, CHUNK_ROWS = 16 /* rows of a chunk are a multiple */ };

// --- Finding -------------------------------------------------------------------------------------

static bool is_plain_product(const bel_node *node)
{
    return node->op == BEL_OP_GEMM && node->input_count == 2 &&
           bel_attr_number(&node->attrs, "alpha", 1) == 1 &&
           !bel_attr_flag(&node->attrs, BEL_ATTR_RELU);
}

// Marks the nodes that cannot come before the chunks, by index: those that depend on the product,
// except through the shape of the losses. Those of earlier products stay marked, so that of two
// products of which each needs the other's losses only one is found.
static void mark_dependents(const bel_graph *graph, const bel_chunk_match *m, bool *marked)
{
    marked[m->product->index] = true;
    for (size_t n = (size_t)m->product->index + 1; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        for (int i = 0; i < node->input_count; i++) {
            const bel_value *input = node->inputs[i];
            bool shape_only = input == m->entropy->outputs[0] && !bel_op_reads(node->op, i);
            if (marked[input->node->index] && !shape_only) marked[n] = true;
        }
    }
}

// Puts a reader of the logits' gradient where it belongs; false: it is another operation.
static bool add_reader(const bel_node *node, bel_chunk_match *m)
{
    if (m->gradient == NULL) {
        m->gradient = node;
        return node->op == BEL_OP_CROSS_ENTROPY_GRAD && node->inputs[1] == m->entropy->outputs[1] &&
               node->inputs[2] == m->entropy->inputs[1];
    }
    const bel_value *logits = m->gradient->outputs[0], *w = m->product->inputs[1];
    bool turned = bel_attr_flag(&m->product->attrs, "transB");
    bool ta = bel_attr_flag(&node->attrs, "transA"), tb = bel_attr_flag(&node->attrs, "transB");
    if (!is_plain_product(node)) return false;
    if (node->inputs[0] == logits && node->inputs[1] == w && !ta && tb != turned) {
        if (m->x_gradient != NULL) return false;
        m->x_gradient = node;
        return true;
    }
    bool fits = node->inputs[turned ? 0 : 1] == logits && node->inputs[turned ? 1 : 0] != logits;
    if (!fits || !ta || tb || m->w_gradient != NULL) return false;
    m->w_gradient = node;
    return true;
}

static bool reads_value(const bel_node *node, const bel_value *value)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] == value) return true;
    return false;
}

// Finds the gradient's nodes after the cross entropy; false: another node reads one of the values.
static bool find_gradient(const bel_graph *graph, const bool *needed, const int *uses,
                          bel_chunk_match *m)
{
    int readers = 0;
    if (uses[m->entropy->outputs[1]->id] == 0) return true;
    for (size_t n = (size_t)m->entropy->index + 1; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        const bel_value *value =
            m->gradient == NULL ? m->entropy->outputs[1] : m->gradient->outputs[0];
        if (!needed[n] || !reads_value(node, value)) continue;
        if (!add_reader(node, m)) return false;
        if (m->gradient != node) readers++;
    }
    return m->gradient != NULL && uses[m->entropy->outputs[1]->id] == 1 && m->w_gradient != NULL &&
           uses[m->gradient->outputs[0]->id] == readers;
}

bool bel_chunk_find(const bel_graph *graph, const bool *needed, const int *uses,
                    const bel_node *entropy, bool *marked, bel_chunk_match *out_match)
{
    const bel_node *product = entropy->inputs[0]->node;
    bel_chunk_match m = {.product = product, .entropy = entropy};
    bool fits = is_plain_product(product) && !bel_attr_flag(&product->attrs, "transA") &&
                product->outputs[0]->spec.dtype == BEL_DTYPE_F32 &&
                uses[product->outputs[0]->id] == 1 && find_gradient(graph, needed, uses, &m);
    if (!fits) return false;
    if (m.gradient != NULL) {
        mark_dependents(graph, &m, marked);
        bool turned = bel_attr_flag(&product->attrs, "transB");
        const bel_value *with = m.w_gradient->inputs[turned ? 1 : 0];
        fits = !marked[m.gradient->inputs[0]->node->index] && !marked[with->node->index];
    }
    *out_match = m;
    return fits;
}

bool bel_chunk_pays(const bel_value *x, const bel_value *w)
{
    const bel_shape *a = &x->spec.shape; // [rows, width]
    if (a->dims[1] == 0) return false;
    int64_t classes = bel_shape_elements(&w->spec.shape) / a->dims[1];
    return a->dims[0] > CHUNK_ROWS && a->dims[0] * classes > CHUNK_BYTES / (int64_t)sizeof(float);
}

// --- Building ------------------------------------------------------------------------------------

typedef struct build {
    bel_rewriter *r;
    const bel_chunk_match *match;
    bel_value **values;
    int64_t rows, first, last; // rows of all, and of the chunk
} build;

// Returns the rows of a value that belong to the chunk.
static bel_value *rows_of_chunk(const build *b, const bel_value *old)
{
    const int64_t axis = 0, step = 1;
    bel_attr_list attrs = {.count = 0};
    bel_value *all = b->values[old->id];
    bel_attr_put_ints(&attrs, "axes", 1, &axis);
    bel_attr_put_ints(&attrs, "starts", 1, &b->first);
    bel_attr_put_ints(&attrs, "ends", 1, &b->last);
    bel_attr_put_ints(&attrs, "steps", 1, &step);
    return bel_rewrite_more(b->r, b->match->entropy, BEL_OP_SLICE, &attrs, &all, 1);
}

// Joins the parts of all chunks, in rounds of neighbors.
static bel_value *join_rows(const build *b, bel_value **parts, int64_t count)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "axis", 0);
    while (count > 1) {
        int64_t made = 0;
        for (int64_t i = 0; i < count; i += BEL_OP_MAX_INPUTS) {
            int some = count - i < BEL_OP_MAX_INPUTS ? (int)(count - i) : BEL_OP_MAX_INPUTS;
            parts[made++] = some == 1 ? parts[i]
                                      : bel_rewrite_more(b->r, b->match->entropy, BEL_OP_CONCAT,
                                                         &attrs, parts + i, some);
        }
        count = made;
    }
    return parts[0];
}

// The gradient of w: `before` is that of the earlier chunks.
static bel_value *continue_w(const build *b, bel_value *logits, bel_value *before)
{
    const bel_node *node = b->match->w_gradient;
    bel_attr_list attrs = node->attrs;
    bool turned = node->inputs[0] == b->match->gradient->outputs[0];
    bel_value *with = rows_of_chunk(b, node->inputs[turned ? 1 : 0]);
    bel_value *inputs[] = {turned ? logits : with, turned ? with : logits, before};
    if (before == NULL) return bel_rewrite_more(b->r, node, node->op, &attrs, inputs, 2);
    for (int i = 0; i < attrs.count; i++)
        if (strcmp(attrs.items[i].name, "beta") == 0) attrs.items[i].number = 1;
    bel_attr_put(&attrs, BEL_ATTR_CONTINUES, 1);
    return bel_rewrite_more(b->r, node, node->op, &attrs, inputs, 3);
}

static void add_chunk(const build *b, bel_value **out_losses, bel_value **out_x, bel_value **w_sum)
{
    const bel_chunk_match *m = b->match;
    bel_value *labels = rows_of_chunk(b, m->entropy->inputs[1]);
    bel_value *w = b->values[m->product->inputs[1]->id];
    bel_value *operands[] = {rows_of_chunk(b, m->product->inputs[0]), w};
    bel_value *logits =
        bel_rewrite_more(b->r, m->product, BEL_OP_GEMM, &m->product->attrs, operands, 2);
    bel_value *measured[] = {logits, labels};
    *out_losses = bel_rewrite_more(b->r, m->entropy, m->entropy->op, NULL, measured, 2);
    if (m->gradient == NULL) return;
    bel_value *inputs[] = {rows_of_chunk(b, m->gradient->inputs[0]),
                           (*out_losses)->node->outputs[1], labels};
    logits = bel_rewrite_more(b->r, m->gradient, m->gradient->op, NULL, inputs, 3);
    *w_sum = continue_w(b, logits, *w_sum);
    bel_value *back[] = {logits, w};
    if (m->x_gradient != NULL)
        *out_x = bel_rewrite_more(b->r, m->x_gradient, BEL_OP_GEMM, &m->x_gradient->attrs, back, 2);
}

void bel_chunk_shape(bel_rewriter *r, const bel_chunk_match *match, bel_value **values)
{
    const bel_value *x = values[match->product->inputs[0]->id],
                    *losses = match->entropy->outputs[0];
    const bel_tensor shape = {.dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(x->spec.shape.dims[0])};
    char *name = bel_strf("%s/shape", match->entropy->name);
    values[losses->id] = bel_rewrite_constant(r, name, &shape, false);
    bel_free(name);
}

void bel_chunk_build(bel_rewriter *r, const bel_chunk_match *match, bel_value **values)
{
    const bel_value *x = values[match->product->inputs[0]->id];
    const bel_value *w = values[match->product->inputs[1]->id];
    build b = {.r = r, .match = match, .values = values, .rows = x->spec.shape.dims[0]};
    int64_t classes = bel_shape_elements(&w->spec.shape) / x->spec.shape.dims[1];
    int64_t most = CHUNK_BYTES / (int64_t)sizeof(float) / classes / CHUNK_ROWS * CHUNK_ROWS;
    if (most < CHUNK_ROWS) most = CHUNK_ROWS;
    int64_t count = (b.rows + most - 1) / most;
    int64_t step = ((b.rows + count - 1) / count + CHUNK_ROWS - 1) / CHUNK_ROWS * CHUNK_ROWS;
    bel_value **losses = bel_xcalloc((size_t)count, sizeof *losses), *w_sum = NULL;
    bel_value **back = bel_xcalloc((size_t)count, sizeof *back);
    int64_t made = 0;
    for (; b.first < b.rows; b.first = b.last, made++) {
        b.last = b.first + step < b.rows ? b.first + step : b.rows;
        add_chunk(&b, &losses[made], &back[made], &w_sum);
    }
    values[match->entropy->outputs[0]->id] = join_rows(&b, losses, made);
    if (match->w_gradient != NULL) values[match->w_gradient->outputs[0]->id] = w_sum;
    if (match->x_gradient != NULL)
        values[match->x_gradient->outputs[0]->id] = join_rows(&b, back, made);
    r->counts[BEL_PASS_CHUNK]++;
    bel_free(losses);
    bel_free(back);
}
