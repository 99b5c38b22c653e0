// Updates of parameters: sums over replicas, clipping, the rule and the moving average in one pass,
// or in two if norms are needed. A block processes one piece, whose elements belong to one
// variable; a thread processes four elements at a time. Only one thread reads and writes each
// element, so new values replace the old ones.
// values take the place of the old ones.
//
// cuda/updater.c prepends two lines that define the number of replicas and the rules in use (bits
// by kind), so that a kernel has no others. Without them it has every rule, for three replicas.
#include "cuda/kernels/kernel.h"
#include "cuda/kernels/update.h"

#ifndef REPLICAS
#define REPLICAS 3
#define RULES (~0u)
#endif

enum { WIDE = 4, MOST_LEVELS = 7 }; // levels of the tree over at most 64 replicas

// Four neighboring numbers for one access.
typedef struct __attribute__((aligned(16))) four {
    float v[WIDE];
} four;

// Reads `width` numbers, four or one.
static inline four take(const float *from, int width)
{
    four some;
    if (width == WIDE) return *(const four *)from;
    some.v[0] = from[0];
    return some;
}

static inline void give(float *to, int width, four some)
{
    if (width == WIDE) {
        *(four *)to = some;
    } else {
        to[0] = some.v[0];
    }
}

// Operands of a piece's threads.
typedef struct view {
    const bel_cuda_update *p;
    const bel_cuda_update_step *step;
    const bel_cuda_piece *piece;
    const bel_rule_step *numbers; // its group's
    float *values, *averages, *directions;
    float factor; // for the second pass
} view;

static inline view view_of(const bel_cuda_operands *at, const bel_cuda_update *p, int64_t index)
{
    view x;
    x.p = p;
    x.step = (const bel_cuda_update_step *)at->in[1];
    x.piece = (const bel_cuda_piece *)at->in[0] + index;
    x.numbers = (const bel_rule_step *)at->in[2] + x.piece->group;
    x.values = (float *)at->out[0];
    x.averages = (float *)at->out[1];
    x.directions = (float *)at->out[2];
    x.factor = 1.0f;
    return x;
}

// The sum over replicas of `width` elements from `offset` of the space. It follows the tree over
// replica ids, with a stack of the sums of complete nodes, one for each level. A replica that does
// not count is -0, which changes no sum. `plain`: without the factors of uneven batches.
static inline four sum_of(const view *x, int64_t offset, int width, bool plain)
{
    four stack[MOST_LEVELS], sum;
    const float *joins = x->step->joins;
    int next = 0;
    for (int r = 0; r < REPLICAS; r++) {
        for (int j = 0; j < width; j++)
            sum.v[j] = -0.0f;
        if ((x->step->counts >> r & 1) != 0)
            sum = take(x->p->gradients[r] + (offset - x->p->begins[r]), width);
        int level = 0;
        for (; (r >> level & 1) != 0; level++, next += 2)
            for (int j = 0; j < width; j++)
                sum.v[j] = stack[level].v[j] * (plain ? 1.0f : joins[next]) +
                           sum.v[j] * (plain ? 1.0f : joins[next + 1]);
        stack[level] = sum;
    }
    // Incomplete nodes at the end of the ids remain, one for each bit of their number.
    bool begun = false;
    for (int level = 0; level < MOST_LEVELS; level++) {
        if ((REPLICAS >> level & 1) == 0) continue;
        if (!begun) sum = stack[level];
        for (int j = 0; begun && j < width; j++)
            sum.v[j] = stack[level].v[j] * (plain ? 1.0f : joins[next]) +
                       sum.v[j] * (plain ? 1.0f : joins[next + 1]);
        next += begun ? 2 : 0;
        begun = true;
    }
    return sum;
}

// Applies the rule of the piece's group to `width` elements, from a final gradient, and updates the
// moving average. Slots that no rule has are NULL; LAMB's were updated before.
static inline void apply(const view *x, int64_t offset, int width, four gradient)
{
    const bel_rule_step *s = x->numbers;
    const int64_t own = offset - x->p->first;
    float *const *slots = x->p->slots;
    four value = take(x->values + offset, width), kept[BEL_CUDA_UPDATE_SLOTS];
    for (int k = 0; k < BEL_CUDA_UPDATE_SLOTS; k++)
        if (slots[k] != NULL && s->kind != BEL_RULE_LAMB) kept[k] = take(slots[k] + own, width);
#define GIVEN s, gradient.v[j], x->factor, value.v[j]
#define A (&kept[0].v[j])
#define B (&kept[1].v[j])
#define C (&kept[2].v[j])
#define RULE_CASE(number, name, arguments)                                                         \
    case number:                                                                                   \
        for (int j = 0; (RULES >> number & 1) != 0 && j < width; j++)                              \
            value.v[j] = bel_rule_##name arguments;                                                \
        break;
#define VARIED_CASE(number, name, condition, other, arguments)                                     \
    case number: {                                                                                 \
        const bool first = condition, second = other;                                              \
        for (int j = 0; (RULES >> number & 1) != 0 && j < width; j++)                              \
            value.v[j] = bel_rule_##name arguments;                                                \
        (void)second;                                                                              \
        break;                                                                                     \
    }
    switch (s->kind) { BEL_EACH_RULE(RULE_CASE, VARIED_CASE) }
    give(x->values + offset, width, value);
    for (int k = 0; k < BEL_CUDA_UPDATE_SLOTS; k++)
        if (slots[k] != NULL && s->kind != BEL_RULE_LAMB) give(slots[k] + own, width, kept[k]);
    if (x->averages == NULL) return;
    four average = take(x->averages + own, width);
    for (int j = 0; j < width; j++)
        average.v[j] = bel_rule_averaged(average.v[j], value.v[j], x->step->average_rest);
    give(x->averages + own, width, average);
}

// Updates without a rule: kinds as in bel_update_kind.
static inline void assign(const view *x, int64_t offset, int width)
{
    enum { MEAN = 1, ADD = 2 };
    int kind = x->piece->kind, first = x->step->first;
    four value;
    if (kind == MEAN || kind == ADD) {
        four sum = sum_of(x, offset, width, kind == ADD);
        value = take(x->values + offset, width);
        for (int j = 0; j < width; j++)
            value.v[j] = kind == MEAN ? sum.v[j] * x->step->scale : value.v[j] + sum.v[j];
    } else {
        value = take(x->p->gradients[first] + (offset - x->p->begins[first]), width);
    }
    give(x->values + offset, width, value);
}

static inline four gradient_of(const view *x, int64_t offset, int width)
{
    four gradient = sum_of(x, offset, width, false);
    for (int j = 0; j < width; j++)
        gradient.v[j] =
            bel_rule_scaled(gradient.v[j], x->step->of_gradient, x->numbers->clip_value);
    return gradient;
}

static inline void update_some(const view *x, int64_t offset, int width)
{
    if (x->piece->kind != 0) {
        assign(x, offset, width);
    } else {
        apply(x, offset, width, gradient_of(x, offset, width));
    }
}

// First pass of two; directions go to memory for the second one, and to `shared` for norms.
static inline void direct_some(const view *x, int64_t offset, int width, float *shared)
{
    const bel_rule_step *s = x->numbers;
    const int64_t own = offset - x->p->first;
    if (x->piece->kind != 0) {
        assign(x, offset, width);
        return;
    }
    four direction = gradient_of(x, offset, width);
    if (s->kind == BEL_RULE_LAMB) {
        four value = take(x->values + offset, width);
        four m = take(x->p->slots[0] + own, width), v = take(x->p->slots[1] + own, width);
        for (int j = 0; j < width; j++)
            direction.v[j] =
                bel_rule_lamb_direction(s, direction.v[j], 1.0f, value.v[j], &m.v[j], &v.v[j]);
        give(x->p->slots[0] + own, width, m);
        give(x->p->slots[1] + own, width, v);
    }
    give(x->directions + own, width, direction);
    for (int j = 0; j < width; j++)
        shared[j] = direction.v[j];
}

static inline void follow_some(const view *x, int64_t offset, int width)
{
    if (x->piece->kind != 0) return; // done in the first pass
    apply(x, offset, width, take(x->directions + (offset - x->p->first), width));
}

// Loops over fours, then over the rest of the piece one by one. Pieces start at multiples of 16
// elements.
#define EACH_PART(count, body)                                                                     \
    for (int i = (int)threadIdx.x * WIDE; i + WIDE <= (count); i += (int)blockDim.x * WIDE) {      \
        const int width = WIDE;                                                                    \
        body;                                                                                      \
    }                                                                                              \
    for (int i = (count) / WIDE * WIDE + (int)threadIdx.x; i < (count); i += (int)blockDim.x) {    \
        const int width = 1;                                                                       \
        body;                                                                                      \
    }

KERNEL(update, bel_cuda_update)
{
    view x = view_of(&at, &p, blockIdx.x);
    EACH_PART(x.piece->count, update_some(&x, x.piece->offset + i, width))
}

KERNEL(follow, bel_cuda_update)
{
    view x = view_of(&at, &p, blockIdx.x);
    x.factor = ((const float *)at.in[3])[x.piece->variable];
    EACH_PART(x.piece->count, follow_some(&x, x.piece->offset + i, width))
}

// The sum of squares of a grain, as in bel_rule_sum_square: eight lanes, of which each adds every
// eighth element in order; then the lanes are added pairwise. Lanes are threads. All threads of the
// block must call this.
static inline void square(const float *numbers, int count, double *lanes, double *out)
{
    enum { LANES = 8 };
    __syncthreads();
    if (threadIdx.x < LANES) {
        double sum = 0;
        for (int i = (int)threadIdx.x; i < count; i += LANES)
            sum += (double)numbers[i] * (double)numbers[i];
        lanes[threadIdx.x] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int half = LANES / 2; half > 0; half /= 2)
            for (int l = 0; l < half; l++)
                lanes[l] += lanes[l + half];
        *out = lanes[0];
    }
}

KERNEL(direct, bel_cuda_update)
{
    __shared__ float numbers[BEL_CUDA_UPDATE_GRAIN];
    __shared__ double lanes[8];
    view x = view_of(&at, &p, blockIdx.x);
    double *squares = (double *)at.work + x.piece->grain;
    EACH_PART(x.piece->count, direct_some(&x, x.piece->offset + i, width, numbers + i))
    if (x.piece->kind != 0) return; // all threads of the block
    square(numbers, x.piece->count, lanes, squares);
    if (p.trusts == 0) return;
    __syncthreads();
    EACH_PART(x.piece->count,
              for (int j = 0; j < width; j++) numbers[i + j] = x.values[x.piece->offset + i + j])
    square(numbers, x.piece->count, lanes, squares + p.grain_count);
}

// The finisher of splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number
// generators"). The hash of an element includes its bits and its place; integer sums do not depend
// on order.
static inline uint64_t mixed(uint32_t bits, int64_t place)
{
    uint64_t x = ((uint64_t)bits << 32) ^ ((uint64_t)place * 0x9e3779b97f4a7c15ull);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

KERNEL(hash_values, bel_cuda_hash_values)
{
    __shared__ uint64_t sums[BEL_CUDA_HASH_THREADS];
    const uint32_t *values = (const uint32_t *)at.in[0];
    uint64_t sum = 0;
    for (int64_t i = THREAD; i < p.elements; i += THREADS)
        sum += mixed(values[i], i);
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = BEL_CUDA_HASH_THREADS / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) ((uint64_t *)at.out[0])[blockIdx.x] = sums[0];
}
