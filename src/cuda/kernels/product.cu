// Matrix products. An element's sum is one chain in the order of the inner dimension, as the CPU's
// (ops/kernels/product.h): so the inner dimension is never divided among threads, and how y is cut
// into blocks and a thread's share of a block does not enter the bits.
//
// A block computes a tile of y. It walks along the inner dimension by DEPTH, with that much of a and
// b in shared memory; each thread keeps ROWS x COLUMNS sums in registers, of rows and columns that
// are 16 apart, so that threads side by side read neighbours.
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/product.h"

#define DEPTH 16
#define SIDE 16 // threads of a block, each way

// What follows the sum: alpha, c, Relu.
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

// For a tile of (SIDE · ROWS) x (SIDE · COLUMNS).
#define PRODUCT(name, ROWS, COLUMNS)                                                               \
    KERNEL(name, bel_cuda_product)                                                                 \
    {                                                                                              \
        __shared__ float a_part[DEPTH][SIDE * ROWS + 1];                                           \
        __shared__ float b_part[DEPTH][SIDE * COLUMNS + 1];                                        \
        int64_t tiles = p.tiles_m * p.tiles_n, matrix = blockIdx.x / tiles;                        \
        int64_t tile = blockIdx.x % tiles;                                                         \
        int64_t first_row = tile / p.tiles_n * (SIDE * ROWS);                                      \
        int64_t first_column = tile % p.tiles_n * (SIDE * COLUMNS);                                \
        const float *a = (const float *)at.in[0] + walk_place(&p.stack, 0, matrix) * p.m * p.k;    \
        const float *b = (const float *)at.in[1] + walk_place(&p.stack, 1, matrix) * p.k * p.n;    \
        const float *start = (const float *)at.in[2];                                              \
        float *y = (float *)at.out[0] + matrix * p.m * p.n;                                        \
        int thread = (int)threadIdx.x, mine_row = thread / SIDE, mine_column = thread % SIDE;      \
        float sums[ROWS][COLUMNS];                                                                 \
        for (int j = 0; j < COLUMNS; j++) {                                                        \
            int64_t column = first_column + j * SIDE + mine_column;                                \
            float first = p.starts && column < p.n ? start[column] : 0.0f;                         \
            for (int i = 0; i < ROWS; i++)                                                         \
                sums[i][j] = first;                                                                \
        }                                                                                          \
        for (int64_t q = 0; q < p.k; q += DEPTH) {                                                 \
            for (int e = thread; e < DEPTH * SIDE * ROWS; e += SIDE * SIDE) {                      \
                int d = p.a_column == 1 ? e % DEPTH : e / (SIDE * ROWS);                           \
                int i = p.a_column == 1 ? e / DEPTH : e % (SIDE * ROWS);                           \
                int64_t row = first_row + i;                                                       \
                a_part[d][i] = row < p.m && q + d < p.k                                            \
                                   ? a[row * p.a_row + (q + d) * p.a_column]                       \
                                   : 0.0f;                                                         \
            }                                                                                      \
            for (int e = thread; e < DEPTH * SIDE * COLUMNS; e += SIDE * SIDE) {                   \
                int d = p.b_row == 1 ? e % DEPTH : e / (SIDE * COLUMNS);                           \
                int j = p.b_row == 1 ? e / DEPTH : e % (SIDE * COLUMNS);                           \
                int64_t column = first_column + j;                                                 \
                b_part[d][j] = column < p.n && q + d < p.k                                         \
                                   ? b[(q + d) * p.b_row + column * p.b_column]                    \
                                   : 0.0f;                                                         \
            }                                                                                      \
            __syncthreads();                                                                       \
            int depth = p.k - q < DEPTH ? (int)(p.k - q) : DEPTH;                                  \
            for (int d = 0; d < depth; d++) {                                                      \
                float left[ROWS], right[COLUMNS];                                                  \
                for (int i = 0; i < ROWS; i++)                                                     \
                    left[i] = a_part[d][i * SIDE + mine_row];                                      \
                for (int j = 0; j < COLUMNS; j++)                                                  \
                    right[j] = b_part[d][j * SIDE + mine_column];                                  \
                for (int i = 0; i < ROWS; i++)                                                     \
                    for (int j = 0; j < COLUMNS; j++)                                              \
                        sums[i][j] = fmaf(left[i], right[j], sums[i][j]);                          \
            }                                                                                      \
            __syncthreads();                                                                       \
        }                                                                                          \
        for (int i = 0; i < ROWS; i++) {                                                           \
            for (int j = 0; j < COLUMNS; j++) {                                                    \
                int64_t row = first_row + i * SIDE + mine_row;                                     \
                int64_t column = first_column + j * SIDE + mine_column;                            \
                if (row >= p.m || column >= p.n) continue;                                         \
                int64_t element = row * p.n + column;                                              \
                y[element] = finish_f32(&at, &p, sums[i][j], matrix, element);                     \
            }                                                                                      \
        }                                                                                          \
    }

PRODUCT(product_16, 1, 1)
PRODUCT(product_32, 2, 2)
PRODUCT(product_64, 4, 4)
PRODUCT(product_128, 8, 8)

// Few rows: products and sums are rounded one by one.
KERNEL(product_few_rows, bel_cuda_product)
{
    const float *a = (const float *)at.in[0], *b = (const float *)at.in[1];
    const float *bias = (const float *)at.in[2];
    float *y = (float *)at.out[0];
    for (int64_t e = THREAD; e < p.m * p.n; e += THREADS) {
        int64_t row = e / p.n, column = e % p.n;
        float sum = p.starts ? bias[column] : 0.0f;
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
