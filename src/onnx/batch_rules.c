// Rules for each kind of operation: whether it keeps the examples of a batch separate, and how it
// is written for any batch. A rule first tries the form FLAT, which changes only the size of
// dimension 0, so that an ordinary model has the same nodes as with an open batch. The form APART
// shifts axes by one. A rule that returns false may have added nodes, but no other node reads them.
#include <string.h>

#include "belfry/ops.h"
#include "onnx/batch_inner.h"

typedef bel_value *form_fn(const bel_batch_walk *walk, const bel_value *closed);

static bel_attr *attr_of(bel_attr_list *attrs, const char *name)
{
    for (int i = 0; i < attrs->count; i++)
        if (strcmp(attrs->items[i].name, name) == 0) return &attrs->items[i];
    attrs->items[attrs->count] = (bel_attr){.name = name};
    return &attrs->items[attrs->count++];
}

static int64_t axis_of(const bel_node *node, int64_t otherwise, int32_t rank)
{
    int64_t axis = bel_attr_whole(&node->attrs, "axis", otherwise);
    return axis < 0 ? axis + rank : axis;
}

static const bel_shape *shape_of(const bel_value *value)
{
    return &value->spec.shape;
}

// Converts the inputs that depend on examples, or with `all` every input, to one form.
static bool forms(const bel_batch_walk *walk, const bel_node *node, form_fn *form, bool all,
                  bel_value **out_inputs)
{
    bool fits = true;
    for (int i = 0; i < node->input_count; i++) {
        const bel_value *x = node->inputs[i];
        bool changed = all || bel_batch_depends(walk, x);
        out_inputs[i] = changed ? form(walk, x) : walk->places[x->id].value;
        fits = fits && out_inputs[i] != NULL;
    }
    return fits;
}

static bool only_first_depends(const bel_batch_walk *walk, const bel_node *node)
{
    for (int i = 1; i < node->input_count; i++)
        if (bel_batch_depends(walk, node->inputs[i])) return false;
    return bel_batch_depends(walk, node->inputs[0]);
}

// True if a constant operand repeats over dimension 0 of a result of this rank.
static bool value_repeats(const bel_value *value, int32_t rank)
{
    return shape_of(value)->rank < rank || shape_of(value)->dims[0] == 1;
}

// --- Element by element --------------------------------------------------------------------------

// Inserts dimensions of size 1 after the batch into a stacked operand, up to `rank` dimensions of
// the closed result, because operands broadcast from the last dimension on.
static bel_value *apart_of_rank(const bel_batch_walk *walk, const bel_value *closed, bel_value *x,
                                int32_t rank)
{
    int64_t axes[BEL_MAX_RANK];
    int missing = rank - shape_of(closed)->rank;
    for (int k = 0; k < missing; k++)
        axes[k] = 1 + k;
    bool fits = missing <= 0 || !bel_batch_depends(walk, closed);
    return fits ? x : bel_unsqueeze(walk->graph, x, axes, missing);
}

static bool broadcast_apart(bel_batch_walk *walk, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    int32_t rank = shape_of(node->outputs[0])->rank;
    if (rank >= BEL_MAX_RANK || !forms(walk, node, bel_batch_apart, false, inputs)) return false;
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = apart_of_rank(walk, node->inputs[i], inputs[i], rank);
    return bel_batch_emit(walk, node, &node->attrs, inputs, BEL_BATCH_APART);
}

// True if dimension 0 of the result comes from the operands that depend on examples, and the others
// repeat over it.
static bool broadcasts_flat(const bel_batch_walk *walk, const bel_node *node)
{
    int32_t rank = shape_of(node->outputs[0])->rank;
    bool flat = rank > 0;
    for (int i = 0; i < node->input_count; i++) {
        bool depends = bel_batch_depends(walk, node->inputs[i]);
        flat = flat && (depends ? shape_of(node->inputs[i])->rank == rank
                                : value_repeats(node->inputs[i], rank));
    }
    return flat;
}

static bool each(bel_batch_walk *walk, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    if (broadcasts_flat(walk, node) && forms(walk, node, bel_batch_flat, false, inputs))
        return bel_batch_emit(walk, node, &node->attrs, inputs, BEL_BATCH_FLAT);
    return broadcast_apart(walk, node);
}

// --- Example by example --------------------------------------------------------------------------

static void batch_rules_lose(bel_batch_walk *walk, const bel_node *node, int from)
{
    for (int o = from; o < node->output_count; o++)
        walk->places[node->outputs[o]->id] =
            (bel_batch_place){.form = BEL_BATCH_LOST, .refused = node};
}

// Reshapes x to the same number of elements; dimension 0 follows from the others.
static bel_value *regrouped(const bel_batch_walk *walk, bel_value *x, bel_shape to)
{
    to.dims[0] = -1;
    for (int32_t d = 1; d < to.rank; d++)
        if (to.dims[d] <= 0) return NULL;
    return x == NULL ? NULL : bel_reshape(walk->graph, x, &to);
}

// Operations on [rows, …] that treat each row alike: n examples of d0 rows are n · d0 rows. Other
// outputs than 0 are statistics, which no ONNX operator has.
static bool batch_rules_rows(bel_batch_walk *walk, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    const bel_value *x = node->inputs[0], *y = node->outputs[0];
    if (!only_first_depends(walk, node) || bel_attr_flag(&node->attrs, "training_mode"))
        return false;
    bool flat = forms(walk, node, bel_batch_flat, false, inputs);
    if (!flat) inputs[0] = regrouped(walk, bel_batch_apart(walk, x), *shape_of(x)); // d0 > 1
    if (!bel_batch_emit(walk, node, &node->attrs, inputs, BEL_BATCH_FLAT)) return false;
    batch_rules_lose(walk, node, 1);
    if (flat) return true;
    bel_batch_place *place = &walk->places[y->id];
    bel_shape apart = bel_batch_shape(walk, shape_of(y), BEL_BATCH_APART);
    *place = (bel_batch_place){regrouped(walk, place->value, apart), BEL_BATCH_APART, NULL};
    return place->value != NULL;
}

// If rows of a are examples and b is the same for all, it stays a Gemm. Otherwise each example gets
// a separate product and sum.
static bool gemm(bel_batch_walk *walk, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    bool third = node->input_count > 2, shared = !bel_batch_depends(walk, node->inputs[1]);
    bool own = third && bel_batch_depends(walk, node->inputs[2]);
    bool repeated =
        !third || (own ? shape_of(node->inputs[2])->rank == 2 : value_repeats(node->inputs[2], 2));
    bool stays = shared && repeated && !bel_attr_flag(&node->attrs, "transA");
    if (stays && !own && batch_rules_rows(walk, node)) return true;
    if (stays && own && forms(walk, node, bel_batch_flat, false, inputs))
        return bel_batch_emit(walk, node, &node->attrs, inputs, BEL_BATCH_FLAT);
    if (!forms(walk, node, bel_batch_apart, false, inputs)) return false;
    bel_attr_list attrs = node->attrs;
    bel_value *y = bel_graph_add(walk->graph, BEL_OP_MATMUL, &attrs, inputs, 2);
    double beta = bel_attr_number(&node->attrs, "beta", 1);
    if (third && beta != 1)
        inputs[2] = bel_mul(walk->graph, inputs[2],
                            bel_scalar(walk->graph, bel_value_dtype(inputs[2]), beta));
    if (third) y = bel_add(walk->graph, y, apart_of_rank(walk, node->inputs[2], inputs[2], 2));
    walk->places[node->outputs[0]->id] = (bel_batch_place){y, BEL_BATCH_APART, NULL};
    return true;
}

// Stacks of matrices with broadcast leading dimensions. Dimension 0 may be a row of a, or the
// result's leading dimension.
static bool batch_rules_matmul(bel_batch_walk *walk, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    bool turned = bel_attr_flag(&node->attrs, "transA");
    bool shared = !bel_batch_depends(walk, node->inputs[1]);
    bool matrices = shape_of(node->outputs[0])->rank == 2;
    bool flat = matrices ? shared && !turned : broadcasts_flat(walk, node);
    if (flat && forms(walk, node, bel_batch_flat, false, inputs))
        return bel_batch_emit(walk, node, &node->attrs, inputs, BEL_BATCH_FLAT);
    return broadcast_apart(walk, node);
}

// --- Along axes ----------------------------------------------------------------------------------

// Operations along one axis: unchanged if that is not dimension 0, otherwise with the axis shifted
// by one.
static bool along(bel_batch_walk *walk, const bel_node *node, int64_t axis, bool named)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    if (axis != 0 && forms(walk, node, bel_batch_flat, true, inputs))
        return bel_batch_emit(walk, node, &node->attrs, inputs, BEL_BATCH_FLAT);
    bel_attr_list attrs = node->attrs;
    if (named) attr_of(&attrs, "axis")->number = (double)(axis + 1);
    return shape_of(node->inputs[0])->rank > 0 &&
           forms(walk, node, bel_batch_apart, true, inputs) &&
           bel_batch_emit(walk, node, &attrs, inputs, BEL_BATCH_APART);
}

static bool layer_norm(bel_batch_walk *walk, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    bel_attr_list attrs = node->attrs;
    int64_t axis = axis_of(node, -1, shape_of(node->inputs[0])->rank);
    if (!only_first_depends(walk, node)) return false;
    bool flat = axis > 0 && forms(walk, node, bel_batch_flat, false, inputs);
    if (!flat) attr_of(&attrs, "axis")->number = (double)(axis + 1);
    if (!flat && !forms(walk, node, bel_batch_apart, false, inputs)) return false;
    if (!bel_batch_emit(walk, node, &attrs, inputs, flat ? BEL_BATCH_FLAT : BEL_BATCH_APART))
        return false;
    batch_rules_lose(walk, node, 1);
    return true;
}

static bool batch_rules_reduce(bel_batch_walk *walk, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    int32_t rank = shape_of(node->inputs[0])->rank;
    const bel_shape *axes = bel_attr_ints(&node->attrs, "axes");
    bool all = axes == NULL || axes->rank == 0, first = all;
    bel_shape next = {.rank = all ? rank : axes->rank};
    for (int32_t i = 0; i < next.rank; i++) {
        int64_t axis = all ? i : axes->dims[i] < 0 ? axes->dims[i] + rank : axes->dims[i];
        first = first || axis == 0;
        next.dims[i] = axis + 1;
    }
    if (!first && forms(walk, node, bel_batch_flat, false, inputs))
        return bel_batch_emit(walk, node, &node->attrs, inputs, BEL_BATCH_FLAT);
    bel_attr_list attrs = node->attrs;
    attr_of(&attrs, "axes")->ints = next;
    return rank > 0 && forms(walk, node, bel_batch_apart, false, inputs) &&
           bel_batch_emit(walk, node, &attrs, inputs, BEL_BATCH_APART);
}

static bool batch_rules_slice(bel_batch_walk *walk, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    int32_t rank = shape_of(node->inputs[0])->rank;
    const bel_shape *axes = bel_attr_ints(&node->attrs, "axes");
    const bel_shape *starts = bel_attr_ints(&node->attrs, "starts");
    bel_shape next = {.rank = starts == NULL ? 0 : starts->rank};
    bool first = false;
    for (int32_t i = 0; i < next.rank; i++) {
        int64_t axis = axes == NULL ? i : axes->dims[i];
        if (axis < 0) axis += rank;
        first = first || axis == 0;
        next.dims[i] = axis + 1;
    }
    if (!first && forms(walk, node, bel_batch_flat, false, inputs))
        return bel_batch_emit(walk, node, &node->attrs, inputs, BEL_BATCH_FLAT);
    bel_attr_list attrs = node->attrs;
    attr_of(&attrs, "axes")->ints = next;
    return forms(walk, node, bel_batch_apart, false, inputs) &&
           bel_batch_emit(walk, node, &attrs, inputs, BEL_BATCH_APART);
}

static bel_shape shifted(const bel_shape *list, int64_t first, int64_t by)
{
    bel_shape longer = {.rank = 1, .dims = {first}};
    for (int32_t d = 0; d < list->rank && longer.rank < BEL_MAX_RANK; d++)
        longer.dims[longer.rank++] = list->dims[d] + by;
    return longer;
}

static bool batch_rules_pad(bel_batch_walk *walk, const bel_node *node)
{
    static const char *const names[] = {"pads_before", "pads_behind"};
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    bel_attr_list attrs = node->attrs;
    bool first = false;
    for (int i = 0; i < 2; i++) {
        const bel_shape *list = bel_attr_ints(&node->attrs, names[i]);
        if (list == NULL) return false;
        first = first || (list->rank > 0 && list->dims[0] != 0);
        attr_of(&attrs, names[i])->ints = shifted(list, 0, 0);
    }
    if (!first && forms(walk, node, bel_batch_flat, false, inputs))
        return bel_batch_emit(walk, node, &node->attrs, inputs, BEL_BATCH_FLAT);
    return forms(walk, node, bel_batch_apart, false, inputs) &&
           bel_batch_emit(walk, node, &attrs, inputs, BEL_BATCH_APART);
}

// --- Shapes --------------------------------------------------------------------------------------

static bool batch_rules_transpose(bel_batch_walk *walk, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    const bel_shape *perm = bel_attr_ints(&node->attrs, "perm");
    if (perm->rank > 0 && perm->dims[0] == 0 && forms(walk, node, bel_batch_flat, false, inputs))
        return bel_batch_emit(walk, node, &node->attrs, inputs, BEL_BATCH_FLAT);
    bel_attr_list attrs = node->attrs;
    attr_of(&attrs, "perm")->ints = shifted(perm, 0, 1);
    return forms(walk, node, bel_batch_apart, false, inputs) &&
           bel_batch_emit(walk, node, &attrs, inputs, BEL_BATCH_APART);
}

// The result's closed shape is known. Examples stay in dimension 0 if it keeps its size.
static bool batch_rules_reshape(bel_batch_walk *walk, const bel_node *node)
{
    const bel_value *x = node->inputs[0], *y = node->outputs[0];
    bel_batch_place *place = &walk->places[y->id];
    if (!bel_batch_depends(walk, x)) return false;
    bool flat = shape_of(y)->rank > 0 && shape_of(y)->dims[0] == walk->batch;
    bel_value *from = flat ? bel_batch_flat(walk, x) : NULL;
    bel_batch_form form = from != NULL ? BEL_BATCH_FLAT : BEL_BATCH_APART;
    if (from == NULL) from = bel_batch_apart(walk, x);
    if (from == NULL || (form == BEL_BATCH_APART && shape_of(y)->rank >= BEL_MAX_RANK))
        return false;
    bel_shape to = bel_batch_shape(walk, shape_of(y), form);
    *place = (bel_batch_place){.value = bel_batch_reshape(walk, from, &to), .form = form};
    return place->value != NULL;
}

// Shifts open dimensions that refer to the second input, if its dimensions have moved.
static void follow_like(const bel_batch_walk *walk, const bel_node *node, bel_shape *shape)
{
    if (node->input_count < 2) return;
    bool apart = walk->places[node->inputs[1]->id].form == BEL_BATCH_APART;
    for (int32_t d = 0; d < shape->rank; d++)
        if (shape->dims[d] < 0 && apart) shape->dims[d]--;
}

static bool expand(bel_batch_walk *walk, const bel_node *node)
{
    const bel_value *x = node->inputs[0];
    bel_attr_list attrs = node->attrs;
    bel_shape *shape = &attr_of(&attrs, "shape")->ints;
    bel_value *inputs[2] = {walk->places[x->id].value};
    if (node->input_count > 1) inputs[1] = walk->places[node->inputs[1]->id].value;
    follow_like(walk, node, shape);
    if (!bel_batch_depends(walk, x))
        return bel_batch_emit(walk, node, &attrs, inputs, BEL_BATCH_NONE);
    int32_t rank = shape_of(x)->rank, missing = shape->rank - rank;
    int64_t first = shape->rank > 0 ? shape->dims[0] : 0;
    bool flat = rank > 0 && missing <= 0 && (missing < 0 || first == 1 || first == walk->batch);
    inputs[0] = flat ? bel_batch_flat(walk, x) : NULL;
    if (inputs[0] != NULL) {
        if (missing == 0) shape->dims[0] = 1;
        return bel_batch_emit(walk, node, &attrs, inputs, BEL_BATCH_FLAT);
    }
    inputs[0] = bel_batch_apart(walk, x);
    if (shape->rank >= BEL_MAX_RANK || inputs[0] == NULL) return false;
    int64_t axes[BEL_MAX_RANK];
    for (int32_t k = 0; k < missing; k++)
        axes[k] = 1 + k;
    if (missing > 0) inputs[0] = bel_unsqueeze(walk->graph, inputs[0], axes, missing);
    if (missing >= 0) *shape = shifted(shape, 1, 0);
    return bel_batch_emit(walk, node, &attrs, inputs, BEL_BATCH_APART);
}

// --- Look-ups and sequences ----------------------------------------------------------------------

// Looks up rows of a table that all examples share, or the same indices of each example.
static bool batch_rules_gather(bel_batch_walk *walk, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    int64_t axis = axis_of(node, 0, shape_of(node->inputs[0])->rank);
    bool table = !bel_batch_depends(walk, node->inputs[0]);
    bool shared = !bel_batch_depends(walk, node->inputs[1]);
    if (table ? axis != 0 : !shared) return false;
    if ((table || axis != 0) && forms(walk, node, bel_batch_flat, false, inputs))
        return bel_batch_emit(walk, node, &node->attrs, inputs, BEL_BATCH_FLAT);
    bel_attr_list attrs = node->attrs;
    if (!table) attr_of(&attrs, "axis")->number = (double)(axis + 1);
    return shape_of(node->outputs[0])->rank < BEL_MAX_RANK &&
           forms(walk, node, bel_batch_apart, false, inputs) &&
           bel_batch_emit(walk, node, &attrs, inputs, BEL_BATCH_APART);
}

// Converts a stacked value [a, 1, b …] to [n, a, b …] without the 1, or back. `axis`: place of that
// 1 in the closed shape.
static bel_value *without_axis(const bel_batch_walk *walk, const bel_value *closed, int64_t axis)
{
    bel_value *apart = bel_batch_apart(walk, closed);
    int64_t at = axis + 1;
    return apart == NULL ? NULL : bel_squeeze(walk->graph, apart, &at, 1);
}

// x [time, 1, features] with the batch second becomes [n, time, features] with the batch first.
// Initial states [directions, 1, hidden] and outputs change likewise.
static bool batch_rules_recurrent(bel_batch_walk *walk, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    bool first = bel_attr_flag(&node->attrs, "layout");
    bel_attr_list attrs = node->attrs;
    if (!first && walk->batch != 1) return false;
    attr_of(&attrs, "layout")->number = 1;
    for (int i = 0; i < node->input_count; i++) {
        const bel_value *x = node->inputs[i];
        bool weights = i >= 1 && i <= 3;
        if (weights && bel_batch_depends(walk, x)) return false;
        bool flat = first || shape_of(x)->rank == 1; // rank 1: lengths
        inputs[i] = weights ? walk->places[x->id].value
                    : flat  ? bel_batch_flat(walk, x)
                            : without_axis(walk, x, 1);
    }
    if (!bel_batch_emit(walk, node, &attrs, inputs, BEL_BATCH_FLAT)) return false;
    batch_rules_lose(walk, node, node->output_count - 1); // the gates, which no operator outputs
    for (int o = 0; o < node->output_count - 1 && !first; o++) {
        bel_batch_place *place = &walk->places[node->outputs[o]->id];
        int64_t at = o == 0 ? 3 : 2; // [n, time, directions, 1, hidden], [n, directions, 1, hidden]
        place->value = bel_unsqueeze(walk->graph, place->value, &at, 1);
        place->form = BEL_BATCH_APART;
    }
    return true;
}

// Each input has the batch first, or does not depend on it.
static bool all_flat(bel_batch_walk *walk, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    return forms(walk, node, bel_batch_flat, true, inputs) &&
           bel_batch_emit(walk, node, &node->attrs, inputs, BEL_BATCH_FLAT);
}

// --- By operation --------------------------------------------------------------------------------

bool bel_batch_rule(bel_batch_walk *walk, const bel_node *node)
{
    int32_t rank = shape_of(node->inputs[0])->rank;
    switch (node->op) {
    case BEL_OP_MATMUL: return batch_rules_matmul(walk, node);
    case BEL_OP_GEMM: return gemm(walk, node);
    case BEL_OP_CONV:
    case BEL_OP_CONV_TRANSPOSE:
    case BEL_OP_MAX_POOL:
    case BEL_OP_AVERAGE_POOL:
    case BEL_OP_GLOBAL_AVERAGE_POOL:
    case BEL_OP_BATCH_NORM:
    case BEL_OP_INSTANCE_NORM:
    case BEL_OP_GROUP_NORM: return batch_rules_rows(walk, node);
    case BEL_OP_LAYER_NORM: return layer_norm(walk, node);
    case BEL_OP_SOFTMAX:
    case BEL_OP_LOG_SOFTMAX: return along(walk, node, rank - 1, false);
    case BEL_OP_ARG_MAX:
    case BEL_OP_ARG_MIN:
    case BEL_OP_CUM_SUM:
    case BEL_OP_GATHER_ELEMENTS:
    case BEL_OP_CONCAT: return along(walk, node, axis_of(node, 0, rank), true);
    case BEL_OP_TOP_K: return along(walk, node, axis_of(node, -1, rank), true);
    case BEL_OP_REDUCE_SUM:
    case BEL_OP_REDUCE_MEAN:
    case BEL_OP_REDUCE_MAX:
    case BEL_OP_REDUCE_MIN:
    case BEL_OP_REDUCE_PROD:
    case BEL_OP_REDUCE_SUM_SQUARE:
    case BEL_OP_REDUCE_L1:
    case BEL_OP_REDUCE_L2: return batch_rules_reduce(walk, node);
    case BEL_OP_SLICE: return batch_rules_slice(walk, node);
    case BEL_OP_PAD: return batch_rules_pad(walk, node);
    case BEL_OP_TRANSPOSE: return batch_rules_transpose(walk, node);
    case BEL_OP_RESHAPE:
    case BEL_OP_FLATTEN:
    case BEL_OP_SQUEEZE:
    case BEL_OP_UNSQUEEZE:
    case BEL_OP_RESHAPE_LIKE: return batch_rules_reshape(walk, node);
    case BEL_OP_EXPAND: return expand(walk, node);
    case BEL_OP_GATHER: return batch_rules_gather(walk, node);
    case BEL_OP_GRU:
    case BEL_OP_LSTM: return batch_rules_recurrent(walk, node);
    case BEL_OP_ATTENTION:
    case BEL_OP_SEQUENCE_MASK: return all_flat(walk, node);
    case BEL_OP_EQUAL:
    case BEL_OP_GREATER:
    case BEL_OP_LESS:
    case BEL_OP_GREATER_OR_EQUAL:
    case BEL_OP_LESS_OR_EQUAL:
    case BEL_OP_AND:
    case BEL_OP_OR:
    case BEL_OP_XOR:
    case BEL_OP_NOT:
    case BEL_OP_IS_NAN:
    case BEL_OP_WHERE:
    case BEL_OP_IDENTITY:
    case BEL_OP_DROPOUT:
    case BEL_OP_RANDOM_UNIFORM:
    case BEL_OP_RANDOM_NORMAL: return each(walk, node);
    case BEL_OP_ONE_HOT: return along(walk, node, -1, false);
    default: return (bel_op_get(node->op)->flags & BEL_OP_ELEMENTWISE) != 0 && each(walk, node);
    }
}
