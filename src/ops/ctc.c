// CTCLoss: shapes, plain kernels in log space, and the choice of kernels. The plain ones add
// logarithms; the fast ones (kernels/ctc.c) multiply and add numbers with a wide exponent, so the
// two agree closely but not bit for bit. Output 1 is the log softmax, kept for the gradient, with
// zeros after an example's frames. The forward call reports invalid lengths and labels; the
// gradient gives zeros for them.
#include <math.h>

#include "base/real.h"
#include "ops/families.h"
#include "ops/kernels/ctc.h"
#include "ops/kernels/elements.h"

// --- Operands ------------------------------------------------------------------------------------

static bel_ctc_shape shape_of(const bel_attr_list *attrs, bool gradient, const bel_shape *frames,
                              const bel_shape *labels)
{
    int first = gradient ? 2 : 1;
    return (bel_ctc_shape){.n = frames->dims[0],
                           .frames = frames->dims[1],
                           .classes = frames->dims[2],
                           .labels = labels->dims[1],
                           .log_p = 1,
                           .label = first,
                           .frame_length = first + 1,
                           .label_length = first + 2,
                           .zero_infinity = bel_attr_number(attrs, "zero_infinity", 0) != 0};
}

// --- Shape rules ---------------------------------------------------------------------------------

// Kernels have a number for each frame and each state, of which there are two for each label and
// one more. Sizes whose product overflows are refused. Open sizes are checked once they are closed.
static bel_status *check_states(int64_t frames, int64_t labels)
{
    const int64_t most = INT64_C(1) << 48;
    if (frames < 0 || labels < 0) return NULL;
    bel_shape states = BEL_SHAPE(frames + 1, 2 * labels + 1);
    if (bel_shape_elements(&states) <= most) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%lld frames and %lld labels are too many",
                   (long long)frames, (long long)labels);
}

// Checks frames [n, t, c], then labels, lengths of frames and of labels.
static bel_status *check_operands(const bel_spec *frames, const bel_spec *others)
{
    const bel_shape *x = &frames->shape, *labels = &others[0].shape;
    bool fits =
        x->rank == 3 && x->dims[2] >= 1 && labels->rank == 2 && labels->dims[0] == x->dims[0];
    for (int i = 0; i < 3; i++)
        fits = fits && others[i].dtype == BEL_DTYPE_I64;
    for (int i = 1; i < 3; i++)
        fits = fits && others[i].shape.rank == 1 && others[i].shape.dims[0] == x->dims[0];
    if (fits) return check_states(x->dims[1], labels->dims[1]);
    char xt[BEL_SHAPE_TEXT], lt[BEL_SHAPE_TEXT], ft[BEL_SHAPE_TEXT], ct[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "expected logits [n, t, classes], labels [n, l], logit lengths [n] and label "
                   "lengths [n], all but the logits i64, got %s, %s %s, %s %s and %s %s",
                   bel_shape_text(x, xt), bel_shape_text(labels, lt),
                   bel_dtype_name(others[0].dtype), bel_shape_text(&others[1].shape, ft),
                   bel_dtype_name(others[1].dtype), bel_shape_text(&others[2].shape, ct),
                   bel_dtype_name(others[2].dtype));
}

bel_status *bel_infer_ctc_loss(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                               bel_spec *out_outputs)
{
    bel_spec log_p;
    BEL_TRY(bel_infer_float(attrs, inputs, input_count, &log_p));
    BEL_TRY(check_operands(&inputs[0], inputs + 1));
    out_outputs[0] = (bel_spec){inputs[0].dtype, BEL_SHAPE(inputs[0].shape.dims[0])};
    out_outputs[1] = log_p;
    return NULL;
}

bel_status *bel_infer_ctc_loss_grad(const bel_attr_list *attrs, const bel_spec *inputs,
                                    int input_count, bel_spec *out_outputs)
{
    bel_spec y[2];
    BEL_TRY(bel_infer_ctc_loss(attrs, inputs + 1, input_count - 1, y));
    out_outputs[0] = inputs[1];
    return bel_check_like("dy", &inputs[0], &y[0]);
}

// --- Plain kernels: logarithms of probabilities --------------------------------------------------

static double log_add(double a, double b)
{
    double most = bel_larger_of(a, b);
    return most == -INFINITY ? most
                             : most + bel_real_log(bel_real_exp(a - most) + bel_real_exp(b - most));
}

static void log_softmax_row(const bel_tensor *x, const bel_tensor *y, int64_t at, int64_t classes)
{
    double total = -INFINITY;
    for (int64_t k = at; k < at + classes; k++)
        total = log_add(total, bel_element_get(x, k));
    for (int64_t k = at; k < at + classes; k++)
        bel_element_set(y, k, bel_element_get(x, k) - total);
}

// ln p of a state at a frame.
static double log_of(const bel_ctc_shape *s, const bel_tensor *log_p, const bel_ctc_example *x,
                     int64_t t, int64_t state)
{
    return bel_element_get(log_p, (x->first_frame + t) * s->classes + bel_ctc_class(x, state));
}

// ln alpha [frames, states]; returns ln of the total probability.
static double plain_forward(const bel_ctc_shape *s, const bel_tensor *log_p,
                            const bel_ctc_example *x, double *alpha)
{
    int64_t states = 2 * x->label_count + 1;
    for (int64_t t = 0; t < x->frames; t++) {
        const double *before = alpha + (t - 1) * states;
        for (int64_t i = 0; i < states; i++) {
            double sum = t == 0 && i < 2 ? 0 : -INFINITY;
            if (t > 0) sum = before[i];
            if (t > 0 && i > 0) sum = log_add(sum, before[i - 1]);
            if (t > 0 && bel_ctc_skips(x, i)) sum = log_add(sum, before[i - 2]);
            alpha[t * states + i] = sum + log_of(s, log_p, x, t, i);
        }
    }
    if (x->frames == 0) return states == 1 ? 0 : -INFINITY;
    const double *end = alpha + x->frames * states;
    return states == 1 ? end[-1] : log_add(end[-1], end[-2]);
}

static void plain_backward(const bel_ctc_shape *s, const bel_tensor *log_p,
                           const bel_ctc_example *x, int64_t t, double *beta)
{
    int64_t states = 2 * x->label_count + 1;
    for (int64_t i = 0; i < states; i++) {
        double sum = beta[i] + log_of(s, log_p, x, t, i);
        if (i + 1 < states) sum = log_add(sum, beta[i + 1] + log_of(s, log_p, x, t, i + 1));
        if (i + 2 < states && bel_ctc_skips(x, i + 2)) {
            sum = log_add(sum, beta[i + 2] + log_of(s, log_p, x, t, i + 2));
        }
        beta[i] = sum;
    }
}

static void run_plain(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const bel_ctc_shape *s = call->params;
    const bel_tensor *log_p = &call->outputs[1];
    for (int64_t i = 0; i < bel_shape_elements(&log_p->shape); i++)
        bel_element_set(log_p, i, 0);
    for (int64_t i = 0; i < s->n; i++) {
        bel_ctc_example x;
        bel_element_set(&call->outputs[0], i, 0);
        if (!bel_ctc_example_read(call, s, i, true, &x)) continue;
        for (int64_t t = 0; t < x.frames; t++)
            log_softmax_row(&call->inputs[0], log_p, (x.first_frame + t) * s->classes, s->classes);
        double loss = -plain_forward(s, log_p, &x, call->workspace);
        if (loss != INFINITY || !s->zero_infinity) bel_element_set(&call->outputs[0], i, loss);
    }
}

static void plain_gradient(const bel_kernel_call *call, const bel_ctc_example *x, double dy)
{
    const bel_ctc_shape *s = call->params;
    const bel_tensor *log_p = &call->inputs[s->log_p];
    int64_t states = 2 * x->label_count + 1;
    double *alpha = call->workspace, *beta = alpha + s->frames * (2 * s->labels + 1);
    double total = plain_forward(s, log_p, x, alpha);
    if (total == -INFINITY) return;
    for (int64_t i = 0; i < states; i++)
        beta[i] = i + 2 >= states ? 0 : -INFINITY;
    for (int64_t t = x->frames - 1; t >= 0; t--) {
        for (int64_t k = 0; k < s->classes; k++) {
            int64_t at = (x->first_frame + t) * s->classes + k;
            double likely = 0;
            for (int64_t i = 0; i < states; i++)
                if (bel_ctc_class(x, i) == k)
                    likely += bel_real_exp(alpha[t * states + i] + beta[i] - total);
            bel_element_set(&call->outputs[0], at,
                            dy * (bel_real_exp(bel_element_get(log_p, at)) - likely));
        }
        plain_backward(s, log_p, x, t, beta);
    }
}

static void run_plain_gradient(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const bel_ctc_shape *s = call->params;
    for (int64_t i = 0; i < bel_shape_elements(&call->outputs[0].shape); i++)
        bel_element_set(&call->outputs[0], i, 0);
    for (int64_t i = 0; i < s->n; i++) {
        bel_ctc_example x;
        if (!bel_ctc_example_read(call, s, i, false, &x)) continue;
        plain_gradient(call, &x, bel_element_get(&call->inputs[0], i));
    }
}

// --- Choice --------------------------------------------------------------------------------------

static void prepare_with(const bel_prepare *prepare, bel_kernel_call *call, bool gradient)
{
    int frames = gradient ? 1 : 0;
    bel_ctc_shape s = shape_of(prepare->attrs, gradient, &call->inputs[frames].shape,
                               &call->inputs[frames + 1].shape);
    s.plain = prepare->reference || call->inputs[0].dtype != BEL_DTYPE_F32;
    if (!s.plain) {
        if (gradient) {
            bel_ctc_prepare_gradient(prepare, call, &s);
        } else {
            bel_ctc_prepare(prepare, call, &s);
        }
        return;
    }
    call->run = gradient ? run_plain_gradient : run_plain;
    call->tile_count = 1;
    call->workspace_bytes = (size_t)((s.frames + 1) * (2 * s.labels + 1)) * sizeof(double);
    call->params = bel_arena_copy(prepare->arena, &s, sizeof s);
}

void bel_prepare_ctc_loss(const bel_prepare *prepare, bel_kernel_call *call)
{
    prepare_with(prepare, call, false);
}

void bel_prepare_ctc_loss_grad(const bel_prepare *prepare, bel_kernel_call *call)
{
    prepare_with(prepare, call, true);
}
