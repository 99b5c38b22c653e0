// Sequences of different lengths in one tensor: SequenceMask, which clears everything after a
// length, and MaskedSoftmax, which ignores hidden elements, whatever their values. Lengths and
// causality shorten a row; a mask hides single elements by -inf, whose power is exactly 0. A row
// without visible elements is zeros and not NaN. Types determine which optional inputs exist. An
// invalid length is reported and counts as 0. Results may overlap x.
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "ops/families.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/elements.h"
#include "ops/sequence.h"

bel_status *bel_check_lengths(const bel_spec *lengths, const bel_shape *x)
{
    bool fits = lengths->dtype == BEL_DTYPE_I64 && lengths->shape.rank == 1 && x->rank >= 2 &&
                lengths->shape.dims[0] == x->dims[0];
    if (fits) return NULL;
    char xt[BEL_SHAPE_TEXT], lt[BEL_SHAPE_TEXT];
    return BEL_ERR(
        BEL_INVALID_ARGUMENT, "expected x [n, ...] and lengths [n] i64, got %s and %s %s",
        bel_shape_text(x, xt), bel_shape_text(&lengths->shape, lt), bel_dtype_name(lengths->dtype));
}

int64_t bel_length_of(const bel_kernel_call *call, const bel_tensor *lengths, int64_t index,
                      int64_t most)
{
    int64_t length = ((const int64_t *)lengths->data)[index];
    if (length >= 0 && length <= most) return length;
    bel_kernel_report(call, length, most + 1);
    return 0;
}

// --- SequenceMask --------------------------------------------------------------------------------

bel_status *bel_infer_sequence_mask(const bel_attr_list *attrs, const bel_spec *inputs,
                                    int input_count, bel_spec *out_outputs)
{
    (void)input_count;
    int32_t axis;
    const bel_shape *x = &inputs[0].shape;
    BEL_TRY(bel_check_lengths(&inputs[1], x));
    BEL_TRY(bel_read_axis(attrs, 1, x->rank, &axis));
    if (axis == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "axis 0 is the batch, time must be another axis");
    }
    out_outputs[0] = inputs[0];
    return NULL;
}

// x [n, outer, times, inner]. Row `row` of [n · outer] belongs to sequence row / outer, whose first
// `length` times are kept. In place (y = x) only the rest is cleared.
static void run_sequence_mask(const bel_kernel_call *call, int64_t tile)
{
    const bel_sequence_mask_params *p = call->params;
    int64_t rows = call->inputs[0].shape.dims[0] * p->outer, first = tile * p->per_tile;
    int64_t end = first + p->per_tile < rows ? first + p->per_tile : rows;
    for (int64_t row = first; row < end; row++) {
        size_t at = (size_t)(row * p->times) * p->inner_bytes;
        int64_t length = bel_length_of(call, &call->inputs[1], row / p->outer, p->times);
        size_t kept = (size_t)length * p->inner_bytes;
        const char *x = (const char *)call->inputs[0].data + at;
        char *y = (char *)call->outputs[0].data + at;
        if (y != x) memcpy(y, x, kept);
        memset(y + kept, 0, (size_t)(p->times - length) * p->inner_bytes);
    }
}

void bel_prepare_sequence_mask(const bel_prepare *prepare, bel_kernel_call *call)
{
    const bel_shape *x = &call->inputs[0].shape;
    int32_t axis = 1;
    bel_status_ignore(bel_read_axis(prepare->attrs, 1, x->rank, &axis)); // inferred
    bel_sequence_mask_params p = {.outer = 1, .times = x->dims[axis]};
    int64_t inner = 1;
    for (int32_t d = 1; d < axis; d++)
        p.outer *= x->dims[d];
    for (int32_t d = axis + 1; d < x->rank; d++)
        inner *= x->dims[d];
    p.inner_bytes = (size_t)inner * bel_dtype_size(call->inputs[0].dtype);
    p.per_tile = bel_tile_rows(p.times * inner);
    call->run = run_sequence_mask;
    call->tile_count = (x->dims[0] * p.outer + p.per_tile - 1) / p.per_tile;
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}

// --- MaskedSoftmax -------------------------------------------------------------------------------

static bel_hiding read_hiding(const bel_attr_list *attrs, const bel_dtype *dtypes, int input_count)
{
    bel_hiding h = {.mask = -1, .lengths = -1, .causal = bel_attr_number(attrs, "causal", 0) != 0};
    for (int i = 1; i < input_count; i++) {
        if (dtypes[i] == BEL_DTYPE_BOOL) {
            h.mask = i;
        } else {
            h.lengths = i;
        }
    }
    return h;
}

bel_status *bel_infer_masked_softmax(const bel_attr_list *attrs, const bel_spec *inputs,
                                     int input_count, bel_spec *out_outputs)
{
    bel_dtype dtypes[3];
    for (int i = 0; i < input_count; i++)
        dtypes[i] = inputs[i].dtype;
    bel_hiding h = read_hiding(attrs, dtypes, input_count);
    const bel_shape *x = &inputs[0].shape;
    char xt[BEL_SHAPE_TEXT], mt[BEL_SHAPE_TEXT];
    BEL_TRY(bel_infer_float(attrs, inputs, input_count, out_outputs));
    if (input_count == 3 && (h.mask < 0 || h.lengths < 0)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected a mask and lengths, got two of one kind");
    }
    if (x->rank < 2) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected x [..., queries, keys], got %s",
                       bel_shape_text(x, xt));
    }
    if (h.lengths >= 0) BEL_TRY(bel_check_lengths(&inputs[h.lengths], x));
    if (h.mask < 0) return NULL;
    bel_shape both;
    const bel_shape *mask = &inputs[h.mask].shape;
    BEL_TRY(bel_broadcast_shapes(x, mask, &both));
    if (bel_shape_equal(x, &both)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "a mask %s does not broadcast to x %s",
                   bel_shape_text(mask, mt), bel_shape_text(x, xt));
}

// Returns the number of leading elements that a row may see; the mask may hide some of these.
static int64_t seen_by(const bel_kernel_call *call, int64_t row)
{
    const bel_masked_softmax_params *p = call->params;
    int64_t seen = p->columns, query = row % p->queries;
    if (p->hiding.causal && query + 1 < seen) seen = query + 1;
    if (p->hiding.lengths < 0) return seen;
    const bel_tensor *lengths = &call->inputs[p->hiding.lengths];
    int64_t length = bel_length_of(call, lengths, row / p->sequence_rows, p->columns);
    return length < seen ? length : seen;
}

// Returns the mask of a row: element j is at j · *out_step. NULL: all are visible.
static const uint8_t *mask_of(const bel_kernel_call *call, int64_t row, int64_t *out_step)
{
    const bel_masked_softmax_params *p = call->params;
    *out_step = 0;
    if (p->hiding.mask < 0) return NULL;
    const bel_tensor *mask = &call->inputs[p->hiding.mask];
    int32_t rank = mask->shape.rank;
    *out_step = rank > 0 && mask->shape.dims[rank - 1] > 1 ? 1 : 0;
    return (const uint8_t *)mask->data +
           bel_broadcast_index(&call->outputs[0].shape, &mask->shape, row * p->columns);
}

// Masked elements first become -infinity in y, as x must stay; a row without visible elements is
// zeros.
static void softmax_row(const bel_kernel_call *call, int64_t row)
{
    const bel_masked_softmax_params *p = call->params;
    const float *x = (const float *)call->inputs[0].data + row * p->columns;
    float *y = (float *)call->outputs[0].data + row * p->columns;
    int64_t step, seen = seen_by(call, row), left = seen;
    const uint8_t *mask = mask_of(call, row, &step);
    if (mask != NULL) {
        left = 0;
        for (int64_t j = 0; j < seen; j++) {
            left += mask[j * step] != 0;
            y[j] = mask[j * step] != 0 ? x[j] : -INFINITY; // its power is exactly 0
        }
        x = y;
    }
    if (left == 0) seen = 0;
    if (seen > 0) p->softmax(x, y, seen);
    memset(y + seen, 0, (size_t)(p->columns - seen) * sizeof *y);
}

static void softmax_row_plain(const bel_kernel_call *call, int64_t row)
{
    const bel_masked_softmax_params *p = call->params;
    const bel_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    int64_t step, seen = seen_by(call, row), base = row * p->columns;
    const uint8_t *mask = mask_of(call, row, &step);
    double most = -INFINITY, total = 0;
    for (int64_t j = 0; j < seen; j++)
        if (mask == NULL || mask[j * step] != 0)
            most = bel_larger_of(most, bel_element_get(x, base + j));
    for (int64_t j = 0; j < p->columns; j++) {
        bool hidden = j >= seen || (mask != NULL && mask[j * step] == 0);
        double power = hidden ? 0 : bel_real_exp(bel_element_get(x, base + j) - most);
        total += power;
        bel_element_set(y, base + j, power);
    }
    for (int64_t j = 0; j < p->columns && total != 0; j++)
        bel_element_set(y, base + j, bel_element_get(y, base + j) / total);
}

static void run_masked_softmax(const bel_kernel_call *call, int64_t tile)
{
    const bel_masked_softmax_params *p = call->params;
    int64_t per_tile = bel_tile_rows(p->columns), first = tile * per_tile;
    int64_t end = first + per_tile < p->rows ? first + per_tile : p->rows;
    for (int64_t row = first; row < end; row++) {
        if (p->softmax != NULL) {
            softmax_row(call, row);
        } else {
            softmax_row_plain(call, row);
        }
    }
}

void bel_prepare_masked_softmax(const bel_prepare *prepare, bel_kernel_call *call)
{
    const bel_shape *x = &call->inputs[0].shape;
    bel_masked_softmax_params p = {.columns = x->dims[x->rank - 1],
                                   .queries = x->dims[x->rank - 2]};
    bel_dtype dtypes[3];
    for (int i = 0; i < call->input_count; i++)
        dtypes[i] = call->inputs[i].dtype;
    p.hiding = read_hiding(prepare->attrs, dtypes, call->input_count);
    p.rows = p.columns > 0 ? bel_shape_elements(x) / p.columns : 0;
    p.sequence_rows = x->dims[0] > 0 ? p.rows / x->dims[0] : 1;
    if (!prepare->reference && call->inputs[0].dtype == BEL_DTYPE_F32) {
        p.softmax = bel_cpu_kernels_get()->softmax;
    }
    int64_t per_tile = bel_tile_rows(p.columns);
    call->run = run_masked_softmax;
    call->tile_count = (p.rows + per_tile - 1) / per_tile;
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}
