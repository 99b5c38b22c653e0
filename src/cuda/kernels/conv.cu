// Output and input gradient of convolutions, f32: the sums of ops/kernels/conv.c, each one chain of
// fused multiply-adds. As there, a sum skips rows of the window outside of the source. Columns
// outside count as zeros that are multiplied (which shows for non-finite numbers and -0).
//
// conv_tiles is a matrix product (implicit GEMM). Its left side, places of the source by taps and
// channels, is staged in shared memory piece by piece and never made as a whole (tile.h). While a
// piece is added, the next one is loaded into registers, and the addresses of the one after that
// are computed. conv_each is for results of few channels, where most of a tile would be empty.
#include "cuda/kernels/conv.h"
#include "cuda/kernels/tile.h"

#define SIDE BEL_CUDA_CONV_SIDE
#define DEPTH BEL_CUDA_CONV_DEPTH
#define THREADS_OF_TILE BEL_CUDA_CONV_THREADS

// Taps of one dimension that positions of one phase read, in ascending order of the source. Tap
// `tap + i · tap_step` reads `place + i · place_step`; position m of the phase reads m source_steps
// further.
typedef struct tap_list {
    int32_t count, tap, tap_step, place, place_step;
    int32_t positions, first, step, source_step;
} tap_list;

// Follows make_list of ops/kernels/conv.c. In a gradient, the taps that hit a multiple of the
// stride are `period` apart.
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

// Packs weights as [group, tap, depth, width], so that a tile stages contiguous weights. There are
// fewer than 2^31.
KERNEL(conv_pack, bel_cuda_conv)
{
    const float *w = (const float *)at.in[1];
    float *packed = (float *)at.work;
    uint32_t taps = (uint32_t)(p.window[0].kernel * p.window[1].kernel);
    uint32_t width = (uint32_t)p.width, depth = (uint32_t)p.depth;
    int64_t count = (int64_t)p.groups * taps * depth * width;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        uint32_t c = (uint32_t)i % width, rest = (uint32_t)i / width, d = rest % depth;
        rest /= depth;
        uint32_t tap = rest % taps, group = rest / taps;
        packed[i] = w[group * p.weights_group + d * p.weights_depth + c * p.weights_width + tap];
    }
}

// Position of a tile: its place in the source before a tap is added, in rows and columns, and as an
// offset from the tile's first image (sums wrap around on their way).
typedef struct __attribute__((aligned(16))) position {
    uint32_t source;
    int32_t row, column;
} position;

// Work of a block: positions of one phase of a group, from `first` on, and its result channels.
typedef struct tile {
    tap_list rows, columns;
    const float *source; // the group's, from the tile's first image on
    int64_t first, image;
    int32_t group, first_c;
    int32_t count; // number of positions
    int32_t lowest, highest; // their lowest and highest row
    int32_t row_products;    // products of a row of the window
    int32_t steps; // steps of up to DEPTH products, all in one row of the window
} tile;

// A tile after the phase's last position is empty: phases differ in their number of positions.
static inline tile tile_of(const bel_cuda_operands *at, const bel_cuda_conv *p, int32_t channels)
{
    tile t;
    int64_t block = blockIdx.x;
    t.first_c = (int32_t)(block % p->width_tiles) * channels;
    block /= p->width_tiles;
    t.first = block % p->tiles * SIDE;
    block /= p->tiles;
    t.group = (int32_t)(block % p->groups);
    int32_t phase = (int32_t)(block / p->groups);
    t.rows = taps_of(&p->window[0], p->gradient, phase / p->phases[1]);
    t.columns = taps_of(&p->window[1], p->gradient, phase % p->phases[1]);
    int64_t plane = (int64_t)t.rows.positions * t.columns.positions, left = p->n * plane - t.first;
    t.count = left < 0 ? 0 : left < SIDE ? (int32_t)left : SIDE;
    if (t.count == 0) return t;
    t.image = t.first / plane;
    t.source = (const float *)at->in[0] + t.image * p->source.image +
               (int64_t)t.group * p->depth * p->source.channel;
    int64_t last = t.first + t.count - 1;
    bool one = last / plane == t.image;
    t.lowest = one ? (int32_t)(t.first % plane) / t.columns.positions : 0;
    t.highest = one ? (int32_t)(last % plane) / t.columns.positions : t.rows.positions - 1;
    t.lowest *= t.rows.source_step;
    t.highest *= t.rows.source_step;
    t.row_products = t.columns.count * p->depth;
    t.steps = t.rows.count * ((t.row_products + DEPTH - 1) / DEPTH);
    return t;
}

// Image, row and column of a position of the phase.
typedef struct spot {
    int64_t image;
    int32_t row, column;
} spot;

static inline spot spot_of(const tile *t, int32_t m)
{
    int64_t index = t->first + m, line = index / t->columns.positions;
    spot made;
    made.image = line / t->rows.positions;
    made.row = (int32_t)(line % t->rows.positions);
    made.column = (int32_t)(index % t->columns.positions);
    return made;
}

// Absent positions repeat the last one, which is then not written.
static inline position position_of(const bel_cuda_conv *p, const tile *t, int32_t m)
{
    const spot s = spot_of(t, m < t->count ? m : t->count - 1);
    position made;
    made.row = s.row * t->rows.source_step;
    made.column = s.column * t->columns.source_step;
    made.source = (uint32_t)(s.image - t->image) * (uint32_t)p->source.image +
                  (uint32_t)made.row * (uint32_t)p->source.row +
                  (uint32_t)made.column * (uint32_t)p->source.column;
    return made;
}

static inline int64_t result_of(const bel_cuda_conv *p, const tile *t, int32_t m)
{
    const spot s = spot_of(t, m);
    return s.image * p->result.image + (int64_t)t->group * p->width * p->result.channel +
           (t->rows.first + s.row * t->rows.step) * p->result.row +
           (t->columns.first + s.column * t->columns.step) * p->result.column;
}

#define OUTSIDE (INT32_MIN / 2) // a column that stays outside with any other one added

// Product of a row of the window, for all sums of a tile: its offset to a position, and the start
// of its tap and channel in the packed weights.
typedef struct __attribute__((aligned(16))) product_place {
    uint32_t source;
    int32_t row, column;
    uint32_t weights;
} product_place;

// Next products: from k on, in row s of the window.
typedef struct cursor {
    int32_t s, k;
} cursor;

static inline void go_on(const tile *t, cursor *next)
{
    next->k += DEPTH;
    if (next->k < t->row_products) return;
    next->k = 0;
    next->s++;
}

// Products after the end of the row are read, but never added.
static inline product_place product_of(const bel_cuda_conv *p, const tile *t, cursor next)
{
    int32_t k = next.k + (int32_t)threadIdx.x, tap = k / p->depth, d = k - tap * p->depth;
    product_place made = {0, 0, OUTSIDE, 0};
    if (k >= t->row_products || next.s >= t->rows.count) return made;
    int32_t row = t->rows.tap + next.s * t->rows.tap_step;
    int32_t column = t->columns.tap + tap * t->columns.tap_step;
    made.row = t->rows.place + next.s * t->rows.place_step;
    made.column = t->columns.place + tap * t->columns.place_step;
    made.source = (uint32_t)d * (uint32_t)p->source.channel +
                  (uint32_t)made.row * (uint32_t)p->source.row +
                  (uint32_t)made.column * (uint32_t)p->source.column;
    made.weights = (uint32_t)t->group * (uint32_t)p->window[0].kernel + (uint32_t)row;
    made.weights = made.weights * (uint32_t)p->window[1].kernel + (uint32_t)column;
    made.weights = (made.weights * (uint32_t)p->depth + (uint32_t)d) * (uint32_t)p->width;
    return made;
}

static inline float read_source(const bel_cuda_conv *p, const tile *t, position at,
                                product_place product)
{
    int32_t row = at.row + product.row, column = at.column + product.column;
    bool there = row >= 0 && row < p->source_size[0] && column >= 0 && column < p->source_size[1];
    return there ? t->source[at.source + product.source] : 0.0f;
}

// Loads a thread's numbers of the left side: rows first if neighbors in the source are positions.
static inline void bring_source(const bel_cuda_conv *p, const tile *t, const position *places,
                                const product_place *products, float *to)
{
    int k, m;
    tile_mine(!p->source_last, DEPTH, SIDE, THREADS_OF_TILE, 0, &k, &m);
    product_place product = products[k];
    position place = places[m];
    if (p->source_last) {
        for (int i = 0; i < DEPTH * SIDE / THREADS_OF_TILE; i++)
            to[i] = read_source(p, t, places[m + i * (THREADS_OF_TILE / DEPTH)], product);
    } else {
        for (int i = 0; i < DEPTH * SIDE / THREADS_OF_TILE; i++)
            to[i] = read_source(p, t, place, products[k + i * (THREADS_OF_TILE / SIDE)]);
    }
}

// Loads the right side: channels of the result are neighbors. Sums of absent channels are not
// kept.
static inline void bring_weights(const bel_cuda_operands *at, const bel_cuda_conv *p, const tile *t,
                                 const product_place *products, int channels, float *to)
{
    const float *packed = (const float *)at->work;
    int k, m;
    tile_mine(true, DEPTH, channels, THREADS_OF_TILE, 0, &k, &m);
    int32_t c = t->first_c + m < p->width ? t->first_c + m : p->width - 1;
    for (int i = 0; i < DEPTH * channels / THREADS_OF_TILE; i++)
        to[i] = packed[products[k + i * (THREADS_OF_TILE / channels)].weights + (uint32_t)c];
}

// Finishes and writes `count` sums of channels from c on; `to` is the position's channel 0.
// Neighboring channels are written in fours.
static inline void put(const bel_cuda_conv *p, const float *sums, int count, int32_t c, float *to)
{
    bool fours = p->result.channel == 1 && (uint64_t)(to + c) % sizeof(tile_four) == 0;
    for (int j = 0; j < count; j += 4) {
        if (fours && c + j + 4 <= p->width) {
            tile_four made;
            for (int l = 0; l < 4; l++)
                made.v[l] = finish(p, sums[j + l]);
            *(tile_four *)(void *)(to + c + j) = made;
        } else {
            for (int l = 0; l < 4; l++)
                if (c + j + l < p->width)
                    to[(c + j + l) * p->result.channel] = finish(p, sums[j + l]);
        }
    }
}

// TILE_ADD, except for rows that are not `inside`.
#define ADD_INSIDE(a, b, ROWS, COLUMNS, inside, sums)                                              \
    do {                                                                                           \
        float left[ROWS], right[COLUMNS];                                                          \
        tile_take(a, ROWS, 0, left);                                                               \
        tile_take(b, COLUMNS, 0, right);                                                           \
        for (int i = 0; i < ROWS; i++)                                                             \
            for (int j = 0; j < COLUMNS; j++)                                                      \
                sums[i][j] = inside[i] ? fmaf(left[i], right[j], sums[i][j]) : sums[i][j];         \
    } while (0)

// A block has one tile: positions of one phase of one group, by some of its result channels. DOWN
// by ACROSS threads have ROWS x COLUMNS sums each.
#define TILES(name, DOWN, ACROSS, ROWS, COLUMNS)                                                   \
    KERNEL(name, bel_cuda_conv)                                                                    \
    {                                                                                              \
        enum { C = ACROSS * COLUMNS, A = DEPTH * SIDE / THREADS_OF_TILE };                         \
        TILE_SHARED float a[2][DEPTH][TILE_ROW(SIDE)], b[2][DEPTH][TILE_ROW(C)];                   \
        __shared__ position places[SIDE];                                                          \
        __shared__ product_place products[2][DEPTH];                                               \
        const tile t = tile_of(&at, &p, C);                                                        \
        if (t.count == 0) return;                                                                  \
        int thread = (int)threadIdx.x;                                                             \
        int row = tile_thread_row(false, ACROSS) * ROWS;                                           \
        int column = tile_thread_column(false, ACROSS) * COLUMNS;                                  \
        cursor coming = {0, 0}, added = {0, 0};                                                    \
        float sums[ROWS][COLUMNS], next_a[A], next_b[DEPTH * C / THREADS_OF_TILE];                 \
        for (int j = 0; j < COLUMNS; j++) {                                                        \
            int32_t c = t.first_c + column + j;                                                    \
            bool has_bias = p.has_bias && c < p.width;                                             \
            const float *bias = (const float *)at.in[2] + (int64_t)t.group * p.width;              \
            float start = has_bias ? bias[c] : 0.0f;                                               \
            for (int i = 0; i < ROWS; i++)                                                         \
                sums[i][j] = start;                                                                \
        }                                                                                          \
        if (thread < SIDE) places[thread] = position_of(&p, &t, thread);                           \
        if (thread < DEPTH) products[0][thread] = product_of(&p, &t, coming);                      \
        __syncthreads();                                                                           \
        int32_t my_rows[ROWS];                                                                     \
        for (int i = 0; i < ROWS; i++)                                                             \
            my_rows[i] = places[row + i].row;                                                      \
        if (t.steps > 0) {                                                                         \
            go_on(&t, &coming);                                                                    \
            if (thread < DEPTH) products[1][thread] = product_of(&p, &t, coming);                  \
            bring_source(&p, &t, places, products[0], next_a);                                     \
            bring_weights(&at, &p, &t, products[0], C, next_b);                                    \
            tile_keep(!p.source_last, DEPTH, SIDE, THREADS_OF_TILE, next_a, a[0][0]);              \
            tile_keep(true, DEPTH, C, THREADS_OF_TILE, next_b, b[0][0]);                           \
        }                                                                                          \
        __syncthreads();                                                                           \
        for (int32_t step = 0, turn = 0; step < t.steps; step++, turn ^= 1) {                      \
            int32_t left = t.row_products - added.k;                                               \
            int32_t place = t.rows.place + added.s * t.rows.place_step;                            \
            bool all = t.lowest + place >= 0 && t.highest + place < p.source_size[0];              \
            bool more = step + 1 < t.steps;                                                        \
            if (more) {                                                                            \
                bring_source(&p, &t, places, products[turn ^ 1], next_a);                          \
                bring_weights(&at, &p, &t, products[turn ^ 1], C, next_b);                         \
                go_on(&t, &coming);                                                                \
                if (thread < DEPTH) products[turn][thread] = product_of(&p, &t, coming);           \
            }                                                                                      \
            if (all && left >= DEPTH) {                                                            \
                UNROLL(8)                                                                          \
                for (int q = 0; q < DEPTH; q++)                                                    \
                    TILE_ADD(&a[turn][q][row], &b[turn][q][column], ROWS, COLUMNS, 0, sums);       \
            } else {                                                                               \
                bool inside[ROWS];                                                                 \
                for (int i = 0; i < ROWS; i++)                                                     \
                    inside[i] = my_rows[i] + place >= 0 && my_rows[i] + place < p.source_size[0];  \
                UNROLL(2)                                                                          \
                for (int q = 0; q < (left < DEPTH ? left : DEPTH); q++)                            \
                    ADD_INSIDE(&a[turn][q][row], &b[turn][q][column], ROWS, COLUMNS, inside,       \
                               sums);                                                              \
            }                                                                                      \
            if (more) {                                                                            \
                tile_keep(!p.source_last, DEPTH, SIDE, THREADS_OF_TILE, next_a, a[turn ^ 1][0]);   \
                tile_keep(true, DEPTH, C, THREADS_OF_TILE, next_b, b[turn ^ 1][0]);                \
            }                                                                                      \
            go_on(&t, &added);                                                                     \
            __syncthreads();                                                                       \
        }                                                                                          \
        UNROLL(ROWS)                                                                               \
        for (int i = 0; i < ROWS; i++) {                                                           \
            if (row + i >= t.count) continue;                                                      \
            float *to = (float *)at.out[0] + result_of(&p, &t, row + i);                           \
            put(&p, sums[i], COLUMNS, t.first_c + column, to);                                     \
        }                                                                                          \
    }

TILES(conv_tiles_32, 16, 8, 4, 4)
TILES(conv_tiles_64, 8, 16, 8, 4)

// A thread for each element of the result, in memory order.
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
