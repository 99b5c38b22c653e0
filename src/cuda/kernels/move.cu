// Operations that only move elements: a thread writes an element of the result, and computes its
// source. Moved elements keep their bits. Gradients of picks go the other way: a thread searches
// all picked copies of its element, in the order of the picked tensor.
#include "cuda/kernels/move.h"
#include "cuda/kernels/numbers.h"

KERNEL(copy, bel_cuda_moved)
{
    for (int64_t i = THREAD; i < p.count; i += THREADS)
        bits_set(at.out[0], i, p.size, bits_get(at.in[0], walk_place(&p.walk, 0, i), p.size));
}

KERNEL(where, bel_cuda_moved)
{
    const uint8_t *condition = (const uint8_t *)at.in[0];
    for (int64_t i = THREAD; i < p.count; i += THREADS) {
        int from = condition[walk_place(&p.walk, 0, i)] != 0 ? 1 : 2;
        bits_set(at.out[0], i, p.size, bits_get(at.in[from], walk_place(&p.walk, from, i), p.size));
    }
}

// Transposes squares of 32 by 32 through shared memory, so that neighboring threads read and write
// neighbors. An extra column puts the threads of a column in different banks.
KERNEL(turn, bel_cuda_turned)
{
    enum { SIDE = 32 };
    __shared__ uint64_t square[SIDE][SIDE + 1];
    int64_t across = (p.columns + SIDE - 1) / SIDE, down = (p.rows + SIDE - 1) / SIDE;
    int lane = (int)threadIdx.x % SIDE, first = (int)threadIdx.x / SIDE;
    int lines = (int)blockDim.x / SIDE;
    for (int64_t s = blockIdx.x; s < p.outer * across * down; s += gridDim.x) {
        int64_t outer = s / (across * down), c0 = s % across * SIDE, r0 = s / across % down * SIDE;
        int64_t y = walk_place(&p.starts, 0, outer), x = walk_place(&p.starts, 1, outer);
        for (int line = first; line < SIDE; line += lines) {
            int64_t r = r0 + lane, c = c0 + line;
            if (r < p.rows && c < p.columns)
                square[line][lane] = bits_get(at.in[0], x + c * p.x_step + r, p.size);
        }
        __syncthreads();
        for (int line = first; line < SIDE; line += lines) {
            int64_t r = r0 + line, c = c0 + lane;
            if (r < p.rows && c < p.columns)
                bits_set(at.out[0], y + r * p.y_step + c, p.size, square[lane][line]);
        }
        __syncthreads();
    }
}

// --- Slice, Pad, Expand --------------------------------------------------------------------------

KERNEL(pick, bel_cuda_picked)
{
    for (int64_t i = THREAD; i < p.count; i += THREADS) {
        int64_t left = i, place = 0;
        for (int d = p.rule.rank - 1; d >= 0 && place >= 0; d--) {
            const bel_pick_dim *dim = &p.rule.dims[d];
            int64_t from = bel_pick_place(dim, p.rule.mode, left % dim->count);
            left /= dim->count;
            place = from < 0 ? -1 : place + from * dim->stride;
        }
        bits_set(at.out[0], i, p.size, place < 0 ? p.fill : bits_get(at.in[0], place, p.size));
    }
}

// The first element after `after` that was picked from place `from`; -1: none.
static inline int64_t next_picked(const bel_pick_dim *d, int32_t mode, int64_t from, int64_t after)
{
    int64_t far = from - d->first, i = far / d->step;
    int64_t first = far % d->step == 0 ? i : d->count, last = i;
    if (mode == BEL_PICK_EDGE && from == 0) first = 0;
    if (mode == BEL_PICK_EDGE && from == d->size - 1) last = d->count - 1;
    if (first < 0) first = 0;
    if (last >= d->count) last = d->count - 1;
    if (first <= after) first = after + 1;
    if (mode != BEL_PICK_REFLECT) return first <= last ? first : -1;
    // Mirrored before it, itself, mirrored after it. The step of Pad is 1.
    int64_t mirrored[3] = {-d->first - from, far, -d->first + 2 * (d->size - 1) - from};
    for (int k = from > 0 ? 0 : 1; k < (from < d->size - 1 ? 3 : 2); k++)
        if (mirrored[k] > after && mirrored[k] >= 0 && mirrored[k] < d->count) return mirrored[k];
    return -1;
}

// An odometer over the elements picked from one: picked[d] counts along dimension d.
KERNEL(pick_grad, bel_cuda_picked)
{
    int rank = p.rule.rank;
    for (int64_t e = THREAD; e < p.count; e += THREADS) {
        int64_t from[8], picked[8], steps[8], step = 1, place = 0, left = e;
        bool more = true;
        for (int d = rank - 1; d >= 0; d--) {
            const bel_pick_dim *dim = &p.rule.dims[d];
            from[d] = left % dim->size;
            left /= dim->size;
            picked[d] = next_picked(dim, p.rule.mode, from[d], -1);
            more = more && picked[d] >= 0;
            steps[d] = step;
            place += picked[d] * step;
            step *= dim->count;
        }
        double sum = 0;
        while (more) {
            sum = number_rounded(sum + number_get(at.in[0], place, p.type), p.type);
            more = false;
            for (int d = rank - 1; d >= 0 && !more; d--) {
                int64_t next = next_picked(&p.rule.dims[d], p.rule.mode, from[d], picked[d]);
                more = next >= 0;
                if (!more) next = next_picked(&p.rule.dims[d], p.rule.mode, from[d], -1);
                place += (next - picked[d]) * steps[d];
                picked[d] = next;
            }
        }
        number_set(at.out[0], e, p.type, sum);
    }
}

// --- Concat, OneHot, SequenceMask ----------------------------------------------------------------

KERNEL(join, bel_cuda_joined)
{
    for (int64_t i = THREAD; i < p.count; i += THREADS) {
        int64_t run = i / p.total, into = i % p.total, before = 0;
        int k = 0;
        for (; into >= p.ends[k]; k++)
            before = p.ends[k];
        int64_t from = run * (p.ends[k] - before) + into - before;
        bits_set(at.out[0], i, p.size, bits_get(at.in[k], from, p.size));
    }
}

KERNEL(one_hot, bel_cuda_marked)
{
    const int64_t *indices = (const int64_t *)at.in[0];
    float *y = (float *)at.out[0];
    for (int64_t i = THREAD; i < p.count; i += THREADS)
        y[i] = indices[i / p.width] == i % p.width ? 1.0f : 0.0f;
}

// y may overwrite x. An invalid length counts as 0.
KERNEL(sequence_mask, bel_cuda_marked)
{
    for (int64_t i = THREAD; i < p.count; i += THREADS) {
        int64_t time = i / p.width % p.times, sequence = i / p.width / p.times / p.outer;
        int64_t length = whole_get(at.in[1], sequence, p.type);
        bool good = length >= 0 && length <= p.times;
        if (!good) report_bad(&at, length, 0, p.times + 1);
        uint64_t bits = good && time < length ? bits_get(at.in[0], i, p.size) : 0;
        bits_set(at.out[0], i, p.size, bits);
    }
}
