// Symbolic sizes of open dimensions, from Shape to a shape.
//
// Operators that move elements (Gather, Concat, Slice …) are computed by their kernels: the node is
// built in a separate graph with the numbers 0, 1, 2 … instead of its elements, and the result
// gives the new place of each element. Operators that compute support
// sums, products and quotients that are again a number times one size or two. Otherwise an element
// becomes unknown, which is an error only if it is used. Sizes are at least 0, so no size equals a
// negative number.
#include "onnx/sizes.h"

#include <string.h>

#include "base/alloc.h"
#include "onnx/fold.h"
#include "ops/kernels/elements.h"
#include "tensor/open.h"

enum { MOST_SIZES = 1 << 10 };

static const bel_onnx_extent unknown = {0, BEL_ONNX_UNKNOWN};

bel_onnx_extent bel_onnx_size_of(int64_t dim)
{
    if (dim >= 0) return (bel_onnx_extent){dim, 0};
    return (bel_onnx_extent){bel_open_of(dim).factor, bel_open_symbols(dim)};
}

bool bel_onnx_dim_of(bel_onnx_extent size, int64_t *out_dim)
{
    if (size.symbol > 0 || size.number < (size.symbol < 0)) return false;
    if (size.symbol < 0) return bel_open_times(size.symbol, size.number, out_dim);
    *out_dim = size.number;
    return true;
}

// --- Inputs and outputs --------------------------------------------------------------------------

// Returns the elements of an input of known sizes or constants; false if it is neither.
static bool read_input(bel_onnx_call *call, int input, bel_onnx_sizes *out, bel_arena *arena)
{
    const bel_onnx_sizes *sizes = bel_onnx_sizes_in(call, input);
    bel_tensor known;
    if (sizes != NULL) {
        *out = *sizes;
        return true;
    }
    if (!bel_onnx_is_known(call, input)) return false;
    bel_status *status = bel_onnx_known(call, input, &known);
    if (status != NULL) {
        bel_status_ignore(status); // checked above
        return false;
    }
    int64_t count = bel_shape_elements(&known.shape);
    if (!bel_element_is_whole(known.dtype) || count > MOST_SIZES) return false;
    bel_onnx_extent *items = bel_arena_alloc(arena, ((size_t)count + 1) * sizeof *items);
    for (int64_t i = 0; i < count; i++)
        items[i] = (bel_onnx_extent){bel_element_get_whole(&known, i), 0};
    *out = (bel_onnx_sizes){known.dtype, known.shape, items};
    return true;
}

bel_status *bel_onnx_known_sizes(bel_onnx_call *call, int input, bel_onnx_size_list *out_list)
{
    const bel_onnx_sizes *sizes = bel_onnx_sizes_in(call, input);
    bel_onnx_size_list list = {.count = 0};
    if (sizes == NULL) {
        bel_shape ints;
        BEL_TRY(bel_onnx_known_ints(call, input, &ints));
        for (; list.count < ints.rank; list.count++)
            list.items[list.count] = (bel_onnx_extent){ints.dims[list.count], 0};
        *out_list = list;
        return NULL;
    }
    int64_t count = bel_shape_elements(&sizes->shape);
    if (sizes->shape.rank > 1 || count > BEL_MAX_RANK) {
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "input %d must be at most %d integers, got %s", input,
                       BEL_MAX_RANK, bel_shape_text(&sizes->shape, text));
    }
    for (int64_t i = 0; i < count; i++) {
        if (sizes->items[i].symbol > 0) {
            return BEL_ERR(
                BEL_UNIMPLEMENTED,
                "element %lld of input %d is computed from sizes of open dimensions, and "
                "is no product of a number and at most two of them",
                (long long)i, input);
        }
        list.items[list.count++] = sizes->items[i];
    }
    *out_list = list;
    return NULL;
}

void bel_onnx_out_sizes(bel_onnx_call *call, int output, const bel_onnx_sizes *sizes)
{
    int64_t count = bel_shape_elements(&sizes->shape);
    bool closed = true;
    for (int64_t i = 0; i < count; i++)
        closed = closed && sizes->items[i].symbol == 0;
    if (!closed) {
        bel_onnx_keep_sizes(call, output, sizes);
        return;
    }
    bel_tensor tensor = {.dtype = sizes->dtype, .shape = sizes->shape};
    tensor.data = bel_xcalloc(1, bel_tensor_bytes(&tensor) + 1);
    for (int64_t i = 0; i < count; i++)
        bel_element_set_whole(&tensor, i, sizes->items[i].number);
    bel_onnx_out(call, output, bel_constant(call->graph, &tensor));
    bel_free(tensor.data);
}

// --- Operators that move elements ----------------------------------------------------------------

// Inputs whose elements are moved, as bits; the others control the move.
static const struct {
    const char *op;
    unsigned moved;
} movers[] = {{"Identity", 1}, {"Gather", 1},  {"Slice", 1},     {"Concat", ~0u}, {"Unsqueeze", 1},
              {"Squeeze", 1},  {"Reshape", 1}, {"Flatten", 1},   {"Split", 1},    {"Expand", 1},
              {"Tile", 1},     {"Where", 6},   {"Transpose", 1}, {"Cast", 1},     {"GatherND", 1}};

// The moved elements, input after input, and the numbers that stand for them.
typedef struct moved {
    bel_onnx_extent *items;
    bel_tensor *stand_ins; // by input; without data: use the input
    int64_t count;
} moved;

static bool is_moved(unsigned bits, int input)
{
    return bits == ~0u || (input < 31 && (bits >> input & 1) != 0);
}

// False: an input is neither sizes nor constant.
static bool number_elements(bel_onnx_call *call, unsigned bits, bel_arena *arena, moved *m)
{
    int inputs = call->node->input_count;
    m->items = bel_arena_alloc(arena, MOST_SIZES * sizeof *m->items);
    m->stand_ins = bel_arena_alloc(arena, (size_t)inputs * sizeof *m->stand_ins);
    memset(m->stand_ins, 0, (size_t)inputs * sizeof *m->stand_ins);
    for (int i = 0; i < inputs; i++) {
        bel_onnx_sizes sizes;
        if (!bel_onnx_has(call, i)) continue;
        if (!is_moved(bits, i)) {
            if (!bel_onnx_is_constant(call, i)) return false;
            continue;
        }
        if (!read_input(call, i, &sizes, arena)) return false;
        int64_t count = bel_shape_elements(&sizes.shape);
        if (count > MOST_SIZES - m->count) return false;
        bool fits = sizes.dtype == BEL_DTYPE_I64 || sizes.dtype == BEL_DTYPE_I32;
        if (!fits) return false;
        bel_tensor numbers = {sizes.dtype, sizes.shape, NULL};
        numbers.data = bel_arena_alloc(arena, bel_tensor_bytes(&numbers) + 1);
        for (int64_t k = 0; k < count; k++)
            bel_element_set_whole(&numbers, k, m->count + k);
        memcpy(m->items + m->count, sizes.items, (size_t)count * sizeof *m->items);
        m->stand_ins[i] = numbers;
        m->count += count;
    }
    return true;
}

// Puts the elements where their numbers are in the result.
static void place_elements(bel_onnx_call *call, const moved *m, bel_value *const *numbers,
                           bel_arena *arena)
{
    for (int o = 0; o < call->node->output_count; o++) {
        if (numbers[o] == NULL) continue;
        const bel_tensor *tensor = &numbers[o]->node->constant;
        int64_t count = bel_shape_elements(&tensor->shape);
        bel_onnx_extent *items = bel_arena_alloc(arena, ((size_t)count + 1) * sizeof *items);
        for (int64_t i = 0; i < count; i++)
            items[i] = m->items[bel_element_get_whole(tensor, i)];
        bel_onnx_sizes sizes = {tensor->dtype, tensor->shape, items};
        bel_onnx_out_sizes(call, o, &sizes);
    }
}

static bool are_whole(bel_value *const *values, int count)
{
    for (int i = 0; i < count; i++) {
        bel_dtype dtype = bel_value_dtype(values[i]);
        bool whole = dtype == BEL_DTYPE_I64 || dtype == BEL_DTYPE_I32;
        if (values[i] == NULL) continue;
        if (!whole || bel_shape_elements(&values[i]->spec.shape) > MOST_SIZES) return false;
    }
    return true;
}

static bel_status *move(bel_onnx_call *call, unsigned bits, bel_arena *arena, bool *out_done)
{
    moved m = {.count = 0};
    int outputs = call->node->output_count;
    if (!number_elements(call, bits, arena, &m)) return NULL;
    bel_onnx_call beside = *call;
    bel_graph *results = bel_graph_create();
    beside.graph = bel_graph_create();
    beside.stand_ins = m.stand_ins;
    beside.inputs = bel_arena_alloc(arena, (size_t)call->node->input_count * sizeof(bel_value *));
    beside.outputs = bel_arena_alloc(arena, (size_t)outputs * sizeof(bel_value *));
    memset(beside.inputs, 0, (size_t)call->node->input_count * sizeof(bel_value *));
    memset(beside.outputs, 0, (size_t)outputs * sizeof(bel_value *));
    bel_status *status = bel_onnx_make_outputs(&beside);
    bool done = false;
    if (status == NULL && are_whole(beside.outputs, outputs))
        status = bel_onnx_compute(beside.graph, beside.outputs, outputs, results, &done);
    if (status == NULL && done) place_elements(call, &m, beside.outputs, arena);
    bel_graph_destroy(beside.graph);
    bel_graph_destroy(results);
    *out_done = done;
    return status;
}

// --- Operators that compute ----------------------------------------------------------------------

static bel_onnx_extent sizes_add(bel_onnx_extent a, bel_onnx_extent b)
{
    bel_onnx_extent sum = {0, a.symbol != 0 ? a.symbol : b.symbol};
    bool one = a.symbol == b.symbol || (a.symbol == 0 && a.number == 0) ||
               (b.symbol == 0 && b.number == 0);
    if (!one || __builtin_add_overflow(a.number, b.number, &sum.number)) return unknown;
    if (sum.number == 0) sum.symbol = 0;
    return sum;
}

static bel_onnx_extent subtract(bel_onnx_extent a, bel_onnx_extent b)
{
    if (__builtin_sub_overflow(INT64_C(0), b.number, &b.number)) return unknown;
    return sizes_add(a, b);
}

bel_onnx_extent bel_onnx_size_product(bel_onnx_extent a, bel_onnx_extent b)
{
    bel_onnx_extent product = {0, a.symbol != 0 ? a.symbol : b.symbol};
    bool fits = a.symbol <= 0 && b.symbol <= 0;
    if (fits && a.symbol < 0 && b.symbol < 0)
        fits = bel_open_times(a.symbol, b.symbol, &product.symbol);
    if (!fits || __builtin_mul_overflow(a.number, b.number, &product.number)) return unknown;
    if (product.number == 0) product.symbol = 0;
    return product;
}

// Only exact quotients; others are unknown. A size divided by the same size is 1, because the
// quotient of empty dimensions is undefined.
static bel_onnx_extent sizes_divide(bel_onnx_extent a, bel_onnx_extent b)
{
    bel_open symbols = bel_open_of(a.symbol < 0 ? a.symbol : 1);
    bool fits = b.number != 0 && b.number != -1 && (a.symbol == 0 || a.number % b.number == 0);
    if (!fits || (b.symbol < 0 && !bel_open_divide(&symbols, b.symbol))) return unknown;
    bel_onnx_extent quotient = {a.number / b.number, 0};
    bool open = symbols.first != 0 || symbols.second != 0;
    return !open || bel_open_dim(symbols, &quotient.symbol) ? quotient : unknown;
}

static bel_onnx_extent remainder_of(bel_onnx_extent a, bel_onnx_extent b)
{
    bool fits = b.symbol == 0 && b.number > 0 && a.number % b.number == 0;
    return fits ? (bel_onnx_extent){0, 0} : unknown;
}

static bel_onnx_extent extents_equal(bel_onnx_extent a, bel_onnx_extent b)
{
    if (a.symbol == b.symbol && (a.symbol == 0 || a.number == b.number))
        return (bel_onnx_extent){a.number == b.number, 0};
    int64_t number = a.symbol == 0 ? a.number : b.number;
    int64_t factor = a.symbol == 0 ? b.number : a.number; // not 0
    bool apart = (number < 0 && factor > 0) || (number > 0 && factor < 0);
    bool one = a.symbol == 0 || b.symbol == 0;
    return one && apart ? (bel_onnx_extent){0, 0} : unknown;
}

static const struct {
    const char *op;
    bel_onnx_extent (*compute)(bel_onnx_extent a, bel_onnx_extent b);
    bool tells; // its output is BOOL
} computers[] = {{"Add", sizes_add, false},
                 {"Sub", subtract, false},
                 {"Mul", bel_onnx_size_product, false},
                 {"Div", sizes_divide, false},
                 {"Mod", remainder_of, false},
                 {"Equal", extents_equal, true}};

// Takes two vectors of one shape, or one element and a vector.
static void sizes_compute(bel_onnx_call *call, int which, bel_arena *arena, bool *out_done)
{
    bel_onnx_sizes in[2];
    for (int i = 0; i < 2; i++)
        if (!read_input(call, i, &in[i], arena) || in[i].shape.rank > 1) return;
    int64_t counts[] = {bel_shape_elements(&in[0].shape), bel_shape_elements(&in[1].shape)};
    int64_t count = counts[0] == 1 ? counts[1] : counts[0];
    if ((counts[1] != 1 && counts[1] != count) || in[0].dtype != in[1].dtype) return;
    bel_onnx_extent *items = bel_arena_alloc(arena, ((size_t)count + 1) * sizeof *items);
    for (int64_t i = 0; i < count; i++) {
        bel_onnx_extent a = in[0].items[counts[0] == 1 ? 0 : i];
        bel_onnx_extent b = in[1].items[counts[1] == 1 ? 0 : i];
        bool known = a.symbol <= 0 && b.symbol <= 0;
        items[i] = known ? computers[which].compute(a, b) : unknown;
    }
    bool wider = in[1].shape.rank > in[0].shape.rank || counts[0] != count;
    bel_onnx_sizes sizes = {computers[which].tells ? BEL_DTYPE_BOOL : in[0].dtype,
                            in[wider ? 1 : 0].shape, items};
    bel_onnx_out_sizes(call, 0, &sizes);
    *out_done = true;
}

// Multiplies the elements of a vector: the number of elements in a part of a shape.
static void sizes_multiply(bel_onnx_call *call, bel_arena *arena, bool *out_done)
{
    bel_onnx_sizes in;
    if (!read_input(call, 0, &in, arena) || in.shape.rank != 1) return;
    bool axes = bel_onnx_has(call, 1) || bel_onnx_find_attr(call, "axes") != NULL;
    if (!axes && bel_onnx_find_attr(call, "noop_with_empty_axes") != NULL) return;
    bel_onnx_extent product = {1, 0};
    for (int64_t i = 0; i < in.shape.dims[0]; i++)
        product = product.symbol > 0 || in.items[i].symbol > 0
                      ? unknown
                      : bel_onnx_size_product(product, in.items[i]);
    bool kept = bel_onnx_int(call, "keepdims") != 0;
    bel_onnx_sizes sizes = {in.dtype, kept ? BEL_SHAPE(1) : bel_shape_scalar(), &product};
    bel_onnx_out_sizes(call, 0, &sizes);
    *out_done = true;
}

bel_status *bel_onnx_follow(bel_onnx_call *call, bool *out_done)
{
    const char *op = call->node->op;
    bel_status *status = NULL;
    bel_arena *arena = bel_arena_create();
    *out_done = false;
    for (size_t i = 0; i < sizeof movers / sizeof movers[0] && status == NULL; i++)
        if (strcmp(movers[i].op, op) == 0) status = move(call, movers[i].moved, arena, out_done);
    for (size_t i = 0; i < sizeof computers / sizeof computers[0]; i++)
        if (strcmp(computers[i].op, op) == 0) sizes_compute(call, (int)i, arena, out_done);
    if (strcmp(op, "ReduceProd") == 0) sizes_multiply(call, arena, out_done);
    bel_arena_destroy(arena);
    return status;
}
