// Plain kernels of GRU and LSTM: the equations of ONNX, opset 17, literally. With a = W x + Wb
// and b = R h + Rb of each gate, and h, c of the previous step:
//
//   GRU   z, r = sigmoid(a + b); n = tanh(a + (R (r·h) + Rb)), or with linear_before_reset
//         n = tanh(a + r·b); h' = (1 - z)·n + z·h
//   LSTM  i, o, f = sigmoid(a + b); g = tanh(a + b); c' = f·c + i·g; h' = o·tanh(c')
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "ops/kernels/elements.h"
#include "ops/recurrent.h"

// One step of one row; vectors in double. a, b: [gates · hidden], in a gradient those of the loss;
// h, c: [hidden]; kept: the saved parts; r_h: the factor of R for the gate n.
typedef struct step {
    const bel_kernel_call *call;
    const bel_recurrent_shape *s;
    const bel_recurrent_operands *o;
    int64_t d, row, length, step, time;
    double *a, *b, *h, *c, *kept, *dh, *dc, *r_h;
} step;

static double in(const step *p, int operand, int64_t at)
{
    return bel_element_get(&p->call->inputs[operand], at);
}

static void step_add(const step *p, int output, int64_t at, double x)
{
    const bel_tensor *sum = &p->call->outputs[output];
    bel_element_set(sum, at, bel_element_get(sum, at) + x);
}

static double sigmoid(double x)
{
    return 1 / (1 + bel_real_exp(-x));
}

// Offsets of a gate unit's row in W, R and B.
static int64_t unit_at(const step *p, int64_t unit)
{
    return p->d * p->s->gates * p->s->hidden + unit;
}

static void add_inputs(const step *p, int operand, int64_t at, double *sum)
{
    for (int64_t i = 0; operand >= 0 && i < p->s->hidden; i++)
        sum[i] += in(p, operand, at + i);
}

// W x + Wb of one gate unit; biases are [2 · gates · hidden] for each direction, those of W first.
static double x_sum(const step *p, int64_t unit)
{
    const bel_recurrent_shape *s = p->s;
    double sum = in(p, p->o->b, 2 * p->d * s->gates * s->hidden + unit);
    int64_t x = bel_recurrent_x_at(s, p->row, p->time), w = unit_at(p, unit) * s->in;
    for (int64_t i = 0; i < s->in; i++)
        sum += in(p, p->o->x, x + i) * in(p, p->o->w, w + i);
    return sum;
}

// R h + Rb of one gate unit.
static double h_sum(const step *p, int64_t unit, const double *h)
{
    const bel_recurrent_shape *s = p->s;
    double sum = in(p, p->o->b, (2 * p->d + 1) * s->gates * s->hidden + unit);
    for (int64_t i = 0; i < s->hidden; i++)
        sum += h[i] * in(p, p->o->r, unit_at(p, unit) * s->hidden + i);
    return sum;
}

// kept: [n, z, r, R h + Rb] or, if reset comes first, [z, r, n]. Units of W and R are in the order
// z, r, n.
static void gru_forward(const step *p)
{
    int64_t n = p->s->hidden;
    bool last = p->s->reset_last;
    double *z = p->kept + (last ? n : 0), *r = z + n, *candidate = p->kept + (last ? 0 : 2 * n);
    for (int64_t i = 0; i < 2 * n; i++)
        z[i] = sigmoid(x_sum(p, i) + h_sum(p, i, p->h));
    for (int64_t i = 0; i < n; i++)
        p->r_h[i] = last ? p->h[i] : r[i] * p->h[i];
    for (int64_t i = 0; i < n; i++) {
        double b = h_sum(p, 2 * n + i, p->r_h);
        if (last) p->kept[3 * n + i] = b;
        candidate[i] = bel_real_tanh(x_sum(p, 2 * n + i) + (last ? r[i] * b : b));
    }
    for (int64_t i = 0; i < n; i++)
        p->h[i] = (1 - z[i]) * candidate[i] + z[i] * p->h[i];
}

// kept: [i, o, f, g, c], each [hidden].
static void lstm_forward(const step *p)
{
    int64_t n = p->s->hidden;
    double *kept = p->kept;
    for (int64_t i = 0; i < 4 * n; i++) {
        double sum = x_sum(p, i) + h_sum(p, i, p->h);
        kept[i] = i < 3 * n ? sigmoid(sum) : bel_real_tanh(sum);
    }
    for (int64_t i = 0; i < n; i++) {
        p->c[i] = kept[4 * n + i] = kept[2 * n + i] * p->c[i] + kept[i] * kept[3 * n + i];
        p->h[i] = kept[n + i] * bel_real_tanh(p->c[i]);
    }
}

static void set_vector(const bel_tensor *y, int64_t at, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        bel_element_set(y, at + i, x[i]);
}

// h and c are zeros before the first step, unless they are inputs. In a reversed direction step 0
// is the last valid time.
static void forward_row(step *p)
{
    const bel_recurrent_shape *s = p->s;
    const bel_tensor *outputs = p->call->outputs;
    int64_t at = bel_recurrent_state_at(s, p->d, p->row);
    add_inputs(p, p->o->first[0], at, p->h);
    add_inputs(p, p->o->first[1], at, p->c);
    for (p->step = 0; p->step < p->length; p->step++) {
        p->time = bel_recurrent_time(s, p->d, p->length, p->step);
        if (s->lstm) {
            lstm_forward(p);
        } else {
            gru_forward(p);
        }
        set_vector(&outputs[p->o->out_y], bel_recurrent_y_at(s, p->d, p->row, p->time), p->h,
                   s->hidden);
        set_vector(&outputs[p->o->out_saved], bel_recurrent_saved_at(s, p->d, p->row, p->time),
                   p->kept, s->saved_parts * s->hidden);
    }
    set_vector(&outputs[p->o->out_state[0]], at, p->h, s->hidden);
    if (s->lstm) set_vector(&outputs[p->o->out_state[1]], at, p->c, s->hidden);
}

// --- Gradients -----------------------------------------------------------------------------------

// From dh: gradients of a and b of all gates; dh becomes the previous step's, without R's part.
static void gru_backward(const step *p)
{
    int64_t n = p->s->hidden;
    bool last = p->s->reset_last;
    const double *z = p->kept + (last ? n : 0), *r = z + n, *m = p->kept + (last ? 0 : 2 * n);
    for (int64_t i = 0; i < n; i++) {
        double dh = p->dh[i];
        p->a[i] = p->b[i] = dh * (p->h[i] - m[i]) * z[i] * (1 - z[i]);
        p->a[2 * n + i] = dh * (1 - z[i]) * (1 - m[i] * m[i]);
        p->b[2 * n + i] = p->a[2 * n + i] * (last ? r[i] : 1);
        p->r_h[i] = last ? p->h[i] : r[i] * p->h[i];
        p->dh[i] = dh * z[i];
    }
    for (int64_t i = 0; i < n; i++) {
        double dr = 0; // gradient of r itself
        if (last) {
            dr = p->a[2 * n + i] * p->kept[3 * n + i];
        } else {
            double sum = 0;
            for (int64_t u = 2 * n; u < 3 * n; u++)
                sum += p->b[u] * in(p, p->o->r, unit_at(p, u) * n + i);
            dr = sum * p->h[i];
            p->dh[i] += sum * r[i];
        }
        p->a[n + i] = p->b[n + i] = dr * r[i] * (1 - r[i]);
    }
}

static void lstm_backward(const step *p)
{
    int64_t n = p->s->hidden;
    const double *i_gate = p->kept, *o = i_gate + n, *f = o + n, *g = f + n, *c = g + n;
    for (int64_t i = 0; i < n; i++) {
        double t = bel_real_tanh(c[i]), dh = p->dh[i], dc = p->dc[i] + dh * o[i] * (1 - t * t);
        p->a[i] = dc * g[i] * i_gate[i] * (1 - i_gate[i]);
        p->a[n + i] = dh * t * o[i] * (1 - o[i]);
        p->a[2 * n + i] = dc * p->c[i] * f[i] * (1 - f[i]);
        p->a[3 * n + i] = dc * i_gate[i] * (1 - g[i] * g[i]);
        p->dc[i] = dc * f[i];
        p->dh[i] = 0;
    }
    memcpy(p->b, p->a, (size_t)(4 * n) * sizeof *p->b);
}

// Adds the gradients of one gate unit to dx, dw, dr, db, and to dh.
static void spread_unit(const step *p, int64_t unit)
{
    const bel_recurrent_shape *s = p->s;
    int64_t units = s->gates * s->hidden, at = unit_at(p, unit);
    int64_t x = bel_recurrent_x_at(s, p->row, p->time);
    bool of_n = !s->lstm && unit >= 2 * s->hidden;
    for (int64_t i = 0; i < s->in; i++) {
        step_add(p, 1, at * s->in + i, p->a[unit] * in(p, p->o->x, x + i));
        if (p->o->dx) step_add(p, 0, x + i, p->a[unit] * in(p, p->o->w, at * s->in + i));
    }
    for (int64_t i = 0; i < s->hidden; i++) {
        double h = of_n ? p->r_h[i] : p->h[i];
        step_add(p, 2, at * s->hidden + i, p->b[unit] * h);
        if (of_n && !s->reset_last) continue; // gru_backward has added it
        p->dh[i] += p->b[unit] * in(p, p->o->r, at * s->hidden + i);
    }
    step_add(p, 3, 2 * p->d * units + unit, p->a[unit]);
    step_add(p, 3, (2 * p->d + 1) * units + unit, p->b[unit]);
}

// Goes from the last step to the first; dh and dc pass from step to step, and begin with the
// gradients of the last states.
static void backward_row(step *p)
{
    const bel_recurrent_shape *s = p->s;
    int64_t n = s->hidden, state = bel_recurrent_state_at(s, p->d, p->row);
    for (p->step = p->length - 1; p->step >= 0; p->step--) {
        p->time = bel_recurrent_time(s, p->d, p->length, p->step);
        if (p->step == p->length - 1) {
            add_inputs(p, p->o->dy_state[0], state, p->dh);
            add_inputs(p, p->o->dy_state[1], state, p->dc);
        }
        add_inputs(p, p->o->dy, bel_recurrent_y_at(s, p->d, p->row, p->time), p->dh);
        int64_t saved = bel_recurrent_saved_at(s, p->d, p->row, p->time);
        for (int64_t i = 0; i < s->saved_parts * n; i++)
            p->kept[i] = in(p, p->o->saved, saved + i);
        int64_t before = bel_recurrent_time(s, p->d, p->length, p->step - 1);
        memset(p->h, 0, (size_t)n * sizeof *p->h);
        memset(p->c, 0, (size_t)n * sizeof *p->c);
        if (p->step > 0) {
            add_inputs(p, p->o->y, bel_recurrent_y_at(s, p->d, p->row, before), p->h);
            saved = bel_recurrent_saved_at(s, p->d, p->row, before) + 4 * n;
            if (s->lstm) add_inputs(p, p->o->saved, saved, p->c);
        }
        if (s->lstm) {
            lstm_backward(p);
        } else {
            gru_backward(p);
        }
        for (int64_t u = 0; u < s->gates * n; u++)
            spread_unit(p, u);
    }
}

// --- All rows ------------------------------------------------------------------------------------

static int64_t doubles_of(const bel_recurrent_shape *s)
{
    return (2 * s->gates + s->saved_parts + 5) * s->hidden;
}

// Calls row_fn for each direction and row, with the vectors of `step` in the workspace, zeroed, and
// all outputs zeroed once.
static void run_rows(const bel_kernel_call *call, void row_fn(step *p))
{
    const bel_recurrent_plain *plain = call->params;
    const bel_recurrent_shape *s = &plain->shape;
    int64_t n = s->hidden;
    double *memory = call->workspace;
    step p = {.call = call, .s = s, .o = &plain->operands, .a = memory};
    p.b = p.a + s->gates * n;
    p.h = p.b + s->gates * n;
    p.c = p.h + n;
    p.dh = p.c + n;
    p.dc = p.dh + n;
    p.r_h = p.dc + n;
    p.kept = p.r_h + n;
    for (int o = 0; o < call->output_count; o++)
        memset(call->outputs[o].data, 0, bel_tensor_bytes(&call->outputs[o]));
    for (p.d = 0; p.d < s->directions; p.d++) {
        for (p.row = 0; p.row < s->n; p.row++) {
            memset(memory, 0, (size_t)doubles_of(s) * sizeof *memory);
            p.length = bel_recurrent_length(call, plain->operands.lengths, s->t, p.row);
            row_fn(&p);
        }
    }
}

static void run_forward(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    run_rows(call, forward_row);
}

static void run_backward(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    run_rows(call, backward_row);
}

void bel_recurrent_prepare_plain(const bel_prepare *prepare, bel_kernel_call *call,
                                 const bel_recurrent_plain *plain, bool gradient)
{
    call->run = gradient ? run_backward : run_forward;
    call->tile_count = 1;
    call->workspace_bytes = (size_t)doubles_of(&plain->shape) * sizeof(double);
    call->params = bel_arena_copy(prepare->arena, plain, sizeof *plain);
}
