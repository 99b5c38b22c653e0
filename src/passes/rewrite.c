// One node at a time: each pass is asked in turn, then nodes that are there already, and what is
// left is added. What a pass makes comes in by the same door (bel_rewrite_more), so that chains
// need no rule of their own. Equal nodes are found by lists over the first input (`users`, then
// `next`, each an index plus one); attributes and small constants are equal where their bits
// are, so 0 and -0 are two. Random nodes and casts from halves are never shared. An input that
// matters by its shape alone loses its elements here: its kernel must not touch its data
// (bel_op_reads).
#include "passes/rewrite.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"

enum { SHARED_BYTES = 64 }; // constants up to this size are compared with others

static void *grow(void *array, size_t *capacity, size_t used, size_t needed, size_t size)
{
    array = bel_xgrow(array, capacity, needed, size);
    memset((char *)array + used * size, 0, (needed - used) * size);
    return array;
}

void bel_rewriter_keep_up(bel_rewriter *r)
{
    size_t values = r->to->value_count, nodes = r->to->node_count;
    if (values > r->value_count) {
        r->uses = grow(r->uses, &r->value_capacity, r->value_count, values, sizeof *r->uses);
        r->users = grow(r->users, &r->user_capacity, r->value_count, values, sizeof *r->users);
        r->value_count = values;
    }
    if (nodes > r->node_count) {
        r->next = grow(r->next, &r->node_capacity, r->node_count, nodes, sizeof *r->next);
        r->node_count = nodes;
    }
}

void bel_rewriter_deinit(bel_rewriter *r)
{
    bel_free(r->uses);
    bel_free(r->users);
    bel_free(r->next);
    bel_free(r->constants);
}

// --- Constants -----------------------------------------------------------------------------------

static bool same_constant(const bel_tensor *a, const bel_tensor *b)
{
    if (a->dtype != b->dtype || !bel_shape_equal(&a->shape, &b->shape)) return false;
    if (a->data == NULL || b->data == NULL) return a->data == b->data;
    size_t bytes = bel_tensor_bytes(a);
    return a->data == b->data || (bytes <= SHARED_BYTES && memcmp(a->data, b->data, bytes) == 0);
}

bel_value *bel_rewrite_constant(bel_rewriter *r, const char *name, const bel_tensor *tensor,
                                bool copy)
{
    bool share = bel_pass_is_on(r->off, BEL_PASS_SAME);
    for (int i = 0; share && i < r->constant_count; i++) {
        bel_node *node = r->to->nodes[r->constants[i]];
        if (same_constant(&node->constant, tensor)) return node->outputs[0];
    }
    bel_tensor view = *tensor;
    if (copy) view.data = bel_arena_copy(r->to->arena, tensor->data, bel_tensor_bytes(tensor));
    bel_value *value = bel_graph_add_view(r->to, name, &view);
    bel_rewriter_keep_up(r);
    r->constants = bel_xgrow(r->constants, &r->constant_capacity, (size_t)r->constant_count + 1,
                             sizeof *r->constants);
    r->constants[r->constant_count++] = value->node->index;
    return value;
}

// An input whose shape alone matters becomes a constant without elements, so that nothing keeps
// the value for it.
static void leave_out_elements(bel_rewriter *r, bel_node *wanted)
{
    for (int i = 0; i < wanted->input_count; i++) {
        const bel_value *input = wanted->inputs[i];
        if (bel_op_reads(wanted->op, i) || input->node->op == BEL_OP_CONSTANT) continue;
        char *name = bel_strf("%s/shape", bel_node_label(input->node));
        bel_tensor shape = {.dtype = input->spec.dtype, .shape = input->spec.shape};
        wanted->inputs[i] = bel_rewrite_constant(r, name, &shape, false);
        bel_free(name);
    }
}

// --- Nodes ---------------------------------------------------------------------------------------

void bel_input_specs(const bel_node *node, bel_spec *out_specs)
{
    for (int i = 0; i < node->input_count; i++)
        out_specs[i] = node->inputs[i]->spec;
}

// Halves are widened where they are read: one result for all would be kept from the first reader to
// the last, and that is what halves are there to avoid.
static bool widens_halves(const bel_node *wanted)
{
    bel_dtype from = wanted->inputs[0]->spec.dtype;
    return wanted->op == BEL_OP_CAST && (from == BEL_DTYPE_F16 || from == BEL_DTYPE_BF16);
}

// A node that computes the same, or NULL.
static bel_node *find_same(const bel_rewriter *r, const bel_node *wanted)
{
    if ((bel_op_get(wanted->op)->flags & BEL_OP_RANDOM) != 0 || widens_halves(wanted)) return NULL;
    size_t bytes = (size_t)wanted->input_count * sizeof wanted->inputs[0];
    for (int at = r->users[wanted->inputs[0]->id]; at > 0; at = r->next[at - 1]) {
        bel_node *node = r->to->nodes[at - 1];
        if (node->op == wanted->op && node->input_count == wanted->input_count &&
            memcmp(node->inputs, wanted->inputs, bytes) == 0 &&
            bel_attrs_equal(&node->attrs, &wanted->attrs))
            return node;
    }
    return NULL;
}

// Nodes are listed by their first input, where find_same looks: users[value] is the newest of them
// and next[node] the one before, both as index + 1.
static bel_node *add(bel_rewriter *r, const bel_node *wanted)
{
    bel_node *node = bel_graph_add_node(r->to, wanted->name, wanted->op, &wanted->attrs,
                                        wanted->inputs, wanted->input_count);
    BEL_CHECK(node != NULL); // its shapes have been inferred
    bel_rewriter_keep_up(r);
    int *head = &r->users[wanted->inputs[0]->id];
    r->next[node->index] = *head;
    *head = node->index + 1;
    return node;
}

// The rules in their order: a simpler value, a constant, another order of Concat. False: none
// applies, out_values is not set.
static bool replace(bel_rewriter *r, const bel_node *wanted, bel_value **out_values)
{
    bel_spec inputs[BEL_OP_MAX_INPUTS], results[BEL_OP_MAX_OUTPUTS];
    const bel_op_def *def = bel_op_get(wanted->op);
    bel_input_specs(wanted, inputs);
    bel_status *status = def->infer(&wanted->attrs, inputs, wanted->input_count, results);
    BEL_CHECK(status == NULL); // as in the first graph
    if (def->output_count == 1 && bel_pass_is_on(r->off, BEL_PASS_SIMPLIFY)) {
        out_values[0] = bel_simplify(r, wanted, &results[0]);
        if (out_values[0] != NULL) {
            r->counts[BEL_PASS_SIMPLIFY]++;
            return true;
        }
    }
    if (bel_pass_is_on(r->off, BEL_PASS_FOLD) && bel_fold(r, wanted, results, out_values)) {
        r->counts[BEL_PASS_FOLD]++;
        return true;
    }
    if (wanted->op != BEL_OP_CONCAT || !bel_pass_is_on(r->off, BEL_PASS_CONCAT)) return false;
    out_values[0] = bel_hoist_concat(r, wanted);
    return out_values[0] != NULL;
}

void bel_rewrite(bel_rewriter *r, const bel_node *wanted, bel_value **out_values)
{
    bel_node asked = *wanted;
    if (bel_pass_is_on(r->off, BEL_PASS_FOLD)) leave_out_elements(r, &asked);
    if (replace(r, &asked, out_values)) return;
    bel_node *node = bel_pass_is_on(r->off, BEL_PASS_SAME) ? find_same(r, &asked) : NULL;
    if (node != NULL) {
        r->counts[BEL_PASS_SAME]++;
    } else {
        node = add(r, &asked);
    }
    memcpy(out_values, node->outputs, (size_t)node->output_count * sizeof *out_values);
}

bel_value *bel_rewrite_more(bel_rewriter *r, const bel_node *origin, bel_op op,
                            const bel_attr_list *attrs, bel_value *const *inputs, int input_count)
{
    bel_node wanted = {.op = op, .input_count = input_count};
    if (attrs != NULL) wanted.attrs = *attrs;
    memcpy(wanted.inputs, inputs, (size_t)input_count * sizeof *inputs);
    wanted.name = bel_strf("%s/%s_%d", origin->name, bel_op_get(op)->name, (int)r->to->node_count);
    bel_value *values[BEL_OP_MAX_OUTPUTS];
    bel_rewrite(r, &wanted, values);
    bel_free(wanted.name);
    return values[0];
}
