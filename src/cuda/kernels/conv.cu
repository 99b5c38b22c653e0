// Output and input gradient of convolutions, f32: the sums of ops/kernels/conv.c, each one chain of
// fused multiply-adds. Rows of the window that lie outside of the source are left out of a sum, as
// there; columns outside count as zeros, which are multiplied (what is not finite, or -0, shows
// it).
//
// conv_tiles is a product of matrices whose left side, places of the source by taps and channels,
// is staged a piece at a time in shared memory and never made as a whole. conv_each is for results
// of few channels, where most of a tile would be empty.
#include "cuda/kernels/conv.h"
#include "cuda/kernels/kernel.h"

#define SIDE BEL_CUDA_CONV_SIDE
#define DEPTH BEL_CUDA_CONV_DEPTH
#define LANES 16            // threads of a block along each side of its tile
#define MINE (SIDE / LANES) // a thread's rows and columns of it

// The taps of one dimension that positions of one phase read, by rising place in the source: tap
// `tap + i · tap_step` reads `place + i · place_step`, position m of the phase that many further
// on.
typedef struct tap_list {
    int32_t count, tap, tap_step, place, place_step;
    int32_t positions, first, step, source_step;
} tap_list;

// As make_list of ops/kernels/conv.c. Of a gradient, taps whose places are whole numbers of steps
// are `period` apart.
static inline tap_list taps_of(const bel_cuda_window *w, int32_t gradient, int32_t phase)
{
    tap_list list = {w->kernel, 0, 1, -w->pad, w->dilation, w->out, 0, 1, w->stride};
    if (!gradient) return list;
    int32_t tap = w->kernel - 1, least = tap - w->period;
    while (tap >= 0 && tap > least && (phase + w->pad - tap * w->dilation) % w->stride != 0)
        tap--;
    bool found = tap >= 0 && tap > least;
    list.count = found ? tap / w->period + 1 : 0;
    list.tap = tap;
    list.tap_step = -w->period;
    list.place = found ? (phase + w->pad - tap * w->dilation) / w->stride : 0;
    list.place_step = w->advance;
    list.positions = w->in > phase ? (w->in - phase + w->stride - 1) / w->stride : 0;
    list.first = phase;
    list.step = w->stride;
    list.source_step = 1;
    return list;
}

static inline float finish(const bel_cuda_conv *p, float sum)
{
    return !p->relu || sum > 0.0f ? sum : 0.0f;
}

// Weights as [group, tap, depth, width], so that what a tile stages together lies together.
KERNEL(conv_pack, bel_cuda_conv)
{
    const float *w = (const float *)at.in[1];
    float *packed = (float *)at.work;
    int64_t taps = (int64_t)p.window[0].kernel * p.window[1].kernel;
    int64_t count = p.groups * taps * p.depth * p.width;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        int64_t c = i % p.width, d = i / p.width % p.depth;
        int64_t tap = i / p.width / p.depth % taps, group = i / p.width / p.depth / taps;
        packed[i] = w[group * p.weights_group + d * p.weights_depth + c * p.weights_width + tap];
    }
}

// Adds `count` staged products to each of a thread's sums, but for rows that are not `inside`.
static inline void add_staged(float (*a)[SIDE + 1], float (*b)[SIDE], int32_t row, int32_t column,
                              int32_t count, const bool *inside, float (*sums)[MINE])
{
    for (int32_t k = 0; k < count; k++) {
        float y[MINE];
        for (int32_t j = 0; j < MINE; j++)
            y[j] = b[k][column + j * LANES];
        for (int32_t i = 0; i < MINE; i++) {
            if (!inside[i]) continue;
            float x = a[k][row + i * LANES];
            for (int32_t j = 0; j < MINE; j++)
                sums[i][j] = fmaf(x, y[j], sums[i][j]);
        }
    }
}

// A tile's position: where its image's first channel of the group begins in the source, its place
// there in rows and columns before a tap is added, and its place in the result.
typedef struct position {
    int64_t source, result;
    int32_t row, column;
} position;

static inline position position_of(const bel_cuda_conv *p, const tap_list *rows,
                                   const tap_list *columns, int32_t group, int64_t index)
{
    int64_t line = index / columns->positions, image = line / rows->positions;
    int32_t column = (int32_t)(index % columns->positions), row = (int32_t)(line % rows->positions);
    position made;
    made.source = image * p->source.image + (int64_t)group * p->depth * p->source.channel;
    made.row = row * rows->source_step;
    made.column = column * columns->source_step;
    made.result = image * p->result.image + (int64_t)group * p->width * p->result.channel +
                  (rows->first + row * rows->step) * p->result.row +
                  (columns->first + column * columns->step) * p->result.column;
    return made;
}

// Product k of a row of the window, for all sums of a tile: its places relative to a position's.
typedef struct product_place {
    int64_t source;  // of its channel
    int64_t weights; // of its tap and channel, in the packed ones; -1: the row has fewer products
    int32_t row, column;
} product_place;

static inline product_place product_of(const bel_cuda_conv *p, const tap_list *rows,
                                       const tap_list *columns, int32_t group, int32_t s, int32_t k)
{
    int32_t t = k / p->depth, d = k % p->depth;
    int64_t row_tap = (int64_t)group * p->window[0].kernel + rows->tap + s * rows->tap_step;
    int64_t tap = row_tap * p->window[1].kernel + columns->tap + t * columns->tap_step;
    product_place made;
    made.source = d * p->source.channel;
    made.weights = k < columns->count * p->depth ? (tap * p->depth + d) * p->width : -1;
    made.row = rows->place + s * rows->place_step;
    made.column = columns->place + t * columns->place_step;
    return made;
}

// Which of a tile's numbers is the i-th of a thread, so that threads side by side read what lies
// side by side: of the left side product *k and position *m, of the right side *k and channel *m.
static inline void place_in_tile(bool products_first, int32_t i, int32_t *k, int32_t *m)
{
    int32_t e = (int32_t)threadIdx.x + i * BEL_CUDA_CONV_THREADS;
    *k = products_first ? e % DEPTH : e / SIDE;
    *m = products_first ? e / DEPTH : e % SIDE;
}

// What a thread brings of the next products, while the last ones are added.
static inline void bring(const bel_cuda_operands *at, const bel_cuda_conv *p,
                         const position *places, const product_place *products, int32_t first_c,
                         float *a, float *b)
{
    const float *x = (const float *)at->in[0], *packed = (const float *)at->work;
    for (int32_t i = 0; i < MINE; i++) {
        int32_t k, m;
        place_in_tile(p->source_last, i, &k, &m);
        const product_place *q = &products[k];
        int32_t row = places[m].row + q->row, column = places[m].column + q->column;
        bool there = q->weights >= 0 && row >= 0 && row < p->source_size[0] && column >= 0 &&
                     column < p->source_size[1];
        a[i] =
            there
                ? x[places[m].source + q->source + row * p->source.row + column * p->source.column]
                : 0.0f;
        place_in_tile(false, i, &k, &m);
        there = products[k].weights >= 0 && first_c + m < p->width;
        b[i] = there ? packed[products[k].weights + first_c + m] : 0.0f;
    }
}

// A block has one tile of positions of one phase of one group, and of its result channels.
KERNEL(conv_tiles, bel_cuda_conv)
{
    __shared__ float a[DEPTH][SIDE + 1], b[DEPTH][SIDE];
    __shared__ position places[SIDE];
    __shared__ product_place products[DEPTH];
    int32_t thread = (int32_t)threadIdx.x;
    int64_t block = blockIdx.x;
    int32_t first_c = (int32_t)(block % p.width_tiles) * SIDE;
    block /= p.width_tiles;
    int64_t first = block % p.tiles * SIDE;
    block /= p.tiles;
    int32_t group = (int32_t)(block % p.groups), phase = (int32_t)(block / p.groups);
    const tap_list rows = taps_of(&p.window[0], p.gradient, phase / p.phases[1]);
    const tap_list columns = taps_of(&p.window[1], p.gradient, phase % p.phases[1]);
    int64_t count = p.n * rows.positions * columns.positions;
    if (first >= count) return; // phases differ in how many they have
    if (thread < SIDE) {
        bool there = first + thread < count;
        places[thread] = position_of(&p, &rows, &columns, group, there ? first + thread : 0);
        if (!there) places[thread].row = INT32_MIN / 2; // inside for no tap
    }
    if (thread < DEPTH && rows.count > 0)
        products[thread] = product_of(&p, &rows, &columns, group, 0, thread);
    __syncthreads();

    // Threads side by side write what lies side by side in the result.
    int32_t row = p.result_last ? thread / LANES : thread % LANES;
    int32_t column = p.result_last ? thread % LANES : thread / LANES;
    float sums[MINE][MINE], next_a[MINE], next_b[MINE];
    for (int32_t j = 0; j < MINE; j++) {
        int32_t c = first_c + column + j * LANES;
        bool has_bias = p.has_bias && c < p.width;
        float start = has_bias ? ((const float *)at.in[2])[(int64_t)group * p.width + c] : 0.0f;
        for (int32_t i = 0; i < MINE; i++)
            sums[i][j] = start;
    }

    // A step takes up to DEPTH products, all of one row of the window.
    int32_t row_products = columns.count * p.depth, s = 0, k = 0;
    int32_t steps = rows.count * ((row_products + DEPTH - 1) / DEPTH);
    if (steps > 0) bring(&at, &p, places, products, first_c, next_a, next_b);
    __syncthreads();
    for (int32_t step = 0; step < steps; step++) {
        bool inside[MINE];
        int32_t left = row_products - k, row_place = rows.place + s * rows.place_step;
        for (int32_t i = 0; i < MINE; i++) {
            int32_t place = places[row + i * LANES].row + row_place, e_k, e_m;
            inside[i] = place >= 0 && place < p.source_size[0];
            place_in_tile(p.source_last, i, &e_k, &e_m);
            a[e_k][e_m] = next_a[i];
            place_in_tile(false, i, &e_k, &e_m);
            b[e_k][e_m] = next_b[i];
        }
        k = left > DEPTH ? k + DEPTH : 0;
        s += k == 0;
        if (thread < DEPTH && step + 1 < steps)
            products[thread] = product_of(&p, &rows, &columns, group, s, k + thread);
        __syncthreads();
        if (step + 1 < steps) bring(&at, &p, places, products, first_c, next_a, next_b);
        if (left >= DEPTH) {
            add_staged(a, b, row, column, DEPTH, inside, sums);
        } else {
            add_staged(a, b, row, column, left, inside, sums);
        }
        __syncthreads();
    }
    for (int32_t i = 0; i < MINE; i++) {
        if (first + row + i * LANES >= count) continue;
        float *to = (float *)at.out[0] + places[row + i * LANES].result;
        for (int32_t j = 0; j < MINE; j++) {
            int32_t c = first_c + column + j * LANES;
            if (c < p.width) to[c * p.result.channel] = finish(&p, sums[i][j]);
        }
    }
}

// A thread for each element of the result, in the order in which they lie.
KERNEL(conv_each, bel_cuda_conv)
{
    const float *x = (const float *)at.in[0], *w = (const float *)at.in[1];
    int64_t channels = (int64_t)p.groups * p.width, plane = (int64_t)p.size[0] * p.size[1];
    for (int64_t e = THREAD; e < p.n * channels * plane; e += THREADS) {
        int64_t channel = p.result_last ? e % channels : e / plane % channels;
        int64_t pixel = p.result_last ? e / channels % plane : e % plane;
        int64_t image = e / channels / plane;
        int32_t row = (int32_t)(pixel / p.size[1]), column = (int32_t)(pixel % p.size[1]);
        int32_t group = (int32_t)(channel / p.width);
        const tap_list rows = taps_of(&p.window[0], p.gradient, row % p.phases[0]);
        const tap_list columns = taps_of(&p.window[1], p.gradient, column % p.phases[1]);
        const float *from =
            x + image * p.source.image + (int64_t)group * p.depth * p.source.channel;
        const float *weights = w + group * p.weights_group + channel % p.width * p.weights_width;
        float sum = p.has_bias ? ((const float *)at.in[2])[channel] : 0.0f;
        for (int32_t s = 0; s < rows.count; s++) {
            int32_t x_row = row / rows.step * rows.source_step + rows.place + s * rows.place_step;
            if (x_row < 0 || x_row >= p.source_size[0]) continue;
            int64_t row_tap = (rows.tap + s * rows.tap_step) * (int64_t)p.window[1].kernel;
            for (int32_t t = 0; t < columns.count; t++) {
                int32_t x_column = column / columns.step * columns.source_step + columns.place +
                                   t * columns.place_step;
                bool there = x_column >= 0 && x_column < p.source_size[1];
                const float *pixel_at = from + x_row * p.source.row + x_column * p.source.column;
                const float *taps = weights + row_tap + columns.tap + t * columns.tap_step;
                for (int32_t d = 0; d < p.depth; d++)
                    sum = fmaf(there ? pixel_at[d * p.source.channel] : 0.0f,
                               taps[d * p.weights_depth], sum);
            }
        }
        float *y = (float *)at.out[0] + image * p.result.image + channel * p.result.channel;
        y[row * p.result.row + column * p.result.column] = finish(&p, sum);
    }
}
