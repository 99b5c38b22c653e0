// Attention by a library (cuda/library_attention.c): the weights of scores, and the gradients of
// scores, between its products. 16 rows in a block (lanes.h). Unseen keys have weight 0. Results
// may overwrite the values they are made from: after the first barrier only one thread reads each
// element. (Before it, all threads of a row read the first score.)
#include "cuda/kernels/attention_scores.h"
#include "cuda/kernels/attention_length.h"
#include "cuda/kernels/bfloat.h"
#include "cuda/kernels/lanes.h"
#include "ops/kernels/scalar.h"

// A query of the part.
typedef struct row_place {
    int64_t index; // among all queries of the call
    int64_t first; // its first score
    int64_t keys, seen;
} row_place;

static inline row_place place_of(const bel_cuda_operands *at, const bel_cuda_attention_scores *p)
{
    row_place place = {0, 0, 0, 0}; // a block's last rows may be absent
    int64_t row = (int64_t)blockIdx.x * BEL_CUDA_ROWS + ROW;
    if (row >= p->matrices * p->queries) return place;
    int64_t matrix = p->first_matrix + row / p->queries, query = p->first_query + row % p->queries;
    int64_t length = length_of(at, &p->shape, matrix, query == 0 && LANE == 0);
    place.index = matrix * p->shape.t + query;
    place.first = row * p->shape.s;
    place.keys = p->shape.s;
    place.seen = seen_of(&p->shape, length, query);
    return place;
}

static inline float *floats_at(const bel_cuda_operands *at, int64_t offset)
{
    return (float *)((char *)at->work + offset);
}

// Weights of scores, and the logarithm of each row's sum of powers (output 1).
KERNEL(attention_weights, bel_cuda_attention_scores)
{
    __shared__ lanes_of_rows shared;
    const row_place place = place_of(&at, &p);
    const float *scores = floats_at(&at, p.scores) + place.first;
    void *weights = (char *)at.work + p.weights;
    float most = largest_of(shared, scores, place.seen), sum = 0.0f;
    for (int64_t i = LANE; i < place.seen; i += BEL_CUDA_LANES)
        sum += exp_one(scores[i] - most);
    sum = add_lanes(shared, sum);
    float factor = place.seen > 0 ? 1.0f / sum : 0.0f;
    for (int64_t i = LANE; i < place.keys; i += BEL_CUDA_LANES)
        element_set(weights, p.bf16, place.first + i,
                    i < place.seen ? exp_one(scores[i] - most) * factor : 0.0f);
    if (place.keys > 0 && LANE == 0)
        ((float *)at.out[1])[place.index] = place.seen > 0 ? log_one(sum) + most : 0.0f;
}

// Weights of scores again, and the scores' gradients from those of the weights. Input 5 has the
// logarithms. There is no barrier.
KERNEL(attention_slopes, bel_cuda_attention_scores)
{
    const row_place place = place_of(&at, &p);
    const float *scores = floats_at(&at, p.scores), *grads = floats_at(&at, p.weight_grads);
    void *weights = (char *)at.work + p.weights, *slopes = (char *)at.work + p.slopes;
    float scale = (float)p.shape.scale, total = 0.0f, inner = 0.0f;
    if (place.keys > 0) {
        total = ((const float *)at.in[5])[place.index];
        inner = floats_at(&at, p.inner)[place.index];
    }
    for (int64_t i = LANE; i < place.keys; i += BEL_CUDA_LANES) {
        int64_t k = place.first + i;
        float weight = i < place.seen ? exp_one(scores[k] - total) : 0.0f;
        float slope = i < place.seen ? weight * (grads[k] - inner) * scale : 0.0f;
        element_set(weights, p.bf16, k, weight);
        element_set(slopes, p.bf16, k, slope);
    }
}

static inline four_floats hide(four_floats values, bool seen)
{
    for (int j = 0; j < 4; j++)
        values.v[j] = seen ? values.v[j] : 0.0f;
    return values;
}

// Whether the row of element i is seen.
static inline bool is_seen(const bel_cuda_operands *at, const bel_cuda_attention_copy *p, int64_t i)
{
    if (!p->hides) return true;
    int64_t row = i / p->width, matrix = row / p->rows;
    return row % p->rows < length_of(at, &p->shape, matrix, i % (p->rows * p->width) == 0);
}

KERNEL(attention_copy, bel_cuda_attention_copy)
{
    const float *x = (const float *)at.in[p.operand];
    void *copy = (char *)at.work + p.offset;
    int64_t count = p.shape.matrices * p.rows * p.width;
    bool fours = p.width % 4 == 0 && four_fit(x, false);
    for (int64_t i = THREAD; fours && i < count / 4; i += THREADS)
        four_set(copy, p.bf16, i * 4, hide(four_get(x, false, i * 4), is_seen(&at, &p, i * 4)));
    for (int64_t i = THREAD; !fours && i < count; i += THREADS)
        element_set(copy, p.bf16, i, is_seen(&at, &p, i) ? x[i] : 0.0f);
}
