// Operators on shapes: other shapes or orders of the same elements, parts, repetitions. Shapes,
// axes and pads from inputs must be known while the graph is built. They are untrusted numbers,
// checked against -1 or 0 and against 2^48 elements. Tile and DepthToSpace are Reshapes around
// Expand or Transpose; Reshape computes an open dimension. INT32_MAX as an end of a Slice along an
// open dimension means "to the end", as exporters intend.
#include "base/alloc.h"
#include "onnx/make.h"
#include "onnx/shapes.h"
#include "onnx/sizes.h"
#include "tensor/open.h"

// --- Shapes from elements ------------------------------------------------------------------------

// INVALID_ARGUMENT: a dimension below `low` (-1 or 0), or more elements than a value may have.
static bel_status *check_shape(const bel_shape *shape, int64_t low)
{
    bel_shape counted = *shape;
    for (int32_t d = 0; d < shape->rank; d++) {
        if (shape->dims[d] < low) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "dimension %d of a shape is %lld", (int)d,
                           (long long)shape->dims[d]);
        }
        if (counted.dims[d] < 1) counted.dims[d] = 1; // computed, copied, or empty
    }
    if (bel_shape_elements(&counted) <= BEL_GRAPH_MAX_ELEMENTS) return NULL;
    char text[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "shape %s has too many elements",
                   bel_shape_text(shape, text));
}

// Returns a known input as a shape without open dimensions.
static bel_status *known_shape(bel_onnx_call *call, int input, bel_shape *out_shape)
{
    BEL_TRY(bel_onnx_known_ints(call, input, out_shape));
    return check_shape(out_shape, 0);
}

// --- The same elements ---------------------------------------------------------------------------

bel_status *bel_onnx_old_reshape(bel_onnx_call *call)
{
    bel_shape shape;
    BEL_TRY(bel_onnx_ints(call, "shape", &shape));
    BEL_TRY(check_shape(&shape, -1));
    bel_onnx_out(call, 0, bel_reshape(call->graph, bel_onnx_in(call, 0), &shape));
    return NULL;
}

// With allowzero a 0 is a dimension without elements. Then x has no elements either, so the result
// is a constant.
static bel_status *reshape_to_nothing(bel_onnx_call *call, const bel_shape *shape)
{
    bel_shape x_shape = bel_onnx_in_shape(call, 0);
    BEL_TRY(check_shape(shape, 0));
    if (bel_shape_elements(&x_shape) != 0) {
        char xt[BEL_SHAPE_TEXT], yt[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "cannot reshape %s to %s, which has no elements",
                       bel_shape_text(&x_shape, xt), bel_shape_text(shape, yt));
    }
    char nothing = 0;
    bel_tensor empty = {bel_value_dtype(bel_onnx_in(call, 0)), *shape, &nothing};
    bel_onnx_out(call, 0, bel_constant(call->graph, &empty));
    return NULL;
}

// The number of elements of a shape: a number times sizes of open dimensions, which may repeat.
typedef struct element_count {
    int64_t number;
    int32_t symbol_count;
    int64_t symbols[2 * BEL_MAX_RANK]; // k of -k
} element_count;

static bool count_dim(element_count *c, int64_t dim)
{
    bel_open o = bel_open_of(dim);
    if (o.first != 0) c->symbols[c->symbol_count++] = o.first;
    if (o.second != 0) c->symbols[c->symbol_count++] = o.second;
    return !__builtin_mul_overflow(c->number, o.factor, &c->number);
}

static bool take_symbol(element_count *c, int64_t symbol)
{
    for (int32_t i = 0; i < c->symbol_count; i++) {
        if (c->symbols[i] != symbol) continue;
        c->symbols[i] = c->symbols[--c->symbol_count];
        return true;
    }
    return symbol == 0;
}

// Divides by a dimension; false if it is not a divisor.
static bool divide_by(element_count *c, int64_t dim)
{
    bel_open o = bel_open_of(dim);
    if (o.factor == 0 || c->number % o.factor != 0) return false;
    c->number /= o.factor;
    return take_symbol(c, o.first) && take_symbol(c, o.second);
}

// Resolves the requested dimensions: 0 copies x's, -1 (at most one) follows from the others.
static bool wanted_dims(const bel_shape *x, const bel_onnx_size_list *wanted, bel_shape *out_y)
{
    element_count left = {.number = 1};
    bel_shape y = {.rank = wanted->count};
    int32_t hole = -1;
    bool fits = true;
    for (int32_t d = 0; d < x->rank && fits; d++)
        fits = count_dim(&left, x->dims[d]);
    for (int32_t d = 0; d < y.rank && fits; d++) {
        bel_onnx_extent size = wanted->items[d];
        if (size.symbol == 0 && size.number == -1) {
            fits = hole < 0;
            hole = d;
            continue;
        }
        bool copied = size.symbol == 0 && size.number == 0;
        fits = copied ? d < x->rank : bel_onnx_dim_of(size, &y.dims[d]);
        if (fits && copied) y.dims[d] = x->dims[d];
        fits = fits && divide_by(&left, y.dims[d]);
    }
    if (hole >= 0) {
        bel_open o = {.factor = left.number};
        if (left.symbol_count > 0) o.first = left.symbols[0];
        if (left.symbol_count > 1) o.second = left.symbols[1];
        fits = fits && left.symbol_count <= 2 && bel_open_dim(o, &y.dims[hole]);
    }
    *out_y = y;
    return fits && (hole >= 0 || (left.number == 1 && left.symbol_count == 0));
}

// Returns another value of exactly this shape, or NULL.
static bel_value *find_shape(const bel_graph *graph, const bel_shape *shape)
{
    for (size_t i = 0; i < graph->value_count; i++)
        if (bel_shape_equal(&graph->values[i]->spec.shape, shape)) return graph->values[i];
    return NULL;
}

// Reshapes to a shape with open dimensions. Reshape can compute one of them and copy those that
// keep their place; for more, another value must have that shape.
static bel_status *reshape_open(bel_onnx_call *call, const bel_onnx_size_list *wanted)
{
    bel_shape x = bel_onnx_in_shape(call, 0), y, attr;
    char xt[BEL_SHAPE_TEXT], yt[BEL_SHAPE_TEXT];
    if (!wanted_dims(&x, wanted, &y)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "cannot reshape %s to the %d dimensions of its second input: element counts "
                       "differ, or three open dimensions would become one",
                       bel_shape_text(&x, xt), (int)wanted->count);
    }
    int32_t computed = 0;
    attr = y;
    for (int32_t d = 0; d < y.rank; d++) {
        bool open = y.dims[d] < 0, kept = open && d < x.rank && x.dims[d] == y.dims[d];
        if (open) attr.dims[d] = kept ? 0 : -1;
        computed += open && !kept;
    }
    if (computed <= 1) {
        bel_onnx_out(call, 0, bel_reshape(call->graph, bel_onnx_in(call, 0), &attr));
        return NULL;
    }
    bel_value *inputs[] = {bel_onnx_in(call, 0), find_shape(call->graph, &y)};
    if (inputs[1] == NULL) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "reshaping %s to %s, where %d open dimensions move",
                       bel_shape_text(&x, xt), bel_shape_text(&y, yt), (int)computed);
    }
    bel_onnx_out(call, 0, bel_graph_add(call->graph, BEL_OP_RESHAPE_LIKE, NULL, inputs, 2));
    return NULL;
}

bel_status *bel_onnx_reshape(bel_onnx_call *call)
{
    bel_shape shape, x = bel_onnx_in_shape(call, 0);
    bool zero = false, open = bel_onnx_sizes_in(call, 1) != NULL, keep;
    bel_onnx_size_list wanted;
    BEL_TRY(bel_onnx_known_sizes(call, 1, &wanted));
    for (int32_t d = 0; d < x.rank; d++)
        open = open || x.dims[d] < 0;
    for (int32_t d = 0; d < wanted.count; d++)
        zero = zero || (wanted.items[d].symbol == 0 && wanted.items[d].number == 0);
    keep = zero && bel_onnx_int(call, "allowzero") != 0;
    if (open && !keep) return reshape_open(call, &wanted);
    BEL_TRY(bel_onnx_known_ints(call, 1, &shape));
    if (keep) return reshape_to_nothing(call, &shape);
    BEL_TRY(check_shape(&shape, -1));
    bel_onnx_out(call, 0, bel_reshape(call->graph, bel_onnx_in(call, 0), &shape));
    return NULL;
}

bel_status *bel_onnx_transpose(bel_onnx_call *call)
{
    bel_shape perm;
    int32_t rank = bel_onnx_in_shape(call, 0).rank;
    BEL_TRY(bel_onnx_ints(call, "perm", &perm));
    if (perm.rank != rank && bel_onnx_find_attr(call, "perm") != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "attribute \"perm\" has %d numbers, expected %d",
                       (int)perm.rank, (int)rank);
    }
    for (int32_t d = 0; d < rank && perm.rank == 0; d++)
        perm.dims[d] = rank - 1 - d;
    bel_onnx_out(call, 0, bel_transpose(call->graph, bel_onnx_in(call, 0), perm.dims));
    return NULL;
}

bel_status *bel_onnx_squeeze(bel_onnx_call *call)
{
    bel_shape axes = {.rank = 0};
    if (bel_onnx_has(call, 1)) BEL_TRY(bel_onnx_known_ints(call, 1, &axes));
    bel_onnx_out(call, 0, bel_squeeze(call->graph, bel_onnx_in(call, 0), axes.dims, axes.rank));
    return NULL;
}

bel_status *bel_onnx_unsqueeze(bel_onnx_call *call)
{
    bel_shape axes;
    BEL_TRY(bel_onnx_known_ints(call, 1, &axes));
    bel_onnx_out(call, 0, bel_unsqueeze(call->graph, bel_onnx_in(call, 0), axes.dims, axes.rank));
    return NULL;
}

// --- Repetitions ---------------------------------------------------------------------------------

// Expand takes an open dimension from another value's shape; dimensions of several values are
// expanded one value after another.
bel_status *bel_onnx_repeat(bel_onnx_call *call, bel_value *x, int input)
{
    if (bel_onnx_sizes_in(call, input) == NULL) {
        bel_shape shape;
        BEL_TRY(known_shape(call, input, &shape));
        bel_onnx_out(call, 0, bel_expand(call->graph, x, &shape));
        return NULL;
    }
    bel_onnx_size_list wanted;
    BEL_TRY(bel_onnx_known_sizes(call, input, &wanted));
    bel_shape closed = {.rank = wanted.count};
    for (int32_t d = 0; d < wanted.count; d++) {
        int64_t dim;
        if (!bel_onnx_dim_of(wanted.items[d], &dim)) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "dimension %d of a shape is %lld", (int)d,
                           (long long)wanted.items[d].number);
        }
        closed.dims[d] = dim < 0 ? 1 : dim;
        if (dim >= 0) continue;
        int32_t axis;
        bel_attr_list attrs = {.count = 1, .items = {{.name = "shape"}}};
        bel_shape *shape = &attrs.items[0].ints;
        bel_value *inputs[] = {x, bel_onnx_find_dim(call->graph, dim, &axis)};
        if (inputs[1] == NULL) {
            return BEL_ERR(BEL_UNIMPLEMENTED,
                           "dimension %d is %lld times an open one, and no value has that size",
                           (int)d, (long long)wanted.items[d].number);
        }
        shape->rank = wanted.count;
        for (int32_t k = 0; k < wanted.count; k++)
            shape->dims[k] = k == d ? -1 - axis : 1;
        x = bel_graph_add(call->graph, BEL_OP_EXPAND, &attrs, inputs, 2);
    }
    BEL_TRY(check_shape(&closed, 0));
    bel_onnx_out(call, 0, bel_expand(call->graph, x, &closed));
    return NULL;
}

bel_status *bel_onnx_expand(bel_onnx_call *call)
{
    return bel_onnx_repeat(call, bel_onnx_in(call, 0), 1);
}

// Repeats dimension `axis` as a whole: inserts a dimension before it, repeats that, and joins both.
static bel_value *tile_axis(bel_graph *graph, bel_value *x, int32_t axis, int64_t repeats)
{
    int64_t at = axis;
    bel_shape shape = bel_value_shape(x), repeated = {.rank = shape.rank + 1};
    for (int32_t d = 0; d < repeated.rank; d++)
        repeated.dims[d] = d == axis ? repeats : 1;
    bel_value *y = bel_expand(graph, bel_unsqueeze(graph, x, &at, 1), &repeated);
    for (int32_t d = 0; d < shape.rank; d++) // Reshape computes an open dimension
        shape.dims[d] = d == axis           ? shape.dims[d] * repeats
                        : shape.dims[d] < 0 ? -1
                                            : shape.dims[d];
    return bel_reshape(graph, y, &shape);
}

bel_status *bel_onnx_tile(bel_onnx_call *call)
{
    bel_shape repeats;
    BEL_TRY(bel_onnx_known_ints(call, 1, &repeats));
    bel_value *x = bel_onnx_in(call, 0);
    bel_shape shape = bel_value_shape(x);
    if (repeats.rank != shape.rank) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%d numbers of repeats for %d dimensions",
                       (int)repeats.rank, (int)shape.rank);
    }
    if (shape.rank == BEL_MAX_RANK) { // each dimension needs a new one before it
        return BEL_ERR(BEL_UNIMPLEMENTED, "repeating %d dimensions; expected at most %d",
                       (int)shape.rank, BEL_MAX_RANK - 1);
    }
    for (int32_t d = 0; d < shape.rank && x != NULL; d++) {
        if (repeats.dims[d] < 0 || repeats.dims[d] > INT32_MAX) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%lld repeats", (long long)repeats.dims[d]);
        }
        if (repeats.dims[d] == 1) continue;
        bel_shape one = BEL_SHAPE(shape.dims[d]);
        BEL_TRY(bel_onnx_closed(&one, 0, "it is repeated"));
        if (shape.dims[d] > 0 && repeats.dims[d] > BEL_GRAPH_MAX_ELEMENTS / shape.dims[d]) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%lld repeats of %lld elements are too many",
                           (long long)repeats.dims[d], (long long)shape.dims[d]);
        }
        x = tile_axis(call->graph, x, d, repeats.dims[d]);
    }
    bel_onnx_out(call, 0, x == bel_onnx_in(call, 0) ? bel_identity(call->graph, x) : x);
    return NULL;
}

// --- Parts and joins -----------------------------------------------------------------------------

// The sum of open dimensions has no symbol but the one that the model gives it, as a text generator
// does whose outputs are keys and values with those of before. 0: the parts are closed, or the
// model gives none.
static int64_t open_total(bel_onnx_call *call, int64_t axis)
{
    bool open = false;
    int32_t at = 0;
    for (int i = 0; i < call->node->input_count; i++) {
        bel_shape shape = bel_onnx_in_shape(call, i);
        bel_status *status = bel_onnx_axis(axis, shape.rank, &at);
        bool wrong = status != NULL;
        bel_status_ignore(status); // bel_concat reports it
        if (wrong) return 0;
        open = open || shape.dims[at] < 0;
    }
    return open ? bel_onnx_declared_dim(call, 0, at) : 0;
}

bel_status *bel_onnx_concat(bel_onnx_call *call)
{
    int64_t axis = bel_onnx_int(call, "axis");
    int count = call->node->input_count;
    if (call->node->version >= 4 && bel_onnx_find_attr(call, "axis") == NULL) {
        return BEL_ERR(BEL_DATA_LOSS, "attribute \"axis\" is missing");
    }
    bel_value **parts = bel_xcalloc((size_t)count, sizeof *parts);
    for (int i = 0; i < count; i++)
        parts[i] = bel_onnx_in(call, i);
    int64_t total = open_total(call, axis);
    bel_onnx_out(call, 0,
                 total < 0 ? bel_concat_open(call->graph, parts, count, axis, total)
                           : bel_concat(call->graph, parts, count, axis));
    bel_free(parts);
    return NULL;
}

// Splits into the `given` sizes; NULL: equal parts.
static bel_status *make_shape_split(bel_onnx_call *call, const int64_t *sizes, int64_t given)
{
    bel_value *x = bel_onnx_in(call, 0);
    bel_shape shape = bel_value_shape(x);
    int32_t axis;
    int count = call->node->output_count;
    BEL_TRY(bel_onnx_axis(bel_onnx_int(call, "axis"), shape.rank, &axis));
    // Since opset 18 the last of equal parts may be smaller.
    bool uneven = bel_onnx_find_attr(call, "num_outputs") != NULL;
    bool even = count > 0 && shape.dims[axis] % count == 0;
    bool fits = count > 0 && (sizes != NULL ? given == count : even || uneven);
    if (uneven && (sizes != NULL || bel_onnx_int(call, "num_outputs") != count)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "num_outputs does not fit %d outputs, or sizes of them", count);
    }
    if (!fits) {
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "axis %d of %s cannot be split into %d outputs",
                       (int)axis, bel_shape_text(&shape, text), count);
    }
    bel_split(call->graph, x, axis, sizes, count, call->outputs);
    return NULL;
}

bel_status *bel_onnx_old_split(bel_onnx_call *call)
{
    const bel_onnx_attr *attr = bel_onnx_find_attr(call, "split");
    return attr == NULL ? make_shape_split(call, NULL, 0)
                        : make_shape_split(call, attr->integers, (int64_t)attr->list_count);
}

bel_status *bel_onnx_split(bel_onnx_call *call)
{
    bel_tensor sizes;
    if (!bel_onnx_has(call, 1)) return make_shape_split(call, NULL, 0);
    BEL_TRY(bel_onnx_known_i64(call, 1, &sizes));
    return make_shape_split(call, sizes.data, bel_shape_elements(&sizes.shape));
}

// Slices x by lists: starts, ends, axes, steps; the last two may be absent (rank 0).
static bel_status *make_shape_slice(bel_onnx_call *call, bel_value *from, const bel_shape lists[4])
{
    int32_t count = lists[0].rank;
    bool fits = lists[1].rank == count && (lists[2].rank == 0 || lists[2].rank == count) &&
                (lists[3].rank == 0 || lists[3].rank == count);
    if (!fits) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "starts, ends, axes and steps have %d, %d, %d and %d numbers", (int)count,
                       (int)lists[1].rank, (int)lists[2].rank, (int)lists[3].rank);
    }
    bel_shape x = bel_value_shape(from), ends = lists[1];
    for (int32_t i = 0; i < count; i++) { // exporters' notation for "to the end"
        int64_t axis = lists[2].rank == 0 ? i : lists[2].dims[i];
        if (axis < 0) axis += x.rank;
        bool open = axis >= 0 && axis < x.rank && x.dims[axis] < 0;
        if (open && ends.dims[i] >= INT32_MAX) ends.dims[i] = INT64_MAX;
    }
    bel_onnx_out(call, 0,
                 bel_slice(call->graph, from, lists[2].rank == 0 ? NULL : lists[2].dims,
                           lists[0].dims, ends.dims, lists[3].rank == 0 ? NULL : lists[3].dims,
                           count));
    return NULL;
}

bel_status *bel_onnx_old_slice(bel_onnx_call *call)
{
    bel_shape lists[4] = {{.rank = 0}};
    BEL_TRY(bel_onnx_ints(call, "starts", &lists[0]));
    BEL_TRY(bel_onnx_ints(call, "ends", &lists[1]));
    BEL_TRY(bel_onnx_ints(call, "axes", &lists[2]));
    return make_shape_slice(call, bel_onnx_in(call, 0), lists);
}

// Slices up to the size of an open dimension, from 0 in steps of 1: a Gather with that number of
// indices. x must have that number of elements, whereas ONNX would end earlier.
static bel_status *slice_to_size(bel_onnx_call *call, bel_onnx_extent end, int64_t axis,
                                 bool from_first, bel_value **x)
{
    int64_t dim;
    bool fits = from_first && bel_onnx_dim_of(end, &dim) && axis < bel_value_shape(*x).rank;
    bel_value *indices = fits ? bel_onnx_count_to(call->graph, dim, BEL_DTYPE_I64) : NULL;
    if (indices == NULL) {
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "an end is the size of an open dimension; Belfry reads that where axis %lld "
                       "is cut from 0 in steps of 1, and some value has that size",
                       (long long)axis);
    }
    *x = bel_gather_axis(call->graph, *x, indices, axis);
    return NULL;
}

// Reads ends. The size of an open dimension along that same dimension means "to the end". Along
// other dimensions it cuts x here.
static bel_status *slice_ends(bel_onnx_call *call, const bel_shape lists[4], bel_value **x,
                              bel_shape *out_ends)
{
    bel_onnx_size_list ends;
    bel_shape list = {.rank = 0};
    BEL_TRY(bel_onnx_known_sizes(call, 2, &ends));
    for (int32_t i = 0; i < ends.count; i++) {
        bel_shape shape = bel_value_shape(*x);
        int64_t axis = i < lists[2].rank ? lists[2].dims[i] : i, dim;
        if (axis < 0) axis += shape.rank;
        bool size = ends.items[i].symbol < 0;
        bool whole = size && axis >= 0 && axis < shape.rank &&
                     bel_onnx_dim_of(ends.items[i], &dim) && dim == shape.dims[axis];
        bool first = axis >= 0 && i < lists[0].rank && lists[0].dims[i] == 0 &&
                     (i >= lists[3].rank || lists[3].dims[i] == 1);
        if (size && !whole) BEL_TRY(slice_to_size(call, ends.items[i], axis, first, x));
        list.dims[list.rank++] = size ? INT64_MAX : ends.items[i].number;
    }
    *out_ends = list;
    return NULL;
}

bel_status *bel_onnx_slice(bel_onnx_call *call)
{
    bel_shape lists[4] = {{.rank = 0}};
    bel_value *x = bel_onnx_in(call, 0);
    for (int i = 0; i < 4; i++) {
        if (!bel_onnx_has(call, i + 1) || i == 1) continue;
        BEL_TRY(bel_onnx_known_ints(call, i + 1, &lists[i]));
    }
    BEL_TRY(slice_ends(call, lists, &x, &lists[1]));
    return make_shape_slice(call, x, lists);
}

// --- Padding -------------------------------------------------------------------------------------

// pads: `count` integers, those before all dimensions, then those after.
static bel_status *make_shape_pad(bel_onnx_call *call, const int64_t *pads, int64_t count,
                                  double value)
{
    static const char *const modes[] = {
        [BEL_PAD_CONSTANT] = "constant", [BEL_PAD_EDGE] = "edge", [BEL_PAD_REFLECT] = "reflect"};
    int32_t rank = bel_onnx_in_shape(call, 0).rank;
    int mode;
    BEL_TRY(bel_onnx_choice(call, "mode", modes, 3, &mode));
    if (count != 2 * rank) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%lld pads for %d dimensions", (long long)count,
                       (int)rank);
    }
    bel_onnx_out(
        call, 0,
        bel_pad(call->graph, bel_onnx_in(call, 0), pads, pads + rank, (bel_pad_mode)mode, value));
    return NULL;
}

bel_status *bel_onnx_old_pad(bel_onnx_call *call)
{
    const bel_onnx_attr *pads = bel_onnx_find_attr(call, "pads");
    if (pads == NULL) return BEL_ERR(BEL_DATA_LOSS, "attribute \"pads\" is missing");
    return make_shape_pad(call, pads->integers, (int64_t)pads->list_count,
                          bel_onnx_number(call, "value"));
}

bel_status *bel_onnx_pad(bel_onnx_call *call)
{
    bel_tensor pads;
    double value = 0;
    BEL_TRY(bel_onnx_known_i64(call, 1, &pads));
    if (bel_onnx_has(call, 2)) BEL_TRY(bel_onnx_known_number(call, 2, &value));
    int64_t count = bel_shape_elements(&pads.shape);
    if (!bel_onnx_has(call, 3)) return make_shape_pad(call, pads.data, count, value);
    bel_shape axes; // since opset 18: the dimensions of the pads
    int64_t all[2 * BEL_MAX_RANK] = {0};
    int32_t rank = bel_onnx_in_shape(call, 0).rank;
    BEL_TRY(bel_onnx_known_ints(call, 3, &axes));
    if (count != 2 * axes.rank) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%lld pads for %d axes", (long long)count,
                       (int)axes.rank);
    }
    for (int32_t i = 0; i < axes.rank; i++) {
        int32_t axis;
        BEL_TRY(bel_onnx_axis(axes.dims[i], rank, &axis));
        all[axis] = ((const int64_t *)pads.data)[i];
        all[rank + axis] = ((const int64_t *)pads.data)[axes.rank + i];
    }
    return make_shape_pad(call, all, 2 * rank, value);
}

// --- Blocks of images ----------------------------------------------------------------------------

// Reshapes x [n, c, h, w] to six dimensions, permutes them and reshapes back.
static bel_status *through_blocks(bel_onnx_call *call, bool to_space)
{
    static const char *const modes[] = {"DCR", "CRD"};
    static const int64_t perms[3][6] = {{0, 3, 5, 1, 2, 4}, {0, 3, 4, 1, 5, 2}, {0, 1, 4, 2, 5, 3}};
    bel_value *x = bel_onnx_in(call, 0);
    bel_shape s = bel_value_shape(x);
    int64_t b = bel_onnx_int(call, "blocksize");
    int mode;
    BEL_TRY(bel_onnx_choice(call, "mode", modes, 2, &mode));
    bool fits = s.rank == 4 && b >= 1 && b <= 65536;
    if (fits) BEL_TRY(bel_onnx_closed(&s, 1, "it falls into blocks"));
    fits = fits && (to_space ? s.dims[1] % (b * b) == 0 : s.dims[2] % b == 0 && s.dims[3] % b == 0);
    if (!fits) {
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s does not fall into blocks of %lld",
                       bel_shape_text(&s, text), (long long)b);
    }
    int64_t n = s.dims[0] < 0 ? -1 : s.dims[0], c = s.dims[1], h = s.dims[2], w = s.dims[3];
    int64_t left = c / (b * b);
    bel_shape six = !to_space   ? BEL_SHAPE(n, c, h / b, b, w / b, b)
                    : mode == 0 ? BEL_SHAPE(n, b, b, left, h, w)
                                : BEL_SHAPE(n, left, b, b, h, w);
    bel_shape four =
        to_space ? BEL_SHAPE(n, left, h * b, w * b) : BEL_SHAPE(n, c * b * b, h / b, w / b);
    const int64_t *perm = perms[!to_space ? 0 : mode == 0 ? 1 : 2];
    x = bel_transpose(call->graph, bel_reshape(call->graph, x, &six), perm);
    bel_onnx_out(call, 0, bel_reshape(call->graph, x, &four));
    return NULL;
}

bel_status *bel_onnx_depth_to_space(bel_onnx_call *call)
{
    return through_blocks(call, true);
}

bel_status *bel_onnx_space_to_depth(bel_onnx_call *call)
{
    return through_blocks(call, false);
}
