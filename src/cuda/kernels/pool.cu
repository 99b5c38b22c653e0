// Pools and their gradients (ops/pool.c). A thread makes one element of the result. For an element
// of a gradient it goes through the windows that contain it, in the CPU's order of addition.
//
// Windows are mostly inside and do not overlap. Separate kernels (…_apart, …_tiled) make this case
// cheap: an element is in at most one window.
#include "cuda/kernels/bfloat.h"
#include "cuda/kernels/plain_elements.h"
#include "cuda/kernels/pool.h"
#include "cuda/kernels/tile.h"
#include "cuda/kernels/windows.h"
#include "ops/kernels/plain.h"

// An element of output 0, in memory order.
typedef struct element {
    int64_t image, channel;
    int32_t row, column;
} element;

// If everything fits 32 bits, divisions are multiplications (divide.h).
static inline element near_element_of(const bel_cuda_pool *p, uint32_t e)
{
    // Channels-last: e = (image * plane + pixel) * channels + channel; else (image * channels +
    // channel) * plane + pixel.
    uint32_t upper = divided(e, p->result_last ? &p->by_channels : &p->by_plane);
    uint32_t lower = e - upper * (p->result_last ? p->by_channels.by : p->by_plane.by);
    uint32_t image = divided(upper, p->result_last ? &p->by_plane : &p->by_channels);
    uint32_t middle = upper - image * (p->result_last ? p->by_plane.by : p->by_channels.by);
    uint32_t pixel = p->result_last ? middle : lower;
    uint32_t row = divided(pixel, &p->by_columns);
    element made;
    made.image = image;
    made.channel = p->result_last ? lower : middle;
    made.row = (int32_t)row;
    made.column = (int32_t)(pixel - row * p->by_columns.by);
    return made;
}

static inline element element_of(const bel_cuda_pool *p, int32_t rows, int32_t columns, int64_t e)
{
    if (p->near) return near_element_of(p, (uint32_t)e);
    int64_t plane = (int64_t)rows * columns;
    int64_t pixel = p->result_last ? e / p->channels % plane : e % plane;
    element made;
    made.image = e / p->channels / plane;
    made.channel = p->result_last ? e % p->channels : e / plane % p->channels;
    made.row = (int32_t)(pixel / columns);
    made.column = (int32_t)(pixel % columns);
    return made;
}

static inline int64_t near_place_of(const bel_cuda_image_steps *steps, const element *e,
                                    int32_t row, int32_t column)
{
    return (int32_t)e->image * (int32_t)steps->image +
           (int32_t)e->channel * (int32_t)steps->channel + row * (int32_t)steps->row +
           column * (int32_t)steps->column;
}

static inline int64_t place_of(const bel_cuda_pool *p, const bel_cuda_image_steps *steps,
                               const element *e, int32_t row, int32_t column)
{
    if (p->near) return near_place_of(steps, e, row, column);
    return e->image * steps->image + e->channel * steps->channel + row * steps->row +
           column * steps->column;
}

// The part of a window inside of the image: make_box of ops/pool.c.
typedef struct window_box {
    int32_t row, column, rows, columns;
} window_box;

static inline int64_t counted(const bel_cuda_pool *p, int d, int32_t at, int32_t inside)
{
    const bel_cuda_window *w = &p->window[d];
    if (!p->count_include_pad) return inside;
    int32_t start = at * w->stride - w->pad, limit = w->in + w->pad_end;
    int32_t fit = (limit - start + w->dilation - 1) / w->dilation;
    return fit < w->kernel ? fit : w->kernel;
}

static inline window_box box_of(const bel_cuda_pool *p, int32_t row, int32_t column)
{
    const bel_cuda_window *r = &p->window[0], *c = &p->window[1];
    int32_t first[2], end[2];
    taps_inside(r, row, &first[0], &end[0]);
    taps_inside(c, column, &first[1], &end[1]);
    window_box box;
    box.row = row * r->stride - r->pad + first[0] * r->dilation;
    box.column = column * c->stride - c->pad + first[1] * c->dilation;
    box.rows = end[0] - first[0];
    box.columns = end[1] - first[1];
    return box;
}

// 1 / elements of the window at (row, column).
static inline double weight_of(const bel_cuda_pool *p, const window_box *box, int32_t row,
                               int32_t column)
{
    return 1.0 / (double)(counted(p, 0, row, box->rows) * counted(p, 1, column, box->columns));
}

// The same, rounded. A float quotient equals the double one rounded, as a double has more than
// twice a float's bits.
static inline float float_weight_of(const bel_cuda_pool *p, const window_box *box, int32_t row,
                                    int32_t column)
{
    int64_t elements = counted(p, 0, row, box->rows) * counted(p, 1, column, box->columns);
    return elements < 1 << 24 ? 1.0f / (float)(int32_t)elements : (float)(1.0 / (double)elements);
}

// Element `place` of input k, and below of the result: in f32.
static inline float get(const bel_cuda_operands *at, const bel_cuda_pool *p, int k, int64_t place)
{
    return element_get(at->in[k], p->in_bf16[k], place);
}

static inline void set(const bel_cuda_operands *at, const bel_cuda_pool *p, int64_t place,
                       float value)
{
    element_set(at->out[0], p->out_bf16, place, value);
}

// --- Forward -------------------------------------------------------------------------------------

// Joins n elements, `right` apart. They are loaded 16 at a time, then 4, as single loads would each
// wait for memory. The numbers after the end change no result: zeros, as no sum is -0, or -infinity
// for a maximum.
#define JOIN(group)                                                                                \
    do {                                                                                           \
        float numbers[group];                                                                      \
        UNROLL(group)                                                                              \
        for (int32_t g = 0; g < group; g++)                                                        \
            numbers[g] = t + g < n ? element_get(x, bf16, place + (t + g) * right)                 \
                                   : is_max ? -INFINITY : 0.0f;                                    \
        UNROLL(group)                                                                              \
        for (int32_t g = 0; g < group; g++)                                                        \
            so_far = !is_max ? so_far + numbers[g] : numbers[g] > so_far ? numbers[g] : so_far;    \
    } while (0)

static inline float join_run(bool is_max, float so_far, const void *x, int32_t bf16, int64_t place,
                             int32_t n, int64_t right)
{
    int32_t t = 0;
    for (; n - t >= 16; t += 16)
        JOIN(16);
    for (; t < n; t += 4)
        JOIN(4);
    return so_far;
}

// The maximum or the sum of a window, row by row. If each of its rows starts where the last one
// ends, as in a window as wide as the image, it is one run.
static inline float join_window(bool is_max, const bel_cuda_pool *p, const void *x, int32_t bf16,
                                const element *e, window_box box)
{
    int64_t place = place_of(p, &p->x, e, box.row, box.column);
    int64_t down = p->window[0].dilation * p->x.row, right = p->window[1].dilation * p->x.column;
    float so_far = is_max ? element_get(x, bf16, place) : 0.0f;
    if (box.columns * right == down) {
        box.columns *= box.rows;
        box.rows = 1;
    }
    for (int32_t s = 0; s < box.rows; s++)
        so_far = join_run(is_max, so_far, x, bf16, place + s * down, box.columns, right);
    return so_far;
}

KERNEL(pool_max, bel_cuda_pool)
{
    int32_t rows = p.window[0].out, columns = p.window[1].out;
    int64_t count = p.n * p.channels * rows * columns;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = element_of(&p, rows, columns, i);
        const window_box box = box_of(&p, e.row, e.column);
        float best = p.in_bf16[0] ? join_window(true, &p, at.in[0], true, &e, box)
                                  : join_window(true, &p, at.in[0], false, &e, box);
        set(&at, &p, place_of(&p, &p.y, &e, e.row, e.column), best);
    }
}

KERNEL(pool_average, bel_cuda_pool)
{
    int32_t rows = p.window[0].out, columns = p.window[1].out;
    int64_t count = p.n * p.channels * rows * columns;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = element_of(&p, rows, columns, i);
        const window_box box = box_of(&p, e.row, e.column);
        float sum = p.in_bf16[0] ? join_window(false, &p, at.in[0], true, &e, box)
                                 : join_window(false, &p, at.in[0], false, &e, box);
        set(&at, &p, place_of(&p, &p.y, &e, e.row, e.column),
            sum * float_weight_of(&p, &box, e.row, e.column));
    }
}

KERNEL(pool_plain, bel_cuda_pool)
{
    int32_t rows = p.window[0].out, columns = p.window[1].out;
    int64_t count = p.n * p.channels * rows * columns;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = element_of(&p, rows, columns, i);
        const window_box box = box_of(&p, e.row, e.column);
        int64_t x = place_of(&p, &p.x, &e, box.row, box.column);
        int64_t down = p.window[0].dilation * p.x.row, right = p.window[1].dilation * p.x.column;
        double result = p.is_max ? -INFINITY : 0.0;
        for (int32_t s = 0; s < box.rows; s++) {
            for (int32_t t = 0; t < box.columns; t++) {
                double value = plain_get(at.in[0], p.is_f64, x + s * down + t * right);
                result = p.is_max ? bel_larger_of(result, value) : result + value;
            }
        }
        plain_set(at.out[0], p.is_f64, place_of(&p, &p.y, &e, e.row, e.column),
                  p.is_max ? result : result * weight_of(&p, &box, e.row, e.column));
    }
}

// --- Gradients -----------------------------------------------------------------------------------

// Windows that may contain an element of dx; the element may be between the taps of some.
typedef struct windows_around {
    int32_t rows[2], columns[2]; // [first, end)
} windows_around;

static inline windows_around around(const bel_cuda_pool *p, const element *e)
{
    windows_around made;
    outputs_around(&p->window[0], e->row, &made.rows[0], &made.rows[1]);
    outputs_around(&p->window[1], e->column, &made.columns[0], &made.columns[1]);
    return made;
}

static inline bool sees(const bel_cuda_pool *p, const element *e, int32_t row, int32_t column)
{
    return tap_between(&p->window[0], row, e->row) >= 0 &&
           tap_between(&p->window[1], column, e->column) >= 0;
}

// `get` for any type.
static inline double get_any(const bel_cuda_operands *at, const bel_cuda_pool *p, int32_t is_f64,
                             int k, int64_t place)
{
    return is_f64 ? plain_get(at->in[k], true, place) : (double)get(at, p, k, place);
}

// Whether element `e` of x is the first of the window at (row, column) that equals the window's
// result. `value` is the element, which does equal it.
static inline bool is_first(const bel_cuda_operands *at, const bel_cuda_pool *p, int32_t is_f64,
                            const element *e, int32_t row, int32_t column, double value)
{
    const window_box box = box_of(p, row, column);
    int32_t down = p->window[0].dilation, right = p->window[1].dilation;
    for (int32_t r = box.row; r <= e->row; r += down) {
        int32_t end = r < e->row ? box.column + box.columns * right : e->column;
        for (int32_t c = box.column; c < end; c += right)
            if (get_any(at, p, is_f64, 1, place_of(p, &p->x, e, r, c)) == value) return false;
    }
    return true;
}

// Element `e` of dx. Comparison with x is the same in any type, and a float sum is a rounded double
// sum. So this is the plain kernel, too.
static inline void max_grad(const bel_cuda_operands *at, const bel_cuda_pool *p, int32_t is_f64,
                            const element *e)
{
    const windows_around w = around(p, e);
    double value = get_any(at, p, is_f64, 1, place_of(p, &p->x, e, e->row, e->column)), sum = 0;
    float float_sum = 0.0f;
    for (int32_t r = w.rows[0]; r < w.rows[1]; r++) {
        for (int32_t c = w.columns[0]; c < w.columns[1]; c++) {
            if (!sees(p, e, r, c)) continue;
            if (get_any(at, p, is_f64, 2, place_of(p, &p->top, e, r, c)) != value) continue;
            if (!is_first(at, p, is_f64, e, r, c, value)) continue;
            int64_t place = place_of(p, &p->y, e, r, c);
            if (is_f64) {
                sum += plain_get(at->in[0], true, place);
            } else {
                float_sum += get(at, p, 0, place);
            }
        }
    }
    int64_t place = place_of(p, &p->dx, e, e->row, e->column);
    if (is_f64) {
        plain_set(at->out[0], true, place, sum);
    } else {
        set(at, p, place, float_sum);
    }
}

// Inputs dy, x, y.
KERNEL(pool_max_grad, bel_cuda_pool)
{
    int32_t rows = p.window[0].in, columns = p.window[1].in;
    int64_t count = p.n * p.channels * rows * columns;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = element_of(&p, rows, columns, i);
        if (p.is_f64) {
            max_grad(&at, &p, true, &e);
        } else {
            max_grad(&at, &p, false, &e);
        }
    }
}

// Windows of 2 x 2; all their elements are read before any of dx is written.
static inline void max_grad_of_four(const bel_cuda_operands *at, const bel_cuda_pool *p,
                                    const element *e, float top, float dy)
{
    int64_t x = near_place_of(&p->x, e, e->row * 2, e->column * 2);
    int64_t dx = near_place_of(&p->dx, e, e->row * 2, e->column * 2);
    float values[4];
    if (p->in_bf16[1]) {
        for (int k = 0; k < 4; k++)
            values[k] = element_get(at->in[1], true, x + k / 2 * p->x.row + k % 2 * p->x.column);
    } else {
        for (int k = 0; k < 4; k++)
            values[k] = element_get(at->in[1], false, x + k / 2 * p->x.row + k % 2 * p->x.column);
    }
    bool found = false;
    for (int k = 0; k < 4; k++) {
        bool here = !found && values[k] == top;
        set(at, p, dx + k / 2 * p->dx.row + k % 2 * p->dx.column, here ? 0.0f + dy : 0.0f);
        found = found || here;
    }
}

// For windows that cover the image without overlap: a thread for each window.
KERNEL(pool_max_grad_tiled, bel_cuda_pool)
{
    int32_t count = (int32_t)(p.n * p.channels) * p.window[0].out * p.window[1].out;
    int32_t rows = p.window[0].kernel, columns = p.window[1].kernel;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = near_element_of(&p, (uint32_t)i);
        float top = get(&at, &p, 2, near_place_of(&p.top, &e, e.row, e.column));
        float dy = get(&at, &p, 0, near_place_of(&p.y, &e, e.row, e.column));
        if (rows == 2 && columns == 2) {
            max_grad_of_four(&at, &p, &e, top, dy);
            continue;
        }
        bool found = false;
        for (int32_t r = e.row * rows; r < (e.row + 1) * rows; r++) {
            for (int32_t c = e.column * columns; c < (e.column + 1) * columns; c++) {
                bool here = !found && get(&at, &p, 1, near_place_of(&p.x, &e, r, c)) == top;
                set(&at, &p, near_place_of(&p.dx, &e, r, c), here ? 0.0f + dy : 0.0f);
                found = found || here;
            }
        }
    }
}

KERNEL(pool_average_grad, bel_cuda_pool)
{
    int32_t rows = p.window[0].in, columns = p.window[1].in;
    int64_t count = p.n * p.channels * rows * columns;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = element_of(&p, rows, columns, i);
        const windows_around w = around(&p, &e);
        float sum = 0.0f;
        for (int32_t r = w.rows[0]; r < w.rows[1]; r++) {
            for (int32_t c = w.columns[0]; c < w.columns[1]; c++) {
                if (!sees(&p, &e, r, c)) continue;
                const window_box box = box_of(&p, r, c);
                sum += get(&at, &p, 0, place_of(&p, &p.y, &e, r, c)) *
                       float_weight_of(&p, &box, r, c);
            }
        }
        set(&at, &p, place_of(&p, &p.dx, &e, e.row, e.column), sum);
    }
}

// For windows inside that do not overlap. The window of an element is the one whose stride contains
// it, if the window has such an element.
KERNEL(pool_average_grad_apart, bel_cuda_pool)
{
    const bel_cuda_window *down = &p.window[0], *right = &p.window[1];
    int32_t count = (int32_t)(p.n * p.channels) * down->in * right->in;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = near_element_of(&p, (uint32_t)i);
        int32_t r = (int32_t)divided((uint32_t)e.row, &p.by_stride[0]);
        int32_t c = (int32_t)divided((uint32_t)e.column, &p.by_stride[1]);
        bool seen = r < down->out && c < right->out && e.row - r * down->stride < down->kernel &&
                    e.column - c * right->stride < right->kernel;
        float sum = 0.0f;
        if (seen) sum += get(&at, &p, 0, near_place_of(&p.y, &e, r, c)) * p.weight;
        set(&at, &p, near_place_of(&p.dx, &e, e.row, e.column), sum);
    }
}

KERNEL(pool_plain_average_grad, bel_cuda_pool)
{
    int32_t rows = p.window[0].in, columns = p.window[1].in;
    int64_t count = p.n * p.channels * rows * columns;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = element_of(&p, rows, columns, i);
        const windows_around w = around(&p, &e);
        double sum = 0;
        for (int32_t r = w.rows[0]; r < w.rows[1]; r++) {
            for (int32_t c = w.columns[0]; c < w.columns[1]; c++) {
                if (!sees(&p, &e, r, c)) continue;
                const window_box box = box_of(&p, r, c);
                double dy = plain_get(at.in[0], p.is_f64, place_of(&p, &p.y, &e, r, c));
                sum = plain_kept(p.is_f64, sum + dy * weight_of(&p, &box, r, c));
            }
        }
        plain_set(at.out[0], p.is_f64, place_of(&p, &p.dx, &e, e.row, e.column), sum);
    }
}
