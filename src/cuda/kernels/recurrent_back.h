// Backward pass of GRU and LSTM. Include it after recurrent_forward.h.
//
// The kept numbers of a row's step have a separate place, in the CPU's order of adding weight
// gradients. In f32 that is by tiles of rows, in them by step, the longest row first; in double by
// row, from the last step to the first. A block walks a few rows of one direction back through time
// and keeps the gradients of the gates' sums. Two products follow, tile by tile. With the kept x
// and h they make the gradients of weights and biases; with W they make dx.
#ifndef BELFRY_CUDA_KERNELS_RECURRENT_BACK_H
#define BELFRY_CUDA_KERNELS_RECURRENT_BACK_H

#include "cuda/kernels/recurrent_forward.h"

static inline int64_t *numbers_of(const bel_cuda_operands *at)
{
    return (int64_t *)at->work; // lengths first
}

// --- Places --------------------------------------------------------------------------------------

// Lengths, and a stable order of rows by length.
KERNEL(recurrent_ranks, bel_cuda_recurrent)
{
    int64_t *numbers = numbers_of(&at);
    for (int64_t row = THREAD; row < p.s.n; row += THREADS) {
        int64_t length = length_of(&at, &p, row, true), rank = 0, total = 0;
        for (int64_t other = 0; other < p.s.n; other++) {
            int64_t its = length_of(&at, &p, other, false);
            rank += its > length || (its == length && other < row);
            total += its;
        }
        if (p.row_tiles == 0) rank = row;
        numbers[row] = length;
        numbers[p.ranks + row] = rank;
        numbers[p.order + rank] = row;
        if (row == 0) numbers[p.total] = total;
    }
}

// Number of places before a step in the row's tile, and in the tiles before.
static inline int64_t kept_before(const bel_cuda_recurrent *p, const int64_t *numbers, int64_t rank,
                                  int64_t step)
{
    int64_t kept = 0;
    for (int64_t other = 0; other < p->s.n; other++) {
        int64_t length = numbers[numbers[p->order + other]];
        int64_t tile = other % p->row_tiles, mine = rank % p->row_tiles;
        if (tile < mine) kept += length;
        if (tile == mine) kept += length < step ? length : step;
    }
    return kept + rank / p->row_tiles;
}

KERNEL(recurrent_places, bel_cuda_recurrent)
{
    int64_t *numbers = numbers_of(&at);
    for (int64_t e = THREAD; e < p.s.n * p.s.t; e += THREADS) {
        int64_t row = e / p.s.t, step = e % p.s.t, place = 0;
        if (step >= numbers[row]) continue;
        if (p.row_tiles > 0) {
            place = kept_before(&p, numbers, numbers[p.ranks + row], step);
        } else {
            for (int64_t other = 0; other < row; other++)
                place += numbers[other];
            place += numbers[row] - 1 - step;
        }
        numbers[p.places + e] = place;
        numbers[p.list + place] = e;
    }
}

// --- Steps ---------------------------------------------------------------------------------------

// Rows of a block on the way back: `gates` and `reset_h` of a row's step are at its place.
typedef struct walked_back {
    int64_t d, first, count, lengths[ROWS], most;
    const REAL *r;
    REAL *dh, *dc;
} walked_back;

static inline int64_t place_of(const bel_cuda_operands *at, const bel_cuda_recurrent *p, int64_t d,
                               int64_t row, int64_t step)
{
    return d * p->s.n * p->s.t + numbers_of(at)[p->places + row * p->s.t + step];
}

static inline REAL *gates_of(const bel_cuda_operands *at, const bel_cuda_recurrent *p,
                             int64_t place)
{
    return (REAL *)at->work + p->gates + place * p->kept;
}

// Unit i of the state before a step; 0 before the first step.
static inline REAL h_before(const bel_cuda_operands *at, const bel_cuda_recurrent *p, int64_t d,
                            int64_t row, int64_t length, int64_t step, int64_t i)
{
    if (step == 0) return 0;
    int64_t time = bel_recurrent_time(&p->s, d, length, step - 1);
    return BEGIN(input_of(at, p->o.y)[bel_recurrent_y_at(&p->s, d, row, time) + i]);
}

static inline REAL c_before(const bel_cuda_operands *at, const bel_cuda_recurrent *p, int64_t d,
                            int64_t row, int64_t length, int64_t step, int64_t i)
{
    if (step == 0) return 0;
    int64_t time = bel_recurrent_time(&p->s, d, length, step - 1);
    int64_t from = bel_recurrent_saved_at(&p->s, d, row, time) + 4 * p->s.hidden + i;
    return BEGIN(input_of(at, p->o.saved)[from]);
}

// Gradients from the loss: at a row's last step also those of the last states.
static inline void add_losses(const bel_cuda_operands *at, const bel_cuda_recurrent *p,
                              const walked_back *b, int64_t r, int64_t i, int64_t step)
{
    REAL *dh = &b->dh[r * p->s.hidden + i], *dc = &b->dc[r * p->s.hidden + i];
    int64_t row = b->first + r, state = bel_recurrent_state_at(&p->s, b->d, row) + i;
    int64_t time = bel_recurrent_time(&p->s, b->d, b->lengths[r], step);
    bool last = step == b->lengths[r] - 1;
    if (last && p->o.dy_state[0] >= 0) *dh += input_of(at, p->o.dy_state[0])[state];
    if (last && p->o.dy_state[1] >= 0) *dc += input_of(at, p->o.dy_state[1])[state];
    if (p->o.dy < 0) return;
    *dh += input_of(at, p->o.dy)[bel_recurrent_y_at(&p->s, b->d, row, time) + i];
}

// Gradients of one unit's gates; dh keeps the part that goes directly to the state before. If reset
// comes first, the gate r waits for the gradient of r · h.
static inline void unit_back(const bel_cuda_operands *at, const bel_cuda_recurrent *p,
                             const walked_back *b, int64_t r, int64_t i, int64_t step)
{
    int64_t hidden = p->s.hidden, row = b->first + r, length = b->lengths[r];
    int64_t place = place_of(at, p, b->d, row, step);
    int64_t time = bel_recurrent_time(&p->s, b->d, length, step);
    const REAL *saved =
        input_of(at, p->o.saved) + bel_recurrent_saved_at(&p->s, b->d, row, time) + i;
    REAL *gates = gates_of(at, p, place) + i, *dh = &b->dh[r * hidden + i];
    if (p->s.lstm) {
        REAL c = c_before(at, p, b->d, row, length, step, i);
        lstm_back(saved, hidden, c, TANH(saved[4 * hidden]), *dh, &b->dc[r * hidden + i], gates);
        *dh = 0;
        return;
    }
    REAL h = h_before(at, p, b->d, row, length, step, i);
    if (p->s.reset_last) { // saved: n, z, r, n'
        gru_back(saved[0], saved[hidden], h, dh, &gates[2 * hidden], &gates[0]);
        reset_back(gates[2 * hidden], saved[2 * hidden], saved[3 * hidden], &gates[hidden],
                   &gates[3 * hidden]);
    } else { // z, r, n
        gru_back(saved[2 * hidden], saved[0], h, dh, &gates[2 * hidden], &gates[0]);
        ((REAL *)at->work)[p->reset_h + place * hidden + i] = saved[hidden] * h;
    }
}

// Adds to sums [ROWS] unit i of the gates [from, end) of R times their gradients.
static inline void multiply_back(const bel_cuda_recurrent *p, const walked_back *b,
                                 const REAL *const gates[ROWS], int64_t from, int64_t end,
                                 int64_t i, REAL sums[ROWS])
{
    int64_t hidden = p->s.hidden;
    for (int64_t gate = from; gate < end; gate++) {
        int64_t its = gate * hidden + (p->s.reset_last && gate == 2 ? hidden : 0);
        for (int64_t u = 0; u < hidden; u++) {
            REAL weight = b->r[(gate * hidden + u) * hidden + i];
            for (int r = 0; r < ROWS; r++)
                sums[r] = CHAIN(gates[r][its + u], weight, sums[r]);
        }
        for (int r = 0; r < ROWS && p->padded; r++)
            sums[r] = CHAIN((REAL)0, (REAL)0, sums[r]); // -0 becomes 0
    }
}

// The gate r of all rows and, through r · h, their dh, if reset comes first.
static inline void reset_rows_back(const bel_cuda_operands *at, const bel_cuda_recurrent *p,
                                   const walked_back *b, const REAL *const gates[ROWS],
                                   int64_t step)
{
    int64_t hidden = p->s.hidden;
    for (int64_t i = threadIdx.x; i < hidden; i += blockDim.x) {
        REAL sums[ROWS];
        for (int r = 0; r < ROWS; r++)
            sums[r] = 0;
        multiply_back(p, b, gates, 2, 3, i, sums);
        for (int r = 0; r < ROWS; r++) {
            int64_t row = b->first + r;
            if (step >= b->lengths[r]) continue;
            int64_t time = bel_recurrent_time(&p->s, b->d, b->lengths[r], step);
            int64_t saved = bel_recurrent_saved_at(&p->s, b->d, row, time) + hidden + i;
            REAL h = h_before(at, p, b->d, row, b->lengths[r], step, i), more;
            REAL *to = gates_of(at, p, place_of(at, p, b->d, row, step)) + hidden + i;
            reset_back(sums[r], input_of(at, p->o.saved)[saved], h, to, &more);
            b->dh[r * hidden + i] += more;
        }
    }
}

static inline walked_back rows_back(const bel_cuda_operands *at, const bel_cuda_recurrent *p)
{
    walked_back b;
    int64_t parts = (p->s.n + ROWS - 1) / ROWS, hidden = p->s.hidden;
    b.d = blockIdx.x / parts;
    b.first = blockIdx.x % parts * ROWS;
    b.count = p->s.n - b.first < ROWS ? p->s.n - b.first : ROWS;
    b.most = 0;
    for (int r = 0; r < ROWS; r++) {
        b.lengths[r] = r < b.count ? numbers_of(at)[b.first + r] : 0;
        if (b.lengths[r] > b.most) b.most = b.lengths[r];
    }
    b.r = input_of(at, p->o.r) + b.d * p->units * hidden;
    b.dh = (REAL *)at->work + p->h + (b.d * p->s.n + b.first) * hidden;
    b.dc = (REAL *)at->work + p->c + (b.d * p->s.n + b.first) * hidden;
    for (int64_t e = threadIdx.x; e < b.count * hidden; e += blockDim.x)
        b.dh[e] = b.dc[e] = 0;
    return b;
}

KERNEL(recurrent_back, bel_cuda_recurrent)
{
    walked_back b = rows_back(&at, &p);
    int64_t hidden = p.s.hidden;
    bool reset_first = !p.s.lstm && !p.s.reset_last;
    __syncthreads();
    for (int64_t step = b.most - 1; step >= 0; step--) {
        const REAL *gates[ROWS], *some = NULL; // for a row without such a step: another row's
        for (int r = 0; r < ROWS; r++)
            if (step < b.lengths[r])
                some = gates_of(&at, &p, place_of(&at, &p, b.d, b.first + r, step));
        for (int r = 0; r < ROWS; r++) {
            gates[r] = some;
            if (step < b.lengths[r])
                gates[r] = gates_of(&at, &p, place_of(&at, &p, b.d, b.first + r, step));
        }
        for (int64_t e = threadIdx.x; e < b.count * hidden; e += blockDim.x) {
            if (step >= b.lengths[e / hidden]) continue;
            add_losses(&at, &p, &b, e / hidden, e % hidden, step);
            unit_back(&at, &p, &b, e / hidden, e % hidden, step);
        }
        __syncthreads();
        if (reset_first) {
            reset_rows_back(&at, &p, &b, gates, step);
            __syncthreads();
        }
        for (int64_t i = threadIdx.x; i < hidden; i += blockDim.x) {
            REAL sums[ROWS];
            for (int r = 0; r < ROWS; r++)
                sums[r] = b.dh[(r < b.count ? r : 0) * hidden + i];
            multiply_back(&p, &b, gates, 0, reset_first ? 2 : p.s.gates, i, sums);
            for (int r = 0; r < ROWS; r++)
                if (step < b.lengths[r]) b.dh[r * hidden + i] = sums[r];
        }
        __syncthreads();
    }
}

// --- Gradients of weights and biases -------------------------------------------------------------

// Column `column` of the kept inputs: [x, 1] for W, [1, h] for R.
static inline REAL kept_input(const bel_cuda_operands *at, const bel_cuda_recurrent *p, int64_t d,
                              int64_t kept, bool of_r, int64_t gate, int64_t column)
{
    const int64_t *numbers = numbers_of(at);
    int64_t e = numbers[p->list + kept], row = e / p->s.t, step = e % p->s.t;
    if (column == (of_r ? 0 : p->s.in)) return 1;
    if (of_r && gate == 2 && !p->s.lstm && !p->s.reset_last) {
        int64_t place = d * p->s.n * p->s.t + kept;
        return ((const REAL *)at->work)[p->reset_h + place * p->s.hidden + column - 1];
    }
    if (of_r) return h_before(at, p, d, row, numbers[row], step, column - 1);
    int64_t time = bel_recurrent_time(&p->s, d, numbers[row], step);
    return input_of(at, p->o.x)[bel_recurrent_x_at(&p->s, row, time) + column];
}

static inline void write_weight(const bel_cuda_operands *at, const bel_cuda_recurrent *p, int64_t d,
                                int64_t unit, bool of_r, int64_t column, REAL sum)
{
    REAL *db = (REAL *)at->out[3] + 2 * d * p->units;
    int64_t row = d * p->units + unit;
    if (!of_r && column < p->s.in) {
        ((REAL *)at->out[1])[row * p->s.in + column] = sum;
    } else if (of_r && column > 0) {
        ((REAL *)at->out[2])[row * p->s.hidden + column - 1] = sum;
    } else {
        db[(of_r ? p->units : 0) + unit] = sum;
    }
}

// A tile: SIDE units of one gate by SIDE columns, summed over all places in order.
KERNEL(recurrent_weights, bel_cuda_recurrent)
{
    __shared__ REAL gates[SIDE][SIDE + 1], inputs[SIDE][SIDE + 1];
    int64_t of_w = (p.s.in + SIDE) / SIDE, across = of_w + (p.s.hidden + SIDE) / SIDE;
    int64_t each = (p.s.hidden + SIDE - 1) / SIDE, tile = blockIdx.x / across;
    int64_t d = tile / (p.s.gates * each), gate = tile / each % p.s.gates;
    bool of_r = blockIdx.x % across >= of_w;
    int64_t column = (blockIdx.x % across - (of_r ? of_w : 0)) * SIDE, unit = tile % each * SIDE;
    int64_t columns = of_r ? p.s.hidden + 1 : p.s.in + 1;
    int64_t total = p.s.n > 0 ? numbers_of(&at)[p.total] : 0;
    int64_t from = gate * p.s.hidden + (of_r && p.s.reset_last && gate == 2 ? p.s.hidden : 0);
    int lane = (int)threadIdx.x % SIDE, line = (int)threadIdx.x / SIDE;
    REAL sums[SIDE / LINES];
    for (int i = 0; i < SIDE / LINES; i++)
        sums[i] = 0;
    for (int64_t first = 0; first < total; first += SIDE) {
        for (int l = line; l < SIDE; l += LINES) {
            int64_t kept = first + l, place = d * p.s.n * p.s.t + kept;
            bool unit_there = kept < total && unit + lane < p.s.hidden;
            bool column_there = kept < total && column + lane < columns;
            gates[l][lane] = unit_there ? gates_of(&at, &p, place)[from + unit + lane] : (REAL)0;
            inputs[l][lane] =
                column_there ? kept_input(&at, &p, d, kept, of_r, gate, column + lane) : (REAL)0;
        }
        __syncthreads();
        int depth = total - first < SIDE ? (int)(total - first) : SIDE;
        for (int k = 0; k < depth; k++)
            for (int i = 0; i < SIDE / LINES; i++)
                sums[i] = CHAIN(inputs[k][lane], gates[k][line + i * LINES], sums[i]);
        __syncthreads();
    }
    for (int i = 0; i < SIDE / LINES; i++) {
        int64_t its = unit + line + i * LINES;
        if (its < p.s.hidden && column + lane < columns)
            write_weight(&at, &p, d, gate * p.s.hidden + its, of_r, column + lane, sums[i]);
    }
}

// --- dx ------------------------------------------------------------------------------------------

// A tile: SIDE of the (row, time) by SIDE columns of x, and all units in order. In f32 each
// direction has a separate sum.
KERNEL(recurrent_dx, bel_cuda_recurrent)
{
    __shared__ REAL gates[SIDE][SIDE + 1], ws[SIDE][SIDE + 1];
    int64_t across = (p.s.in + SIDE - 1) / SIDE, all = p.s.n * p.s.t, hidden = p.s.hidden;
    int64_t first = blockIdx.x / across * SIDE, column = blockIdx.x % across * SIDE;
    const int64_t *lengths = numbers_of(&at);
    int lane = (int)threadIdx.x % SIDE, line = (int)threadIdx.x / SIDE;
    REAL sums[SIDE / LINES], totals[SIDE / LINES];
    for (int i = 0; i < SIDE / LINES; i++)
        sums[i] = totals[i] = 0;
    for (int64_t d = 0; d < p.s.directions; d++) {
        const REAL *w = input_of(&at, p.o.w) + d * p.units * p.s.in;
        for (int g = 0; g < p.s.gates; g++) {
            int64_t gate = p.x_gates[g] * hidden;
            for (int64_t unit = 0; unit < hidden; unit += SIDE) {
                for (int l = line; l < SIDE; l += LINES) {
                    int64_t m = first + l, row = m / p.s.t, time = m % p.s.t;
                    bool there = m < all && time < lengths[row];
                    gates[l][lane] = 0;
                    if (there && unit + lane < hidden) {
                        int64_t step = bel_recurrent_time(&p.s, d, lengths[row], time);
                        const REAL *its = gates_of(&at, &p, place_of(&at, &p, d, row, step));
                        gates[l][lane] = its[gate + unit + lane];
                    }
                    bool in_w = unit + l < hidden && column + lane < p.s.in;
                    ws[l][lane] = in_w ? w[(gate + unit + l) * p.s.in + column + lane] : (REAL)0;
                }
                __syncthreads();
                int depth = hidden - unit < SIDE ? (int)(hidden - unit) : SIDE;
                for (int k = 0; k < depth; k++)
                    for (int i = 0; i < SIDE / LINES; i++)
                        sums[i] = CHAIN(gates[line + i * LINES][k], ws[k][lane], sums[i]);
                __syncthreads();
            }
            for (int i = 0; i < SIDE / LINES && p.padded; i++)
                sums[i] = CHAIN((REAL)0, (REAL)0, sums[i]);
        }
        for (int i = 0; i < SIDE / LINES && FUSED; i++) {
            totals[i] += sums[i];
            sums[i] = 0;
        }
    }
    for (int i = 0; i < SIDE / LINES && column + lane < p.s.in; i++) {
        int64_t m = first + line + i * LINES, row = m / p.s.t, time = m % p.s.t;
        if (m >= all) continue;
        REAL dx = time >= lengths[row] ? (REAL)0 : FUSED ? totals[i] : sums[i];
        ((REAL *)at.out[0])[bel_recurrent_x_at(&p.s, row, time) + column + lane] = dx;
    }
}

#endif
