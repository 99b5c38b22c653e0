// Pools and their gradients (ops/pool.c). A thread makes one element of the result. That of a
// gradient goes through the windows that see it, in the order in which the CPU has them add to it.
#include "cuda/kernels/bfloat.h"
#include "cuda/kernels/plain_elements.h"
#include "cuda/kernels/pool.h"
#include "cuda/kernels/windows.h"
#include "ops/kernels/plain.h"

// An element of output 0, whose elements are counted in the order in which they lie.
typedef struct element {
    int64_t image, channel;
    int32_t row, column;
} element;

// Of fewer elements than 2^31: 32 bits divide several times faster.
static inline element near_element_of(const bel_cuda_pool *p, uint32_t rows, uint32_t columns,
                                      uint32_t e)
{
    uint32_t plane = rows * columns, channels = (uint32_t)p->channels;
    uint32_t pixel = p->result_last ? e / channels % plane : e % plane;
    uint32_t row = pixel / columns;
    element made;
    made.image = e / (channels * plane);
    made.channel = p->result_last ? e % channels : e / plane % channels;
    made.row = (int32_t)row;
    made.column = (int32_t)(pixel - row * columns);
    return made;
}

static inline element element_of(const bel_cuda_pool *p, int32_t rows, int32_t columns, int64_t e)
{
    if (p->n * p->channels * rows * columns <= INT32_MAX)
        return near_element_of(p, (uint32_t)rows, (uint32_t)columns, (uint32_t)e);
    int64_t plane = (int64_t)rows * columns;
    int64_t pixel = p->result_last ? e / p->channels % plane : e % plane;
    element made;
    made.image = e / p->channels / plane;
    made.channel = p->result_last ? e % p->channels : e / plane % p->channels;
    made.row = (int32_t)(pixel / columns);
    made.column = (int32_t)(pixel % columns);
    return made;
}

static inline int64_t place_of(const bel_cuda_image_steps *steps, const element *e, int32_t row,
                               int32_t column)
{
    return e->image * steps->image + e->channel * steps->channel + row * steps->row +
           column * steps->column;
}

// The part of a window that lies inside: make_box of ops/pool.c.
typedef struct window_box {
    int32_t row, column, rows, columns;
    double weight;
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
    box.weight = 1.0 / (double)(counted(p, 0, row, box.rows) * counted(p, 1, column, box.columns));
    return box;
}

// Element `place` of input k, and that of the result: in f32.
static inline float get(const bel_cuda_operands *at, const bel_cuda_pool *p, int k, int64_t place)
{
    return element_get(at->in[k], p->in_half[k], place);
}

static inline void set(const bel_cuda_operands *at, const bel_cuda_pool *p, int64_t place,
                       float value)
{
    element_set(at->out[0], p->out_half, place, value);
}

// --- Forward -------------------------------------------------------------------------------------

KERNEL(pool_max, bel_cuda_pool)
{
    int32_t rows = p.window[0].out, columns = p.window[1].out;
    int64_t count = p.n * p.channels * rows * columns;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = element_of(&p, rows, columns, i);
        const window_box box = box_of(&p, e.row, e.column);
        int64_t x = place_of(&p.x, &e, box.row, box.column);
        int64_t down = p.window[0].dilation * p.x.row, right = p.window[1].dilation * p.x.column;
        float best = get(&at, &p, 0, x);
        for (int32_t s = 0; s < box.rows; s++) {
            for (int32_t t = 0; t < box.columns; t++) {
                float value = get(&at, &p, 0, x + s * down + t * right);
                best = value > best ? value : best;
            }
        }
        set(&at, &p, place_of(&p.y, &e, e.row, e.column), best);
    }
}

KERNEL(pool_average, bel_cuda_pool)
{
    int32_t rows = p.window[0].out, columns = p.window[1].out;
    int64_t count = p.n * p.channels * rows * columns;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = element_of(&p, rows, columns, i);
        const window_box box = box_of(&p, e.row, e.column);
        int64_t x = place_of(&p.x, &e, box.row, box.column);
        int64_t down = p.window[0].dilation * p.x.row, right = p.window[1].dilation * p.x.column;
        float sum = 0.0f;
        for (int32_t s = 0; s < box.rows; s++)
            for (int32_t t = 0; t < box.columns; t++)
                sum += get(&at, &p, 0, x + s * down + t * right);
        set(&at, &p, place_of(&p.y, &e, e.row, e.column), sum * (float)box.weight);
    }
}

KERNEL(pool_plain, bel_cuda_pool)
{
    int32_t rows = p.window[0].out, columns = p.window[1].out;
    int64_t count = p.n * p.channels * rows * columns;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = element_of(&p, rows, columns, i);
        const window_box box = box_of(&p, e.row, e.column);
        int64_t x = place_of(&p.x, &e, box.row, box.column);
        int64_t down = p.window[0].dilation * p.x.row, right = p.window[1].dilation * p.x.column;
        double result = p.is_max ? -INFINITY : 0.0;
        for (int32_t s = 0; s < box.rows; s++) {
            for (int32_t t = 0; t < box.columns; t++) {
                double value = plain_get(at.in[0], p.is_f64, x + s * down + t * right);
                result = p.is_max ? bel_larger_of(result, value) : result + value;
            }
        }
        plain_set(at.out[0], p.is_f64, place_of(&p.y, &e, e.row, e.column),
                  p.is_max ? result : result * box.weight);
    }
}

// --- Gradients -----------------------------------------------------------------------------------

// Windows that may see an element of dx; those between whose taps it lies do not.
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

// As `get`, of any type.
static inline double get_any(const bel_cuda_operands *at, const bel_cuda_pool *p, int k,
                             int64_t place)
{
    return p->is_f64 ? plain_get(at->in[k], true, place) : (double)get(at, p, k, place);
}

// Whether element `e` of x, which is `value`, is the first of the window at (row, column) that
// equals its result, which it does.
static inline bool is_first(const bel_cuda_operands *at, const bel_cuda_pool *p, const element *e,
                            int32_t row, int32_t column, double value)
{
    const window_box box = box_of(p, row, column);
    int32_t down = p->window[0].dilation, right = p->window[1].dilation;
    for (int32_t r = box.row; r <= e->row; r += down) {
        int32_t end = r < e->row ? box.column + box.columns * right : e->column;
        for (int32_t c = box.column; c < end; c += right)
            if (get_any(at, p, 1, place_of(&p->x, e, r, c)) == value) return false;
    }
    return true;
}

// Inputs dy, x, y. What equals it is the same in any type, and a sum of floats is one of doubles
// that is rounded: so this is the plain kernel, too.
KERNEL(pool_max_grad, bel_cuda_pool)
{
    int32_t rows = p.window[0].in, columns = p.window[1].in;
    int64_t count = p.n * p.channels * rows * columns;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = element_of(&p, rows, columns, i);
        const windows_around w = around(&p, &e);
        double value = get_any(&at, &p, 1, place_of(&p.x, &e, e.row, e.column)), sum = 0;
        for (int32_t r = w.rows[0]; r < w.rows[1]; r++) {
            for (int32_t c = w.columns[0]; c < w.columns[1]; c++) {
                if (!sees(&p, &e, r, c)) continue;
                if (get_any(&at, &p, 2, place_of(&p.top, &e, r, c)) != value) continue;
                if (!is_first(&at, &p, &e, r, c, value)) continue;
                sum += get_any(&at, &p, 0, place_of(&p.y, &e, r, c));
                sum = plain_kept(p.is_f64, sum);
            }
        }
        int64_t place = place_of(&p.dx, &e, e.row, e.column);
        if (p.is_f64) {
            plain_set(at.out[0], true, place, sum);
        } else {
            set(&at, &p, place, (float)sum);
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
        for (int32_t r = w.rows[0]; r < w.rows[1]; r++)
            for (int32_t c = w.columns[0]; c < w.columns[1]; c++)
                if (sees(&p, &e, r, c))
                    sum +=
                        get(&at, &p, 0, place_of(&p.y, &e, r, c)) * (float)box_of(&p, r, c).weight;
        set(&at, &p, place_of(&p.dx, &e, e.row, e.column), sum);
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
                double dy = plain_get(at.in[0], p.is_f64, place_of(&p.y, &e, r, c));
                sum = plain_kept(p.is_f64, sum + dy * box_of(&p, r, c).weight);
            }
        }
        plain_set(at.out[0], p.is_f64, place_of(&p.dx, &e, e.row, e.column), sum);
    }
}
