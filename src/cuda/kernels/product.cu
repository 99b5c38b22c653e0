// Matrix products. The sum of an element is one chain in the order of the inner dimension, as on
// the CPU (ops/kernels/product.h). So the inner dimension is never divided among threads. The cut
// of y into blocks, and of a block among threads, does not affect the bits.
//
// A block computes a tile of y (tile.h), in steps of DEPTH along the inner dimension. While it adds
// DEPTH products of each sum from shared memory, the next numbers are loaded into registers (double
// buffering). Small tiles have few additions per load, so they load much at a time.
#include "cuda/kernels/product.h"
#include "cuda/kernels/tile.h"

// Finishes a sum: alpha, c, Relu.
static inline float finish_f32(const bel_cuda_operands *at, const bel_cuda_product *p, float sum,
                               int64_t matrix, int64_t element)
{
    if (p->alpha != 1) sum *= (float)p->alpha;
    if (p->adds_c) {
        const float *c = (const float *)at->in[2];
        sum += (float)p->beta * c[walk_place(&p->c, 0, matrix * p->m * p->n + element)];
    }
    return p->relu && !(sum > 0.0f) ? 0.0f : sum;
}

// A thread's numbers of one side. `k` and `m` are the product and the row or column of the tile of
// its first number.
typedef struct side {
    const float *from; // its first number of the next products
    int64_t step, advance; // to its next number; to the same one of the products after
    int32_t rows; // existing rows of the tile
    int k, m;
    bool rows_first; // tile_mine
} side;

// Side of a matrix with distances `row` between rows and `column` within a row: the tile's from
// `first` on.
static inline side side_of(const float *matrix, int64_t row, int64_t column, int64_t first,
                           int64_t rows, int depth, int size, int threads)
{
    side s;
    s.rows_first = column != 1;
    tile_mine(s.rows_first, depth, size, threads, 0, &s.k, &s.m);
    s.from = matrix + (first + s.m) * row + s.k * column;
    s.step = s.rows_first ? threads / size * column : threads / depth * row;
    s.advance = depth * column;
    s.rows = rows - first < size ? (int32_t)(rows - first) : size;
    return s;
}

// Loads the next numbers. `left`: number of products left. Absent numbers are 0, and never added or
// never kept.
static inline void bring(side *s, int64_t left, int depth, int size, int threads, float *to)
{
    const float *from = s->from;
    bool there = s->rows_first ? s->m < s->rows : s->k < left;
    int32_t first = s->rows_first ? s->k : s->m, end = s->rows;
    if (s->rows_first) end = left < depth ? (int32_t)left : depth;
    int each = s->rows_first ? threads / size : threads / depth;
    for (int i = 0; i < depth * size / threads; i++) {
        to[i] = there && first + i * each < end ? *from : 0.0f;
        from += s->step;
    }
    s->from += s->advance;
}

// Column j of a thread's, in a tile with `across` threads side by side: tile_take's.
static inline int column_at(int j, int apart)
{
    return apart > 0 ? j / 4 * apart + j % 4 : j;
}

// Finishes and writes `count` neighboring sums, from (row, column) of y on; in fours if rows start
// at multiples of four.
static inline void put(const bel_cuda_operands *at, const bel_cuda_product *p, const float *sums,
                       int count, bool fours, int64_t matrix, int64_t row, int64_t column, float *y)
{
    int64_t element = row * p->n + column;
    if (count == 4 && fours && column < p->n) {
        tile_four made;
        for (int j = 0; j < 4; j++)
            made.v[j] = finish_f32(at, p, sums[j], matrix, element + j);
        *(tile_four *)(void *)(y + element) = made;
        return;
    }
    for (int j = 0; j < count; j++)
        if (column + j < p->n) y[element + j] = finish_f32(at, p, sums[j], matrix, element + j);
}

// Kernel for a tile of (DOWN · ROWS) x (ACROSS · COLUMNS): DOWN by ACROSS threads add, and all
// THREADS load numbers. Sums of AT_ONCE products wait together for shared memory.
#define PRODUCT(name, DOWN, ACROSS, ROWS, COLUMNS, APART, THREADS, DEPTH, AT_ONCE)                 \
    KERNEL(name, bel_cuda_product)                                                                 \
    {                                                                                              \
        enum { M = DOWN * ROWS, N = ACROSS * COLUMNS };                                            \
        TILE_SHARED float a[2][DEPTH][TILE_ROW(M)], b[2][DEPTH][TILE_ROW(N)];                      \
        int64_t tiles = p.tiles_m * p.tiles_n, matrix = blockIdx.x / tiles;                        \
        int64_t tile = blockIdx.x % tiles;                                                         \
        int64_t first_row = tile / p.tiles_n * M, first_column = tile % p.tiles_n * N;             \
        side left = side_of((const float *)at.in[0] + walk_place(&p.stack, 0, matrix) * p.m * p.k, \
                            p.a_row, p.a_column, first_row, p.m, DEPTH, M, THREADS);               \
        side right =                                                                               \
            side_of((const float *)at.in[1] + walk_place(&p.stack, 1, matrix) * p.k * p.n,         \
                    p.b_column, p.b_row, first_column, p.n, DEPTH, N, THREADS);                    \
        const float *start = (const float *)at.in[2];                                              \
        float *y = (float *)at.out[0] + matrix * p.m * p.n;                                        \
        bool adds = DOWN * ACROSS == THREADS || threadIdx.x < DOWN * ACROSS;                       \
        int row = tile_thread_row(false, ACROSS) * ROWS;                                           \
        int column = tile_thread_column(false, ACROSS) * (APART > 0 ? 4 : COLUMNS);                \
        float sums[ROWS][COLUMNS], next_a[DEPTH * M / THREADS], next_b[DEPTH * N / THREADS];       \
        for (int j = 0; j < COLUMNS; j++) {                                                        \
            int64_t place = first_column + column + column_at(j, APART);                           \
            float first = p.starts && adds && place < p.n ? start[place] : 0.0f;                   \
            for (int i = 0; i < ROWS; i++)                                                         \
                sums[i][j] = first;                                                                \
        }                                                                                          \
        bring(&left, p.k, DEPTH, M, THREADS, next_a);                                              \
        bring(&right, p.k, DEPTH, N, THREADS, next_b);                                             \
        tile_keep(left.rows_first, DEPTH, M, THREADS, next_a, a[0][0]);                            \
        tile_keep(right.rows_first, DEPTH, N, THREADS, next_b, b[0][0]);                           \
        __syncthreads();                                                                           \
        int buffer = 0;                                                                            \
        for (int64_t rest = p.k; rest > 0; rest -= DEPTH, buffer ^= 1) {                           \
            bring(&left, rest - DEPTH, DEPTH, M, THREADS, next_a);                                 \
            bring(&right, rest - DEPTH, DEPTH, N, THREADS, next_b);                                \
            if (adds && rest >= DEPTH) {                                                           \
                UNROLL(AT_ONCE)                                                                    \
                for (int q = 0; q < DEPTH; q++)                                                    \
                    TILE_ADD(&a[buffer][q][row], &b[buffer][q][column], ROWS, COLUMNS, APART,      \
                             sums);                                                                \
            } else if (adds) {                                                                     \
                UNROLL(1)                                                                          \
                for (int q = 0; q < (int)rest; q++)                                                \
                    TILE_ADD(&a[buffer][q][row], &b[buffer][q][column], ROWS, COLUMNS, APART,      \
                             sums);                                                                \
            }                                                                                      \
            tile_keep(left.rows_first, DEPTH, M, THREADS, next_a, a[buffer ^ 1][0]);               \
            tile_keep(right.rows_first, DEPTH, N, THREADS, next_b, b[buffer ^ 1][0]);              \
            __syncthreads();                                                                       \
        }                                                                                          \
        bool fours = p.n % 4 == 0 && (uint64_t)y % sizeof(tile_four) == 0;                         \
        UNROLL(ROWS)                                                                               \
        for (int i = 0; i < ROWS; i++) {                                                           \
            int64_t y_row = first_row + row + i;                                                   \
            if (!adds || y_row >= p.m) continue;                                                   \
            UNROLL(COLUMNS)                                                                        \
            for (int j = 0; j < COLUMNS; j += COLUMNS < 4 ? COLUMNS : 4) {                         \
                int64_t y_column = first_column + column + column_at(j, APART);                    \
                put(&at, &p, &sums[i][j], COLUMNS < 4 ? COLUMNS : 4, fours, matrix, y_row,         \
                    y_column, y);                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

PRODUCT(product_16, 8, 8, 2, 2, 0, 256, 128, 16)
PRODUCT(product_32, 8, 8, 4, 4, 0, 128, 32, 8)
PRODUCT(product_64, 8, 16, 8, 4, 0, 128, 16, 8)
PRODUCT(product_128, 16, 16, 8, 8, 64, 256, 16, 8)

// Few rows: products and sums are rounded separately.
KERNEL(product_few_rows, bel_cuda_product)
{
    const float *a = (const float *)at.in[0], *b = (const float *)at.in[1];
    const float *bias = (const float *)at.in[2];
    float *y = (float *)at.out[0];
    for (int64_t e = THREAD; e < p.m * p.n; e += THREADS) {
        int64_t row = e / p.n, column = e % p.n;
        float sum = p.starts ? bias[column] : 0.0f;
        UNROLL(8)
        for (int64_t q = 0; q < p.k; q++)
            sum += a[row * p.k + q] * b[q * p.n + column];
        y[e] = p.relu && !(sum > 0.0f) ? 0.0f : sum;
    }
}

// Four chains: bel_product_few.
KERNEL(product_short_chains, bel_cuda_product)
{
    const float *a = (const float *)at.in[0], *b = (const float *)at.in[1];
    const float *bias = (const float *)at.in[2];
    float *y = (float *)at.out[0];
    for (int64_t e = THREAD; e < p.m * p.n; e += THREADS) {
        int64_t row = e / p.n, column = e % p.n;
        float sums[4] = {p.starts ? bias[column] : 0.0f, 0.0f, 0.0f, 0.0f};
        for (int64_t q = 0; q < p.k; q++)
            sums[q % 4] = fmaf(a[row * p.k + q], b[q * p.n + column], sums[q % 4]);
        float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        y[e] = p.relu && !(sum > 0.0f) ? 0.0f : sum;
    }
}

KERNEL(product_f64, bel_cuda_product)
{
    int64_t size = p.m * p.n;
    const double *c = (const double *)at.in[2];
    for (int64_t e = THREAD; e < size * p.count; e += THREADS) {
        int64_t matrix = e / size, row = e % size / p.n, column = e % p.n;
        const double *a = (const double *)at.in[0] + walk_place(&p.stack, 0, matrix) * p.m * p.k;
        const double *b = (const double *)at.in[1] + walk_place(&p.stack, 1, matrix) * p.k * p.n;
        double sum = 0;
        for (int64_t q = 0; q < p.k; q++)
            sum += a[row * p.a_row + q * p.a_column] * b[q * p.b_row + column * p.b_column];
        sum *= p.alpha;
        if (p.adds_c) sum += p.beta * c[walk_place(&p.c, 0, e)];
        ((double *)at.out[0])[e] = p.relu && !(sum > 0) ? 0 : sum;
    }
}
