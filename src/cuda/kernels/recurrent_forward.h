// Forward pass of GRU and LSTM, for recurrent_f32.cu and recurrent_f64.cu, which define REAL, CHAIN
// and the functions of gates.
//
// In f32 a unit's sum is one chain of fused multiply-adds over [x, 1, h]. Its part of x and biases
// is made first, for all steps at once, and then continues with h. In double the parts of x and h
// are separate sums. A block walks a few rows of one direction through time: its threads share the
// units of a step, and a step's barriers are within the block.
#ifndef BELFRY_CUDA_KERNELS_RECURRENT_FORWARD_H
#define BELFRY_CUDA_KERNELS_RECURRENT_FORWARD_H

#include "cuda/kernels/kernel.h"
#include "cuda/kernels/recurrent.h"

#define SIDE BEL_CUDA_RECURRENT_SIDE
#define LINES (256 / SIDE) // lines of a tile that threads process at a time
#define ROWS BEL_CUDA_RECURRENT_ROWS

static inline const REAL *input_of(const bel_cuda_operands *at, int operand)
{
    return (const REAL *)at->in[operand];
}

// A length that is not in [0, t] counts as 0.
static inline int64_t length_of(const bel_cuda_operands *at, const bel_cuda_recurrent *p,
                                int64_t row, bool report)
{
    if (p->o.lengths < 0) return p->s.t;
    const void *lengths = at->in[p->o.lengths];
    int64_t length =
        p->lengths_i64 ? ((const int64_t *)lengths)[row] : (int64_t)((const int32_t *)lengths)[row];
    if (length >= 0 && length <= p->s.t) return length;
    if (report) report_bad(at, length, 0, p->s.t + 1);
    return 0;
}

// Transposes R, so that threads of neighboring units read neighbors.
KERNEL(recurrent_turn, bel_cuda_recurrent)
{
    const REAL *r = input_of(&at, p.o.r);
    REAL *turned = (REAL *)at.work + p.turned;
    int64_t hidden = p.s.hidden;
    for (int64_t e = THREAD; e < p.s.directions * hidden * p.units; e += THREADS) {
        int64_t unit = e % p.units, k = e / p.units % hidden, d = e / p.units / hidden;
        turned[e] = r[(d * p.units + unit) * hidden + k];
    }
}

// A unit's sum after x was added.
static inline REAL with_bias(const bel_cuda_operands *at, const bel_cuda_recurrent *p, int64_t d,
                             int64_t unit, REAL sum)
{
    const REAL *b = input_of(at, p->o.b) + 2 * d * p->units;
    if (!FUSED) return sum; // started with it
    REAL one = 0;
    one += b[unit];
    if (!p->s.reset_last || unit < 2 * p->s.hidden) one += b[p->units + unit];
    return CHAIN((REAL)1, one, sum);
}

// A tile: SIDE of the (row, time) by SIDE units.
KERNEL(recurrent_inputs, bel_cuda_recurrent)
{
    __shared__ REAL xs[SIDE][SIDE + 1], ws[SIDE][SIDE + 1];
    const REAL *x = input_of(&at, p.o.x);
    int64_t all = p.s.n * p.s.t, in = p.s.in, across = (p.units + SIDE - 1) / SIDE;
    int64_t down = (all + SIDE - 1) / SIDE, d = blockIdx.x / (across * down);
    int64_t first = blockIdx.x / across % down * SIDE, first_unit = blockIdx.x % across * SIDE;
    const REAL *w = input_of(&at, p.o.w) + d * p.units * in;
    int lane = (int)threadIdx.x % SIDE, line = (int)threadIdx.x / SIDE;
    int64_t unit = first_unit + lane;
    REAL sums[SIDE / LINES];
    for (int i = 0; i < SIDE / LINES; i++) {
        bool begins = !FUSED && unit < p.units;
        sums[i] = begins ? input_of(&at, p.o.b)[2 * d * p.units + unit] : (REAL)0;
    }
    for (int64_t from = 0; from < in; from += SIDE) {
        for (int l = line; l < SIDE; l += LINES) {
            int64_t m = first + l, k = from + lane;
            xs[l][lane] =
                m < all && k < in ? x[bel_recurrent_x_at(&p.s, m / p.s.t, m % p.s.t) + k] : (REAL)0;
            ws[l][lane] =
                first_unit + l < p.units && k < in ? w[(first_unit + l) * in + k] : (REAL)0;
        }
        __syncthreads();
        int depth = in - from < SIDE ? (int)(in - from) : SIDE;
        for (int k = 0; k < depth; k++)
            for (int i = 0; i < SIDE / LINES; i++)
                sums[i] = CHAIN(xs[line + i * LINES][k], ws[lane][k], sums[i]);
        __syncthreads();
    }
    REAL *pre = (REAL *)at.work + p.pre + d * all * p.units;
    for (int i = 0; i < SIDE / LINES && unit < p.units; i++) {
        int64_t m = first + line + i * LINES;
        if (m < all) pre[m * p.units + unit] = with_bias(&at, &p, d, unit, sums[i]);
    }
}

// --- Steps ---------------------------------------------------------------------------------------

// Rows of a block in one direction, and the addresses of its vectors: those of row r follow r
// times.
typedef struct walked {
    int64_t d, first, count, lengths[ROWS], times[ROWS], most;
    const REAL *turned, *bias;
    REAL *h, *c, *reset_h, *gates;
} walked;

static inline walked rows_of(const bel_cuda_operands *at, const bel_cuda_recurrent *p)
{
    walked b;
    int64_t parts = (p->s.n + ROWS - 1) / ROWS;
    b.d = blockIdx.x / parts;
    b.first = blockIdx.x % parts * ROWS;
    b.count = p->s.n - b.first < ROWS ? p->s.n - b.first : ROWS;
    b.most = 0;
    for (int r = 0; r < ROWS; r++) {
        b.lengths[r] = r < b.count ? length_of(at, p, b.first + r, threadIdx.x == 0) : 0;
        b.times[r] = 0;
        if (b.lengths[r] > b.most) b.most = b.lengths[r];
    }
    REAL *work = (REAL *)at->work;
    int64_t row = b.d * p->s.n + b.first;
    b.turned = work + p->turned + b.d * p->units * p->s.hidden;
    b.bias = p->o.b < 0 ? NULL : input_of(at, p->o.b) + (2 * b.d + 1) * p->units; // R's
    b.h = work + p->h + row * p->s.hidden;
    b.c = work + p->c + row * p->s.hidden;
    b.reset_h = work + p->reset_h + row * p->s.hidden;
    b.gates = work + p->gates + row * p->kept;
    return b;
}

// h and c are zeros before the first step, unless they are inputs.
static inline void begin_rows(const bel_cuda_operands *at, const bel_cuda_recurrent *p,
                              const walked *b)
{
    for (int64_t e = threadIdx.x; e < b->count * p->s.hidden; e += blockDim.x) {
        int64_t row = b->first + e / p->s.hidden;
        int64_t from = bel_recurrent_state_at(&p->s, b->d, row) + e % p->s.hidden;
        b->h[e] = p->o.first[0] < 0 ? (REAL)0 : BEGIN(input_of(at, p->o.first[0])[from]);
        b->c[e] = p->o.first[1] < 0 ? (REAL)0 : BEGIN(input_of(at, p->o.first[1])[from]);
    }
}

// Sums of units [from, end) with `vectors` instead of h. Finished rows are computed with the
// others, and their results ignored.
static inline void multiply_units(const bel_cuda_operands *at, const bel_cuda_recurrent *p,
                                  const walked *b, int64_t from, int64_t end, const REAL *vectors)
{
    const REAL *pre = (const REAL *)at->work + p->pre;
    const REAL *vector[ROWS];
    int64_t hidden = p->s.hidden;
    for (int r = 0; r < ROWS; r++)
        vector[r] = vectors + (r < b->count ? r : 0) * hidden;
    for (int64_t unit = from + threadIdx.x; unit < end; unit += blockDim.x) {
        bool apart = p->s.reset_last && unit >= 2 * hidden;
        REAL of_x[ROWS], sums[ROWS], begin = b->bias[unit];
        if (FUSED) begin = CHAIN((REAL)1, (REAL)0 + begin, (REAL)0);
        for (int r = 0; r < ROWS; r++) {
            int64_t row = b->d * p->s.n + b->first + (r < b->count ? r : 0);
            of_x[r] = pre[(row * p->s.t + b->times[r]) * p->units + unit];
            sums[r] = FUSED && !apart ? of_x[r] : begin;
        }
        for (int64_t k = 0; k < hidden; k++) {
            REAL weight = b->turned[k * p->units + unit];
            for (int r = 0; r < ROWS; r++)
                sums[r] = CHAIN(vector[r][k], weight, sums[r]);
        }
        for (int r = 0; r < ROWS; r++) {
            if (r >= b->count) break;
            REAL *gate = b->gates + r * p->kept + unit;
            if (apart) gate[hidden] = sums[r];
            gate[0] = apart ? of_x[r] : FUSED ? sums[r] : of_x[r] + sums[r];
        }
    }
}

// z and r if reset comes first, and r · h.
static inline void reset_rows(const bel_cuda_recurrent *p, const walked *b)
{
    int64_t hidden = p->s.hidden;
    for (int64_t e = threadIdx.x; e < b->count * hidden; e += blockDim.x) {
        REAL *gates = b->gates + e / hidden * p->kept + e % hidden;
        gates[0] = SIGMOID(gates[0]);
        gates[hidden] = SIGMOID(gates[hidden]);
        b->reset_h[e] = gates[hidden] * b->h[e];
    }
}

// Makes the saved numbers for the gradient, and the new h, from a unit's sums.
static inline REAL gru_unit(const bel_cuda_recurrent *p, const REAL *gates, REAL h, REAL *saved)
{
    int64_t hidden = p->s.hidden;
    bool last = p->s.reset_last;
    REAL z = last ? SIGMOID(gates[0]) : gates[0];
    REAL r = last ? SIGMOID(gates[hidden]) : gates[hidden];
    REAL sum = last ? gates[2 * hidden] + r * gates[3 * hidden] : gates[2 * hidden];
    REAL candidate = TANH(sum);
    saved[last ? 0 : 2 * hidden] = candidate;
    saved[last ? hidden : 0] = z;
    saved[last ? 2 * hidden : hidden] = r;
    if (last) saved[3 * hidden] = gates[3 * hidden];
    return ((REAL)1 - z) * candidate + z * h;
}

static inline REAL lstm_unit(const bel_cuda_recurrent *p, const REAL *gates, REAL *c, REAL *saved)
{
    int64_t hidden = p->s.hidden;
    REAL in = SIGMOID(gates[0]), out = SIGMOID(gates[hidden]), forget = SIGMOID(gates[2 * hidden]);
    REAL candidate = TANH(gates[3 * hidden]);
    *c = forget * *c + in * candidate;
    saved[0] = in;
    saved[hidden] = out;
    saved[2 * hidden] = forget;
    saved[3 * hidden] = candidate;
    saved[4 * hidden] = *c;
    return out * TANH(*c);
}

static inline void step_rows(const bel_cuda_operands *at, const bel_cuda_recurrent *p,
                             const walked *b, int64_t step)
{
    REAL *y = (REAL *)at->out[p->o.out_y], *saved = (REAL *)at->out[p->o.out_saved];
    int64_t hidden = p->s.hidden;
    for (int64_t e = threadIdx.x; e < b->count * hidden; e += blockDim.x) {
        int64_t r = e / hidden, i = e % hidden, row = b->first + r;
        if (step >= b->lengths[r]) continue;
        REAL *save = saved + bel_recurrent_saved_at(&p->s, b->d, row, b->times[r]) + i;
        const REAL *gates = b->gates + r * p->kept + i;
        b->h[e] =
            p->s.lstm ? lstm_unit(p, gates, &b->c[e], save) : gru_unit(p, gates, b->h[e], save);
        y[bel_recurrent_y_at(&p->s, b->d, row, b->times[r]) + i] = b->h[e];
    }
}

// The last states, and zeros after each row's length.
static inline void finish_rows(const bel_cuda_operands *at, const bel_cuda_recurrent *p,
                               const walked *b)
{
    REAL *y = (REAL *)at->out[p->o.out_y], *saved = (REAL *)at->out[p->o.out_saved];
    int64_t hidden = p->s.hidden;
    for (int64_t e = threadIdx.x; e < b->count * hidden; e += blockDim.x) {
        int64_t to = bel_recurrent_state_at(&p->s, b->d, b->first + e / hidden) + e % hidden;
        ((REAL *)at->out[p->o.out_state[0]])[to] = b->h[e];
        if (p->s.lstm) ((REAL *)at->out[p->o.out_state[1]])[to] = b->c[e];
    }
    for (int64_t e = threadIdx.x; e < b->count * p->s.t * hidden; e += blockDim.x) {
        int64_t i = e % hidden, time = e / hidden % p->s.t, r = e / hidden / p->s.t;
        if (time < b->lengths[r]) continue;
        y[bel_recurrent_y_at(&p->s, b->d, b->first + r, time) + i] = 0;
        for (int64_t part = 0; part < p->s.saved_parts; part++)
            saved[bel_recurrent_saved_at(&p->s, b->d, b->first + r, time) + part * hidden + i] = 0;
    }
}

KERNEL(recurrent_steps, bel_cuda_recurrent)
{
    walked b = rows_of(&at, &p);
    int64_t hidden = p.s.hidden;
    bool reset_first = !p.s.lstm && !p.s.reset_last;
    begin_rows(&at, &p, &b);
    __syncthreads();
    for (int64_t step = 0; step < b.most; step++) {
        for (int r = 0; r < ROWS; r++)
            if (step < b.lengths[r]) b.times[r] = bel_recurrent_time(&p.s, b.d, b.lengths[r], step);
        multiply_units(&at, &p, &b, 0, reset_first ? 2 * hidden : p.units, b.h);
        __syncthreads();
        if (reset_first) {
            reset_rows(&p, &b);
            __syncthreads();
            multiply_units(&at, &p, &b, 2 * hidden, p.units, b.reset_h);
            __syncthreads();
        }
        step_rows(&at, &p, &b, step);
        __syncthreads();
    }
    finish_rows(&at, &p, &b);
}

#endif
