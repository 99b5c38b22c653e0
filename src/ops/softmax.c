// Softmax, log-softmax and the cross-entropy of softmax, row by row along the last dimension. A row
// is never split, and a tile has full rows, so the order of a sum depends only on the number of
// columns. The plain kernels compute in double and subtract the maximum first. Cross-entropy keeps
// its log softmax as output 1 for the gradient. Only the forward call reports a label out of range;
// its loss is 0, but the step ends before that matters.
#include <math.h>

#include "base/check.h"
#include "base/real.h"
#include "ops/families.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/elements.h"

// --- Shape rules ---------------------------------------------------------------------------------

bel_status *bel_infer_cross_entropy(const bel_attr_list *attrs, const bel_spec *inputs,
                                    int input_count, bel_spec *out_outputs)
{
    BEL_TRY(bel_infer_float(attrs, inputs, input_count, out_outputs));
    const bel_shape *logits = &inputs[0].shape, *labels = &inputs[1].shape;
    if (logits->rank != 2 || labels->rank != 1 || logits->dims[0] != labels->dims[0] ||
        inputs[1].dtype != BEL_DTYPE_I64) {
        char lt[BEL_SHAPE_TEXT], yt[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "expected logits [n, classes] and labels [n] i64, got %s and %s %s",
                       bel_shape_text(logits, lt), bel_shape_text(labels, yt),
                       bel_dtype_name(inputs[1].dtype));
    }
    out_outputs[0] = (bel_spec){inputs[0].dtype, BEL_SHAPE(logits->dims[0])};
    out_outputs[1] = inputs[0];
    return NULL;
}

bel_status *bel_infer_cross_entropy_grad(const bel_attr_list *attrs, const bel_spec *inputs,
                                         int input_count, bel_spec *out_outputs)
{
    bel_spec y[2];
    BEL_TRY(bel_infer_cross_entropy(attrs, inputs + 1, input_count - 1, y));
    out_outputs[0] = inputs[1];
    return bel_check_like("dy", &inputs[0], &y[0]);
}

// --- Rows ----------------------------------------------------------------------------------------

// All kernels here work on rows of `columns` elements of output `rows_of`.
typedef struct row_params {
    int64_t rows, columns;
    bel_cpu_unary_fn *unary;
    bel_cpu_binary_fn *binary;
} row_params;

static void tile_range(const row_params *p, int64_t tile, int64_t *out_first, int64_t *out_last)
{
    int64_t per_tile = bel_tile_rows(p->columns);
    *out_first = tile * per_tile;
    *out_last = *out_first + per_tile < p->rows ? *out_first + per_tile : p->rows;
}

static void softmax_reference(const bel_kernel_call *call, int64_t row, int64_t columns)
{
    const bel_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    int64_t base = row * columns;
    double shift = bel_element_get(x, base), total = 0;
    for (int64_t j = 1; j < columns; j++)
        shift = bel_larger_of(shift, bel_element_get(x, base + j));
    for (int64_t j = 0; j < columns; j++)
        total += bel_real_exp(bel_element_get(x, base + j) - shift);
    for (int64_t j = 0; j < columns; j++) {
        double z = bel_element_get(x, base + j) - shift;
        bel_element_set(y, base + j,
                        call->op == BEL_OP_SOFTMAX ? bel_real_exp(z) / total
                                                   : z - bel_real_log(total));
    }
}

static void softmax_grad_reference(const bel_kernel_call *call, int64_t row, int64_t columns)
{
    const bel_tensor *dy = &call->inputs[0], *y = &call->inputs[1], *dx = &call->outputs[0];
    bool log_form = call->op == BEL_OP_LOG_SOFTMAX_GRAD;
    int64_t base = row * columns;
    double inner = 0;
    for (int64_t j = base; j < base + columns; j++)
        inner += bel_element_get(dy, j) * (log_form ? 1.0 : bel_element_get(y, j));
    for (int64_t j = base; j < base + columns; j++) {
        double d = bel_element_get(dy, j), v = bel_element_get(y, j);
        bel_element_set(dx, j, log_form ? d - bel_real_exp(v) * inner : v * (d - inner));
    }
}

static void run_rows_reference(const bel_kernel_call *call, int64_t tile)
{
    const row_params *p = call->params;
    int64_t first, last;
    tile_range(p, tile, &first, &last);
    for (int64_t i = first; i < last; i++) {
        if (call->input_count == 1) {
            softmax_reference(call, i, p->columns);
        } else {
            softmax_grad_reference(call, i, p->columns);
        }
    }
}

static void run_rows(const bel_kernel_call *call, int64_t tile)
{
    const row_params *p = call->params;
    int64_t first, last;
    tile_range(p, tile, &first, &last);
    const float *x = call->inputs[0].data;
    float *y = call->outputs[0].data;
    for (int64_t at = first * p->columns; at < last * p->columns; at += p->columns) {
        if (p->unary != NULL) {
            p->unary(x + at, y + at, p->columns);
        } else {
            p->binary(x + at, (const float *)call->inputs[1].data + at, y + at, p->columns);
        }
    }
}

static row_params rows_of(const bel_shape *shape)
{
    row_params p = {.columns = shape->rank > 0 ? shape->dims[shape->rank - 1] : 1};
    int64_t elements = bel_shape_elements(shape);
    p.rows = p.columns > 0 ? elements / p.columns : 0;
    return p;
}

static void set_rows(const bel_prepare *prepare, bel_kernel_call *call, const row_params *p)
{
    int64_t per_tile = bel_tile_rows(p->columns);
    call->tile_count = (p->rows + per_tile - 1) / per_tile;
    call->params = bel_arena_copy(prepare->arena, p, sizeof *p);
}

void bel_prepare_softmax(const bel_prepare *prepare, bel_kernel_call *call)
{
    row_params p = rows_of(&call->outputs[0].shape);
    call->run = run_rows_reference;
    if (!prepare->reference && call->inputs[0].dtype == BEL_DTYPE_F32) {
        const bel_cpu_kernels *cpu = bel_cpu_kernels_get();
        call->run = run_rows;
        switch (call->op) {
        case BEL_OP_SOFTMAX: p.unary = cpu->softmax; break;
        case BEL_OP_LOG_SOFTMAX: p.unary = cpu->log_softmax; break;
        case BEL_OP_SOFTMAX_GRAD: p.binary = cpu->softmax_grad; break;
        case BEL_OP_LOG_SOFTMAX_GRAD: p.binary = cpu->log_softmax_grad; break;
        default: BEL_UNREACHABLE("not a softmax");
        }
    }
    set_rows(prepare, call, &p);
}

// --- Cross-entropy -------------------------------------------------------------------------------

static bool label_ok(const bel_kernel_call *call, int64_t label, int64_t classes)
{
    if (label >= 0 && label < classes) return true;
    bel_kernel_report(call, label, classes);
    return false;
}

// Losses [rows]; the second output keeps log softmax [rows, columns] for the gradient.
static void run_cross_entropy(const bel_kernel_call *call, int64_t tile)
{
    const row_params *p = call->params;
    const int64_t *labels = call->inputs[1].data;
    int64_t first, last;
    tile_range(p, tile, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t at = i * p->columns;
        if (p->unary != NULL) {
            p->unary((const float *)call->inputs[0].data + at, (float *)call->outputs[1].data + at,
                     p->columns);
        } else {
            bel_kernel_call rows = *call;
            rows.op = BEL_OP_LOG_SOFTMAX;
            rows.outputs[0] = call->outputs[1];
            softmax_reference(&rows, i, p->columns);
        }
        double loss = 0;
        if (label_ok(call, labels[i], p->columns)) {
            loss = -bel_element_get(&call->outputs[1], at + labels[i]);
        }
        bel_element_set(&call->outputs[0], i, loss);
    }
}

// dx = (softmax - 1 at the label) · dy, row by row.
static void run_cross_entropy_grad(const bel_kernel_call *call, int64_t tile)
{
    const row_params *p = call->params;
    const int64_t *labels = call->inputs[2].data;
    int64_t first, last;
    tile_range(p, tile, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t at = i * p->columns;
        double dy = bel_element_get(&call->inputs[0], i);
        if (p->unary != NULL) {
            const float *log_probability = (const float *)call->inputs[1].data + at;
            float *dx = (float *)call->outputs[0].data + at, scale = (float)dy;
            p->unary(log_probability, dx, p->columns);
            if (labels[i] >= 0 && labels[i] < p->columns) dx[labels[i]] -= 1.0f;
            for (int64_t j = 0; j < p->columns; j++)
                dx[j] *= scale;
            continue;
        }
        for (int64_t j = 0; j < p->columns; j++) {
            double share =
                bel_real_exp(bel_element_get(&call->inputs[1], at + j)) - (j == labels[i]);
            bel_element_set(&call->outputs[0], at + j, share * dy);
        }
    }
}

void bel_prepare_cross_entropy(const bel_prepare *prepare, bel_kernel_call *call)
{
    bool gradient = call->op == BEL_OP_CROSS_ENTROPY_GRAD;
    row_params p = rows_of(&call->inputs[gradient ? 1 : 0].shape);
    call->run = gradient ? run_cross_entropy_grad : run_cross_entropy;
    if (!prepare->reference && call->inputs[0].dtype == BEL_DTYPE_F32) {
        const bel_cpu_kernels *cpu = bel_cpu_kernels_get();
        p.unary = gradient ? cpu->unary[BEL_CPU_EXP] : cpu->log_softmax;
    }
    set_rows(prepare, call, &p);
}
