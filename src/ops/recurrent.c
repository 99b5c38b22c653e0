// GRU and LSTM over padded sequences with lengths, and their gradients: shapes, operands and the
// choice of kernels; recurrent_plain.c has the plain kernels. The last output has the activations
// of the gates (and LSTM's cells), so the gradient need not run forward again. A gradient has only
// the inputs that exist, as given by the bits of attribute `given`; their order here is that of
// autodiff/sequences.c. An unneeded dx has shape [0].
#include "ops/recurrent.h"

#include "ops/families.h"

// --- Shape rules ---------------------------------------------------------------------------------

static bel_status *check_shape(const char *what, const bel_shape *have, const bel_shape *want)
{
    if (bel_shape_equal(have, want)) return NULL;
    char ht[BEL_SHAPE_TEXT], wt[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "expected %s %s, got %s", what, bel_shape_text(want, wt),
                   bel_shape_text(have, ht));
}

static bel_shape y_shape(const bel_recurrent_shape *s)
{
    return s->batch_first ? BEL_SHAPE(s->n, s->t, s->directions, s->hidden)
                          : BEL_SHAPE(s->t, s->directions, s->n, s->hidden);
}

static bel_shape state_shape(const bel_recurrent_shape *s)
{
    return s->batch_first ? BEL_SHAPE(s->n, s->directions, s->hidden)
                          : BEL_SHAPE(s->directions, s->n, s->hidden);
}

static bel_shape saved_shape(const bel_recurrent_shape *s)
{
    return BEL_SHAPE(s->n, s->t, s->directions, s->saved_parts * s->hidden);
}

// Reads attributes and shapes; n and t may be open. Errors: W or R have a wrong shape.
static bel_status *read_recurrent(bool lstm, const bel_attr_list *attrs, const bel_shape *x,
                                  const bel_shape *w, const bel_shape *r, bel_recurrent_shape *out)
{
    int64_t direction = bel_attr_whole(attrs, "direction", BEL_RECURRENT_FORWARD);
    bel_recurrent_shape s = {.lstm = lstm,
                             .batch_first = bel_attr_number(attrs, "layout", 0) != 0,
                             .hidden = bel_attr_whole(attrs, "hidden_size", 0),
                             .directions = direction == BEL_RECURRENT_BOTH ? 2 : 1,
                             .gates = lstm ? BEL_LSTM_GATES : BEL_GRU_GATES};
    s.reset_last = !lstm && bel_attr_number(attrs, "linear_before_reset", 0) != 0;
    s.saved_parts = lstm ? 5 : s.reset_last ? 4 : 3;
    s.reverse[0] = direction == BEL_RECURRENT_REVERSE;
    s.reverse[1] = true;
    char xt[BEL_SHAPE_TEXT];
    if (x->rank != 3 || x->dims[2] < 1 || s.hidden < 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "expected x of three dimensions and hidden_size of at least 1, got %s and "
                       "%lld",
                       bel_shape_text(x, xt), (long long)s.hidden);
    }
    s.n = x->dims[s.batch_first ? 0 : 1];
    s.t = x->dims[s.batch_first ? 1 : 0];
    s.in = x->dims[2];
    bel_shape w_shape = BEL_SHAPE(s.directions, s.gates * s.hidden, s.in);
    bel_shape r_shape = BEL_SHAPE(s.directions, s.gates * s.hidden, s.hidden);
    BEL_TRY(check_shape("weights W", w, &w_shape));
    BEL_TRY(check_shape("weights R", r, &r_shape));
    *out = s;
    return NULL;
}

static bel_status *check_lengths(const bel_spec *lengths, int64_t n)
{
    bel_shape want = BEL_SHAPE(n);
    if (lengths->dtype != BEL_DTYPE_I64 && lengths->dtype != BEL_DTYPE_I32) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected lengths i64 or i32, got %s",
                       bel_dtype_name(lengths->dtype));
    }
    return check_shape("lengths", &lengths->shape, &want);
}

static bel_status *check_float(const bel_spec *spec, bel_dtype dtype)
{
    bool is_float = dtype == BEL_DTYPE_F32 || dtype == BEL_DTYPE_F64;
    if (is_float && spec->dtype == dtype) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "expected inputs of one type, f32 or f64");
}

// Places the inputs of a forward pass: x, W, R, B, then lengths if the count includes them, then
// the first states that attribute `first` names. False if the count fits neither.
static bool place_forward(bool lstm, const bel_attr_list *attrs, int count,
                          bel_recurrent_operands *out)
{
    int64_t first = bel_attr_whole(attrs, "first", 0);
    bool h = (first & BEL_RECURRENT_FIRST_H) != 0, c = (first & BEL_RECURRENT_FIRST_C) != 0;
    int states = (int)h + (int)c, behind = count - states;
    *out = (bel_recurrent_operands){.x = 0,
                                    .w = 1,
                                    .r = 2,
                                    .b = 3,
                                    .lengths = behind == 5 ? 4 : -1,
                                    .first = {h ? behind : -1, c ? behind + h : -1},
                                    .out_y = 0,
                                    .out_state = {1, 2},
                                    .out_saved = lstm ? 3 : 2};
    return (behind == 4 || behind == 5) && (lstm || !c);
}

static bel_status *infer_forward(bool lstm, const bel_attr_list *attrs, const bel_spec *inputs,
                                 int count, bel_spec *out_outputs)
{
    bel_recurrent_shape s;
    BEL_TRY(read_recurrent(lstm, attrs, &inputs[0].shape, &inputs[1].shape, &inputs[2].shape, &s));
    bel_recurrent_operands o;
    if (!place_forward(lstm, attrs, count, &o)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%d inputs do not fit the first states that it has",
                       count);
    }
    for (int i = 0; i < count; i++)
        if (i != o.lengths) BEL_TRY(check_float(&inputs[i], inputs[0].dtype));
    bel_shape state = state_shape(&s);
    for (int i = 0; i < 2; i++)
        if (o.first[i] >= 0)
            BEL_TRY(check_shape("a first state", &inputs[o.first[i]].shape, &state));
    bel_shape bias = BEL_SHAPE(s.directions, 2 * s.gates * s.hidden);
    BEL_TRY(check_shape("bias B", &inputs[3].shape, &bias));
    if (o.lengths >= 0) BEL_TRY(check_lengths(&inputs[o.lengths], s.n));
    bel_dtype dtype = inputs[0].dtype;
    int saved = lstm ? 3 : 2;
    out_outputs[0] = (bel_spec){dtype, y_shape(&s)};
    for (int i = 1; i < saved; i++)
        out_outputs[i] = (bel_spec){dtype, state_shape(&s)};
    out_outputs[saved] = (bel_spec){dtype, saved_shape(&s)};
    return NULL;
}

bel_status *bel_infer_gru(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                          bel_spec *out_outputs)
{
    return infer_forward(false, attrs, inputs, input_count, out_outputs);
}

bel_status *bel_infer_lstm(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                           bel_spec *out_outputs)
{
    return infer_forward(true, attrs, inputs, input_count, out_outputs);
}

// Places the inputs of a gradient: x, W, R, y, saved, then those that attribute `given` names:
// lengths, dy, and the gradients of the last states. Returns their number.
static int place_operands(const bel_attr_list *attrs, bel_recurrent_operands *out)
{
    int64_t given = bel_attr_whole(attrs, "given", 0);
    int count = 5;
    *out = (bel_recurrent_operands){
        .x = 0, .w = 1, .r = 2, .b = -1, .first = {-1, -1}, .y = 3, .saved = 4};
    out->lengths = (given & BEL_RECURRENT_LENGTHS) != 0 ? count++ : -1;
    out->dy = (given & BEL_RECURRENT_DY) != 0 ? count++ : -1;
    out->dy_state[0] = (given & BEL_RECURRENT_DY_H) != 0 ? count++ : -1;
    out->dy_state[1] = (given & BEL_RECURRENT_DY_C) != 0 ? count++ : -1;
    out->dx = (given & BEL_RECURRENT_DX) != 0;
    return count;
}

static bel_status *infer_gradient(bool lstm, const bel_attr_list *attrs, const bel_spec *inputs,
                                  int count, bel_spec *out_outputs)
{
    bel_recurrent_shape s;
    bel_recurrent_operands o;
    BEL_TRY(read_recurrent(lstm, attrs, &inputs[0].shape, &inputs[1].shape, &inputs[2].shape, &s));
    int expected = place_operands(attrs, &o);
    if (count != expected) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected %d inputs, got %d", expected, count);
    }
    bel_shape y = y_shape(&s), state = state_shape(&s);
    bel_shape saved = saved_shape(&s);
    BEL_TRY(check_shape("y", &inputs[o.y].shape, &y));
    BEL_TRY(check_shape("saved gates", &inputs[o.saved].shape, &saved));
    if (o.lengths >= 0) BEL_TRY(check_lengths(&inputs[o.lengths], s.n));
    if (o.dy >= 0) BEL_TRY(check_shape("dy", &inputs[o.dy].shape, &y));
    for (int i = 0; i < 2; i++) {
        if (o.dy_state[i] < 0) continue;
        BEL_TRY(check_shape("gradient of a state", &inputs[o.dy_state[i]].shape, &state));
    }
    for (int i = 0; i < count; i++)
        if (i != o.lengths) BEL_TRY(check_float(&inputs[i], inputs[0].dtype));
    bel_shape nothing = BEL_SHAPE(0);
    bel_shape bias = BEL_SHAPE(s.directions, 2 * s.gates * s.hidden);
    out_outputs[0] = (bel_spec){inputs[0].dtype, o.dx ? inputs[0].shape : nothing};
    out_outputs[1] = inputs[1];
    out_outputs[2] = inputs[2];
    out_outputs[3] = (bel_spec){inputs[0].dtype, bias};
    return NULL;
}

bel_status *bel_infer_gru_grad(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                               bel_spec *out_outputs)
{
    return infer_gradient(false, attrs, inputs, input_count, out_outputs);
}

bel_status *bel_infer_lstm_grad(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                                bel_spec *out_outputs)
{
    return infer_gradient(true, attrs, inputs, input_count, out_outputs);
}

// --- Choice --------------------------------------------------------------------------------------

static void prepare_with(const bel_prepare *prepare, bel_kernel_call *call, bool gradient)
{
    bool lstm = call->op == BEL_OP_LSTM || call->op == BEL_OP_LSTM_GRAD;
    bel_recurrent_plain plain;
    bel_status_ignore(read_recurrent(lstm, prepare->attrs, &call->inputs[0].shape,
                                     &call->inputs[1].shape, &call->inputs[2].shape,
                                     &plain.shape)); // inferred
    if (gradient) {
        place_operands(prepare->attrs, &plain.operands);
    } else {
        place_forward(lstm, prepare->attrs, call->input_count, &plain.operands);
    }
    plain.shape.plain = prepare->reference || call->inputs[0].dtype != BEL_DTYPE_F32;
    if (plain.shape.plain) {
        bel_recurrent_prepare_plain(prepare, call, &plain, gradient);
    } else if (gradient) {
        bel_recurrent_prepare_gradient(prepare, call, &plain.shape, &plain.operands);
    } else {
        bel_recurrent_prepare_forward(prepare, call, &plain.shape, &plain.operands);
    }
}

void bel_prepare_recurrent(const bel_prepare *prepare, bel_kernel_call *call)
{
    prepare_with(prepare, call, false);
}

void bel_prepare_recurrent_grad(const bel_prepare *prepare, bel_kernel_call *call)
{
    prepare_with(prepare, call, true);
}
