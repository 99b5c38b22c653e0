// Normalization by channel (ops/norm.c). The workspace has two sums in double for each channel, of
// u and of u · v, for each chain of each part of the batch: [part, chain, sum, channel]. After them
// it has the maps of the channels' elements, [factor | second | offset, channel], in f32 except for
// the plain kernels.
//
// A sum is one chain of additions, as on the CPU, and waits for memory. So a thread starts many
// loads at once and then adds their results; there are enough chains that others add in the
// meantime. (Loads in flight during the additions would not help. A GPU thread can wait for at most
// six groups of loads, and compilers make one group of all loads after a branch.)
#include "cuda/kernels/bfloat.h"
#include "cuda/kernels/norm.h"
#include "cuda/kernels/plain_elements.h"
#include "ops/kernels/channel_norm.h"

#define PARTS BEL_CUDA_NORM_PARTS
#define CHANNELS BEL_CUDA_NORM_CHANNELS
#define TILE BEL_CUDA_NORM_TILE
#define DEEP 32 // loads in flight of a thread

// --- Sums ----------------------------------------------------------------------------------------

// A chain's pixels, counted over the whole batch.
typedef struct span {
    int64_t first;
    int32_t count; // 0: the part has fewer chains than others
} span;

static inline span span_of(const bel_cuda_norm *p, int32_t chain)
{
    int32_t part = chain / (int32_t)p->chains_per_part;
    int64_t before = chain % (int32_t)p->chains_per_part * p->pixels_per_chain;
    int64_t first_image = part * p->images_per_part, images = p->n - first_image;
    if (images > p->images_per_part) images = p->images_per_part;
    int64_t left = images * p->pixels - before;
    if (left > p->pixels_per_chain) left = p->pixels_per_chain;
    span s;
    s.first = first_image * p->pixels + before;
    s.count = left > 0 ? (int32_t)left : 0;
    return s;
}

// Loaded elements in their storage form: bits of an f32 or a bf16. They are widened at their use,
// since widening would wait for the load.
typedef struct batch {
    uint32_t bits[DEEP];
} batch;

// Loads every `step`th element from `x` on, of which `left` exist; the rest is 0. Zeros change no
// sum: it starts with 0, so it is never -0. A full batch is loaded without tests.
static inline void take(batch *to, const void *x, int32_t bf16, uint32_t step, int32_t left)
{
    const uint16_t *words = (const uint16_t *)x;
    const bel_cuda_bits *floats = (const bel_cuda_bits *)x;
    if (left < DEEP) {
        for (int j = 0; j < DEEP; j++) {
            to->bits[j] = 0;
            if (j < left) to->bits[j] = bf16 ? words[j * step] : floats[j * step].whole;
        }
    } else if (bf16) {
        for (int j = 0; j < DEEP; j++)
            to->bits[j] = words[j * step];
    } else {
        for (int j = 0; j < DEEP; j++)
            to->bits[j] = floats[j * step].whole;
    }
}

static inline double widened(uint32_t bits, int32_t bf16)
{
    bel_cuda_bits b;
    b.whole = bf16 ? bits << 16 : bits;
    return (double)b.value;
}

typedef struct both_sums {
    double sum, products;
} both_sums;

static inline void add_batch(both_sums *sums, const batch *u, int32_t u_bf16, const batch *v,
                             int32_t v_bf16, bool has_v)
{
    for (int j = 0; j < DEEP; j++) {
        double a = widened(u->bits[j], u_bf16), b = has_v ? widened(v->bits[j], v_bf16) : a;
        sums->sum += a;
        sums->products += a * b;
    }
}

// Element `index` of an image.
static inline const void *element_at(const void *x, int32_t bf16, int64_t index)
{
    return (const char *)x + index * (bf16 ? 2 : 4);
}

// Sums of one channel over a chain, if the channels of a pixel are neighbors and pixels are
// consecutive over all images. `has_v` is known when this is compiled into its caller.
static inline both_sums sum_lane(const bel_cuda_norm *p, const void *u, const void *v, span s,
                                 int64_t c, bool has_v)
{
    both_sums sums = {0, 0};
    const uint32_t step = (uint32_t)p->channels;
    int64_t at = s.first * step + c;
    for (int32_t left = s.count; left > 0; left -= DEEP, at += DEEP * step) {
        batch a, b;
        take(&a, element_at(u, p->u_bf16, at), p->u_bf16, step, left);
        if (has_v) take(&b, element_at(v, p->v_bf16, at), p->v_bf16, step, left);
        add_batch(&sums, &a, p->u_bf16, &b, p->v_bf16, has_v);
    }
    return sums;
}

static inline void set_sums(const bel_cuda_operands *at, const bel_cuda_norm *p, int32_t chain,
                            int64_t c, both_sums sums)
{
    double *to = (double *)at->work + chain * 2 * p->channels + c;
    to[0] = sums.sum;
    if (p->what != BEL_CUDA_NORM_SUM) to[p->channels] = sums.products;
}

// A thread has a channel of a chain.
KERNEL(norm_lanes, bel_cuda_norm)
{
    const int32_t channels = (int32_t)p.channels, number = (int32_t)THREAD;
    const int32_t chain = number / channels, c = number % channels;
    if (chain >= (int32_t)(p.parts * p.chains_per_part)) return;
    span s = span_of(&p, chain);
    if (p.v_input != 0) {
        set_sums(&at, &p, chain, c, sum_lane(&p, at.in[0], at.in[p.v_input], s, c, true));
    } else {
        set_sums(&at, &p, chain, c, sum_lane(&p, at.in[0], at.in[0], s, c, false));
    }
}

// A row of a tile in one thread's registers.
typedef struct strip {
    uint32_t bits[TILE];
} strip;

// Loads TILE channels, from `first_channel` on, of TILE pixels, from `first` on, of which `left`
// exist. Neighboring threads load neighbors: thread t has channel t of every pixel if `last`,
// else pixel t of every channel. After the last channel or pixel they load that one again, so that
// no load needs a test.
static inline void take_strip(strip *to, const bel_cuda_norm *p, const void *x, int32_t bf16,
                              const bel_cuda_image_steps *steps, bool last, int64_t first,
                              int32_t left, int64_t first_channel)
{
    if (left <= 0) return;
    const int32_t thread = (int32_t)threadIdx.x;
    const int32_t channels = (int32_t)(p->channels - first_channel);
    const int32_t most = last ? left : channels, own_most = last ? channels : left;
    const int32_t own = thread < own_most ? thread : own_most - 1;
    int64_t at, step;
    if (last) { // pixels are consecutive over all images
        step = steps->column;
        at = first * step + first_channel + own;
    } else {
        const uint32_t pixels = (uint32_t)p->pixels;
        int64_t image = first / p->pixels;
        uint32_t pixel = (uint32_t)(first - image * p->pixels) + (uint32_t)own; // or a later one
        step = steps->channel;
        at = (image + pixel / pixels) * steps->image + pixel % pixels * steps->column +
             first_channel * step;
    }
    if (bf16) {
        const uint16_t *from = (const uint16_t *)x + at;
        for (int j = 0; j < TILE; j++)
            to->bits[j] = from[(j < most ? j : most - 1) * step];
    } else {
        const bel_cuda_bits *from = (const bel_cuda_bits *)x + at;
        for (int j = 0; j < TILE; j++)
            to->bits[j] = from[(j < most ? j : most - 1) * step].whole;
    }
}

// Rows are channels, with one element more than pixels, so that a column is in different banks.
typedef float tile[TILE][TILE + 1];

// Stores absent pixels as 0, which changes no sum.
static inline void put_strip(float (*to)[TILE + 1], const strip *from, int32_t bf16, bool last,
                             int32_t left)
{
    const int32_t thread = (int32_t)threadIdx.x;
    for (int j = 0; j < TILE; j++) {
        bel_cuda_bits b;
        b.whole = bf16 ? from->bits[j] << 16 : from->bits[j];
        if (last) {
            to[thread][j] = j < left ? b.value : 0;
        } else {
            to[j][thread] = thread < left ? b.value : 0;
        }
    }
}

// For any layout of u and v: a block of TILE threads has TILE channels of a chain, and transposes
// tiles so that each thread adds a channel's pixels.
KERNEL(norm_tiles, bel_cuda_norm)
{
    __shared__ tile tile_u, tile_v;
    strip u, v;
    int32_t groups = (int32_t)((p.channels + TILE - 1) / TILE);
    int32_t chain = (int32_t)blockIdx.x / groups;
    int64_t first_channel = (int64_t)((int32_t)blockIdx.x % groups) * TILE;
    const int32_t thread = (int32_t)threadIdx.x;
    const bool has_v = p.v_input != 0;
    const void *from_u = at.in[0], *from_v = at.in[p.v_input];
    span s = span_of(&p, chain);
    both_sums sums = {0, 0};
    take_strip(&u, &p, from_u, p.u_bf16, &p.u, p.u_last, s.first, s.count, first_channel);
    if (has_v)
        take_strip(&v, &p, from_v, p.v_bf16, &p.v, p.v_last, s.first, s.count, first_channel);
    for (int32_t left = s.count; left > 0; left -= TILE) {
        put_strip(tile_u, &u, p.u_bf16, p.u_last, left);
        if (has_v) put_strip(tile_v, &v, p.v_bf16, p.v_last, left);
        __syncthreads();
        s.first += TILE;
        take_strip(&u, &p, from_u, p.u_bf16, &p.u, p.u_last, s.first, left - TILE, first_channel);
        if (has_v)
            take_strip(&v, &p, from_v, p.v_bf16, &p.v, p.v_last, s.first, left - TILE,
                       first_channel);
        const float *a = tile_u[thread], *b = has_v ? tile_v[thread] : a;
        for (int j = 0; j < TILE; j++) {
            sums.sum += (double)a[j];
            sums.products += (double)a[j] * (double)b[j];
        }
        __syncthreads();
    }
    if (first_channel + thread < p.channels) set_sums(&at, &p, chain, first_channel + thread, sums);
}

// The same in the plain kernel's order, which has one part: a thread for each channel.
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

// Sum `which` of channel c over a part: its chains' sums, added in order.
static inline double total(const bel_cuda_operands *at, const bel_cuda_norm *p, int32_t part,
                           int32_t which, int64_t c)
{
    enum { AT_ONCE = 32 }; // loads
    const int32_t chains = (int32_t)p->chains_per_part;
    const int64_t step = 2 * p->channels;
    const double *from = (const double *)at->work + part * chains * step + which * p->channels + c;
    double sum = 0;
    for (int32_t left = chains; left > 0; left -= AT_ONCE, from += AT_ONCE * step) {
        double some[AT_ONCE];
        if (left < AT_ONCE) {
            for (int j = 0; j < AT_ONCE; j++) {
                some[j] = 0; // changes nothing: sums are never -0
                if (j < left) some[j] = from[j * step];
            }
        } else {
            for (int j = 0; j < AT_ONCE; j++)
                some[j] = from[j * step];
        }
        for (int j = 0; j < AT_ONCE; j++)
            sum += some[j];
    }
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

// The maps, after the chains' sums.
static inline double *maps_of(const bel_cuda_operands *at, const bel_cuda_norm *p)
{
    return (double *)at->work + p->parts * p->chains_per_part * 2 * p->channels;
}

static inline void set_map(const bel_cuda_operands *at, const bel_cuda_norm *p, int64_t c,
                           bel_channel_map map)
{
    double *maps = maps_of(at, p);
    float *rounded = (float *)maps;
    if (p->plain) {
        maps[c] = map.factor;
        maps[p->channels + c] = map.second;
        maps[2 * p->channels + c] = map.offset;
    } else {
        rounded[c] = (float)map.factor;
        rounded[p->channels + c] = (float)map.second;
        rounded[2 * p->channels + c] = (float)map.offset;
    }
}

static inline void set_channel(const bel_cuda_operands *at, const bel_cuda_norm *p, int64_t c,
                               double sum, double products)
{
    switch (p->what) {
    case BEL_CUDA_NORM_SUM: set(p, at->out[0], 0, c, sum); break;
    case BEL_CUDA_NORM_MOMENTS: set_moments(at, p, c, sum, products); break;
    case BEL_CUDA_NORM_WHOLE_SUMS: set_gradient_sums(at, p, c, sum, products); break;
    case BEL_CUDA_NORM_FORWARD: set_map(at, p, c, forward(at, p, c, sum, products)); break;
    case BEL_CUDA_NORM_BACKWARD: set_map(at, p, c, backward(at, p, c, sum, products)); break;
    case BEL_CUDA_NORM_WHOLE: set_map(at, p, c, whole(at, p, c)); break;
    default: set_map(at, p, c, whole_backward(at, p, c)); break;
    }
}

// Turns the sums of a channel into vectors and the map of its elements. A block has CHANNELS
// channels. Thread [which, part, channel] adds a part's sums, and then one thread of each channel
// adds the parts.
KERNEL(norm_channels, bel_cuda_norm)
{
    __shared__ double sums[2 * PARTS][CHANNELS];
    const int32_t own = (int32_t)threadIdx.x % CHANNELS, row = (int32_t)threadIdx.x / CHANNELS;
    const int32_t which = row / PARTS, part = row % PARTS;
    const int64_t c = (int64_t)blockIdx.x * CHANNELS + own;
    bool adds = part < p.parts && c < p.channels && (which == 0 || p.what != BEL_CUDA_NORM_SUM);
    sums[row][own] = adds ? total(&at, &p, part, which, c) : 0;
    __syncthreads();
    if (row > 0 || c >= p.channels) return;
    double sum = 0, products = 0;
    for (int k = 0; k < PARTS; k++) { // absent parts have 0, which changes nothing
        sum += sums[k][own];
        products += sums[PARTS + k][own];
    }
    set_channel(&at, &p, c, sum, products);
}

// --- Elements ------------------------------------------------------------------------------------

// Element i of y, in memory order.
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

static inline const float *float_maps_of(const bel_cuda_operands *at, const bel_cuda_norm *p)
{
    return (const float *)maps_of(at, p);
}

// For any layout of the images.
KERNEL(norm_apply, bel_cuda_norm)
{
    const float *maps = float_maps_of(&at, &p);
    int64_t count = p.n * p.channels * p.pixels;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const element e = element_of(&p, i, count);
        float u = element_get(at.in[0], p.u_bf16, place_of(&p.u, &e));
        float v = p.v_input == 0 ? u : element_get(at.in[p.v_input], p.v_bf16, place_of(&p.v, &e));
        element_set(at.out[0], p.y_bf16, place_of(&p.y, &e),
                    maps[e.channel] * u + maps[p.channels + e.channel] * v +
                        maps[2 * p.channels + e.channel]);
    }
}

// Four neighboring elements for one access: as f32, and as bf16, of which a word has two, the
// first one in its lower 16 bits.
typedef struct __attribute__((aligned(16))) four {
    float v[4];
} four;

typedef struct __attribute__((aligned(8))) bf16_four {
    uint32_t words[2];
} bf16_four;

// In flight: f32, or bf16 in the first two words, to be widened at their use.
typedef union four_bits {
    four floats;
    bf16_four bf16;
} four_bits;

static inline four four_of(four_bits bits, int32_t bf16)
{
    four x = bits.floats;
    for (int k = 0; bf16 && k < 2; k++) {
        x.v[2 * k] = float_of((uint16_t)bits.bf16.words[k]);
        x.v[2 * k + 1] = float_of((uint16_t)(bits.bf16.words[k] >> 16));
    }
    return x;
}

static inline void give_four(void *y, int32_t bf16, int64_t index, four x)
{
    if (bf16) {
        bf16_four made;
        for (int k = 0; k < 2; k++)
            made.words[k] = bfloat_of(x.v[2 * k]) | (uint32_t)bfloat_of(x.v[2 * k + 1]) << 16;
        ((bf16_four *)y)[index] = made;
    } else {
        ((four *)y)[index] = x;
    }
}

#define FOURS BEL_CUDA_NORM_FOURS

// Indices of the fours that a thread loads at once: first + k · step or, after the end, the first
// one again, so that no load needs a test.
static inline void places_of(int64_t *to, int64_t first, int64_t step, int64_t end)
{
    for (int k = 0; k < FOURS; k++)
        to[k] = first + k * step < end ? first + k * step : first;
}

static inline void take_fours(four_bits *to, const void *x, int32_t bf16, const int64_t *places)
{
    if (bf16) {
        for (int k = 0; k < FOURS; k++)
            to[k].bf16 = ((const bf16_four *)x)[places[k]];
    } else {
        for (int k = 0; k < FOURS; k++)
            to[k].floats = ((const four *)x)[places[k]];
    }
}

// Channels-last: [pixel, four of channels]. A thread keeps its four channels, with their maps in
// registers, and goes from pixel to pixel in steps of all threads together.
KERNEL(norm_apply_lanes, bel_cuda_norm)
{
    const uint32_t across = (uint32_t)p.channels / 4, number = (uint32_t)THREAD;
    const uint32_t rows = (uint32_t)THREADS / across, row = number / across;
    if (row >= rows) return;
    const uint32_t own = number % across;
    const int64_t step = (int64_t)rows * across, end = p.n * p.pixels * across;
    const four *from = (const four *)float_maps_of(&at, &p);
    const four factors = from[own], seconds = from[across + own], offsets = from[2 * across + own];
    for (int64_t i = number; i < end; i += FOURS * step) {
        int64_t places[FOURS];
        four_bits u[FOURS], v[FOURS];
        places_of(places, i, step, end);
        take_fours(u, at.in[0], p.u_bf16, places);
        if (p.v_input != 0) take_fours(v, at.in[p.v_input], p.v_bf16, places);
        for (int k = 0; k < FOURS; k++) {
            four a = four_of(u[k], p.u_bf16), y;
            four b = p.v_input != 0 ? four_of(v[k], p.v_bf16) : a;
            for (int j = 0; j < 4; j++)
                y.v[j] = factors.v[j] * a.v[j] + seconds.v[j] * b.v[j] + offsets.v[j];
            if (i + k * step < end) give_four(at.out[0], p.y_bf16, places[k], y);
        }
    }
}

// In plain order a row is the pixels of a channel of an image, a multiple of four. The fours can be
// counted in 32 bits.
KERNEL(norm_apply_rows, bel_cuda_norm)
{
    const uint32_t across = (uint32_t)p.pixels / 4, channels = (uint32_t)p.channels;
    const int64_t step = THREADS, end = p.n * p.channels * across;
    const float *maps = float_maps_of(&at, &p);
    for (int64_t i = THREAD; i < end; i += FOURS * step) {
        int64_t places[FOURS];
        four_bits u[FOURS], v[FOURS];
        float factors[FOURS], seconds[FOURS], offsets[FOURS];
        places_of(places, i, step, end);
        take_fours(u, at.in[0], p.u_bf16, places);
        if (p.v_input != 0) take_fours(v, at.in[p.v_input], p.v_bf16, places);
        for (int k = 0; k < FOURS; k++) {
            const uint32_t c = (uint32_t)places[k] / across % channels;
            factors[k] = maps[c];
            seconds[k] = maps[channels + c];
            offsets[k] = maps[2 * channels + c];
        }
        for (int k = 0; k < FOURS; k++) {
            four a = four_of(u[k], p.u_bf16), y;
            four b = p.v_input != 0 ? four_of(v[k], p.v_bf16) : a;
            for (int j = 0; j < 4; j++)
                y.v[j] = factors[k] * a.v[j] + seconds[k] * b.v[j] + offsets[k];
            if (i + k * step < end) give_four(at.out[0], p.y_bf16, places[k], y);
        }
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
