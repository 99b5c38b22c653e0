// Copies of operands to the libraries' forms and back. Images and weights for cuDNN become
// channels-last, in f32 or bf16; weights [out, in, rows, columns] are images as well, one for each
// output. Matrices for cuBLASLt keep their order and become bf16.
//
// No operand of a convolution has 2^31 elements (library_cudnn.c), so indices are 32 bits, and divisions
// are multiplications (divide.h). If channels are neighbors, a thread copies four of them with one
// access on either side.
#include "cuda/kernels/arrange.h"
#include "cuda/kernels/bfloat.h"

typedef struct place {
    uint32_t channel, column, row, image;
} place;

// Element i of [image, row, column, channel].
static inline place place_of(uint32_t i, const bel_cuda_divisor *channels,
                             const bel_cuda_divisor *columns, const bel_cuda_divisor *rows)
{
    uint32_t pixel = divided(i, channels), line = divided(pixel, columns);
    place made;
    made.channel = i - pixel * channels->by;
    made.column = pixel - line * columns->by;
    made.image = divided(line, rows);
    made.row = line - made.image * rows->by;
    return made;
}

static inline int64_t place_in_tensor(const bel_cuda_image_steps *steps, const place *e,
                                      uint32_t channel, int32_t row, int32_t column)
{
    return (int32_t)e->image * (int32_t)steps->image + (int32_t)channel * (int32_t)steps->channel +
           row * (int32_t)steps->row + column * (int32_t)steps->column;
}

KERNEL(arrange_in, bel_cuda_arrange)
{
    const void *x = at.in[p.operand];
    void *form = (char *)at.work + p.offset;
    bool fours = p.fours && four_fit(x, p.tensor_bf16) && four_fit(form, p.form_bf16);
    int32_t each = fours ? 4 : 1;
    const bel_cuda_divisor by_channels = fours ? p.by_fours : p.by_channels;
    int64_t count = p.images * p.form_rows * p.form_columns * p.channels / each;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const place e = place_of((uint32_t)i, &by_channels, &p.by_columns, &p.by_rows);
        int32_t row = (int32_t)e.row - (int32_t)p.margin_rows;
        int32_t column = (int32_t)e.column - (int32_t)p.margin_columns;
        bool inside = row >= 0 && row < p.rows && column >= 0 && column < p.columns;
        int64_t from = 0;
        if (inside)
            from = place_in_tensor(&p.steps, &e, e.channel * (uint32_t)each, row, column);
        if (fours) {
            four_floats values = {{0.0f, 0.0f, 0.0f, 0.0f}};
            if (inside) values = four_get(x, p.tensor_bf16, from);
            four_set(form, p.form_bf16, i * 4, values);
        } else {
            element_set(form, p.form_bf16, i, inside ? element_get(x, p.tensor_bf16, from) : 0.0f);
        }
    }
}

static inline float finished(const bel_cuda_operands *at, const bel_cuda_arrange *p, float value,
                             uint32_t channel)
{
    if (p->has_bias) value += ((const float *)at->in[2])[channel];
    return p->relu && !(value > 0.0f) ? 0.0f : value;
}

// A thread reads elements and writes the same ones, so the form may be the tensor.
KERNEL(arrange_out, bel_cuda_arrange)
{
    void *y = at.out[0];
    const void *form = p.offset < 0 ? y : (const char *)at.work + p.offset;
    bool fours = p.fours && four_fit(y, p.tensor_bf16) && four_fit(form, p.form_bf16);
    int32_t each = fours ? 4 : 1;
    const bel_cuda_divisor by_channels = fours ? p.by_fours : p.by_channels;
    int64_t count = p.images * p.rows * p.columns * p.channels / each;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        const place e = place_of((uint32_t)i, &by_channels, &p.by_columns, &p.by_rows);
        int32_t row = (int32_t)e.row + (int32_t)p.margin_rows;
        int32_t column = (int32_t)e.column + (int32_t)p.margin_columns;
        int32_t line = (int32_t)e.image * (int32_t)p.form_rows + row;
        uint32_t channel = e.channel * (uint32_t)each;
        int64_t from = (line * (int32_t)p.form_columns + column) * (int32_t)p.channels +
                       (int32_t)channel;
        int64_t to = place_in_tensor(&p.steps, &e, channel, (int32_t)e.row, (int32_t)e.column);
        if (fours) {
            four_floats values = four_get(form, p.form_bf16, from);
            for (uint32_t k = 0; k < 4; k++)
                values.v[k] = finished(&at, &p, values.v[k], channel + k);
            four_set(y, p.tensor_bf16, to, values);
        } else {
            element_set(y, p.tensor_bf16, to,
                        finished(&at, &p, element_get(form, p.form_bf16, from), channel));
        }
    }
}

// Small planes, such as those of weights. A block transposes some channels of an image, [channel,
// pixel] in the tensor and in shared memory, so that neighboring threads read and write
// neighbors.
typedef struct planes {
    int32_t pixels, channels, first; // channels of the block, from `first` on
    int64_t tensor, form; // start of the first of them
} planes;

static inline planes planes_of(const bel_cuda_arrange *p)
{
    planes made;
    int32_t all = (int32_t)p->channels;
    int32_t tiles = (all + BEL_CUDA_ARRANGE_CHANNELS - 1) / BEL_CUDA_ARRANGE_CHANNELS;
    int32_t image = (int32_t)blockIdx.x / tiles, tile = (int32_t)blockIdx.x - image * tiles;
    made.pixels = (int32_t)(p->rows * p->columns);
    made.first = tile * BEL_CUDA_ARRANGE_CHANNELS;
    int32_t left = all - made.first;
    made.channels = left < BEL_CUDA_ARRANGE_CHANNELS ? left : BEL_CUDA_ARRANGE_CHANNELS;
    made.tensor = ((int64_t)image * all + made.first) * made.pixels;
    made.form = (int64_t)image * all * made.pixels + made.first;
    return made;
}

#define PLANES_SHARED (BEL_CUDA_ARRANGE_CHANNELS * BEL_CUDA_ARRANGE_PIXELS)

KERNEL(arrange_planes_in, bel_cuda_arrange)
{
    __shared__ float tile[PLANES_SHARED];
    const void *x = at.in[p.operand];
    void *form = (char *)at.work + p.offset;
    const planes m = planes_of(&p);
    int32_t thread = (int32_t)threadIdx.x, threads = (int32_t)blockDim.x;
    for (int32_t k = thread; k < m.channels * m.pixels; k += threads)
        tile[k] = element_get(x, p.tensor_bf16, m.tensor + k);
    __syncthreads();
    for (int32_t k = thread; k < BEL_CUDA_ARRANGE_CHANNELS * m.pixels; k += threads) {
        int32_t channel = k % BEL_CUDA_ARRANGE_CHANNELS, pixel = k / BEL_CUDA_ARRANGE_CHANNELS;
        if (channel < m.channels)
            element_set(form, p.form_bf16, m.form + pixel * p.channels + channel,
                        tile[channel * m.pixels + pixel]);
    }
}

KERNEL(arrange_planes_out, bel_cuda_arrange)
{
    __shared__ float tile[PLANES_SHARED];
    void *y = at.out[0];
    const void *form = (const char *)at.work + p.offset;
    const planes m = planes_of(&p);
    int32_t thread = (int32_t)threadIdx.x, threads = (int32_t)blockDim.x;
    for (int32_t k = thread; k < BEL_CUDA_ARRANGE_CHANNELS * m.pixels; k += threads) {
        int32_t channel = k % BEL_CUDA_ARRANGE_CHANNELS, pixel = k / BEL_CUDA_ARRANGE_CHANNELS;
        if (channel >= m.channels) continue;
        float value = element_get(form, p.form_bf16, m.form + pixel * p.channels + channel);
        tile[channel * m.pixels + pixel] = finished(&at, &p, value, (uint32_t)(m.first + channel));
    }
    __syncthreads();
    for (int32_t k = thread; k < m.channels * m.pixels; k += threads)
        element_set(y, p.tensor_bf16, m.tensor + k, tile[k]);
}

KERNEL(arrange_flat, bel_cuda_arrange_flat)
{
    const float *x = (const float *)at.in[p.operand];
    uint16_t *form = (uint16_t *)((char *)at.work + p.offset);
    int64_t done = four_fit(x, false) ? p.count / 4 * 4 : 0; // the rest may be less than four
    for (int64_t i = THREAD; i < done / 4; i += THREADS)
        four_set(form, true, i * 4, four_get(x, false, i * 4));
    for (int64_t i = done + THREAD; i < p.count; i += THREADS)
        form[i] = bfloat_of(x[i]);
}
