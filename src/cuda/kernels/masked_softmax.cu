// MaskedSoftmax, row by row: in f32 16 rows in a block (lanes.h), in double one for each thread.
// Each element of y is read again only by the thread that wrote it, so y may overwrite x.
#define PLAIN
#include "cuda/kernels/elements.h"
#include "cuda/kernels/lanes.h"
#include "cuda/kernels/masked_softmax.h"
#include "cuda/kernels/numbers.h"

// Number of elements that a row may see, from its first one; the mask may hide some of these.
static inline int64_t seen_by(const bel_cuda_operands *at, const bel_cuda_masked_softmax *p,
                              int64_t row)
{
    int64_t seen = p->columns, query = row % p->queries;
    if (p->causal && query + 1 < seen) seen = query + 1;
    if (p->lengths < 0) return seen;
    int64_t length = ((const int64_t *)at->in[p->lengths])[row / p->sequence_rows];
    if (length < 0 || length > p->columns) {
        report_bad(at, length, 0, p->columns + 1);
        length = 0;
    }
    return length < seen ? length : seen;
}

// Mask of a row; NULL: nothing is hidden.
static inline const uint8_t *mask_of(const bel_cuda_operands *at, const bel_cuda_masked_softmax *p,
                                     int64_t row)
{
    if (p->mask < 0) return NULL;
    return (const uint8_t *)at->in[p->mask] + walk_place(&p->masks, 0, row * p->columns);
}

static inline float shown(const float *x, const uint8_t *mask, int64_t step, int64_t i)
{
    return mask == NULL || mask[i * step] != 0 ? x[i] : -INFINITY; // its power is exactly 0
}

// A row without visible elements is zeros.
KERNEL(masked_softmax, bel_cuda_masked_softmax)
{
    __shared__ lanes_of_rows shared;
    int64_t row = (int64_t)blockIdx.x * BEL_CUDA_ROWS + ROW;
    bool there = row < p.rows;
    int64_t n = there ? p.columns : 0, first = there ? row * p.columns : 0;
    int64_t seen = there ? seen_by(&at, &p, row) : 0;
    const float *x = (const float *)at.in[0] + first;
    float *y = (float *)at.out[0] + first, left = 0.0f;
    const uint8_t *mask = there ? mask_of(&at, &p, row) : NULL;
    for (int64_t i = LANE; i < seen; i += BEL_CUDA_LANES)
        if (mask == NULL || mask[i * p.mask_step] != 0) left = 1.0f;
    if (add_lanes(shared, left) == 0.0f) seen = 0;
    float most = seen > 0 ? shown(x, mask, p.mask_step, 0) : 0.0f, sum = 0.0f;
    for (int64_t i = LANE; i < seen; i += BEL_CUDA_LANES)
        most = larger(shown(x, mask, p.mask_step, i), most);
    float shift = largest_lane(shared, most);
    for (int64_t i = LANE; i < seen; i += BEL_CUDA_LANES) {
        y[i] = exp_one(shown(x, mask, p.mask_step, i) - shift);
        sum += y[i];
    }
    float scale = 1.0f / add_lanes(shared, sum);
    for (int64_t i = LANE; i < n; i += BEL_CUDA_LANES)
        y[i] = i < seen ? y[i] * scale : 0.0f;
}

KERNEL(masked_softmax_plain, bel_cuda_masked_softmax)
{
    for (int64_t row = THREAD; row < p.rows; row += THREADS) {
        int64_t seen = seen_by(&at, &p, row), base = row * p.columns;
        const uint8_t *mask = mask_of(&at, &p, row);
        double most = -(double)INFINITY, total = 0;
        for (int64_t j = 0; j < seen; j++)
            if (mask == NULL || mask[j * p.mask_step] != 0)
                most = bel_larger_of(most, number_get(at.in[0], base + j, p.type));
        for (int64_t j = 0; j < p.columns; j++) {
            bool hidden = j >= seen || (mask != NULL && mask[j * p.mask_step] == 0);
            double power = 0;
            if (!hidden) power = bel_real_exp(number_get(at.in[0], base + j, p.type) - most);
            total += power;
            number_set(at.out[0], base + j, p.type, power);
        }
        for (int64_t j = 0; j < p.columns && total != 0; j++) {
            double power = number_get(at.out[0], base + j, p.type);
            number_set(at.out[0], base + j, p.type, power / total);
        }
    }
}
