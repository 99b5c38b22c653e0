// Rewriting of one node at a time: each pass is tried in turn, then existing nodes are searched,
// and otherwise a node is added. Nodes that a pass makes go the same way (bel_rewrite_more), so
// chains need no separate rule. Equal nodes are found by a hash of operation, inputs and
// attributes. Attributes and small constants are equal if their bits are, so 0 and -0 differ.
// Random nodes and casts from 16-bit floats are never shared. An input of which only the shape is
// read loses its elements here: its kernel must not read its data (bel_op_reads).
#include "passes/rewrite.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/str.h"

enum { SHARED_BYTES = 64 }; // constants up to this size are shared

void bel_rewriter_keep_up(bel_rewriter *r)
{
    size_t count = r->to->value_count;
    if (count <= r->value_count) return;
    r->uses = bel_xgrow(r->uses, &r->value_capacity, count, sizeof *r->uses);
    memset(r->uses + r->value_count, 0, (count - r->value_count) * sizeof *r->uses);
    r->value_count = count;
}

void bel_rewriter_deinit(bel_rewriter *r)
{
    bel_free(r->uses);
    bel_index_deinit(&r->nodes);
    bel_index_deinit(&r->constants);
}

static uint64_t hash_shape(uint64_t before, const bel_shape *shape)
{
    return bel_hash64_more(before, shape->dims, (size_t)shape->rank * sizeof shape->dims[0]);
}

// --- Constants -----------------------------------------------------------------------------------

static bool same_constant(const bel_tensor *a, const bel_tensor *b)
{
    if (a->dtype != b->dtype || !bel_shape_equal(&a->shape, &b->shape)) return false;
    if (a->data == NULL || b->data == NULL) return a->data == b->data;
    size_t bytes = bel_tensor_bytes(a);
    return a->data == b->data || (bytes <= SHARED_BYTES && memcmp(a->data, b->data, bytes) == 0);
}

// Hash of the fields that same_constant compares.
static uint64_t hash_constant(const bel_tensor *tensor)
{
    uint64_t hash = hash_shape((uint64_t)tensor->dtype, &tensor->shape);
    size_t bytes = tensor->data == NULL ? 0 : bel_tensor_bytes(tensor);
    if (bytes > 0 && bytes <= SHARED_BYTES) return bel_hash64_more(hash, tensor->data, bytes);
    return bel_hash64_more(hash, &tensor->data, sizeof tensor->data);
}

bel_value *bel_rewrite_constant(bel_rewriter *r, const char *name, const bel_tensor *tensor,
                                bool copy)
{
    bool share = bel_pass_is_on(r->off, BEL_PASS_SAME);
    uint64_t hash = hash_constant(tensor);
    size_t at = 0;
    for (int n; share && (n = bel_index_next(&r->constants, hash, &at)) >= 0;) {
        const bel_node *node = r->to->nodes[n];
        if (same_constant(&node->constant, tensor)) return node->outputs[0];
    }
    bel_tensor view = *tensor;
    if (copy) view.data = bel_arena_copy(r->to->arena, tensor->data, bel_tensor_bytes(tensor));
    bel_value *value = bel_graph_add_view(r->to, name, &view);
    bel_rewriter_keep_up(r);
    bel_index_put(&r->constants, hash_constant(&view), value->node->index);
    return value;
}

// Replaces inputs of which only the shape is read by constants without elements, so that the values
// need not be kept.
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

// Whether a node casts from a 16-bit float. Such casts are repeated for each reader: one shared
// result would be kept from the first reader to the last, in the memory that 16-bit floats are to
// save.
static bool widens_16_bits(const bel_node *wanted)
{
    bel_dtype from = wanted->inputs[0]->spec.dtype;
    return wanted->op == BEL_OP_CAST && (from == BEL_DTYPE_F16 || from == BEL_DTYPE_BF16);
}

// Hash of the fields that make two nodes the same.
static uint64_t hash_node(const bel_node *node)
{
    uint64_t hash = (uint64_t)node->op;
    for (int i = 0; i < node->input_count; i++)
        hash = bel_hash64_more(hash, &node->inputs[i]->id, sizeof node->inputs[i]->id);
    for (int i = 0; i < node->attrs.count; i++) {
        const bel_attr *attr = &node->attrs.items[i];
        hash = bel_hash64_more(hash, &attr->number, sizeof attr->number);
        hash = hash_shape(hash, &attr->ints);
    }
    return hash;
}

// An existing node that computes the same, or NULL.
static bel_node *find_same(const bel_rewriter *r, const bel_node *wanted)
{
    if ((bel_op_get(wanted->op)->flags & BEL_OP_RANDOM) != 0 || widens_16_bits(wanted)) return NULL;
    size_t bytes = (size_t)wanted->input_count * sizeof wanted->inputs[0];
    uint64_t hash = hash_node(wanted);
    size_t at = 0;
    for (int n; (n = bel_index_next(&r->nodes, hash, &at)) >= 0;) {
        bel_node *node = r->to->nodes[n];
        if (node->op == wanted->op && node->input_count == wanted->input_count &&
            memcmp(node->inputs, wanted->inputs, bytes) == 0 &&
            bel_attrs_equal(&node->attrs, &wanted->attrs))
            return node;
    }
    return NULL;
}

static bel_node *rewriter_add(bel_rewriter *r, const bel_node *wanted)
{
    bel_node *node = bel_graph_add_node(r->to, wanted->name, wanted->op, &wanted->attrs,
                                        wanted->inputs, wanted->input_count);
    BEL_CHECK(node != NULL); // its shapes have been inferred
    bel_rewriter_keep_up(r);
    bel_index_put(&r->nodes, hash_node(node), node->index);
    return node;
}

// Applies the rules in order: a simpler value, a constant, another order of Concat. False: no rule
// applies, and out_values is not set.
static bool rewriter_replace(bel_rewriter *r, const bel_node *wanted, bel_value **out_values)
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
    out_values[0] = bel_pass_is_on(r->off, BEL_PASS_JOIN) ? bel_join(r, wanted) : NULL;
    if (out_values[0] != NULL) {
        r->counts[BEL_PASS_JOIN]++;
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
    if (rewriter_replace(r, &asked, out_values)) return;
    bel_node *node = bel_pass_is_on(r->off, BEL_PASS_SAME) ? find_same(r, &asked) : NULL;
    if (node != NULL) {
        r->counts[BEL_PASS_SAME]++;
    } else {
        node = rewriter_add(r, &asked);
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
