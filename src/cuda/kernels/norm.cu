// Normalisation by channel (ops/norm.c). The workspace has two sums in double of each channel, of u
// and of u · v, for each part of the batch: [part, sum, channel]; and behind them what happens to a
// channel's elements, [factor | second | offset, channel].
//
// A sum is one chain of additions, as on the CPU, and there are few of them: so a thread that adds
// is to wait for nothing. The other ones of its block bring what it needs next into shared memory.
#include "cuda/kernels/norm.h"
#include "cuda/kernels/plain_elements.h"
#include "ops/kernels/channel_norm.h"

#define CHANNELS BEL_CUDA_NORM_CHANNELS
#define PIXELS BEL_CUDA_NORM_PIXELS
#define ADDERS 32 // threads: a warp, so that it goes its own way

// --- Sums ----------------------------------------------------------------------------------------

typedef float stage[CHANNELS][PIXELS + 1];

// Brings up to PIXELS pixels from number `first` on of a part, which has `count`; by the threads
// from ADDERS on.
static inline void bring(const bel_cuda_norm *p, const float *x, const bel_cuda_image_steps *steps,
                         bool last, int64_t first_image, int64_t first_channel, int64_t first,
                         int64_t count, float (*to)[PIXELS + 1])
{
    int32_t thread = (int32_t)threadIdx.x - ADDERS;
    for (int32_t e = thread; e < CHANNELS * PIXELS; e += BEL_CUDA_NORM_THREADS - ADDERS) {
        int32_t c = last ? e % CHANNELS : e / PIXELS, k = last ? e / CHANNELS : e % PIXELS;
        if (first + k >= count || first_channel + c >= p->channels) continue;
        uint32_t at = (uint32_t)(first + k), pixels = (uint32_t)p->pixels;
        to[c][k] = x[(first_image + at / pixels) * steps->image + at % pixels * steps->column +
                     (first_channel + c) * steps->channel];
    }
}

// A block has one part of CHANNELS channels.
KERNEL(norm_parts, bel_cuda_norm)
{
    __shared__ stage u[2], v[2];
    const float *from_u = (const float *)at.in[0], *from_v = (const float *)at.in[p.v_input];
    int64_t groups = (p.channels + CHANNELS - 1) / CHANNELS;
    int64_t part = blockIdx.x / groups, first_channel = blockIdx.x % groups * CHANNELS;
    int64_t first_image = part * p.images_per_part, images = p.n - first_image;
    if (images > p.images_per_part) images = p.images_per_part;
    int64_t count = images * p.pixels;
    int32_t thread = (int32_t)threadIdx.x, c = thread % CHANNELS, which = thread / CHANNELS;
    bool has_v = p.v_input != 0, adds = thread < 2 * CHANNELS && first_channel + c < p.channels;
    if (which == 1 && p.what == BEL_CUDA_NORM_SUM) adds = false;
    double sum = 0;
    for (int64_t step = 0; step - PIXELS < count; step += PIXELS) { // one more than there are
        int32_t now = (int32_t)(step / PIXELS) & 1;
        if (thread >= ADDERS) {
            bring(&p, from_u, &p.u, p.u_last, first_image, first_channel, step, count, u[now]);
            if (has_v)
                bring(&p, from_v, &p.v, p.v_last, first_image, first_channel, step, count, v[now]);
        } else if (adds && step > 0) {
            const float *a = u[1 - now][c], *b = has_v ? v[1 - now][c] : a;
            int64_t left = count - (step - PIXELS);
            int32_t end = left < PIXELS ? (int32_t)left : PIXELS;
            if (which == 0) {
                for (int32_t k = 0; k < end; k++)
                    sum += (double)a[k];
            } else {
                for (int32_t k = 0; k < end; k++)
                    sum += (double)a[k] * (double)b[k];
            }
        }
        __syncthreads();
    }
    if (adds) ((double *)at.work)[(part * 2 + which) * p.channels + first_channel + c] = sum;
}

// The same in the plain kernel's order, which is one part: a thread for each channel.
KERNEL(norm_plain_sums, bel_cuda_norm)
{
    for (int64_t c = THREAD; c < p.channels; c += THREADS) {
        double sum = 0, products = 0;
        for (int64_t i = 0; i < p.n; i++) {
            for (int64_t k = 0; k < p.pixels; k++) {
                int64_t place = (i * p.channels + c) * p.pixels + k;
                double a = plain_get(at.in[0], p.is_f64, place);
                sum += a;
                if (p.what != BEL_CUDA_NORM_SUM)
                    products += a * plain_get(at.in[p.v_input], p.is_f64, place);
            }
        }
        ((double *)at.work)[c] = sum;
        if (p.what != BEL_CUDA_NORM_SUM) ((double *)at.work)[p.channels + c] = products;
    }
}

// --- Channels ------------------------------------------------------------------------------------

static inline double total(const bel_cuda_operands *at, const bel_cuda_norm *p, int which,
                           int64_t c)
{
    const double *sums = (const double *)at->work + which * p->channels + c;
    double sum = 0;
    for (int64_t part = 0; part < p->parts; part++)
        sum += sums[part * 2 * p->channels];
    return sum;
}

// Element c of row `row` of a matrix [rows, channels].
static inline double get(const bel_cuda_norm *p, const void *x, int64_t row, int64_t c)
{
    return plain_get(x, p->is_f64, row * p->channels + c);
}

static inline void set(const bel_cuda_norm *p, void *y, int64_t row, int64_t c, double value)
{
    plain_set(y, p->is_f64, row * p->channels + c, value);
}

static inline double count_of(const bel_cuda_norm *p)
{
    return (double)(p->n * p->pixels);
}

static inline void set_moments(const bel_cuda_operands *at, const bel_cuda_norm *p, int64_t c,
                               double sum, double squares)
{
    double count = count_of(p), mean = count > 0 ? sum / count : 0;
    set(p, at->out[0], 0, c, count);
    set(p, at->out[0], 1, c, p->by_sums ? sum : mean);
    set(p, at->out[0], 2, c, p->by_sums ? squares : bel_larger_of(squares - mean * sum, 0));
}

static inline void set_gradient_sums(const bel_cuda_operands *at, const bel_cuda_norm *p, int64_t c,
                                     double sum, double products)
{
    double mean = get(p, at->in[2], 1, c), inverse = get(p, at->in[2], 2, c);
    double scaled = bel_channel_scaled(sum, products, mean, inverse);
    set(p, at->out[0], 0, c, sum);
    set(p, at->out[0], 1, c, scaled);
    set(p, at->out[1], 0, c, scaled);
    set(p, at->out[2], 0, c, sum);
}

static inline bel_channel_map forward(const bel_cuda_operands *at, const bel_cuda_norm *p,
                                      int64_t c, double sum, double squares)
{
    double mean = get(p, at->in[3], 0, c), variance = get(p, at->in[4], 0, c);
    double new_mean = mean, new_variance = variance, count = count_of(p);
    if (p->training && count > 0) {
        bel_channel_statistics(sum, squares, count, &mean, &variance);
        new_mean = bel_channel_moved(new_mean, mean, p->momentum);
        new_variance = bel_channel_moved(new_variance, variance, p->momentum);
    }
    double inverse = bel_channel_inverse(variance, p->epsilon);
    set(p, at->out[1], 0, c, new_mean);
    set(p, at->out[2], 0, c, new_variance);
    set(p, at->out[3], 0, c, mean);
    set(p, at->out[4], 0, c, inverse);
    return bel_channel_forward(get(p, at->in[1], 0, c), get(p, at->in[2], 0, c), mean, inverse);
}

static inline bel_channel_map backward(const bel_cuda_operands *at, const bel_cuda_norm *p,
                                       int64_t c, double sum, double products)
{
    double mean = get(p, at->in[3], 0, c), inverse = get(p, at->in[4], 0, c);
    double scaled = bel_channel_scaled(sum, products, mean, inverse);
    set(p, at->out[1], 0, c, scaled);
    set(p, at->out[2], 0, c, sum);
    return bel_channel_backward(get(p, at->in[2], 0, c), mean, inverse, sum, scaled,
                                p->training ? count_of(p) : 0);
}

static inline bel_channel_map whole(const bel_cuda_operands *at, const bel_cuda_norm *p, int64_t c)
{
    double count = get(p, at->in[3], 0, c), mean = 0, variance = 0;
    if (count > 0)
        bel_channel_whole(p->by_sums, count, get(p, at->in[3], 1, c), get(p, at->in[3], 2, c),
                          &mean, &variance);
    double inverse = bel_channel_inverse(variance, p->epsilon);
    set(p, at->out[1], 0, c, count);
    set(p, at->out[1], 1, c, mean);
    set(p, at->out[1], 2, c, inverse);
    return bel_channel_forward(get(p, at->in[1], 0, c), get(p, at->in[2], 0, c), mean, inverse);
}

static inline bel_channel_map whole_backward(const bel_cuda_operands *at, const bel_cuda_norm *p,
                                             int64_t c)
{
    return bel_channel_backward(get(p, at->in[3], 0, c), get(p, at->in[2], 1, c),
                                get(p, at->in[2], 2, c), get(p, at->in[4], 0, c),
                                get(p, at->in[4], 1, c), get(p, at->in[2], 0, c));
}

// Behind the parts' sums.
static inline double *maps_of(const bel_cuda_operands *at, const bel_cuda_norm *p)
{
    return (double *)at->work + p->parts * 2 * p->channels;
}

// What the sums of a channel become: vectors, and the map of its elements.
KERNEL(norm_channels, bel_cuda_norm)
{
    for (int64_t c = THREAD; c < p.channels; c += THREADS) {
        double sum = total(&at, &p, 0, c);
        double products = p.what == BEL_CUDA_NORM_SUM ? 0 : total(&at, &p, 1, c);
        if (p.what == BEL_CUDA_NORM_SUM) {
            set(&p, at.out[0], 0, c, sum);
        } else if (p.what == BEL_CUDA_NORM_MOMENTS) {
            set_moments(&at, &p, c, sum, products);
        } else if (p.what == BEL_CUDA_NORM_WHOLE_SUMS) {
            set_gradient_sums(&at, &p, c, sum, products);
        } else {
            const bel_channel_map map =
                p.what == BEL_CUDA_NORM_FORWARD    ? forward(&at, &p, c, sum, products)
                : p.what == BEL_CUDA_NORM_BACKWARD ? backward(&at, &p, c, sum, products)
                : p.what == BEL_CUDA_NORM_WHOLE    ? whole(&at, &p, c)
                                                   : whole_backward(&at, &p, c);
            double *maps = maps_of(&at, &p);
            maps[c] = map.factor;
            maps[p.channels + c] = map.second;
            maps[2 * p.channels + c] = map.offset;
        }
    }
}

// --- Elements ------------------------------------------------------------------------------------

// Element number i of y, as they lie.
typedef struct element {
    int64_t image, channel, pixel;
} element;

// Indices of 32 bits are divided in a third of the time.
static inline element element_of(const bel_cuda_norm *p, int64_t i, int64_t count)
{
    element e;
    int64_t inner = p->y_last ? p->channels : p->pixels, outer = p->channels * p->pixels / inner;
    if (count <= INT32_MAX) {
        uint32_t rest = (uint32_t)i / (uint32_t)inner, first = (uint32_t)i % (uint32_t)inner;
        e.image = rest / (uint32_t)outer;
        e.channel = p->y_last ? first : rest % (uint32_t)outer;
        e.pixel = p->y_last ? rest % (uint32_t)outer : first;
    } else {
        e.image = i / inner / outer;
        e.channel = p->y_last ? i % inner : i / inner % outer;
        e.pixel = p->y_last ? i / inner % outer : i % inner;
    }
    return e;
}

static inline int64_t place_of(const bel_cuda_image_steps *steps, const element *e)
{
    return e->image * steps->image + e->channel * steps->channel + e->pixel * steps->column;
}

KERNEL(norm_apply, bel_cuda_norm)
{
    const float *u = (const float *)at.in[0], *v = (const float *)at.in[p.v_input];
    const double *maps = maps_of(&at, &p);
    int64_t count = p.n * p.channels * p.pixels;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = element_of(&p, i, count);
        float factor = (float)maps[e.channel], second = (float)maps[p.channels + e.channel];
        float offset = (float)maps[2 * p.channels + e.channel];
        ((float *)at.out[0])[place_of(&p.y, &e)] =
            factor * u[place_of(&p.u, &e)] + second * v[place_of(&p.v, &e)] + offset;
    }
}

KERNEL(norm_plain_apply, bel_cuda_norm)
{
    const double *maps = maps_of(&at, &p);
    int64_t count = p.n * p.channels * p.pixels;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        int64_t c = i / p.pixels % p.channels;
        double y = maps[c] * plain_get(at.in[0], p.is_f64, i) + maps[2 * p.channels + c] +
                   maps[p.channels + c] * plain_get(at.in[p.v_input], p.is_f64, i);
        plain_set(at.out[0], p.is_f64, i, y);
    }
}

// MomentsMove: inputs mean, variance, moments.
KERNEL(norm_move, bel_cuda_norm)
{
    for (int64_t c = THREAD; c < p.channels; c += THREADS) {
        double old_mean = get(&p, at.in[0], 0, c), mean = old_mean;
        double old_variance = get(&p, at.in[1], 0, c), variance = old_variance;
        double count = get(&p, at.in[2], 0, c);
        if (count > 0)
            bel_channel_whole(p.by_sums, count, get(&p, at.in[2], 1, c), get(&p, at.in[2], 2, c),
                              &mean, &variance);
        set(&p, at.out[0], 0, c, bel_channel_moved(old_mean, mean, p.momentum));
        set(&p, at.out[1], 0, c, bel_channel_moved(old_variance, variance, p.momentum));
    }
}
