// Attention in f32: the sums of ops/kernels/attention.c. Keys are processed in blocks of the same
// size as there, which affects the bits: each block rescales a query's sums for its new largest
// score. Queries that are processed together have the same number of keys, that of the last one. A
// key that a query does not see has weight 0.
//
// A block of threads has 16 queries (forward, gradient of queries) or 16 keys (their gradients),
// and 16 threads for each, which share the columns of its sums. Scores are made for 16 queries and
// 64 keys at a time, or for 64 queries and 16 keys, four by each thread. Each kernel that needs
// scores computes them again. The bottleneck is shared memory. So its rows are laid out for one
// access to four numbers, and a number that a thread reads of one side meets four of the other.
#include "cuda/kernels/attention_length.h"
#include "cuda/kernels/bfloat.h"
#include "cuda/kernels/tile.h"
#include "ops/kernels/scalar.h"

#define ROWS BEL_CUDA_ATTENTION_ROWS
#define LANES (BEL_CUDA_ATTENTION_THREADS / ROWS)
#define KEYS BEL_CUDA_ATTENTION_MOST_KEYS
#define MINE (BEL_CUDA_ATTENTION_MOST_WIDTH / LANES) // columns of a thread
#define SOME 4 // scores of a thread
#define WIDTH 64                                     // columns that are staged at a time
#define STRIDE (WIDTH + 4) // rows start in different banks, at multiples of 16 bytes

typedef float staged[STRIDE];

// Stages columns [first, first + WIDTH) of `count` rows, of which `rows` exist; the rest is 0.
static inline void stage(staged *to, int32_t count, const float *from, int64_t rows, int64_t width,
                         int64_t first)
{
    for (int32_t i = (int32_t)threadIdx.x; i < count * WIDTH; i += BEL_CUDA_ATTENTION_THREADS) {
        int32_t r = i / WIDTH, c = i % WIDTH;
        to[r][c] = r < rows && first + c < width ? from[r * width + first + c] : 0.0f;
    }
}

// Dot products of rows of a [a_rows, width] and b [b_rows, width]. With `across`: row `thread /
// LANES` of a by rows `thread % LANES`, + LANES … of b. Else rows `thread / LANES`, + ROWS … of a
// by row `thread % LANES` of b. All threads of a block must call this.
static inline void some_products(const float *a, int64_t a_rows, const float *b, int64_t b_rows,
                                 int64_t width, bool across, staged *stage_a, staged *stage_b,
                                 float *sums)
{
    int32_t row = (int32_t)threadIdx.x / LANES, lane = (int32_t)threadIdx.x % LANES;
    int32_t next_a = across ? 0 : ROWS, next_b = across ? LANES : 0;
    for (int32_t j = 0; j < SOME; j++)
        sums[j] = 0.0f;
    for (int64_t first = 0; first < width; first += WIDTH) {
        int32_t count = width - first < WIDTH ? (int32_t)(width - first) : WIDTH, i = 0;
        stage(stage_a, across ? ROWS : SOME * ROWS, a, a_rows, width, first);
        stage(stage_b, across ? SOME * LANES : LANES, b, b_rows, width, first);
        __syncthreads();
        UNROLL(2)
        for (; i + 4 <= count; i += 4)
            for (int32_t j = 0; j < SOME; j++) {
                float x[4], y[4];
                tile_take(stage_a[row + j * next_a] + i, 4, 0, x);
                tile_take(stage_b[lane + j * next_b] + i, 4, 0, y);
                for (int32_t k = 0; k < 4; k++)
                    sums[j] = fmaf(x[k], y[k], sums[j]);
            }
        for (; i < count; i++)
            for (int32_t j = 0; j < SOME; j++)
                sums[j] = fmaf(stage_a[row + j * next_a][i], stage_b[lane + j * next_b][i], sums[j]);
        __syncthreads();
    }
}

// Whether a thread's columns come in fours: rows of `width` start at multiples of four.
static inline bool by_fours(const float *x, int64_t width)
{
    return width % 4 == 0 && four_fit(x, false);
}

// The column of a thread's sum j.
static inline int32_t column_of(bool fours, int32_t j)
{
    int32_t lane = (int32_t)threadIdx.x % LANES;
    return fours ? (j / 4 * LANES + lane) * 4 + j % 4 : j * LANES + lane;
}

// Adds `factor` times a row to the sums of a thread's columns.
static inline void add_row(float *sums, float factor, const float *x, int64_t width, bool fours)
{
    for (int32_t j = 0; fours && j < MINE && j * LANES < width; j += 4) {
        int32_t column = column_of(true, j);
        if (column >= width) continue;
        const four_floats some = four_get(x, false, column);
        for (int32_t k = 0; k < 4; k++)
            sums[j + k] = fmaf(factor, some.v[k], sums[j + k]);
    }
    for (int32_t j = 0; !fours && j < MINE && j * LANES < width; j++)
        if (column_of(false, j) < width)
            sums[j] = fmaf(factor, x[column_of(false, j)], sums[j]);
}

// Pairwise sum over the lanes of a row. All threads of a block must call this.
static inline float add_lanes(float (*lanes)[LANES], float mine)
{
    int32_t row = (int32_t)threadIdx.x / LANES, lane = (int32_t)threadIdx.x % LANES;
    lanes[row][lane] = mine;
    __syncthreads();
    for (int32_t half = LANES / 2; half > 0; half /= 2) {
        if (lane < half) lanes[row][lane] += lanes[row][lane + half];
        __syncthreads();
    }
    float sum = lanes[row][0];
    __syncthreads();
    return sum;
}

// The largest of `count` > 0 scores of a row, in the order of the CPU's kernel, which decides
// between zeros and for NaN. All threads of a block must call this.
static inline float most_of(float (*lanes)[LANES], const float *scores, int32_t count)
{
    int32_t row = (int32_t)threadIdx.x / LANES, lane = (int32_t)threadIdx.x % LANES;
    float most = count > 0 ? scores[0] : 0.0f;
    for (int32_t k = lane; k < count; k += LANES)
        most = scores[k] > most ? scores[k] : most;
    lanes[row][lane] = most;
    __syncthreads();
    most = lanes[row][0];
    for (int32_t l = 1; l < LANES; l++)
        most = lanes[row][l] > most ? lanes[row][l] : most;
    __syncthreads();
    return most;
}

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Number of keys for all queries processed together with `query`, seen or not.
static inline int64_t taken_of(const bel_cuda_attention *p, int64_t length, int64_t query)
{
    int64_t last = query / p->queries * p->queries + p->queries - 1;
    return seen_of(p, length, smaller(last, p->t - 1));
}

// --- Forward -------------------------------------------------------------------------------------

// A query's state in its threads.
typedef struct state {
    float most, total, factor; // factor: for the previous sums
    float sums[MINE];          // column_of
} state;

// Turns scores of a block of keys, of which the query sees `seen`, into powers.
static inline void weigh(const bel_cuda_attention *p, float *scores, int32_t seen, int32_t taken,
                         float (*lanes)[LANES], state *s)
{
    int32_t lane = (int32_t)threadIdx.x % LANES;
    float scale = (float)p->scale, now = most_of(lanes, scores, seen) * scale;
    if (!(now > s->most)) now = s->most;
    float shift = now == -INFINITY ? 0.0f : now, mine = 0.0f;
    for (int32_t k = lane; k < taken; k += LANES) {
        scores[k] = k < seen ? exp_one(scores[k] * scale - shift) : 0.0f;
        if (k < seen) mine += scores[k];
    }
    float added = add_lanes(lanes, mine);
    s->factor = exp_one(seen > 0 ? s->most - shift : 0.0f);
    if (seen > 0) s->most = now;
    s->total = s->total * s->factor + (seen > 0 ? added : 0.0f);
}

// Inputs q, k, v, lengths; outputs y and the logarithms of the sums of powers.
KERNEL(attention_forward, bel_cuda_attention)
{
    TILE_SHARED staged stage_a[ROWS], stage_b[SOME * LANES];
    TILE_SHARED float scores[ROWS][KEYS + 4];
    __shared__ float lanes[ROWS][LANES];
    int32_t thread = (int32_t)threadIdx.x, row = thread / LANES, lane = thread % LANES;
    int64_t tiles = (p.t + ROWS - 1) / ROWS, matrix = blockIdx.x / tiles;
    int64_t first = blockIdx.x % tiles * ROWS, rows = smaller(ROWS, p.t - first);
    int64_t length = length_of(&at, &p, matrix, thread == 0);
    int64_t mine = seen_of(&p, length, first + row), taken = taken_of(&p, length, first);
    const float *q = (const float *)at.in[0] + (matrix * p.t + first) * p.d;
    const float *k = (const float *)at.in[1] + matrix * p.s * p.d;
    const float *v = (const float *)at.in[2] + matrix * p.s * p.e;
    bool fours = by_fours(v, p.e);
    state s;
    s.most = -INFINITY;
    s.total = s.factor = 0.0f;
    for (int32_t j = 0; j < MINE; j++)
        s.sums[j] = 0.0f;
    for (int64_t key = 0; key < taken; key += p.keys) {
        int32_t count = (int32_t)smaller(p.keys, taken - key),
                seen = (int32_t)smaller(count, mine - key), i = 0;
        for (; i < count; i += SOME * LANES) {
            float made[SOME];
            some_products(q, rows, k + (key + i) * p.d, count - i, p.d, true, stage_a, stage_b,
                          made);
            for (int32_t j = 0; j < SOME; j++)
                scores[row][i + lane + j * LANES] = made[j];
        }
        __syncthreads();
        weigh(&p, scores[row], seen, count, lanes, &s);
        for (int32_t j = 0; j < MINE && key > 0 && s.factor != 1; j++)
            s.sums[j] *= s.factor;
        UNROLL(2)
        for (i = 0; i < count; i++)
            add_row(s.sums, scores[row][i], v + (key + i) * p.e, p.e, fours);
        __syncthreads();
    }
    if (row >= rows) return;
    int64_t query = matrix * p.t + first + row;
    float *y = (float *)at.out[0] + query * p.e, factor = length > 0 ? 1 / s.total : 0.0f;
    for (int32_t j = 0; j < MINE; j++)
        if (column_of(fours, j) < p.e)
            y[column_of(fours, j)] = length > 0 ? s.sums[j] * factor : 0.0f;
    if (lane == 0) ((float *)at.out[1])[query] = length > 0 ? log_one(s.total) + s.most : 0.0f;
}

// --- Gradient: inputs dy, q, k, v, y, logarithms, lengths; outputs dq, dk, dv --------------------

// dy · y of each query, at the start of the workspace.
KERNEL(attention_inner, bel_cuda_attention)
{
    __shared__ float lanes[ROWS][LANES];
    int32_t row = (int32_t)threadIdx.x / LANES, lane = (int32_t)threadIdx.x % LANES;
    int64_t query = (int64_t)blockIdx.x * ROWS + row;
    bool there = query < p.matrices * p.t;
    const float *dy = (const float *)at.in[0] + query * p.e;
    const float *y = (const float *)at.in[4] + query * p.e;
    float mine = 0.0f;
    for (int64_t i = lane; there && i < p.e; i += LANES)
        mine += dy[i] * y[i];
    float sum = add_lanes(lanes, mine);
    if (there && lane == 0) ((float *)at.work)[query] = sum;
}

// Weight of a key for a query, and the gradient of its score.
typedef struct weights {
    float weight, slope;
} weights;

// Weights for the queries and keys of some_products, with 0 for unseen keys. All threads of a block
// must call this.
static inline void some_weights(const bel_cuda_operands *at, const bel_cuda_attention *p,
                                int64_t matrix, int64_t length, int64_t first_query,
                                int64_t first_key, bool across, staged *stage_a, staged *stage_b,
                                weights *made)
{
    int32_t row = (int32_t)threadIdx.x / LANES, lane = (int32_t)threadIdx.x % LANES;
    int64_t query = matrix * p->t + first_query, key = matrix * p->s + first_key;
    int64_t rows = p->t - first_query, keys = p->s - first_key;
    float scores[SOME], grads[SOME], scale = (float)p->scale;
    some_products((const float *)at->in[1] + query * p->d, rows,
                  (const float *)at->in[2] + key * p->d, keys, p->d, across, stage_a, stage_b,
                  scores);
    some_products((const float *)at->in[0] + query * p->e, rows,
                  (const float *)at->in[3] + key * p->e, keys, p->e, across, stage_a, stage_b,
                  grads);
    for (int32_t j = 0; j < SOME; j++) {
        int64_t its_query = row + (across ? 0 : j * ROWS), its_key = lane + (across ? j * LANES : 0);
        made[j].weight = made[j].slope = 0.0f;
        if (its_query >= rows || first_key + its_key >= seen_of(p, length, first_query + its_query))
            continue;
        float inner = ((const float *)at->work)[query + its_query];
        float total = ((const float *)at->in[5])[query + its_query];
        made[j].weight = exp_one(scores[j] * scale - total);
        made[j].slope = made[j].weight * (grads[j] - inner) * scale;
    }
}

// A block has 16 keys of a matrix and loops over the queries.
KERNEL(attention_grad_keys, bel_cuda_attention)
{
    TILE_SHARED staged stage_a[SOME * ROWS], stage_b[LANES];
    __shared__ weights of[SOME * ROWS][LANES]; // [query, key]
    int32_t thread = (int32_t)threadIdx.x, row = thread / LANES, lane = thread % LANES;
    int64_t tiles = (p.s + ROWS - 1) / ROWS, matrix = blockIdx.x / tiles;
    int64_t first = blockIdx.x % tiles * ROWS;
    int64_t length = length_of(&at, &p, matrix, thread == 0);
    const float *q = (const float *)at.in[1] + matrix * p.t * p.d;
    const float *dy = (const float *)at.in[0] + matrix * p.t * p.e;
    bool q_fours = by_fours(q, p.d), dy_fours = by_fours(dy, p.e);
    float dk[MINE], dv[MINE];
    for (int32_t j = 0; j < MINE; j++)
        dk[j] = dv[j] = 0.0f;
    // In a causal matrix, groups of queries before the first key see none.
    int64_t query = p.causal ? first / p.queries * p.queries : 0;
    for (; first < length && query < p.t; query += SOME * ROWS) {
        weights made[SOME];
        int64_t rows = smaller(SOME * ROWS, p.t - query), taken = 0;
        some_weights(&at, &p, matrix, length, query, first, false, stage_a, stage_b, made);
        for (int32_t j = 0; j < SOME; j++)
            of[row + j * ROWS][lane] = made[j];
        __syncthreads();
        for (int64_t i = 0; i < rows; i++) {
            // The size of a group is a multiple of ROWS.
            if (i % ROWS == 0) taken = taken_of(&p, length, query + i);
            if (first + row >= taken) continue;
            const weights w = of[i][row];
            add_row(dv, w.weight, dy + (query + i) * p.e, p.e, dy_fours);
            add_row(dk, w.slope, q + (query + i) * p.d, p.d, q_fours);
        }
        __syncthreads();
    }
    if (first + row >= p.s) return;
    int64_t key = matrix * p.s + first + row;
    for (int32_t j = 0; j < MINE; j++) {
        int32_t ck = column_of(q_fours, j), cv = column_of(dy_fours, j);
        if (ck < p.d) ((float *)at.out[1])[key * p.d + ck] = dk[j];
        if (cv < p.e) ((float *)at.out[2])[key * p.e + cv] = dv[j];
    }
}

// After dy · y of the queries: [part, matrix, query, column].
static inline float *parts_of(const bel_cuda_operands *at, const bel_cuda_attention *p)
{
    return (float *)at->work + p->matrices * p->t;
}

// A block has 16 queries of a matrix and loops over a part of the keys.
KERNEL(attention_grad_queries, bel_cuda_attention)
{
    TILE_SHARED staged stage_a[ROWS], stage_b[SOME * LANES];
    __shared__ float slopes[ROWS][SOME * LANES + 1];
    int32_t thread = (int32_t)threadIdx.x, row = thread / LANES, lane = thread % LANES;
    int64_t tiles = (p.t + ROWS - 1) / ROWS, first = blockIdx.x % tiles * ROWS;
    int64_t matrix = blockIdx.x / tiles % p.matrices, part = blockIdx.x / tiles / p.matrices;
    int64_t length = length_of(&at, &p, matrix, thread == 0);
    int64_t end = smaller((part + 1) * p.part_keys, taken_of(&p, length, first));
    const float *k = (const float *)at.in[2] + matrix * p.s * p.d;
    bool fours = by_fours(k, p.d);
    float dq[MINE];
    for (int32_t j = 0; j < MINE; j++)
        dq[j] = 0.0f;
    for (int64_t key = part * p.part_keys; key < end; key += SOME * LANES) {
        weights made[SOME];
        some_weights(&at, &p, matrix, length, first, key, true, stage_a, stage_b, made);
        for (int32_t j = 0; j < SOME; j++)
            slopes[row][lane + j * LANES] = made[j].slope;
        __syncthreads();
        for (int64_t i = 0; i < SOME * LANES && key + i < end; i++)
            add_row(dq, slopes[row][i], k + (key + i) * p.d, p.d, fours);
        __syncthreads();
    }
    if (first + row >= p.t) return;
    float *to =
        p.parts > 1 ? parts_of(&at, &p) + part * p.matrices * p.t * p.d : (float *)at.out[0];
    to += (matrix * p.t + first + row) * p.d;
    for (int32_t j = 0; j < MINE; j++)
        if (column_of(fours, j) < p.d) to[column_of(fours, j)] = dq[j];
}

KERNEL(attention_add_parts, bel_cuda_attention)
{
    int64_t count = p.matrices * p.t * p.d;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        float sum = 0.0f;
        for (int64_t part = 0; part < p.parts; part++)
            sum += parts_of(&at, &p)[part * count + i];
        ((float *)at.out[0])[i] = sum;
    }
}
