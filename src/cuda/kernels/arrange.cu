// Operands on their way to the libraries and back. Images and weights for cuDNN: channels last, in
// f32 or as bfloat16; weights [out, in, rows, columns] are images as well, one for each output.
// Matrices for cuBLASLt lie as they are, and become bfloat16.
//
// No operand of a convolution has more than 2^31 elements (cudnn.c), so indices are of 32 bits,
// which are divided in a third of the time.
#include "cuda/kernels/arrange.h"
#include "cuda/kernels/bfloat.h"

KERNEL(arrange_in, bel_cuda_arrange)
{
    const void *x = at.in[p.operand];
    void *form = (char *)at.work + p.offset;
    uint32_t channels = (uint32_t)p.channels, columns = (uint32_t)p.form_columns,
             rows = (uint32_t)p.form_rows;
    int64_t count = p.images * p.form_rows * p.form_columns * p.channels;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        uint32_t pixel = (uint32_t)i / channels, channel = (uint32_t)i - pixel * channels;
        int32_t row = (int32_t)(pixel / columns % rows) - (int32_t)p.margin_rows;
        int32_t column = (int32_t)(pixel % columns) - (int32_t)p.margin_columns;
        uint32_t image = pixel / columns / rows;
        float value = 0;
        if (row >= 0 && row < p.rows && column >= 0 && column < p.columns)
            value = element_get(x, p.half,
                                image * p.steps.image + channel * p.steps.channel +
                                    row * p.steps.row + column * p.steps.column);
        element_set(form, p.bf16, i, value);
    }
}

// A thread reads an element and writes the same one, so the form may be the tensor itself.
KERNEL(arrange_out, bel_cuda_arrange)
{
    void *y = at.out[0];
    const void *form = p.offset < 0 ? y : (const char *)at.work + p.offset;
    uint32_t channels = (uint32_t)p.channels, columns = (uint32_t)p.columns,
             rows = (uint32_t)p.rows;
    int64_t count = p.images * p.rows * p.columns * p.channels;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        uint32_t pixel = (uint32_t)i / channels, channel = (uint32_t)i - pixel * channels;
        uint32_t column = pixel % columns, row = pixel / columns % rows;
        uint32_t image = pixel / columns / rows;
        int64_t from = ((image * p.form_rows + row + p.margin_rows) * p.form_columns + column +
                        p.margin_columns) *
                           p.channels +
                       channel;
        float value = element_get(form, p.bf16, from);
        if (p.has_bias) value += ((const float *)at.in[2])[channel];
        element_set(y, p.half,
                    image * p.steps.image + channel * p.steps.channel + row * p.steps.row +
                        column * p.steps.column,
                    p.relu && !(value > 0.0f) ? 0.0f : value);
    }
}

// Four numbers by one access, of memory that allocations and the plan align; the last of the four
// may be less.
typedef struct __attribute__((aligned(16))) four {
    float v[4];
} four;
typedef struct __attribute__((aligned(8))) four_halves {
    uint16_t v[4];
} four_halves;

KERNEL(arrange_flat, bel_cuda_arrange_flat)
{
    const float *x = (const float *)at.in[p.operand];
    uint16_t *form = (uint16_t *)((char *)at.work + p.offset);
    int64_t done = (uintptr_t)x % sizeof(four) == 0 ? p.count / 4 * 4 : 0;
    for (int64_t i = THREAD; i < done / 4; i += THREADS) {
        const four from = ((const four *)x)[i];
        four_halves made;
        for (int j = 0; j < 4; j++)
            made.v[j] = bfloat_of(from.v[j]);
        ((four_halves *)form)[i] = made;
    }
    for (int64_t i = done + THREAD; i < p.count; i += THREADS)
        form[i] = bfloat_of(x[i]);
}
