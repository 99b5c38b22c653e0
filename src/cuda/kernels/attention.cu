// Attention in f32: the sums of ops/kernels/attention.c. Keys go by in blocks of the same size as
// there, which enters the bits: with each a query's sums are made smaller by what its largest score
// has grown. Queries that go by together there have a number of keys in common, that of the last
// one; what a query does not see of them counts with weight 0.
//
// A block of threads has 16 queries (forward, gradient of queries) or 16 keys (their gradients),
// and 16 threads for each, which share the columns of its sums. Scores are made of 16 queries and
// 16 keys at a time, one by each thread, and again in each kernel that wants them.
#include "cuda/kernels/attention_length.h"
#include "ops/kernels/scalar.h"

#define ROWS BEL_CUDA_ATTENTION_ROWS
#define LANES (BEL_CUDA_ATTENTION_THREADS / ROWS)
#define KEYS BEL_CUDA_ATTENTION_MOST_KEYS
#define MINE (BEL_CUDA_ATTENTION_MOST_WIDTH / LANES) // columns of a thread
#define WIDTH 64                                     // columns that are staged at a time

// The product of row `thread / LANES` of a [a_rows, width] and row `thread % LANES` of b [b_rows,
// width]. All threads of a block come here together.
typedef float staged[ROWS][WIDTH + 1];

static inline float product_of(const float *a, int64_t a_rows, const float *b, int64_t b_rows,
                               int64_t width, float (*stage_a)[WIDTH + 1],
                               float (*stage_b)[WIDTH + 1])
{
    int32_t thread = (int32_t)threadIdx.x, row = thread / LANES, column = thread % LANES;
    float sum = 0.0f;
    for (int64_t first = 0; first < width; first += WIDTH) {
        int32_t count = width - first < WIDTH ? (int32_t)(width - first) : WIDTH;
        for (int32_t i = thread; i < ROWS * WIDTH; i += BEL_CUDA_ATTENTION_THREADS) {
            int32_t r = i / WIDTH, c = i % WIDTH;
            bool there = c < count;
            stage_a[r][c] = there && r < a_rows ? a[r * width + first + c] : 0.0f;
            stage_b[r][c] = there && r < b_rows ? b[r * width + first + c] : 0.0f;
        }
        __syncthreads();
        for (int32_t i = 0; i < count; i++)
            sum = fmaf(stage_a[row][i], stage_b[column][i], sum);
        __syncthreads();
    }
    return sum;
}

// Adds what the lanes of a row have, pairwise. All threads of a block come here together.
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

// The largest of `count` > 0 scores of a row, in the order of the CPU's kernel, which says what
// comes of zeros and of what is no number. All threads of a block come here together.
static inline float most_of(float (*lanes)[LANES], const float *scores, int64_t count)
{
    int32_t row = (int32_t)threadIdx.x / LANES, lane = (int32_t)threadIdx.x % LANES;
    float most = count > 0 ? scores[0] : 0.0f;
    for (int64_t k = lane; k < count; k += LANES)
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

// Keys that all queries beside `query` take, seen or not.
static inline int64_t taken_of(const bel_cuda_attention *p, int64_t length, int64_t query)
{
    int64_t last = query / p->queries * p->queries + p->queries - 1;
    return seen_of(p, length, smaller(last, p->t - 1));
}

// --- Forward -------------------------------------------------------------------------------------

// What a query's threads know of it.
typedef struct state {
    float most, total, factor; // factor: of what was summed before
    float sums[MINE];          // columns lane, lane + LANES …
} state;

// Scores of a block of keys, of which the query sees `seen`, become powers.
static inline void weigh(const bel_cuda_attention *p, float *scores, int64_t seen, int64_t taken,
                         float (*lanes)[LANES], state *s)
{
    int32_t lane = (int32_t)threadIdx.x % LANES;
    float scale = (float)p->scale, now = most_of(lanes, scores, seen) * scale;
    if (!(now > s->most)) now = s->most;
    float shift = now == -INFINITY ? 0.0f : now, mine = 0.0f;
    for (int64_t k = lane; k < taken; k += LANES) {
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
    __shared__ staged stage_a, stage_b;
    __shared__ float scores[ROWS][KEYS + 1], lanes[ROWS][LANES];
    int32_t thread = (int32_t)threadIdx.x, row = thread / LANES, lane = thread % LANES;
    int64_t tiles = (p.t + ROWS - 1) / ROWS, matrix = blockIdx.x / tiles;
    int64_t first = blockIdx.x % tiles * ROWS, rows = smaller(ROWS, p.t - first);
    int64_t length = length_of(&at, &p, matrix, thread == 0);
    int64_t mine = seen_of(&p, length, first + row), taken = taken_of(&p, length, first);
    const float *q = (const float *)at.in[0] + (matrix * p.t + first) * p.d;
    const float *k = (const float *)at.in[1] + matrix * p.s * p.d;
    const float *v = (const float *)at.in[2] + matrix * p.s * p.e;
    state s;
    s.most = -INFINITY;
    s.total = s.factor = 0.0f;
    for (int32_t j = 0; j < MINE; j++)
        s.sums[j] = 0.0f;
    for (int64_t key = 0; key < taken; key += p.keys) {
        int64_t count = smaller(p.keys, taken - key), seen = smaller(count, mine - key);
        for (int64_t i = 0; i < count; i += LANES)
            scores[row][i + lane] =
                product_of(q, rows, k + (key + i) * p.d, count - i, p.d, stage_a, stage_b);
        __syncthreads();
        weigh(&p, scores[row], seen, count, lanes, &s);
        for (int32_t j = 0; j < MINE && key > 0 && s.factor != 1; j++)
            s.sums[j] *= s.factor;
        for (int64_t i = 0; i < count; i++) {
            float weight = scores[row][i];
            const float *value = v + (key + i) * p.e;
            for (int32_t j = 0; j < MINE && j * LANES < p.e; j++)
                if (lane + j * LANES < p.e)
                    s.sums[j] = fmaf(weight, value[lane + j * LANES], s.sums[j]);
        }
        __syncthreads();
    }
    if (row >= rows) return;
    int64_t query = matrix * p.t + first + row;
    float *y = (float *)at.out[0] + query * p.e, factor = length > 0 ? 1 / s.total : 0.0f;
    for (int32_t j = 0; j < MINE; j++)
        if (lane + j * LANES < p.e) y[lane + j * LANES] = length > 0 ? s.sums[j] * factor : 0.0f;
    if (lane == 0) ((float *)at.out[1])[query] = length > 0 ? log_one(s.total) + s.most : 0.0f;
}

// --- Gradient: inputs dy, q, k, v, y, logarithms, lengths; outputs dq, dk, dv --------------------

// dy · y of each query, at the workspace's begin.
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

// The weight of a key with a query, and its score's gradient.
typedef struct weights {
    float weight, slope;
} weights;

// That of query `first_query + thread / LANES` and key `first_key + thread % LANES`, with 0 for
// what is not seen. All threads of a block come here together.
static inline weights weights_of(const bel_cuda_operands *at, const bel_cuda_attention *p,
                                 int64_t matrix, int64_t length, int64_t first_query,
                                 int64_t first_key, float (*stage_a)[WIDTH + 1],
                                 float (*stage_b)[WIDTH + 1])
{
    int32_t row = (int32_t)threadIdx.x / LANES, lane = (int32_t)threadIdx.x % LANES;
    int64_t query = matrix * p->t + first_query, key = matrix * p->s + first_key;
    int64_t rows = p->t - first_query, keys = p->s - first_key;
    weights made;
    made.weight = product_of((const float *)at->in[1] + query * p->d, rows,
                             (const float *)at->in[2] + key * p->d, keys, p->d, stage_a, stage_b);
    made.slope = product_of((const float *)at->in[0] + query * p->e, rows,
                            (const float *)at->in[3] + key * p->e, keys, p->e, stage_a, stage_b);
    bool sees = row < rows && first_key + lane < seen_of(p, length, first_query + row);
    if (sees) {
        float scale = (float)p->scale, inner = ((const float *)at->work)[query + row];
        made.weight = exp_one(made.weight * scale - ((const float *)at->in[5])[query + row]);
        made.slope = made.weight * (made.slope - inner) * scale;
    } else {
        made.weight = made.slope = 0.0f;
    }
    return made;
}

// A block has 16 keys of a matrix and goes through the queries.
KERNEL(attention_grad_keys, bel_cuda_attention)
{
    __shared__ staged stage_a, stage_b;
    __shared__ weights of[ROWS][LANES]; // [query, key]
    int32_t thread = (int32_t)threadIdx.x, row = thread / LANES, lane = thread % LANES;
    int64_t tiles = (p.s + ROWS - 1) / ROWS, matrix = blockIdx.x / tiles;
    int64_t first = blockIdx.x % tiles * ROWS;
    int64_t length = length_of(&at, &p, matrix, thread == 0);
    float dk[MINE], dv[MINE];
    for (int32_t j = 0; j < MINE; j++)
        dk[j] = dv[j] = 0.0f;
    // Of a causal matrix, queries that go by together before the first key take none of these.
    int64_t query = p.causal ? first / p.queries * p.queries : 0;
    for (; first < length && query < p.t; query += ROWS) {
        int64_t taken = taken_of(&p, length, query), rows = smaller(ROWS, p.t - query);
        of[row][lane] = weights_of(&at, &p, matrix, length, query, first, stage_a, stage_b);
        __syncthreads();
        const float *q = (const float *)at.in[1] + (matrix * p.t + query) * p.d;
        const float *dy = (const float *)at.in[0] + (matrix * p.t + query) * p.e;
        for (int64_t i = 0; i < rows && first + row < taken; i++) {
            const weights w = of[i][row];
            for (int32_t j = 0; j < MINE && j * LANES < p.e; j++)
                if (lane + j * LANES < p.e)
                    dv[j] = fmaf(w.weight, dy[i * p.e + lane + j * LANES], dv[j]);
            for (int32_t j = 0; j < MINE && j * LANES < p.d; j++)
                if (lane + j * LANES < p.d)
                    dk[j] = fmaf(w.slope, q[i * p.d + lane + j * LANES], dk[j]);
        }
        __syncthreads();
    }
    if (first + row >= p.s) return;
    int64_t key = matrix * p.s + first + row;
    for (int32_t j = 0; j < MINE; j++) {
        int32_t c = lane + j * LANES;
        if (c < p.d) ((float *)at.out[1])[key * p.d + c] = dk[j];
        if (c < p.e) ((float *)at.out[2])[key * p.e + c] = dv[j];
    }
}

// Behind the queries' dy · y: [part, matrix, query, column].
static inline float *parts_of(const bel_cuda_operands *at, const bel_cuda_attention *p)
{
    return (float *)at->work + p->matrices * p->t;
}

// A block has 16 queries of a matrix and goes through a part of the keys.
KERNEL(attention_grad_queries, bel_cuda_attention)
{
    __shared__ staged stage_a, stage_b;
    __shared__ float slopes[ROWS][LANES];
    int32_t thread = (int32_t)threadIdx.x, row = thread / LANES, lane = thread % LANES;
    int64_t tiles = (p.t + ROWS - 1) / ROWS, first = blockIdx.x % tiles * ROWS;
    int64_t matrix = blockIdx.x / tiles % p.matrices, part = blockIdx.x / tiles / p.matrices;
    int64_t length = length_of(&at, &p, matrix, thread == 0);
    int64_t end = smaller((part + 1) * p.part_keys, taken_of(&p, length, first));
    float dq[MINE];
    for (int32_t j = 0; j < MINE; j++)
        dq[j] = 0.0f;
    for (int64_t key = part * p.part_keys; key < end; key += LANES) {
        slopes[row][lane] = weights_of(&at, &p, matrix, length, first, key, stage_a, stage_b).slope;
        __syncthreads();
        const float *k = (const float *)at.in[2] + (matrix * p.s + key) * p.d;
        for (int64_t i = 0; i < LANES && key + i < end; i++)
            for (int32_t j = 0; j < MINE && j * LANES < p.d; j++)
                if (lane + j * LANES < p.d)
                    dq[j] = fmaf(slopes[row][i], k[i * p.d + lane + j * LANES], dq[j]);
        __syncthreads();
    }
    if (first + row >= p.t) return;
    float *to =
        p.parts > 1 ? parts_of(&at, &p) + part * p.matrices * p.t * p.d : (float *)at.out[0];
    to += (matrix * p.t + first + row) * p.d;
    for (int32_t j = 0; j < MINE; j++)
        if (lane + j * LANES < p.d) to[lane + j * LANES] = dq[j];
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
