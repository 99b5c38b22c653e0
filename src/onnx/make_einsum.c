// Einsum of one or two operands as diagonals, sums, transposes and one matrix product. The labels
// of two operands are grouped by whether the output has them (kept) and which operands have them.
// Then
//
//   a [shared kept, kept of a, summed] · b [shared kept, summed, kept of b]
//
// is a MatMul of three dimensions each, whose result is reshaped and transposed. A label of only
// one operand that the output lacks is summed before. More operands are combined pairwise from the
// left; then a label stays while the output or a later operand has it. "..." stands for the
// dimensions without a label, which are kept.
#include <string.h>

#include "base/alloc.h"
#include "onnx/make.h"
#include "tensor/open.h"

// Labels are letters, and numbers from ELLIPSIS on for the dimensions of "...", counted from its
// last one.
enum { ELLIPSIS = 128, LABELS = ELLIPSIS + BEL_MAX_RANK };

typedef struct term {
    int32_t count;
    int labels[BEL_MAX_RANK];
} term;

typedef struct operand {
    bel_value *value;
    term labels; // by dimension
} operand;

static bool term_has(const term *t, int label)
{
    for (int32_t i = 0; i < t->count; i++)
        if (t->labels[i] == label) return true;
    return false;
}

// --- The equation --------------------------------------------------------------------------------

static bel_status *wrong(const char *equation)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "equation \"%.80s\" does not fit the inputs", equation);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Reads one term, up to a comma, an arrow or the end. `rank` determines the number of dimensions of
// "..."; for the output, whose rank is open (-1), it is `ellipsis`.
static const char *read_term(const char *at, int32_t rank, int32_t ellipsis, term *out)
{
    term t = {.count = 0};
    int32_t letters = 0;
    for (const char *c = at; *c != '\0' && *c != ',' && *c != '-'; c++)
        letters += is_letter(*c);
    if (rank >= 0) ellipsis = rank - letters;
    for (; *at != '\0' && *at != ',' && *at != '-'; at++) {
        if (*at == ' ') continue;
        bool dots = strncmp(at, "...", 3) == 0;
        int32_t more = dots ? ellipsis : 1;
        if (more < 0 || more > BEL_MAX_RANK - t.count || (!dots && !is_letter(*at))) return NULL;
        for (int32_t i = 0; i < more; i++)
            t.labels[t.count++] = dots ? ELLIPSIS + more - 1 - i : *at;
        if (dots) at += 2;
    }
    *out = t;
    return rank >= 0 && t.count != rank ? NULL : at;
}

// Without an arrow: the dimensions of "...", then the letters that occur once, in alphabetical
// order.
static bool implicit_output(const term *inputs, int count, term *out)
{
    int seen[LABELS] = {0};
    for (int i = 0; i < count; i++)
        for (int32_t k = 0; k < inputs[i].count; k++)
            seen[inputs[i].labels[k]]++;
    term t = {.count = 0};
    for (int label = LABELS - 1; label >= ELLIPSIS; label--) {
        if (seen[label] == 0) continue;
        if (t.count == BEL_MAX_RANK) return false;
        t.labels[t.count++] = label;
    }
    for (int label = 0; label < ELLIPSIS; label++) {
        if (seen[label] != 1) continue;
        if (t.count == BEL_MAX_RANK) return false;
        t.labels[t.count++] = label;
    }
    *out = t;
    return true;
}

static bool are_letters_once(const term *t)
{
    for (int32_t i = 0; i < t->count; i++)
        for (int32_t k = 0; k < i; k++)
            if (t->labels[i] == t->labels[k]) return false;
    return true;
}

static bel_status *read_equation(bel_onnx_call *call, term *inputs, term *out_output)
{
    int count = call->node->input_count;
    const char *equation = bel_onnx_text(call, "equation", ""), *at = equation;
    int32_t ellipsis = 0;
    for (int i = 0; i < count; i++) {
        if (i > 0 && *at++ != ',') return wrong(equation);
        at = read_term(at, bel_onnx_in_shape(call, i).rank, 0, &inputs[i]);
        if (at == NULL) return wrong(equation);
        for (int32_t k = 0; k < inputs[i].count; k++)
            if (inputs[i].labels[k] - ELLIPSIS >= ellipsis)
                ellipsis = inputs[i].labels[k] - ELLIPSIS + 1;
    }
    if (*at == '\0') return implicit_output(inputs, count, out_output) ? NULL : wrong(equation);
    if (strncmp(at, "->", 2) != 0) return wrong(equation);
    at = read_term(at + 2, -1, ellipsis, out_output);
    bool fits = at != NULL && *at == '\0' && are_letters_once(out_output);
    for (int32_t k = 0; fits && k < out_output->count; k++) {
        bool found = false;
        for (int i = 0; i < count; i++)
            found = found || term_has(&inputs[i], out_output->labels[k]);
        fits = found;
    }
    return fits ? NULL : wrong(equation);
}

// --- One operand ---------------------------------------------------------------------------------

enum { MOST_DIAGONAL = 1 << 12 };

// Returns 0, 1 … n - 1.
static bel_value *count_up(bel_graph *graph, int64_t n)
{
    int64_t *elements = bel_xcalloc((size_t)n + 1, sizeof *elements);
    for (int64_t i = 0; i < n; i++)
        elements[i] = i;
    bel_tensor tensor = {BEL_DTYPE_I64, BEL_SHAPE(n), elements};
    bel_value *value = bel_constant(graph, &tensor);
    bel_free(elements);
    return value;
}

// Takes the diagonal of two dimensions with one label, by a mask and a sum.
static bel_status *take_diagonal(bel_graph *graph, operand *o, int32_t first, int32_t second)
{
    bel_shape shape = bel_value_shape(o->value), mask = {.rank = shape.rank};
    int64_t n = shape.dims[first], axis = second;
    if (n < 0 || shape.dims[second] != n || n > MOST_DIAGONAL) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "the diagonal of %lld by %lld elements", (long long)n,
                       (long long)shape.dims[second]);
    }
    for (int32_t d = 0; d < shape.rank; d++)
        mask.dims[d] = d == first || d == second ? n : 1;
    bel_value *index = count_up(graph, n);
    bel_shape column = BEL_SHAPE(n, 1), row = BEL_SHAPE(1, n);
    bel_value *down = bel_reshape(graph, index, &column), *across = bel_reshape(graph, index, &row);
    bel_value *on = bel_reshape(graph, bel_equal(graph, down, across), &mask);
    bel_value *zero = bel_onnx_scalar(graph, bel_value_dtype(o->value), 0);
    o->value = bel_reduce_sum(graph, bel_where(graph, on, o->value, zero), &axis, 1, false);
    memmove(o->labels.labels + second, o->labels.labels + second + 1,
            (size_t)(o->labels.count - second - 1) * sizeof(int));
    o->labels.count--;
    return NULL;
}

static bel_status *take_diagonals(bel_graph *graph, operand *o)
{
    for (int32_t i = 0; i < o->labels.count; i++) {
        for (int32_t k = i + 1; k < o->labels.count;) {
            if (o->labels.labels[i] != o->labels.labels[k]) {
                k++;
                continue;
            }
            BEL_TRY(take_diagonal(graph, o, i, k));
        }
    }
    return NULL;
}

// Sums the labels that are not wanted.
static void sum_away(bel_graph *graph, operand *o, const bool wanted[LABELS])
{
    int64_t axes[BEL_MAX_RANK];
    int count = 0;
    term left = {.count = 0};
    for (int32_t i = 0; i < o->labels.count; i++) {
        if (wanted[o->labels.labels[i]]) {
            left.labels[left.count++] = o->labels.labels[i];
        } else {
            axes[count++] = i;
        }
    }
    if (count > 0) o->value = bel_reduce_sum(graph, o->value, axes, count, false);
    o->labels = left;
}

// Transposes to the order of the labels, a permutation of the operand's.
static void make_einsum_turn(bel_graph *graph, operand *o, const term *order)
{
    int64_t perm[BEL_MAX_RANK];
    bool moves = false;
    for (int32_t i = 0; i < order->count; i++) {
        for (int32_t k = 0; k < o->labels.count; k++)
            if (o->labels.labels[k] == order->labels[i]) perm[i] = k;
        moves = moves || perm[i] != i;
    }
    if (moves) o->value = bel_transpose(graph, o->value, perm);
    o->labels = *order;
}

// --- Two operands --------------------------------------------------------------------------------

// Returns the size of a label in either operand: 1 broadcasts to the other size.
static bel_status *size_of(const operand *a, const operand *b, int label, int64_t *out_size)
{
    const operand *both[] = {a, b};
    int64_t size = 1;
    for (int i = 0; i < 2; i++) {
        bel_shape shape = bel_value_shape(both[i]->value);
        for (int32_t k = 0; k < both[i]->labels.count; k++) {
            int64_t own = shape.dims[k];
            if (both[i]->labels.labels[k] != label || own == 1) continue;
            if (size != 1 && size != own) {
                return BEL_ERR(BEL_INVALID_ARGUMENT, "a label has %lld and %lld elements",
                               (long long)size, (long long)own);
            }
            size = own;
        }
    }
    *out_size = size;
    return NULL;
}

// Multiplies two sizes of a group; false if both are open.
static bool make_einsum_multiply(int64_t size, int64_t *product)
{
    int64_t open = *product < 0 ? *product : size, factor = *product < 0 ? size : *product;
    return factor > 0 && bel_open_times(open, factor, product);
}

// Group of a label in a product of two operands.
typedef enum part { SHARED, OF_A, OF_B, SUMMED, PARTS } part;

typedef struct groups {
    term terms[PARTS];
    int64_t sizes[PARTS]; // products
} groups;

static part part_of(const operand *a, const operand *b, int label, const bool wanted[LABELS])
{
    bool in_a = term_has(&a->labels, label), in_b = term_has(&b->labels, label);
    if (!in_b) return OF_A;
    if (!in_a) return OF_B;
    return wanted[label] ? SHARED : SUMMED;
}

static bel_status *group_labels(const operand *a, const operand *b, const bool wanted[LABELS],
                                groups *g, int64_t dims[LABELS])
{
    *g = (groups){.sizes = {1, 1, 1, 1}};
    for (int label = 0; label < LABELS; label++) {
        if (!term_has(&a->labels, label) && !term_has(&b->labels, label)) continue;
        part p = part_of(a, b, label, wanted);
        term *t = &g->terms[p];
        BEL_TRY(size_of(a, b, label, &dims[label]));
        if (t->count == BEL_MAX_RANK || !make_einsum_multiply(dims[label], &g->sizes[p])) {
            return BEL_ERR(BEL_UNIMPLEMENTED,
                           "labels that stand for more than %d dimensions, two open ones, or none "
                           "of any size",
                           BEL_MAX_RANK);
        }
        t->labels[t->count++] = label;
    }
    return NULL;
}

// Returns the operand as [shared, first, second].
static bel_status *as_matrices(bel_graph *graph, operand *o, const groups *g, part first,
                               part second, const int64_t dims[LABELS])
{
    const part parts[] = {SHARED, first, second};
    bel_shape three = {.rank = 3}, full = {.rank = 0};
    term order = {.count = 0};
    bool repeated = false;
    int open = 0;
    for (int i = 0; i < 3; i++) {
        const term *t = &g->terms[parts[i]];
        three.dims[i] = g->sizes[parts[i]] < 0 ? -1 : g->sizes[parts[i]];
        open += three.dims[i] < 0;
        for (int32_t k = 0; k < t->count; k++)
            order.labels[order.count++] = t->labels[k];
    }
    make_einsum_turn(graph, o, &order);
    bel_shape shape = bel_value_shape(o->value);
    for (int32_t d = 0; d < order.count; d++) {
        full.dims[full.rank++] = dims[order.labels[d]];
        repeated = repeated || shape.dims[d] != full.dims[d];
        if (shape.dims[d] != full.dims[d] && full.dims[d] < 0) open = 2;
        if (full.dims[d] < 0) full.dims[d] = 1; // unchanged
    }
    if (open > 1) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "two open dimensions, or one that is repeated");
    }
    if (repeated) o->value = bel_expand(graph, o->value, &full);
    o->value = bel_reshape(graph, o->value, &three);
    return NULL;
}

static bel_status *contract(bel_graph *graph, operand *a, operand *b, const bool wanted[LABELS])
{
    groups g;
    int64_t dims[LABELS];
    BEL_TRY(group_labels(a, b, wanted, &g, dims));
    BEL_TRY(as_matrices(graph, a, &g, OF_A, SUMMED, dims));
    BEL_TRY(as_matrices(graph, b, &g, SUMMED, OF_B, dims));
    a->value = bel_matmul(graph, a->value, b->value);
    const part parts[] = {SHARED, OF_A, OF_B};
    bel_shape apart = {.rank = 0};
    a->labels.count = 0;
    int open = 0;
    for (int i = 0; i < 3; i++) {
        for (int32_t k = 0; k < g.terms[parts[i]].count; k++) {
            int label = g.terms[parts[i]].labels[k];
            if (a->labels.count == BEL_MAX_RANK) {
                return BEL_ERR(BEL_UNIMPLEMENTED, "more than %d dimensions", BEL_MAX_RANK);
            }
            a->labels.labels[a->labels.count++] = label;
            apart.dims[apart.rank++] = dims[label] < 0 ? -1 : dims[label];
            open += dims[label] < 0;
        }
    }
    if (open > 1) return BEL_ERR(BEL_UNIMPLEMENTED, "two open dimensions in a product");
    a->value = bel_reshape(graph, a->value, &apart);
    return NULL;
}

// --- All operands --------------------------------------------------------------------------------

bel_status *bel_onnx_einsum(bel_onnx_call *call)
{
    enum { MOST = 16 };
    int count = call->node->input_count;
    if (count > MOST) return BEL_ERR(BEL_UNIMPLEMENTED, "%d operands", count);
    term inputs[MOST], output;
    BEL_TRY(read_equation(call, inputs, &output));
    operand sum = {.value = NULL};
    for (int i = 0; i < count; i++) {
        operand next = {bel_onnx_in(call, i), inputs[i]};
        if (next.value == NULL) return NULL; // the graph has the error
        BEL_TRY(take_diagonals(call->graph, &next));
        bool wanted[LABELS] = {false};
        for (int32_t k = 0; k < output.count; k++)
            wanted[output.labels[k]] = true;
        for (int later = i + 1; later < count; later++)
            for (int32_t k = 0; k < inputs[later].count; k++)
                wanted[inputs[later].labels[k]] = true;
        bool here[LABELS];
        memcpy(here, wanted, sizeof here);
        for (int32_t k = 0; i > 0 && k < sum.labels.count; k++)
            here[sum.labels.labels[k]] = true;
        sum_away(call->graph, &next, here);
        if (i == 0) {
            sum = next;
            continue;
        }
        memcpy(here, wanted, sizeof here);
        for (int32_t k = 0; k < next.labels.count; k++)
            here[next.labels.labels[k]] = true;
        sum_away(call->graph, &sum, here);
        BEL_TRY(contract(call->graph, &sum, &next, wanted));
    }
    make_einsum_turn(call->graph, &sum, &output);
    bool same = sum.value == bel_onnx_in(call, 0);
    bel_onnx_out(call, 0, same ? bel_identity(call->graph, sum.value) : sum.value);
    return NULL;
}
