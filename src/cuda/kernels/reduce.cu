// Sums, sums of squares and maxima over dimensions, in the orders of ops/reduce.c.
#include "cuda/kernels/bfloat.h"
#include "cuda/kernels/lanes.h"
#include "cuda/kernels/reduce.h"
#include "cuda/kernels/tile.h"
#include "ops/kernels/scalar.h"

#define COLUMN_GROUP 32

// Of the n neighbours of each row of the block: 16 lanes.
static inline float reduce_lanes(lanes_of_rows shared, int op, const float *x, int64_t n)
{
    if (op == BEL_CUDA_REDUCE_MAX) return largest_of(shared, x, n);
    if (op == BEL_CUDA_REDUCE_SUM) return sum_of(shared, x, n);
    float sum = 0.0f;
    for (int64_t i = LANE; i < n; i += BEL_CUDA_LANES)
        sum += x[i] * x[i];
    return add_lanes(shared, sum);
}

// Long rows are added up block by block, in double.
KERNEL(reduce_rows, bel_cuda_reduce)
{
    __shared__ lanes_of_rows shared;
    int64_t row = (int64_t)blockIdx.x * BEL_CUDA_ROWS + ROW;
    const float *x = (const float *)at.in[0] + (row < p.outer ? row * p.count : 0);
    float *y = (float *)at.out[0];
    if (p.count <= p.block || p.op == BEL_CUDA_REDUCE_MAX) {
        float sum = reduce_lanes(shared, p.op, x, row < p.outer ? p.count : 0);
        if (row < p.outer && LANE == 0) y[row] = p.count > 0 ? sum * (float)p.scale : 0.0f;
        return;
    }
    double total = 0;
    for (int64_t j = 0; j < p.count; j += p.block) {
        int64_t n = p.count - j < p.block ? p.count - j : p.block;
        total += (double)reduce_lanes(shared, p.op, x + j, row < p.outer ? n : 0);
    }
    if (row < p.outer && LANE == 0) y[row] = (float)(total * p.scale);
}

// A chain of additions, whose numbers come many at a time: additions one by one would each wait for
// memory. The last group goes beyond the end, where nothing is read.
static inline float sum_of_column(const void *x, int32_t half, int64_t count, int64_t step,
                                  int64_t place)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < count; i += COLUMN_GROUP) {
        float group[COLUMN_GROUP];
        int32_t left = count - i < COLUMN_GROUP ? (int32_t)(count - i) : COLUMN_GROUP;
        UNROLL(COLUMN_GROUP)
        for (int32_t g = 0; g < COLUMN_GROUP; g++)
            group[g] = g < left ? element_get(x, half, place + (i + g) * step) : 0.0f;
        UNROLL(COLUMN_GROUP)
        for (int32_t g = 0; g < COLUMN_GROUP; g++)
            sum = g < left ? sum + group[g] : sum;
    }
    return sum;
}

// Blocks are small, so that all of a card takes part where columns are few.
KERNEL(reduce_columns, bel_cuda_reduce)
{
    float *y = (float *)at.out[0];
    for (int64_t j = THREAD; j < p.inner; j += THREADS) {
        float sum = p.half ? sum_of_column(at.in[0], true, p.count, p.inner, j)
                           : sum_of_column(at.in[0], false, p.count, p.inner, j);
        if (p.scale != 1) sum *= (float)p.scale;
        y[j] = sum;
    }
}

// Parts of long columns, side by side; [part, column] in the workspace.
KERNEL(reduce_column_parts, bel_cuda_reduce)
{
    for (int64_t e = THREAD; e < p.parts * p.inner; e += THREADS) {
        int64_t part = e / p.inner, j = e % p.inner, first = part * p.part * p.inner;
        int64_t left = p.count - part * p.part, count = left < p.part ? left : p.part;
        const char *x = (const char *)at.in[0] + first * (p.half ? 2 : 4);
        ((float *)at.work)[e] = p.half ? sum_of_column(x, true, count, p.inner, j)
                                       : sum_of_column(x, false, count, p.inner, j);
    }
}

KERNEL(reduce_column_totals, bel_cuda_reduce)
{
    for (int64_t j = THREAD; j < p.inner; j += THREADS)
        ((float *)at.out[0])[j] =
            sum_of_column(at.work, false, p.parts, p.inner, j) * (float)p.scale;
}

// A run of n neighbours in 16 lanes, by one thread.
static inline float reduce_run(int op, const float *x, int64_t n)
{
    float lanes[BEL_CUDA_LANES];
    for (int l = 0; l < BEL_CUDA_LANES; l++)
        lanes[l] = op == BEL_CUDA_REDUCE_MAX ? x[0] : 0.0f;
    for (int64_t i = 0; i < n; i++) {
        float *lane = &lanes[i % BEL_CUDA_LANES];
        if (op == BEL_CUDA_REDUCE_MAX) {
            *lane = larger(x[i], *lane);
        } else {
            *lane += op == BEL_CUDA_REDUCE_SUM ? x[i] : x[i] * x[i];
        }
    }
    if (op == BEL_CUDA_REDUCE_MAX) {
        for (int l = 1; l < BEL_CUDA_LANES; l++)
            lanes[0] = larger(lanes[l], lanes[0]);
        return lanes[0];
    }
    for (int half = BEL_CUDA_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

// Where the first element of a result lies, how many elements or runs join it, and where number j
// of them lies from there.
static inline int64_t kept_place(const bel_cuda_reduce *p, int64_t result)
{
    int64_t place = 0;
    for (int d = 0; d < p->kept_rank; d++)
        place += result / p->kept_places[d] % p->kept_dims[d] * p->kept_steps[d];
    return place;
}

static inline int64_t joins_of(const bel_cuda_reduce *p)
{
    int64_t joins = 1;
    for (int d = 0; d < p->gone_rank; d++)
        joins *= p->gone_dims[d];
    return joins;
}

static inline int64_t joined_place(const bel_cuda_reduce *p, int64_t j)
{
    int64_t place = 0;
    for (int d = p->gone_rank - 1; d >= 0; d--) {
        place += j % p->gone_dims[d] * p->gone_steps[d];
        j /= p->gone_dims[d];
    }
    return place;
}

// A result for each thread: what joins it comes in the order of its elements.
KERNEL(reduce_slices, bel_cuda_reduce)
{
    const float *x = (const float *)at.in[0];
    float *y = (float *)at.out[0];
    int64_t joins = joins_of(&p);
    for (int64_t e = THREAD; e < p.slices * p.results; e += THREADS) {
        int64_t base = e / p.results * p.elements + kept_place(&p, e % p.results);
        float sum = p.start;
        for (int64_t j = 0; j < joins; j++) {
            int64_t from = base + joined_place(&p, j);
            float part = x[from];
            if (p.run > 1) {
                part = reduce_run(p.op, x + from, p.run);
            } else if (p.op == BEL_CUDA_REDUCE_SUM_SQUARE) {
                part = part * part;
            }
            sum = p.op == BEL_CUDA_REDUCE_MAX ? select_f32(sum >= part, sum, part) : sum + part;
        }
        if (p.float_scale != 1.0f) sum *= p.float_scale;
        y[e] = sum;
    }
}

// In double, element by element.
KERNEL(reduce_f64, bel_cuda_reduce)
{
    const double *x = (const double *)at.in[0];
    double *y = (double *)at.out[0];
    int64_t joins = joins_of(&p);
    for (int64_t e = THREAD; e < p.results; e += THREADS) {
        int64_t base = kept_place(&p, e);
        double sum = p.op == BEL_CUDA_REDUCE_MAX ? -(double)INFINITY : 0;
        for (int64_t j = 0; j < joins; j++) {
            int64_t from = base + joined_place(&p, j);
            double v = x[from];
            if (p.op == BEL_CUDA_REDUCE_SUM_SQUARE) v *= v;
            if (p.op != BEL_CUDA_REDUCE_MAX) {
                sum += v;
            } else if (v > sum || sum != sum) {
                sum = v;
            }
        }
        y[e] = p.scale != 1 ? sum * p.scale : sum;
    }
}
