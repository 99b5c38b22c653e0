// Gradient of a convolution's weights, f32: the sums of ops/kernels/conv_weights.c. Each of a few
// parts of the batch has a sum of its own for each weight, a chain of fused multiply-adds through
// images, rows and columns of dy; conv_weights_add adds the parts in order.
//
// Rows of dy whose tap lies above or below the image are left out, columns to its left and right
// count as zeros, which are multiplied. Which rows that are depends on the tap's row alone: so a
// tile keeps to one row of the window. Sums lie as [part, group, tap, channel of x, channel of dy].
#include "cuda/kernels/conv.h"
#include "cuda/kernels/kernel.h"

#define SIDE BEL_CUDA_CONV_SIDE
#define DEPTH BEL_CUDA_CONV_DEPTH
#define LANES 16
#define MINE (SIDE / LANES)

// Rows [first, end) of dy whose tap in row `tap` of the window lies inside of x.
static inline void rows_inside(const bel_cuda_window *w, int32_t tap, int32_t *first, int32_t *end)
{
    int32_t place = tap * w->dilation - w->pad, past = w->in - place;
    *first = place < 0 ? (w->stride - 1 - place) / w->stride : 0;
    *end = past > 0 ? (past + w->stride - 1) / w->stride : 0;
    if (*end > w->out) *end = w->out;
    if (*first > *end) *first = *end;
}

static inline int64_t images_of(const bel_cuda_conv_weights *p, int64_t part)
{
    int64_t left = p->n - part * p->images_per_part;
    return left < p->images_per_part ? left : p->images_per_part;
}

// What a block has: sums of some taps and channels of x, by channels of dy, over some products.
typedef struct tile {
    const float *x, *dy; // of the group
    int32_t tap_row, first_row, rows, first_m, first_o;
    int32_t most_m; // taps and channels of a row of the window
    int32_t count;  // products of a sum
    int64_t image;  // the first one
} tile;

// Where product k of a chain finds its numbers: in x without tap and channel, in dy without
// channel.
typedef struct product_place {
    int64_t x, dy;
    int32_t column; // in x, of tap 0
} product_place;

static inline product_place product_of(const bel_cuda_conv_weights *p, const tile *t, int32_t k)
{
    int32_t columns = p->window[1].out, column = k % columns;
    int32_t row = t->first_row + k / columns % t->rows;
    int64_t image = t->image + k / columns / t->rows;
    int32_t x_row =
        row * p->window[0].stride + t->tap_row * p->window[0].dilation - p->window[0].pad;
    product_place made;
    made.column = column * p->window[1].stride - p->window[1].pad;
    made.x = image * p->x.image + x_row * p->x.row;
    made.dy = image * p->dy.image + row * p->dy.row + column * p->dy.column;
    return made;
}

// Which of a tile's numbers is the i-th of a thread: product *k of row or column *m. Threads side
// by side read what lies side by side.
static inline void place_in_tile(bool products_first, int32_t i, int32_t *k, int32_t *m)
{
    int32_t e = (int32_t)threadIdx.x + i * BEL_CUDA_CONV_THREADS;
    *k = products_first ? e % DEPTH : e / SIDE;
    *m = products_first ? e / DEPTH : e % SIDE;
}

// What a thread brings of products `first` and so on, while those before them are added.
static inline void bring(const bel_cuda_conv_weights *p, const tile *t,
                         const product_place *products, int32_t first, float *a, float *b)
{
    for (int32_t i = 0; i < MINE; i++) {
        int32_t k, m;
        place_in_tile(!p->x_last, i, &k, &m);
        m += t->first_m;
        bool there = first + k < t->count && m < t->most_m;
        int32_t column = there ? products[k].column + m / p->depth * p->window[1].dilation : -1;
        there = column >= 0 && column < p->window[1].in;
        a[i] =
            there ? t->x[products[k].x + column * p->x.column + m % p->depth * p->x.channel] : 0.0f;
        place_in_tile(!p->dy_last, i, &k, &m);
        m += t->first_o;
        there = first + k < t->count && m < p->out;
        b[i] = there ? t->dy[products[k].dy + m * p->dy.channel] : 0.0f;
    }
}

static inline void add_staged(float (*a)[SIDE + 1], float (*b)[SIDE + 1], int32_t row,
                              int32_t column, int32_t count, float (*sums)[MINE])
{
    for (int32_t k = 0; k < count; k++) {
        float y[MINE];
        for (int32_t j = 0; j < MINE; j++)
            y[j] = b[k][column + j * LANES];
        for (int32_t i = 0; i < MINE; i++) {
            float x = a[k][row + i * LANES];
            for (int32_t j = 0; j < MINE; j++)
                sums[i][j] = fmaf(x, y[j], sums[i][j]);
        }
    }
}

// A block has one tile of the sums of one part, group and row of the window. Inputs dy, x.
KERNEL(conv_weights_tiles, bel_cuda_conv_weights)
{
    __shared__ float a[DEPTH][SIDE + 1], b[DEPTH][SIDE + 1];
    __shared__ product_place products[DEPTH];
    int32_t thread = (int32_t)threadIdx.x, row = thread / LANES, column = thread % LANES, end_row;
    tile t;
    int64_t block = blockIdx.x;
    t.first_o = (int32_t)(block % p.column_tiles) * SIDE;
    block /= p.column_tiles;
    t.first_m = (int32_t)(block % p.row_tiles) * SIDE;
    block /= p.row_tiles;
    t.tap_row = (int32_t)(block % p.window[0].kernel);
    block /= p.window[0].kernel;
    int64_t group = block % p.groups, part = block / p.groups;
    t.dy = (const float *)at.in[0] + group * p.out * p.dy.channel;
    t.x = (const float *)at.in[1] + group * p.depth * p.x.channel;
    rows_inside(&p.window[0], t.tap_row, &t.first_row, &end_row);
    t.rows = end_row - t.first_row;
    t.most_m = p.window[1].kernel * p.depth;
    t.count = (int32_t)images_of(&p, part) * t.rows * p.window[1].out;
    t.image = part * p.images_per_part;
    float sums[MINE][MINE], next_a[MINE], next_b[MINE];
    for (int32_t i = 0; i < MINE; i++)
        for (int32_t j = 0; j < MINE; j++)
            sums[i][j] = 0.0f;
    if (thread < DEPTH && thread < t.count) products[thread] = product_of(&p, &t, thread);
    __syncthreads();
    bring(&p, &t, products, 0, next_a, next_b);
    __syncthreads();
    for (int32_t k = 0; k < t.count; k += DEPTH) {
        int32_t left = t.count - k, next = k + DEPTH;
        for (int32_t i = 0; i < MINE; i++) {
            int32_t e_k, e_m;
            place_in_tile(!p.x_last, i, &e_k, &e_m);
            a[e_k][e_m] = next_a[i];
            place_in_tile(!p.dy_last, i, &e_k, &e_m);
            b[e_k][e_m] = next_b[i];
        }
        if (thread < DEPTH && next + thread < t.count)
            products[thread] = product_of(&p, &t, next + thread);
        __syncthreads();
        bring(&p, &t, products, next, next_a, next_b);
        if (left >= DEPTH) {
            add_staged(a, b, row, column, DEPTH, sums);
        } else {
            add_staged(a, b, row, column, left, sums);
        }
        __syncthreads();
    }
    int64_t first = ((part * p.groups + group) * p.window[0].kernel + t.tap_row) * t.most_m;
    for (int32_t i = 0; i < MINE; i++) {
        int32_t m = t.first_m + row + i * LANES;
        if (m >= t.most_m) continue;
        float *to = (float *)at.work + (first + m) * p.out;
        for (int32_t j = 0; j < MINE; j++) {
            int32_t o = t.first_o + column + j * LANES;
            if (o < p.out) to[o] = sums[i][j];
        }
    }
}

// The same by a thread for each sum, where a group has few channels.
KERNEL(conv_weights_each, bel_cuda_conv_weights)
{
    const bel_cuda_window *r = &p.window[0], *c = &p.window[1];
    int64_t count = p.parts * p.groups * r->kernel * c->kernel * p.depth * p.out;
    for (int64_t e = THREAD; e < count; e += THREADS) {
        int64_t rest = e / p.out, o = e % p.out, d = rest % p.depth;
        rest /= p.depth;
        int32_t tap = (int32_t)(rest % c->kernel);
        rest /= c->kernel;
        int32_t tap_row = (int32_t)(rest % r->kernel), first_row, end_row;
        rest /= r->kernel;
        int64_t group = rest % p.groups, part = rest / p.groups;
        const float *dy = (const float *)at.in[0] + (group * p.out + o) * p.dy.channel;
        const float *x = (const float *)at.in[1] + (group * p.depth + d) * p.x.channel;
        rows_inside(r, tap_row, &first_row, &end_row);
        int64_t image = part * p.images_per_part, end = image + images_of(&p, part);
        float sum = 0.0f;
        for (; image < end; image++) {
            for (int32_t row = first_row; row < end_row; row++) {
                int32_t x_row = row * r->stride + tap_row * r->dilation - r->pad;
                const float *from = x + image * p.x.image + x_row * p.x.row;
                const float *of = dy + image * p.dy.image + row * p.dy.row;
                for (int32_t column = 0; column < c->out; column++) {
                    int32_t x_column = column * c->stride + tap * c->dilation - c->pad;
                    bool there = x_column >= 0 && x_column < c->in;
                    sum = fmaf(there ? from[x_column * p.x.column] : 0.0f, of[column * p.dy.column],
                               sum);
                }
            }
        }
        ((float *)at.work)[e] = sum;
    }
}

KERNEL(conv_weights_add, bel_cuda_conv_weights)
{
    const float *sums = (const float *)at.work;
    int64_t taps = (int64_t)p.window[0].kernel * p.window[1].kernel;
    int64_t count = p.groups * p.out * p.depth * taps;
    for (int64_t e = THREAD; e < count; e += THREADS) {
        int64_t tap = e % taps, d = e / taps % p.depth, o = e / taps / p.depth;
        int64_t place = ((o / p.out * taps + tap) * p.depth + d) * p.out + o % p.out;
        float total = 0.0f;
        for (int64_t part = 0; part < p.parts; part++)
            total += sums[part * count + place];
        ((float *)at.out[0])[e] = total;
    }
}
