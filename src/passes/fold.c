// Constant folding, with the kernels that a program would call, so the bits stay. A folded value
// lives as long as the program and is computed while it is compiled. So there are two limits: on
// the bytes of a result beyond its operands', and on the elements of heavy operations. An operation
// that fails, as with an index out of range, stays in the graph: the run reports it if it gets
// there. An alias of a constant becomes a view of the same elements.
#include "base/alloc.h"
#include "passes/compute.h"
#include "passes/rewrite.h"

// Limits: bytes of a result beyond its operands', and elements of a heavy operation's operands and
// results, so that compiling stays fast.
enum { FOLDED_BYTES = 1 << 16, HEAVY_ELEMENTS = 1 << 12 };

// Ignores an input whose shape only is read: it has no elements.
static bool is_worth_it(const bel_node *wanted, const bel_spec *results)
{
    const bel_op_def *def = bel_op_get(wanted->op);
    if ((def->flags & BEL_OP_RANDOM) != 0) return false;
    bool heavy = bel_compute_is_heavy(wanted->op);
    size_t have = FOLDED_BYTES, made = 0;
    for (int i = 0; i < wanted->input_count; i++) {
        const bel_node *input = wanted->inputs[i]->node;
        if (input->op != BEL_OP_CONSTANT) return false;
        if (heavy && bel_shape_elements(&input->constant.shape) > HEAVY_ELEMENTS) return false;
        if (bel_op_reads(wanted->op, i)) have += bel_tensor_bytes(&input->constant);
    }
    for (int i = 0; i < def->output_count; i++) {
        if (heavy && bel_shape_elements(&results[i].shape) > HEAVY_ELEMENTS) return false;
        made += bel_tensor_bytes(&(bel_tensor){results[i].dtype, results[i].shape, NULL});
    }
    return made <= have;
}

// Fills in the outputs, whose memory the caller frees. False: the operation failed.
static bool fold_compute(bel_rewriter *r, const bel_node *wanted, bel_tensor *outputs,
                         int output_count)
{
    bel_tensor inputs[BEL_OP_MAX_INPUTS];
    for (int i = 0; i < wanted->input_count; i++)
        inputs[i] = wanted->inputs[i]->node->constant;
    for (int i = 0; i < output_count; i++)
        outputs[i].data = bel_xcalloc(bel_tensor_bytes(&outputs[i]) + 1, 1);
    bel_status *status = bel_compute(wanted, inputs, r->reference, outputs);
    bool done = status == NULL;
    bel_status_ignore(status); // a bad index is reported when the program runs
    return done;
}

bool bel_fold(bel_rewriter *r, const bel_node *wanted, const bel_spec *results,
              bel_value **out_values)
{
    if (!is_worth_it(wanted, results)) return false;
    const bel_op_def *def = bel_op_get(wanted->op);
    if ((def->flags & BEL_OP_ALIAS) != 0) {
        bel_tensor view = wanted->inputs[0]->node->constant;
        view.shape = results[0].shape;
        out_values[0] = bel_rewrite_constant(r, wanted->name, &view, false);
        return true;
    }
    bel_tensor outputs[BEL_OP_MAX_OUTPUTS];
    for (int i = 0; i < def->output_count; i++)
        outputs[i] = (bel_tensor){.dtype = results[i].dtype, .shape = results[i].shape};
    bool done = fold_compute(r, wanted, outputs, def->output_count);
    for (int i = 0; i < def->output_count; i++) {
        if (done) out_values[i] = bel_rewrite_constant(r, wanted->name, &outputs[i], true);
        bel_free(outputs[i].data);
    }
    return done;
}
