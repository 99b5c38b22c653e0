// ArgMax, ArgMin, TopK, CumSum: a lane for each thread or, for ArgMax and TopK of long rows, for
// each block.
#include "cuda/kernels/numbers.h"
#include "cuda/kernels/order.h"

// The first element of a lane in a tensor with `count` elements along the axis.
static inline int64_t lane_start(const bel_cuda_lanes *p, int64_t lane, int64_t count)
{
    return lane / p->inner * count * p->inner + lane % p->inner;
}

// --- ArgMax, ArgMin ------------------------------------------------------------------------------

typedef struct best_so_far {
    double value;
    int64_t index;
} best_so_far;

// Compared in a lane's order: of equal elements the first stays, or the last replaces it. A NaN is
// never better, and no element is better than a NaN.
static inline best_so_far better_of(const bel_cuda_lanes *p, best_so_far a, best_so_far b)
{
    bool better = p->smallest ? b.value < a.value : b.value > a.value;
    bool later = p->last_of_equals ? b.index > a.index : b.index < a.index;
    return better || (b.value == a.value && later) ? b : a;
}

// The best of every step-th element from `first` on.
static inline best_so_far best_of(const bel_cuda_lanes *p, const void *x, int64_t start,
                                  int64_t first, int64_t step)
{
    best_so_far best = {p->count > 0 ? number_get(x, start, p->type) : 0, 0};
    for (int64_t j = first; j < p->count; j += step) {
        best_so_far next = {number_get(x, start + j * p->inner, p->type), j};
        best = better_of(p, best, next);
    }
    return best;
}

KERNEL(arg, bel_cuda_lanes)
{
    int64_t *y = (int64_t *)at.out[0];
    for (int64_t lane = THREAD; lane < p.lanes; lane += THREADS)
        y[lane] = best_of(&p, at.in[0], lane_start(&p, lane, p.count), 0, 1).index;
}

KERNEL(arg_rows, bel_cuda_lanes)
{
    enum { THREADS_HERE = 256 };
    __shared__ best_so_far bests[THREADS_HERE];
    int64_t *y = (int64_t *)at.out[0];
    int me = (int)threadIdx.x;
    for (int64_t lane = blockIdx.x; lane < p.lanes; lane += gridDim.x) {
        bests[me] = best_of(&p, at.in[0], lane_start(&p, lane, p.count), me, THREADS_HERE);
        __syncthreads();
        for (int half = THREADS_HERE / 2; half > 0; half /= 2) {
            if (me < half) bests[me] = better_of(&p, bests[me], bests[me + half]);
            __syncthreads();
        }
        if (me == 0) y[lane] = bests[0].index;
        __syncthreads();
    }
}

// --- TopK ----------------------------------------------------------------------------------------

static inline bool comes_before(const bel_cuda_lanes *p, double v, double w)
{
    return p->smallest ? v < w : v > w;
}

// Inserts element j into the best so far, which are sorted, from `to` on. Equal elements keep their
// order.
static inline void insert(const bel_cuda_operands *at, const bel_cuda_lanes *p, int64_t to,
                          int64_t j, double v)
{
    void *y = at->out[0];
    int64_t *indices = (int64_t *)at->out[1];
    int64_t place = j < p->k ? j : p->k; // after those that are kept
    for (; place > 0; place--) {
        int64_t above = to + (place - 1) * p->inner;
        double w = number_get(y, above, p->type);
        if (!comes_before(p, v, w)) break;
        if (place == p->k) continue; // dropped
        number_set(y, above + p->inner, p->type, w);
        indices[above + p->inner] = indices[above];
    }
    if (place == p->k) return;
    number_set(y, to + place * p->inner, p->type, v);
    indices[to + place * p->inner] = j;
}

KERNEL(top_k, bel_cuda_lanes)
{
    for (int64_t lane = THREAD; lane < p.lanes; lane += THREADS) {
        int64_t from = lane_start(&p, lane, p.count), to = lane_start(&p, lane, p.k);
        for (int64_t j = 0; j < p.count; j++)
            insert(&at, &p, to, j, number_get(at.in[0], from + j * p.inner, p.type));
    }
}

// A block compares as many elements at a time as it has threads. Its first thread inserts those
// that come before the last kept one. No other element ever enters, even with a NaN in the last
// place.
KERNEL(top_k_rows, bel_cuda_lanes)
{
    enum { THREADS_HERE = 256, GROUP = 16 };
    __shared__ double values[THREADS_HERE];
    __shared__ uint8_t enters[THREADS_HERE], any[THREADS_HERE / GROUP];
    int me = (int)threadIdx.x;
    for (int64_t lane = blockIdx.x; lane < p.lanes; lane += gridDim.x) {
        int64_t to = lane * p.k;
        for (int64_t first = 0; first < p.count; first += THREADS_HERE) {
            int64_t j = first + me;
            double v = j < p.count ? number_get(at.in[0], lane * p.count + j, p.type) : 0;
            bool enter = j < p.count;
            if (enter && first >= p.k) // all places are used
                enter = comes_before(&p, v, number_get(at.out[0], to + p.k - 1, p.type));
            values[me] = v;
            enters[me] = enter;
            __syncthreads();
            if (me < THREADS_HERE / GROUP) {
                any[me] = 0;
                for (int i = 0; i < GROUP; i++)
                    any[me] |= enters[me * GROUP + i];
            }
            __syncthreads();
            for (int g = 0; me == 0 && g < THREADS_HERE / GROUP; g++)
                for (int i = g * GROUP; any[g] != 0 && i < (g + 1) * GROUP; i++)
                    if (enters[i] != 0) insert(&at, &p, to, first + i, values[i]);
            __syncthreads();
        }
    }
}

// --- CumSum --------------------------------------------------------------------------------------

KERNEL(cum_sum, bel_cuda_lanes)
{
    bool whole = number_is_whole(p.type);
    for (int64_t lane = THREAD; lane < p.lanes; lane += THREADS) {
        double sum = 0;
        uint64_t whole_sum = 0;
        for (int64_t j = 0; j < p.count; j++) {
            int64_t step = p.reverse ? p.count - 1 - j : j;
            int64_t i = lane_start(&p, lane, p.count) + step * p.inner;
            if (whole) {
                uint64_t before = whole_sum;
                whole_sum += (uint64_t)whole_get(at.in[0], i, p.type);
                whole_set(at.out[0], i, p.type, (int64_t)(p.exclusive ? before : whole_sum));
            } else {
                double before = sum;
                sum += number_get(at.in[0], i, p.type);
                number_set(at.out[0], i, p.type, p.exclusive ? before : sum);
            }
        }
    }
}
