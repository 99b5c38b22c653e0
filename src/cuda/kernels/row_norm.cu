// Normalization of rows, f32: the sums of ops/kernels/row_norm_isa.c. A sum runs over 16 lanes for
// at most 4,096 elements, and these sums are added in double. So a team of 16 threads processes
// 4,096 elements. Each team has one short row, and a long row has all teams of its block.
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/row_norm.h"

#define TEAMS BEL_CUDA_ROW_TEAMS
#define LANES BEL_CUDA_ROW_LANES
#define ELEMENTS BEL_CUDA_ROW_ELEMENTS

// --- Sums ----------------------------------------------------------------------------------------

// A thread and its run of elements, which it shares with its team or its block.
typedef struct worker {
    int64_t run; // its index; the run may be absent
    bool there, is_wide; // wide: all teams have this run
    int32_t lane, team; // team 0 if it has the run to itself
    int32_t first, step; // its elements, if their order does not matter
    float *lanes; // the block's, in shared memory
} worker;

static inline worker worker_of(int64_t runs, int64_t elements, float *lanes)
{
    int32_t thread = (int32_t)threadIdx.x, team = thread / LANES;
    worker w;
    w.is_wide = elements > ELEMENTS;
    w.run = w.is_wide ? (int64_t)blockIdx.x : (int64_t)blockIdx.x * TEAMS + team;
    w.there = w.run < runs;
    w.lane = thread % LANES;
    w.team = w.is_wide ? team : 0;
    w.first = w.is_wide ? thread : w.lane;
    w.step = w.is_wide ? TEAMS * LANES : LANES;
    w.lanes = lanes;
    return w;
}

// Adds the lanes of a team, or of all teams, over up to TEAMS · ELEMENTS elements, of which `left`
// exist. All threads of a block must call this.
static inline double add_lanes(const worker *w, float mine, int64_t left, double total)
{
    int32_t thread = (int32_t)threadIdx.x;
    w->lanes[thread] = mine;
    __syncthreads();
    for (int32_t half = LANES / 2; half > 0; half /= 2) {
        if (w->lane < half) w->lanes[thread] += w->lanes[thread + half];
        __syncthreads();
    }
    if (w->is_wide) {
        for (int32_t t = 0; t < TEAMS && t * ELEMENTS < left; t++)
            total += (double)w->lanes[t * LANES];
    } else {
        total += (double)w->lanes[thread - w->lane];
    }
    __syncthreads();
    return total;
}

// The macro of that name there: functions (operands, n) that sum `term` for k from 0 to n.
#define SUM(name, term, ...)                                                                       \
    static inline double name(const worker *w, __VA_ARGS__, int64_t n)                             \
    {                                                                                              \
        double total = 0;                                                                          \
        for (int64_t round = 0; round < n; round += TEAMS * ELEMENTS) {                            \
            int64_t begin = round + w->team * ELEMENTS;                                            \
            int64_t end = n - begin < ELEMENTS ? n : begin + ELEMENTS;                             \
            float lane = 0.0f;                                                                     \
            for (int64_t k = begin + w->lane; w->there && k < end; k += LANES)                     \
                lane += (term);                                                                    \
            total = add_lanes(w, lane, n - round, total);                                          \
        }                                                                                          \
        return total;                                                                              \
    }

// bel_row_norm_map
typedef struct row_map {
    float shift, factor, offset;
} row_map;

static inline float mapped(float x, row_map map)
{
    return (x - map.shift) * map.factor + map.offset;
}

SUM(sum, x[k], const float *x)
SUM(sum_distances, x[k] - shift, const float *x, float shift)
SUM(sum_squares, (x[k] - shift) * (x[k] - shift), const float *x, float shift)
SUM(dot, x[k] * y[k], const float *x, const float *y)
SUM(dot_mapped, y[k] * mapped(x[k], map), const float *x, row_map map, const float *y)
SUM(dot_scaled, y[k] * scale[k] * mapped(x[k], map), const float *x, row_map map, const float *y,
    const float *scale)

// The first scale of a row.
static inline int64_t scale_of(const bel_cuda_row_norm *p, int64_t row)
{
    return row % p->period * p->scales;
}

// --- Forward -------------------------------------------------------------------------------------

// Inputs x, scale, bias.
KERNEL(row_norm_forward, bel_cuda_row_norm)
{
    __shared__ float lanes[TEAMS * LANES];
    const worker w = worker_of(p.rows, p.columns, lanes);
    int64_t row = w.there ? w.run : 0, scale_at = scale_of(&p, row);
    const float *x = (const float *)at.in[0] + row * p.columns;
    double count = p.columns > 0 ? (double)p.columns : 1;
    row_map map;
    map.shift = (float)(sum(&w, x, p.columns) / count);
    double rest = sum_distances(&w, x, map.shift, p.columns) / count;
    double variance = sum_squares(&w, x, map.shift, p.columns) / count - rest * rest;
    double inverse = 1 / sqrt((variance < 0 ? 0 : variance) + p.epsilon);
    map.factor = (float)inverse;
    map.offset = (float)(-rest * inverse);
    if (!w.there) return;
    if (w.first == 0) {
        ((float *)at.out[1])[row] = (float)((double)map.shift + rest);
        ((float *)at.out[2])[row] = map.factor;
    }
    const float *scale = (const float *)at.in[1] + scale_at;
    const float *bias = p.has_bias ? (const float *)at.in[2] + scale_at : scale;
    float *y = (float *)at.out[0] + row * p.columns;
    for (int64_t j = w.first; j < p.columns; j += w.step) {
        int64_t c = p.run == 1 ? j : (int32_t)j / (int32_t)p.run;
        float value = mapped(x[j], map) * scale[c];
        if (p.has_bias) {
            value += bias[c];
        } else if (p.run > 1) {
            value += 0.0f; // turns -0 into 0
        }
        y[j] = value;
    }
}

// --- Gradient: inputs dy, x, scale, mean, 1 / deviation ------------------------------------------

static inline row_map map_of(const bel_cuda_operands *at, int64_t row)
{
    row_map map;
    map.shift = ((const float *)at->in[3])[row];
    map.factor = ((const float *)at->in[4])[row];
    map.offset = 0.0f;
    return map;
}

// dx if every element has a separate scale.
KERNEL(row_norm_grad_each, bel_cuda_row_norm)
{
    __shared__ float lanes[TEAMS * LANES];
    const worker w = worker_of(p.rows, p.columns, lanes);
    int64_t row = w.there ? w.run : 0;
    const float *dy = (const float *)at.in[0] + row * p.columns;
    const float *x = (const float *)at.in[1] + row * p.columns;
    const float *scale = (const float *)at.in[2] + scale_of(&p, row);
    const row_map map = map_of(&at, row);
    double factor = (double)map.factor / (double)p.columns;
    double total = dot(&w, dy, scale, p.columns);
    double product = dot_scaled(&w, x, map, dy, scale, p.columns);
    float slope = (float)(product * factor), constant = (float)(total * factor);
    float *dx = (float *)at.out[0] + row * p.columns;
    for (int64_t j = w.first; w.there && j < p.columns; j += w.step)
        dx[j] = dy[j] * scale[j] * map.factor - (mapped(x[j], map) * slope + constant);
}

// Then dscale and dbias of each part, [part, which, scale]: a few rows are summed in f32, and these
// sums in double.
KERNEL(row_norm_part_sums, bel_cuda_row_norm)
{
    enum { FEW_ROWS = 64 };
    int64_t count = p.period * p.scales;
    for (int64_t i = THREAD; i < p.parts * count; i += THREADS) {
        int64_t part = i / count, s = i % count, j = s % p.scales;
        int64_t first = part * p.rows_per_part, end = first + p.rows_per_part;
        if (end > p.rows) end = p.rows;
        double dscale = 0, dbias = 0;
        for (int64_t begin = first; begin < end && p.columns > 0; begin += FEW_ROWS) {
            float few_scale = 0.0f, few_bias = 0.0f;
            for (int64_t row = begin; row < end && row < begin + FEW_ROWS; row++) {
                if (row % p.period != s / p.scales) continue;
                float dy = ((const float *)at.in[0])[row * p.columns + j];
                float x = ((const float *)at.in[1])[row * p.columns + j];
                few_scale += dy * mapped(x, map_of(&at, row));
                few_bias += dy;
            }
            dscale += (double)few_scale;
            dbias += (double)few_bias;
        }
        double *sums = (double *)at.work + part * 2 * count + s;
        sums[0] = dscale;
        sums[count] = dbias;
    }
}

KERNEL(row_norm_add_parts, bel_cuda_row_norm)
{
    int64_t count = p.period * p.scales;
    for (int64_t i = THREAD; i < 2 * count; i += THREADS) {
        double sum = 0;
        for (int64_t part = 0; part < p.parts; part++)
            sum += ((const double *)at.work)[part * 2 * count + i];
        ((float *)at.out[1 + i / count])[i % count] = (float)sum;
    }
}

// If runs of elements share a scale: for each run the sums of dy and of dy · x', [row, scale, 2].
KERNEL(row_norm_run_sums, bel_cuda_row_norm)
{
    __shared__ float lanes[TEAMS * LANES];
    const worker w = worker_of(p.rows * p.scales, p.run, lanes);
    int64_t run = w.there ? w.run : 0;
    const float *dy = (const float *)at.in[0] + run * p.run;
    const float *x = (const float *)at.in[1] + run * p.run;
    double total = sum(&w, dy, p.run);
    double product = dot_mapped(&w, x, map_of(&at, run / p.scales), dy, p.run);
    if (!w.there || w.first != 0) return;
    ((double *)at.work)[2 * run] = total;
    ((double *)at.work)[2 * run + 1] = product;
}

// Then the terms of a row's dx, [row, 2].
KERNEL(row_norm_run_slopes, bel_cuda_row_norm)
{
    float *slopes = (float *)((char *)at.work + p.slopes);
    for (int64_t row = THREAD; row < p.rows; row += THREADS) {
        const double *sums = (const double *)at.work + row * p.scales * 2;
        const float *scale = (const float *)at.in[2] + scale_of(&p, row);
        double total = 0, product = 0;
        double factor = (double)((const float *)at.in[4])[row] / (double)p.columns;
        for (int64_t c = 0; c < p.scales; c++) {
            total += sums[2 * c] * (double)scale[c];
            product += sums[2 * c + 1] * (double)scale[c];
        }
        slopes[2 * row] = (float)(product * factor);
        slopes[2 * row + 1] = (float)(total * factor);
    }
}

KERNEL(row_norm_run_apply, bel_cuda_row_norm)
{
    const float *dy = (const float *)at.in[0], *x = (const float *)at.in[1];
    const float *slopes = (const float *)((const char *)at.work + p.slopes);
    for (int64_t i = THREAD; i < p.rows * p.columns; i += THREADS) {
        int64_t run = i / p.run, row = run / p.scales;
        const row_map map = map_of(&at, row);
        float scale = ((const float *)at.in[2])[scale_of(&p, row) + run % p.scales];
        float factor = scale * map.factor;
        ((float *)at.out[0])[i] =
            dy[i] * factor - (mapped(x[i], map) * slopes[2 * row] + slopes[2 * row + 1]);
    }
}

// Then dscale and dbias: for each scale the runs of a part, then the parts.
KERNEL(row_norm_run_scales, bel_cuda_row_norm)
{
    const double *sums = (const double *)at.work;
    for (int64_t s = THREAD; s < p.period * p.scales; s += THREADS) {
        double dscale = 0, dbias = 0;
        for (int64_t part = 0; part < p.parts; part++) {
            int64_t first = part * p.rows_per_part, end = first + p.rows_per_part;
            if (end > p.rows) end = p.rows;
            double part_scale = 0, part_bias = 0;
            int64_t row = first + (s / p.scales + p.period - first % p.period) % p.period;
            for (; row < end; row += p.period) {
                const double *of = sums + (row * p.scales + s % p.scales) * 2;
                part_bias += of[0];
                part_scale += of[1];
            }
            dscale += part_scale;
            dbias += part_bias;
        }
        ((float *)at.out[1])[s] = (float)dscale;
        ((float *)at.out[2])[s] = (float)dbias;
    }
}
