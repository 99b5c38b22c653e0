// MaxPool, AveragePool, GlobalAveragePool and their gradients: x [n, c, w] or [n, c, h, w].
//
// A tile is a run of images. The fast kernels process the channels of a position as a row, in
// either memory order, so that the inner loops run over channels if those are neighbors.
#include <math.h>
#include <string.h>

#include "ops/families.h"
#include "ops/kernels/elements.h"
#include "ops/pool.h"

// --- Shape rules ---------------------------------------------------------------------------------

static bel_status *make_window(const bel_attr_list *attrs, const bel_shape *x, bel_window *out)
{
    const bel_shape *kernel = bel_attr_ints(attrs, "kernel_shape");
    if (kernel == NULL) return bel_window_make(attrs, x, x->dims + 2, out); // global
    if (kernel->rank != x->rank - 2) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "kernel_shape needs %d numbers, got %d",
                       (int)x->rank - 2, (int)kernel->rank);
    }
    return bel_window_make(attrs, x, kernel->dims, out);
}

// Returns true if the window covers a part of the image. If the image is as long as the gaps in a
// window, windows that miss it end before it or begin after it, and the first or the last one is
// among them. Otherwise all windows that begin in the padding are checked; their number is limited.
static bool sees(const bel_window *window, int d, int64_t at)
{
    int64_t first, end;
    bel_window_inside(window, d, at, &first, &end);
    return first < end;
}

static bel_status *check_sight(const bel_window *window, int d)
{
    enum { MOST = 1 << 16 };
    int64_t stride = window->stride[d], pad = window->pad[d], last = window->out[d] - 1, blind = -1;
    bool gaps = window->dilation[d] > window->in[d];
    int64_t inside = (pad + stride - 1) / stride; // the first window that begins inside
    int64_t behind = (pad + window->in[d] + stride - 1) / stride;
    if (!sees(window, d, last)) blind = last;
    if (!sees(window, d, 0)) blind = 0;
    if (gaps && (inside > MOST || last - behind > MOST)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "more than %d windows begin in the padding", MOST);
    }
    for (int64_t at = 0; gaps && blind < 0 && at <= last; at = at + 1 == inside ? behind : at + 1)
        if (!sees(window, d, at)) blind = at;
    if (blind < 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "window %lld covers only padding; pads must be smaller than it",
                   (long long)blind);
}

bel_status *bel_infer_pool(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                           bel_spec *out_outputs)
{
    bel_window window;
    BEL_TRY(bel_infer_float(attrs, inputs, input_count, out_outputs));
    BEL_TRY(make_window(attrs, &inputs[0].shape, &window));
    for (int d = 0; d < 2; d++)
        BEL_TRY(check_sight(&window, d));
    out_outputs[0].shape = bel_window_shape(&window, &inputs[0].shape, inputs[0].shape.dims[1]);
    return NULL;
}

bel_status *bel_infer_global_pool(const bel_attr_list *attrs, const bel_spec *inputs,
                                  int input_count, bel_spec *out_outputs)
{
    return bel_infer_pool(attrs, inputs, input_count, out_outputs);
}

bel_status *bel_infer_pool_grad(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                                bel_spec *out_outputs)
{
    bel_spec y;
    BEL_TRY(bel_infer_pool(attrs, &inputs[1], 1, &y));
    out_outputs[0] = inputs[1];
    bool fits = inputs[0].dtype == y.dtype && bel_shape_equal(&inputs[0].shape, &y.shape);
    if (input_count > 2) {
        fits = fits && inputs[2].dtype == y.dtype && bel_shape_equal(&inputs[2].shape, &y.shape);
    }
    char have[BEL_SHAPE_TEXT], want[BEL_SHAPE_TEXT];
    if (fits) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "expected dy %s, got %s", bel_shape_text(&y.shape, want),
                   bel_shape_text(&inputs[0].shape, have));
}

// --- One window ----------------------------------------------------------------------------------

static int64_t steps_place(const bel_image_steps *steps, int64_t image, int64_t channel,
                           int64_t row, int64_t column)
{
    return image * steps->image + channel * steps->channel + row * steps->row +
           column * steps->column;
}

// Kernel positions inside the image, for one output position.
typedef struct window_box {
    int64_t row, column; // image place of the first of them
    int64_t rows, columns;
    double weight; // 1 over the divisor of an average
} window_box;

// Counted elements of dimension d: without padding, or up to its end.
static int64_t pool_counted(const bel_pool *p, int d, int64_t at, int64_t inside)
{
    const bel_window *w = &p->window;
    if (!p->count_include_pad) return inside;
    int64_t start = at * w->stride[d] - w->pad[d], limit = w->in[d] + w->pad_end[d];
    int64_t fit = (limit - start + w->dilation[d] - 1) / w->dilation[d];
    return fit < w->kernel[d] ? fit : w->kernel[d];
}

// The taps [first, end) of a dimension are those inside the image; the box begins at the first one.
static window_box make_box(const bel_pool *p, int64_t row, int64_t column)
{
    const bel_window *w = &p->window;
    int64_t first[2], end[2];
    bel_window_inside(w, 0, row, &first[0], &end[0]);
    bel_window_inside(w, 1, column, &first[1], &end[1]);
    window_box b = {.row = row * w->stride[0] - w->pad[0] + first[0] * w->dilation[0],
                    .column = column * w->stride[1] - w->pad[1] + first[1] * w->dilation[1],
                    .rows = end[0] - first[0],
                    .columns = end[1] - first[1]};
    b.weight =
        1.0 / (double)(pool_counted(p, 0, row, b.rows) * pool_counted(p, 1, column, b.columns));
    return b;
}

// --- Plain kernel --------------------------------------------------------------------------------

typedef struct plain_window { // one channel of one image
    const bel_kernel_call *call;
    window_box box;
    int64_t x, y; // elements: the box's first position; y's
} plain_window;

static int64_t box_element(const plain_window *t, int64_t i)
{
    const bel_pool *p = t->call->params;
    return t->x + i / t->box.columns * p->window.dilation[0] * p->x_steps.row +
           i % t->box.columns * p->window.dilation[1];
}

// The first of equal largest elements gets the gradient.
static void run_window(const plain_window *t)
{
    const bel_kernel_call *call = t->call;
    int64_t count = t->box.rows * t->box.columns;
    bool max = call->op == BEL_OP_MAX_POOL;
    if (((const bel_pool *)call->params)->gradient) {
        double dy = bel_element_get(&call->inputs[0], t->y);
        for (int64_t i = 0; i < count; i++) {
            int64_t at = box_element(t, i);
            double sum = bel_element_get(&call->outputs[0], at);
            if (call->op == BEL_OP_AVERAGE_POOL_GRAD) {
                bel_element_set(&call->outputs[0], at, sum + dy * t->box.weight);
            } else if (bel_element_get(&call->inputs[1], at) ==
                       bel_element_get(&call->inputs[2], t->y)) {
                bel_element_set(&call->outputs[0], at, sum + dy);
                return;
            }
        }
        return;
    }
    double result = max ? -INFINITY : 0.0;
    for (int64_t i = 0; i < count; i++) {
        double x = bel_element_get(&call->inputs[0], box_element(t, i));
        result = max ? bel_larger_of(result, x) : result + x;
    }
    bel_element_set(&call->outputs[0], t->y, max ? result : result * t->box.weight);
}

// dx has x's shape, and windows may overlap, so it accumulates.
static void run_reference(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const bel_pool *p = call->params;
    if (p->gradient) memset(call->outputs[0].data, 0, bel_tensor_bytes(&call->outputs[0]));
    int64_t y = 0;
    for (int64_t plane = 0; plane < p->n * p->channels; plane++) {
        for (int64_t row = 0; row < p->window.out[0]; row++) {
            for (int64_t column = 0; column < p->window.out[1]; column++) {
                plain_window t = {.call = call, .box = make_box(p, row, column), .y = y++};
                t.x = plane * p->x_steps.channel + t.box.row * p->x_steps.row + t.box.column;
                run_window(&t);
            }
        }
    }
}

// --- Fast kernels --------------------------------------------------------------------------------

enum { RUN = 64 }; // channels at a time

// A run of channels at the window of one output position: pointers to its first channel, at the
// box's first position or at the output position.
struct bel_pool_run {
    const bel_pool *p;
    const window_box *box;
    int64_t count;
    const float *x, *top, *dy; // x, y and dy of a gradient
    float *y, *dx;
};

// Offset from the box's first position to its position i.
static int64_t box_place(const bel_pool_run *run, const bel_image_steps *steps, int64_t i)
{
    const int64_t *dilation = run->p->window.dilation;
    return i / run->box->columns * dilation[0] * steps->row +
           i % run->box->columns * dilation[1] * steps->column;
}

static void read_channels(const float *from, int64_t step, int64_t count, float *to)
{
    for (int64_t c = 0; c < count; c++)
        to[c] = from[c * step];
}

static void write_channels(const float *from, int64_t count, float *to, int64_t step)
{
    for (int64_t c = 0; c < count; c++)
        to[c * step] = from[c];
}

// Processes channels [count] at a time, with stride `channel`.
static void run_max(const bel_pool_run *run)
{
    const bel_pool *p = run->p;
    float best[RUN], x[RUN];
    read_channels(run->x, p->x_steps.channel, run->count, best);
    for (int64_t i = 1; i < run->box->rows * run->box->columns; i++) {
        read_channels(run->x + box_place(run, &p->x_steps, i), p->x_steps.channel, run->count, x);
        for (int64_t c = 0; c < run->count; c++)
            best[c] = x[c] > best[c] ? x[c] : best[c];
    }
    write_channels(best, run->count, run->y, p->y_steps.channel);
}

static void run_average(const bel_pool_run *run)
{
    const bel_pool *p = run->p;
    float sums[RUN] = {0}, x[RUN], weight = (float)run->box->weight;
    for (int64_t i = 0; i < run->box->rows * run->box->columns; i++) {
        read_channels(run->x + box_place(run, &p->x_steps, i), p->x_steps.channel, run->count, x);
        for (int64_t c = 0; c < run->count; c++)
            sums[c] += x[c];
    }
    for (int64_t c = 0; c < run->count; c++)
        sums[c] *= weight;
    write_channels(sums, run->count, run->y, p->y_steps.channel);
}

// The first element that equals the largest gets dy, and no later one.
static void run_max_grad(const bel_pool_run *run)
{
    const bel_pool *p = run->p;
    float best[RUN], left[RUN], x[RUN];
    read_channels(run->top, p->top_steps.channel, run->count, best);
    read_channels(run->dy, p->y_steps.channel, run->count, left);
    for (int64_t i = 0; i < run->box->rows * run->box->columns; i++) {
        read_channels(run->x + box_place(run, &p->x_steps, i), p->x_steps.channel, run->count, x);
        float *dx = run->dx + box_place(run, &p->dx_steps, i);
        for (int64_t c = 0; c < run->count; c++) {
            bool equal = x[c] == best[c];
            dx[c * p->dx_steps.channel] += equal ? left[c] : 0.0f;
            left[c] = equal ? 0.0f : left[c];
        }
    }
}

static void run_average_grad(const bel_pool_run *run)
{
    const bel_pool *p = run->p;
    float share[RUN], weight = (float)run->box->weight;
    read_channels(run->dy, p->y_steps.channel, run->count, share);
    for (int64_t i = 0; i < run->box->rows * run->box->columns; i++) {
        float *dx = run->dx + box_place(run, &p->dx_steps, i);
        for (int64_t c = 0; c < run->count; c++)
            dx[c * p->dx_steps.channel] += share[c] * weight;
    }
}

// All channels of one output position of one image.
static void run_position(const bel_kernel_call *call, int64_t image, int64_t row, int64_t column)
{
    const bel_pool *p = call->params;
    window_box box = make_box(p, row, column);
    for (int64_t first = 0; first < p->channels; first += RUN) {
        int64_t left = p->channels - first;
        bel_pool_run run = {.p = p, .box = &box, .count = left < RUN ? left : RUN};
        int64_t x = steps_place(&p->x_steps, image, first, box.row, box.column);
        int64_t y = steps_place(&p->y_steps, image, first, row, column);
        if (p->gradient) {
            run.dy = (const float *)call->inputs[0].data + y;
            run.dx = (float *)call->outputs[0].data +
                     steps_place(&p->dx_steps, image, first, box.row, box.column);
        } else {
            run.x = (const float *)call->inputs[0].data + x;
            run.y = (float *)call->outputs[0].data + y;
        }
        if (call->op == BEL_OP_MAX_POOL_GRAD) { // an average uses x only for its shape
            run.x = (const float *)call->inputs[1].data + x;
            run.top = (const float *)call->inputs[2].data +
                      steps_place(&p->top_steps, image, first, row, column);
        }
        p->run(&run);
    }
}

// A tile is a run of images, so no two tiles write to one dx.
static void run_images(const bel_kernel_call *call, int64_t tile)
{
    const bel_pool *p = call->params;
    int64_t first = tile * p->images_per_tile, end = first + p->images_per_tile;
    if (end > p->n) end = p->n;
    if (p->gradient) {
        float *dx = (float *)call->outputs[0].data + first * p->dx_steps.image;
        memset(dx, 0, (size_t)((end - first) * p->dx_steps.image) * sizeof *dx);
    }
    for (int64_t image = first; image < end; image++)
        for (int64_t row = 0; row < p->window.out[0]; row++)
            for (int64_t column = 0; column < p->window.out[1]; column++)
                run_position(call, image, row, column);
}

// --- Maxima, a row at a time ---------------------------------------------------------------------

// Applies one tap of the windows at positions [0, n) of a row of y. Each has `run` adjacent
// numbers, and those of the next position are `step` further on in x.
static inline __attribute__((always_inline)) void
take_tap(const float *x, int64_t step, int64_t run, float *y, int64_t n, bool first)
{
    for (int64_t c = 0; c < n; c++, x += step, y += run)
        for (int64_t i = 0; i < run; i++)
            y[i] = first || x[i] > y[i] ? x[i] : y[i];
}

// Loops with known steps are vectorized.
static void take_taps(const float *x, int64_t step, int64_t run, float *y, int64_t n, bool first)
{
    if (run == 1 && step == 1) {
        take_tap(x, 1, 1, y, n, first);
    } else if (run == 1 && step == 2) {
        take_tap(x, 2, 1, y, n, first);
    } else if (first) {
        take_tap(x, step, run, y, n, true);
    } else {
        take_tap(x, step, run, y, n, false);
    }
}

// Finds the columns of y whose windows are inside the image, [*out_first, *out_end), possibly
// empty.
static void find_inside(const bel_window *w, int64_t *out_first, int64_t *out_end)
{
    int64_t reach = (w->kernel[1] - 1) * w->dilation[1], most = w->in[1] - 1 - reach + w->pad[1];
    int64_t first = (w->pad[1] + w->stride[1] - 1) / w->stride[1];
    int64_t end = most < 0 ? 0 : most / w->stride[1] + 1;
    *out_end = end < w->out[1] ? end : w->out[1];
    *out_first = first < *out_end ? first : *out_end;
}

// Computes a row of y, with all channels if they are adjacent, else one. Taps are in the order of
// run_max, so that among zeros of both signs the same one stays.
static void run_max_row(const bel_pool *p, const float *x, int64_t row, float *y)
{
    const bel_window *w = &p->window;
    int64_t first, end, run = p->x_steps.column, step = w->stride[1] * run;
    find_inside(w, &first, &end);
    const window_box rows = make_box(p, row, 0);
    const float *at = x + rows.row * p->x_steps.row + first * step - w->pad[1] * run;
    int64_t taps = end > first ? w->kernel[1] : 0; // else there may be many more than columns
    for (int64_t r = 0; r < rows.rows; r++, at += w->dilation[0] * p->x_steps.row)
        for (int64_t t = 0; t < taps; t++)
            take_taps(at + t * w->dilation[1] * run, step, run, y + first * run, end - first,
                      r == 0 && t == 0);
    for (int64_t column = 0; column < w->out[1]; column++) {
        if (column == first && end > first) column = end;
        if (column == w->out[1]) break;
        const window_box box = make_box(p, row, column);
        for (int64_t c = 0; c < run; c += RUN) {
            const bel_pool_run at_edge = {.p = p,
                                          .box = &box,
                                          .count = run - c < RUN ? run - c : RUN,
                                          .x = x + box.row * p->x_steps.row + box.column * run + c,
                                          .y = y + column * run + c};
            run_max(&at_edge);
        }
    }
}

// MaxPool of images and results in the same order: planes one by one, or rows of all channels.
static void run_max_rows(const bel_kernel_call *call, int64_t tile)
{
    const bel_pool *p = call->params;
    int64_t first = tile * p->images_per_tile, end = first + p->images_per_tile;
    int64_t planes = p->channels / p->x_steps.column;
    if (end > p->n) end = p->n;
    for (int64_t plane = first * planes; plane < end * planes; plane++) {
        int64_t image = plane / planes, channel = plane % planes;
        const float *x = call->inputs[0].data;
        float *y = call->outputs[0].data;
        x += image * p->x_steps.image + channel * p->x_steps.channel;
        y += image * p->y_steps.image + channel * p->y_steps.channel;
        for (int64_t row = 0; row < p->window.out[0]; row++)
            run_max_row(p, x, row, y + row * p->y_steps.row);
    }
}

void bel_prepare_pool(const bel_prepare *prepare, bel_kernel_call *call)
{
    bool gradient = call->op == BEL_OP_MAX_POOL_GRAD || call->op == BEL_OP_AVERAGE_POOL_GRAD;
    int x = gradient ? 1 : 0;
    const bel_shape *shape = &call->inputs[x].shape;
    const bel_shape *y = gradient ? &call->inputs[0].shape : &call->outputs[0].shape;
    bool y_last = gradient ? call->inputs_last[0] : call->outputs_last[0];
    bel_pool p = {.gradient = gradient,
                  .n = shape->dims[0],
                  .channels = shape->dims[1],
                  .count_include_pad = bel_attr_number(prepare->attrs, "count_include_pad", 0) != 0,
                  .x_steps = bel_image_steps_of(shape, call->inputs_last[x]),
                  .y_steps = bel_image_steps_of(y, y_last),
                  .dx_steps = bel_image_steps_of(shape, call->outputs_last[0]),
                  .top_steps = bel_image_steps_of(y, call->inputs_last[2])};
    bel_status_ignore(make_window(prepare->attrs, shape, &p.window)); // inferred
    call->run = run_reference;
    call->tile_count = 1;
    if (!bel_prepares_plain(prepare, call)) {
        p.images_per_tile = bel_tile_rows(p.x_steps.image);
        p.run = call->op == BEL_OP_MAX_POOL            ? run_max
                : call->op == BEL_OP_MAX_POOL_GRAD     ? run_max_grad
                : call->op == BEL_OP_AVERAGE_POOL_GRAD ? run_average_grad
                                                       : run_average;
        call->run = run_images;
        bool same = p.x_steps.column == p.y_steps.column && p.channels > 0;
        if (call->op == BEL_OP_MAX_POOL && same) call->run = run_max_rows;
        call->tile_count = (p.n + p.images_per_tile - 1) / p.images_per_tile;
    }
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}
