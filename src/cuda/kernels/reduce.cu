// Sums, sums of squares and maxima over dimensions, in the orders of ops/reduce.c.
#include "cuda/kernels/bfloat.h"
#include "cuda/kernels/lanes.h"
#include "cuda/kernels/reduce.h"
#include "cuda/kernels/tile.h"
#include "ops/kernels/scalar.h"

#define COLUMN_GROUP 32
#define FOUR_GROUP 16
#define LONG_LANE_GROUP 32
#define LANE_GROUP 16
#define SHORT_LANE_GROUP 4
#define SLICE_GROUP 8

// --- Rows ----------------------------------------------------------------------------------------

// Joins `group` elements of a lane from x on, as far as they are among the `left` neighbors there.
// They are loaded at once, as single loads would each wait for memory. Numbers after the end change
// no result: zeros, as no sum is -0, or -infinity for a maximum.
static inline float join_lane(int op, float so_far, const float *x, int64_t left, int group)
{
    float numbers[LONG_LANE_GROUP], none = op == BEL_CUDA_REDUCE_MAX ? -INFINITY : 0.0f;
    x += LANE;
    left -= LANE;
    UNROLL(LONG_LANE_GROUP)
    for (int g = 0; g < group; g++)
        numbers[g] = g * BEL_CUDA_LANES < left ? x[g * BEL_CUDA_LANES] : none;
    UNROLL(LONG_LANE_GROUP)
    for (int g = 0; g < group; g++) {
        float number = op == BEL_CUDA_REDUCE_SUM_SQUARE ? numbers[g] * numbers[g] : numbers[g];
        so_far = op == BEL_CUDA_REDUCE_MAX ? larger(number, so_far) : so_far + number;
    }
    return so_far;
}

// Joins those of n neighbors that are in this thread's lane.
static inline float join_all_lane(int op, float so_far, const float *x, int64_t n)
{
    int64_t i = 0;
    UNROLL(1)
    for (; n - i > SHORT_LANE_GROUP * BEL_CUDA_LANES; i += LANE_GROUP * BEL_CUDA_LANES)
        so_far = join_lane(op, so_far, x + i, n - i, LANE_GROUP);
    UNROLL(1)
    for (; n > i; i += SHORT_LANE_GROUP * BEL_CUDA_LANES)
        so_far = join_lane(op, so_far, x + i, n - i, SHORT_LANE_GROUP);
    return so_far;
}

// The same for thousands of neighbors: more at once, with registers for that.
static inline float join_long_lane(int op, float so_far, const float *x, int64_t n)
{
    const int64_t most = LONG_LANE_GROUP * BEL_CUDA_LANES;
    int64_t i = 0;
    UNROLL(1)
    for (; n - i >= most; i += most)
        so_far = join_lane(op, so_far, x + i, most, LONG_LANE_GROUP);
    return join_all_lane(op, so_far, x + i, n - i);
}

// Joins the n neighbors of each row of the block: 16 lanes.
static inline float reduce_lanes(lanes_of_rows shared, int op, const float *x, int64_t n)
{
    if (op == BEL_CUDA_REDUCE_MAX)
        return largest_lane(shared,
                            join_all_lane(BEL_CUDA_REDUCE_MAX, n > 0 ? x[0] : 0.0f, x, n));
    return add_lanes(shared, op == BEL_CUDA_REDUCE_SUM
                                 ? join_all_lane(BEL_CUDA_REDUCE_SUM, 0.0f, x, n)
                                 : join_all_lane(BEL_CUDA_REDUCE_SUM_SQUARE, 0.0f, x, n));
}

// Blocks of a long row are added in double, in order.
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

// For few rows, the blocks of all rows side by side: their sums go to the workspace, as [row,
// block]. For a maximum each block's lanes do, [row, block, lane]. A lane starts with the row's
// first element in each block, which only a larger one replaces. So the first of equals stays, and
// a NaN in the first place, when blocks are joined in order.
KERNEL(reduce_row_parts, bel_cuda_reduce)
{
    __shared__ lanes_of_rows shared;
    int64_t part = (int64_t)blockIdx.x * BEL_CUDA_ROWS + ROW;
    bool mine = part < p.outer * p.parts;
    if (!mine) part = 0;
    int64_t begin = part % p.parts * p.block, left = p.count - begin;
    int64_t n = !mine ? 0 : left < p.block ? left : p.block;
    const float *x = (const float *)at.in[0] + part / p.parts * p.count;
    float *parts = (float *)at.work;
    if (p.op == BEL_CUDA_REDUCE_MAX) {
        if (mine)
            parts[part * BEL_CUDA_LANES + LANE] =
                join_long_lane(BEL_CUDA_REDUCE_MAX, x[0], x + begin, n);
        return;
    }
    float sum = p.op == BEL_CUDA_REDUCE_SUM
                    ? join_long_lane(BEL_CUDA_REDUCE_SUM, 0.0f, x + begin, n)
                    : join_long_lane(BEL_CUDA_REDUCE_SUM_SQUARE, 0.0f, x + begin, n);
    sum = add_lanes(shared, sum);
    if (mine && LANE == 0) parts[part] = sum;
}

// Power of two of a number's leading bit: the number is a multiple of it times 2^-23.
static inline float unit_of(float value)
{
    bel_cuda_bits b = {value};
    b.whole &= 0x7f800000;
    if (b.whole == 0) b.whole = 0x00800000;
    return b.value;
}

// A block of the launch for each row, whose blocks are added in order, in double. A chain of some
// thousand additions takes as long as reading the tensor did. But double has 29 bits more than
// float, so mostly no addition rounds, in any order, and then threads add in any order. This holds
// if all are multiples of some power of two, and their absolute values sum to less than 2^53 of it.
// (The bound is halved, as their sum may have been rounded; NaN or infinities do not meet it.)
KERNEL(reduce_row_sums, bel_cuda_reduce)
{
    __shared__ double totals[BEL_CUDA_REDUCE_THREADS], sizes[BEL_CUDA_REDUCE_THREADS];
    __shared__ float units[BEL_CUDA_REDUCE_THREADS], staged[BEL_CUDA_REDUCE_THREADS];
    const float *parts = (const float *)at.work + (int64_t)blockIdx.x * p.parts;
    float *y = (float *)at.out[0] + blockIdx.x, unit = INFINITY;
    int thread = (int)threadIdx.x;
    double total = 0, size = 0;
    UNROLL(8)
    for (int64_t i = thread; i < p.parts; i += BEL_CUDA_REDUCE_THREADS) {
        float value = parts[i], mine = unit_of(value);
        total += (double)value;
        size += (double)(value < 0.0f ? -value : value);
        if (value != 0.0f && mine < unit) unit = mine;
    }
    totals[thread] = total;
    sizes[thread] = size;
    units[thread] = unit;
    __syncthreads();
    for (int half = BEL_CUDA_REDUCE_THREADS / 2; half > 0; half /= 2) {
        if (thread < half) {
            totals[thread] += totals[thread + half];
            sizes[thread] += sizes[thread + half];
            if (units[thread + half] < units[thread]) units[thread] = units[thread + half];
        }
        __syncthreads();
    }
    if (sizes[0] < 536870912.0 * (double)units[0]) { // 2^29 = 2^(52 - 23)
        if (thread == 0) *y = (float)(totals[0] * p.scale);
        return;
    }
    total = 0;
    for (int64_t i = 0; i < p.parts; i += BEL_CUDA_REDUCE_THREADS) {
        int64_t left = p.parts - i;
        int n = left < BEL_CUDA_REDUCE_THREADS ? (int)left : BEL_CUDA_REDUCE_THREADS;
        __syncthreads(); // the staged numbers have been added
        if (thread < n) staged[thread] = parts[i + thread];
        __syncthreads();
        for (int k = 0; thread == 0 && k < n; k++)
            total += (double)staged[k];
    }
    if (thread == 0) *y = (float)(total * p.scale);
}

// The same for a maximum: each 16 threads join some neighboring blocks, lane by lane.
KERNEL(reduce_row_maxima, bel_cuda_reduce)
{
    __shared__ lanes_of_rows shared;
    int64_t each = (p.parts + BEL_CUDA_ROWS - 1) / BEL_CUDA_ROWS, first = ROW * each;
    int64_t end = first + each < p.parts ? first + each : p.parts;
    const float *parts = (const float *)at.work + (int64_t)blockIdx.x * p.parts * BEL_CUDA_LANES;
    float most = ((const float *)at.in[0])[(int64_t)blockIdx.x * p.count];
    UNROLL(8)
    for (int64_t i = first; i < end; i++)
        most = larger(parts[i * BEL_CUDA_LANES + LANE], most);
    shared[ROW][LANE] = most;
    __syncthreads();
    for (int r = 1; ROW == 0 && r < BEL_CUDA_ROWS; r++)
        most = larger(shared[r][LANE], most);
    most = largest_lane(shared, most);
    if (threadIdx.x == 0) ((float *)at.out[0])[blockIdx.x] = most * (float)p.scale;
}

// --- Columns -------------------------------------------------------------------------------------

// A chain of additions that loads many numbers at a time, as single loads would each wait for
// memory. The last group extends after the end, where nothing is read.
static inline float sum_of_column(const void *x, int32_t bf16, int64_t count, int64_t step,
                                  int64_t place)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < count; i += COLUMN_GROUP) {
        float group[COLUMN_GROUP];
        int32_t left = count - i < COLUMN_GROUP ? (int32_t)(count - i) : COLUMN_GROUP;
        UNROLL(COLUMN_GROUP)
        for (int32_t g = 0; g < COLUMN_GROUP; g++)
            group[g] = g < left ? element_get(x, bf16, place + (i + g) * step) : 0.0f;
        UNROLL(COLUMN_GROUP)
        for (int32_t g = 0; g < COLUMN_GROUP; g++)
            sum = g < left ? sum + group[g] : sum;
    }
    return sum;
}

// Blocks are small, so that few columns still use the whole GPU.
KERNEL(reduce_columns, bel_cuda_reduce)
{
    float *y = (float *)at.out[0];
    for (int64_t j = THREAD; j < p.inner; j += THREADS) {
        float sum = p.bf16 ? sum_of_column(at.in[0], true, p.count, p.inner, j)
                           : sum_of_column(at.in[0], false, p.count, p.inner, j);
        if (p.scale != 1) sum *= (float)p.scale;
        y[j] = sum;
    }
}

// The same for four neighboring columns. A sum is never -0, so zeros after the end change nothing.
static inline four_floats sum_of_fours(const void *x, int32_t bf16, int64_t count, int64_t step,
                                       int64_t place)
{
    four_floats sum = {{0.0f, 0.0f, 0.0f, 0.0f}};
    for (int64_t i = 0; i < count; i += FOUR_GROUP) {
        four_floats group[FOUR_GROUP];
        int32_t left = count - i < FOUR_GROUP ? (int32_t)(count - i) : FOUR_GROUP;
        UNROLL(FOUR_GROUP)
        for (int32_t g = 0; g < FOUR_GROUP; g++) {
            const four_floats none = {{0.0f, 0.0f, 0.0f, 0.0f}};
            group[g] = none;
            if (g < left) group[g] = four_get(x, bf16, place + (i + g) * step);
        }
        UNROLL(FOUR_GROUP)
        for (int32_t g = 0; g < FOUR_GROUP; g++)
            for (int k = 0; k < 4; k++)
                sum.v[k] += group[g].v[k];
    }
    return sum;
}

// Parts of long columns, side by side; [part, column] in the workspace. A thread has four columns,
// which it reads with one access if each row of them is aligned; the sums are the same.
KERNEL(reduce_column_parts, bel_cuda_reduce)
{
    int64_t fours = (p.inner + 3) / 4;
    bool at_once = p.inner % 4 == 0 && four_fit(at.in[0], p.bf16);
    float *work = (float *)at.work;
    for (int64_t e = THREAD; e < p.parts * fours; e += THREADS) {
        int64_t part = e / fours, j = (e - part * fours) * 4, first = part * p.part * p.inner;
        int64_t left = p.count - part * p.part, count = left < p.part ? left : p.part;
        const char *x = (const char *)at.in[0] + first * (p.bf16 ? 2 : 4);
        if (at_once) {
            four_set(work, false, part * p.inner + j,
                     p.bf16 ? sum_of_fours(x, true, count, p.inner, j)
                            : sum_of_fours(x, false, count, p.inner, j));
            continue;
        }
        for (int64_t end = j + 4 < p.inner ? j + 4 : p.inner; j < end; j++)
            work[part * p.inner + j] = p.bf16 ? sum_of_column(x, true, count, p.inner, j)
                                              : sum_of_column(x, false, count, p.inner, j);
    }
}

// A block has 32 columns. For each, 8 threads add parts that are 8 apart, and their sums are joined
// in order.
KERNEL(reduce_column_totals, bel_cuda_reduce)
{
    enum { TURNS = BEL_CUDA_REDUCE_THREADS / BEL_CUDA_REDUCE_COLUMNS };
    __shared__ float shared[TURNS][BEL_CUDA_REDUCE_COLUMNS];
    int column = (int)threadIdx.x % BEL_CUDA_REDUCE_COLUMNS;
    int turn = (int)threadIdx.x / BEL_CUDA_REDUCE_COLUMNS;
    int64_t j = (int64_t)blockIdx.x * BEL_CUDA_REDUCE_COLUMNS + column;
    float sum = 0.0f;
    if (j < p.inner)
        sum = sum_of_column(at.work, false, (p.parts - turn + TURNS - 1) / TURNS, TURNS * p.inner,
                            turn * p.inner + j);
    shared[turn][column] = sum;
    __syncthreads();
    if (turn > 0 || j >= p.inner) return;
    for (int t = 1; t < TURNS; t++)
        sum += shared[t][column];
    ((float *)at.out[0])[j] = sum * (float)p.scale;
}

// --- Slices --------------------------------------------------------------------------------------

// Joins a run of n neighbors in 16 lanes, by one thread.
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

// Place of the first element of a result, and below: the number of elements or runs that join it,
// and the offset of number j of them from there.
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
    if (p->gone_rank == 1) return j * p->gone_steps[0];
    int64_t place = 0;
    for (int d = p->gone_rank - 1; d >= 0; d--) {
        place += j % p->gone_dims[d] * p->gone_steps[d];
        j /= p->gone_dims[d];
    }
    return place;
}

// Place of the first element of result e of all slices.
static inline int64_t slice_place(const bel_cuda_reduce *p, int64_t e)
{
    int64_t slice = e / p->results;
    return slice * p->elements + kept_place(p, e - slice * p->results);
}

static inline float join(int op, float sum, float part)
{
    return op == BEL_CUDA_REDUCE_MAX ? select_f32(sum >= part, sum, part) : sum + part;
}

// Runs side by side, each in 16 lanes; [number in its result, result] in the workspace.
KERNEL(reduce_slice_runs, bel_cuda_reduce)
{
    __shared__ lanes_of_rows shared;
    int64_t run = (int64_t)blockIdx.x * BEL_CUDA_ROWS + ROW, all = p.slices * p.results;
    bool mine = run < all * p.parts;
    if (!mine) run = 0;
    int64_t j = run / all, from = slice_place(&p, run - j * all) + joined_place(&p, j);
    float part = reduce_lanes(shared, p.op, (const float *)at.in[0] + from, mine ? p.run : 0);
    if (mine && LANE == 0) ((float *)at.work)[run] = part;
}

// A thread for each result: its runs are loaded many at a time and joined in order.
KERNEL(reduce_slice_totals, bel_cuda_reduce)
{
    const float *parts = (const float *)at.work;
    int64_t all = p.slices * p.results;
    for (int64_t e = THREAD; e < all; e += THREADS) {
        float sum = p.start;
        for (int64_t j = 0; j < p.parts; j += COLUMN_GROUP) {
            float group[COLUMN_GROUP];
            int32_t left = p.parts - j < COLUMN_GROUP ? (int32_t)(p.parts - j) : COLUMN_GROUP;
            UNROLL(COLUMN_GROUP)
            for (int32_t g = 0; g < COLUMN_GROUP; g++)
                group[g] = g < left ? parts[(j + g) * all + e] : 0.0f;
            UNROLL(COLUMN_GROUP)
            for (int32_t g = 0; g < COLUMN_GROUP; g++)
                sum = g < left ? join(p.op, sum, group[g]) : sum;
        }
        if (p.float_scale != 1.0f) sum *= p.float_scale;
        ((float *)at.out[0])[e] = sum;
    }
}

// A thread for each result: its elements are joined in order.
static inline float sum_of_slice(const bel_cuda_reduce *p, const float *x, int64_t joins)
{
    float sum = p->start;
    for (int64_t j = 0; p->run > 1 && j < joins; j++)
        sum = join(p->op, sum, reduce_run(p->op, x + joined_place(p, j), p->run));
    for (int64_t j = 0; p->run == 1 && j < joins; j += SLICE_GROUP) {
        float group[SLICE_GROUP];
        UNROLL(SLICE_GROUP)
        for (int32_t g = 0; g < SLICE_GROUP; g++)
            group[g] = j + g < joins ? x[joined_place(p, j + g)] : 0.0f;
        UNROLL(SLICE_GROUP)
        for (int32_t g = 0; g < SLICE_GROUP; g++) {
            float part = p->op == BEL_CUDA_REDUCE_SUM_SQUARE ? group[g] * group[g] : group[g];
            sum = j + g < joins ? join(p->op, sum, part) : sum;
        }
    }
    return sum;
}

KERNEL(reduce_slices, bel_cuda_reduce)
{
    const float *x = (const float *)at.in[0];
    int64_t joins = joins_of(&p);
    for (int64_t e = THREAD; e < p.slices * p.results; e += THREADS) {
        float sum = sum_of_slice(&p, x + slice_place(&p, e), joins);
        if (p.float_scale != 1.0f) sum *= p.float_scale;
        ((float *)at.out[0])[e] = sum;
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
