// Gradient of a convolution's weights, f32: the sums of ops/kernels/conv_weights.c. Each of a few
// parts of the batch has a separate sum for each weight, a chain of fused multiply-adds over
// images, rows and columns of dy. conv_weights_add adds the parts in order.
//
// Rows of dy whose tap is above or below the image are skipped; columns to its left and right count
// as zeros that are multiplied. The skipped rows depend only on the tap's row, so a tile keeps to
// one row of the window. Sums are stored as [part, group, tap, channel of x, channel of dy].
//
// The chains are few and long, so a block waits only for their additions. It loads the numbers of
// the next DEPTH products from memory while it adds those of the last ones. No thread divides to
// find them: one thread computes the place of product k for the block, from the place of product k
// - DEPTH.
#include "cuda/kernels/conv.h"
#include "cuda/kernels/tile.h"

// Rows [first, end) of dy whose tap in row `tap` of the window is inside of x.
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

// Work of a block: sums of some taps and channels of x, by channels of dy, over some products.
typedef struct tile {
    const float *x, *dy; // the group's, from the part's first image on
    int32_t tap_row, first_row, rows, first_m, first_o;
    int32_t most_m; // taps and channels of a row of the window
    int32_t count;  // products of a sum
    int64_t first; // start of the sums of the row of the window
} tile;

static inline tile tile_of(const bel_cuda_operands *at, const bel_cuda_conv_weights *p,
                           int32_t tile_m, int32_t tile_o)
{
    tile t;
    int32_t block = (int32_t)blockIdx.x, end_row;
    t.first_o = block % p->column_tiles * tile_o;
    block /= p->column_tiles;
    t.first_m = block % p->row_tiles * tile_m;
    block /= p->row_tiles;
    t.tap_row = block % p->window[0].kernel;
    block /= p->window[0].kernel;
    int64_t group = block % p->groups, part = block / p->groups;
    int64_t image = part * p->images_per_part;
    t.dy = (const float *)at->in[0] + group * p->out * p->dy.channel + image * p->dy.image;
    t.x = (const float *)at->in[1] + group * p->depth * p->x.channel + image * p->x.image;
    rows_inside(&p->window[0], t.tap_row, &t.first_row, &end_row);
    t.rows = end_row - t.first_row;
    t.most_m = p->window[1].kernel * p->depth;
    t.count = (int32_t)images_of(p, part) * t.rows * p->window[1].out;
    t.first = ((part * p->groups + group) * p->window[0].kernel + t.tap_row) * t.most_m;
    return t;
}

#define OUTSIDE (INT32_MIN / 2) // a column that stays outside with any other one added

// Place of a product's numbers for all sums, relative to the tile's x and dy; sums wrap around on
// their way. `column`: in x, without the tap.
typedef struct __attribute__((aligned(16))) product_place {
    uint32_t x, dy;
    int32_t column;
} product_place;

// Offset that a row of the tile, a tap and channel of x, adds to that.
typedef struct __attribute__((aligned(8))) row_place {
    uint32_t x;
    int32_t column;
} row_place;

static inline row_place row_place_of(const bel_cuda_conv_weights *p, const tile *t, int32_t m)
{
    int32_t tap = (t->first_m + m) / p->depth, channel = (t->first_m + m) % p->depth;
    int32_t column = tap * p->window[1].dilation;
    row_place made;
    made.x = (uint32_t)column * (uint32_t)p->x.column + (uint32_t)channel * (uint32_t)p->x.channel;
    made.column = t->first_m + m < t->most_m ? column : OUTSIDE;
    return made;
}

// Product k of a chain, by its column and row of dy (counted from the first row in use), and its
// image in the part.
typedef struct chain {
    int32_t k, column, row, image;
} chain;

static inline chain chain_at(const bel_cuda_conv_weights *p, const tile *t, int32_t k)
{
    int32_t columns = p->window[1].out;
    chain made = {k, k % columns, k / columns % t->rows, k / columns / t->rows};
    return made;
}

// Goes from a product to the one `step` further.
static inline void go_on(const bel_cuda_conv_weights *p, const tile *t, const chain *step,
                         chain *chain)
{
    bool next_row = chain->column + step->column >= p->window[1].out;
    chain->k += step->k;
    chain->column += step->column - (next_row ? p->window[1].out : 0);
    chain->row += step->row + next_row;
    bool next_image = chain->row >= t->rows;
    chain->row -= next_image ? t->rows : 0;
    chain->image += step->image + next_image;
}

// Products after the end of the chain are read, but never added.
static inline product_place product_of(const bel_cuda_conv_weights *p, const tile *t,
                                       const chain *chain)
{
    int32_t row = t->first_row + chain->row;
    int32_t x_row =
        row * p->window[0].stride + t->tap_row * p->window[0].dilation - p->window[0].pad;
    product_place made = {0, 0, OUTSIDE};
    if (chain->k >= t->count) return made;
    made.column = chain->column * p->window[1].stride - p->window[1].pad;
    made.x = (uint32_t)chain->image * (uint32_t)p->x.image + (uint32_t)x_row * (uint32_t)p->x.row +
             (uint32_t)made.column * (uint32_t)p->x.column;
    made.dy = (uint32_t)chain->image * (uint32_t)p->dy.image + (uint32_t)row * (uint32_t)p->dy.row +
              (uint32_t)chain->column * (uint32_t)p->dy.column;
    return made;
}

static inline float read_x(const bel_cuda_conv_weights *p, const tile *t, product_place product,
                           row_place row)
{
    int32_t column = product.column + row.column;
    bool there = column >= 0 && column < p->window[1].in;
    return there ? t->x[product.x + row.x] : 0.0f;
}

static inline void bring_x(const bel_cuda_conv_weights *p, const tile *t,
                           const product_place *products, const row_place *rows, int depth,
                           int side, int threads, float *to)
{
    int k, m;
    tile_mine(p->x_last, depth, side, threads, 0, &k, &m);
    product_place product = products[k];
    row_place row = rows[m];
    if (p->x_last) {
        for (int i = 0; i < depth * side / threads; i++)
            to[i] = read_x(p, t, products[k + i * (threads / side)], row);
    } else {
        for (int i = 0; i < depth * side / threads; i++)
            to[i] = read_x(p, t, product, rows[m + i * (threads / depth)]);
    }
}

static inline void bring_dy(const bel_cuda_conv_weights *p, const tile *t,
                            const product_place *products, int depth, int side, int threads,
                            float *to)
{
    int k, m;
    int32_t last = p->out - 1; // replaces absent channels: their sums are not kept
    tile_mine(p->dy_last, depth, side, threads, 0, &k, &m);
    int32_t o = t->first_o + m;
    if (p->dy_last) {
        o = o < last ? o : last;
        for (int i = 0; i < depth * side / threads; i++)
            to[i] = t->dy[products[k + i * (threads / side)].dy + (uint32_t)o];
    } else {
        uint32_t product = products[k].dy;
        for (int i = 0; i < depth * side / threads; i++) {
            int32_t mine = o + i * (threads / depth);
            to[i] =
                t->dy[product + (uint32_t)(mine < last ? mine : last) * (uint32_t)p->dy.channel];
        }
    }
}

// A block has one tile of the sums of one part, group and row of the window. DOWN by ACROSS threads
// add, and all THREADS load numbers. With one buffer, the additions must be finished before the
// next numbers are stored. Sums of AT_ONCE products wait together for shared memory. Inputs dy, x.
#define WEIGHTS(name, NARROW, DOWN, ACROSS, ROWS, COLUMNS, THREADS, DEPTH, BUFFERS, AT_ONCE)       \
    KERNEL(name, bel_cuda_conv_weights)                                                            \
    {                                                                                              \
        enum { M = DOWN * ROWS, O = ACROSS * COLUMNS };                                            \
        TILE_SHARED float a[BUFFERS][DEPTH][TILE_ROW(M)], b[BUFFERS][DEPTH][TILE_ROW(O)];          \
        __shared__ product_place products[2][DEPTH];                                               \
        __shared__ row_place rows[M];                                                              \
        const tile t = tile_of(&at, &p, M, O);                                                     \
        int thread = (int)threadIdx.x;                                                             \
        int row = tile_thread_row(NARROW, ACROSS) * ROWS;                                          \
        int column = tile_thread_column(NARROW, ACROSS) * COLUMNS;                                 \
        bool adds = DOWN * ACROSS == THREADS || thread < DOWN * ACROSS;                            \
        float sums[ROWS][COLUMNS], next_a[DEPTH * M / THREADS], next_b[DEPTH * O / THREADS];       \
        for (int i = 0; i < ROWS; i++)                                                             \
            for (int j = 0; j < COLUMNS; j++)                                                      \
                sums[i][j] = 0.0f;                                                                 \
        if (t.count > 0) {                                                                         \
            chain mine = chain_at(&p, &t, thread), step = chain_at(&p, &t, DEPTH);                 \
            if (thread < M) rows[thread] = row_place_of(&p, &t, thread);                           \
            if (thread < DEPTH) products[0][thread] = product_of(&p, &t, &mine);                   \
            __syncthreads();                                                                       \
            go_on(&p, &t, &step, &mine);                                                           \
            if (thread < DEPTH) products[1][thread] = product_of(&p, &t, &mine);                   \
            bring_x(&p, &t, products[0], rows, DEPTH, M, THREADS, next_a);                         \
            bring_dy(&p, &t, products[0], DEPTH, O, THREADS, next_b);                              \
            tile_keep(p.x_last, DEPTH, M, THREADS, next_a, a[0][0]);                               \
            tile_keep(p.dy_last, DEPTH, O, THREADS, next_b, b[0][0]);                              \
            __syncthreads();                                                                       \
            for (int32_t k = 0, turn = 0; k < t.count; k += DEPTH, turn ^= 1) {                    \
                int32_t left = t.count - k, buffer = turn % BUFFERS;                               \
                if (left > DEPTH) {                                                                \
                    bring_x(&p, &t, products[turn ^ 1], rows, DEPTH, M, THREADS, next_a);          \
                    bring_dy(&p, &t, products[turn ^ 1], DEPTH, O, THREADS, next_b);               \
                    go_on(&p, &t, &step, &mine);                                                   \
                    if (thread < DEPTH) products[turn][thread] = product_of(&p, &t, &mine);        \
                }                                                                                  \
                if (adds && left >= DEPTH) {                                                       \
                    UNROLL(AT_ONCE)                                                                \
                    for (int q = 0; q < DEPTH; q++)                                                \
                        TILE_ADD(&a[buffer][q][row], &b[buffer][q][column], ROWS, COLUMNS, 0,      \
                                 sums);                                                            \
                } else if (adds) {                                                                 \
                    UNROLL(1)                                                                      \
                    for (int q = 0; q < left; q++)                                                 \
                        TILE_ADD(&a[buffer][q][row], &b[buffer][q][column], ROWS, COLUMNS, 0,      \
                                 sums);                                                            \
                }                                                                                  \
                if (BUFFERS == 1) __syncthreads();                                                 \
                if (left > DEPTH) {                                                                \
                    tile_keep(p.x_last, DEPTH, M, THREADS, next_a, a[(turn ^ 1) % BUFFERS][0]);    \
                    tile_keep(p.dy_last, DEPTH, O, THREADS, next_b, b[(turn ^ 1) % BUFFERS][0]);   \
                }                                                                                  \
                __syncthreads();                                                                   \
            }                                                                                      \
        }                                                                                          \
        for (int i = 0; i < ROWS; i++) {                                                           \
            int32_t m = t.first_m + row + i;                                                       \
            float *to = (float *)at.work + (t.first + m) * p.out;                                  \
            for (int j = 0; j < COLUMNS; j++) {                                                    \
                int32_t o = t.first_o + column + j;                                                \
                if (adds && m < t.most_m && o < p.out) to[o] = sums[i][j];                         \
            }                                                                                      \
        }                                                                                          \
    }

// Tiles of 64 x 64, of 32 x 32, and of 8 x 32 for rows of the window with few taps and channels.
// The last ones have so few additions that they load much at a time, to wait for memory less often.
WEIGHTS(conv_weights_64, false, 8, 16, 8, 4, 128, 16, 2, 8)
WEIGHTS(conv_weights_32, false, 8, 8, 4, 4, 64, 16, 2, 8)
WEIGHTS(conv_weights_few, true, 2, 32, 4, 1, 256, 128, 1, 16)

// The same by a thread for each sum, for shapes that leave most of a tile empty.
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

// A thread for each sum, in memory order, so that neighboring threads read neighbors. There are
// fewer weights than 2^31.
KERNEL(conv_weights_add, bel_cuda_conv_weights)
{
    const float *sums = (const float *)at.work;
    uint32_t taps = (uint32_t)(p.window[0].kernel * p.window[1].kernel);
    uint32_t depth = (uint32_t)p.depth, out = (uint32_t)p.out;
    int64_t count = (int64_t)p.groups * out * depth * taps;
    for (int64_t e = THREAD; e < count; e += THREADS) {
        uint32_t o = (uint32_t)e % out, rest = (uint32_t)e / out, d = rest % depth;
        rest /= depth;
        uint32_t tap = rest % taps, channel = rest / taps * out + o;
        float total = 0.0f;
        UNROLL(8)
        for (int64_t part = 0; part < p.parts; part++)
            total += sums[part * count + e];
        ((float *)at.out[0])[((int64_t)channel * depth + d) * taps + tap] = total;
    }
}
