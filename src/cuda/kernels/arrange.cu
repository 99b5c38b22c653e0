// Images and weights on their way to cuDNN and back: channels last, in f32 or rounded to bfloat16.
// Weights [out, in, rows, columns] are images as well, one for each output.
#include "cuda/kernels/arrange.h"
#include "cuda/kernels/bfloat.h"

KERNEL(arrange_in, bel_cuda_arrange)
{
    const float *x = (const float *)at.in[p.operand];
    char *form = (char *)at.work + p.offset;
    int64_t count = p.images * p.form_rows * p.form_columns * p.channels;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        int64_t channel = i % p.channels, pixel = i / p.channels;
        int64_t row = pixel / p.form_columns % p.form_rows - p.margin_rows;
        int64_t column = pixel % p.form_columns - p.margin_columns;
        int64_t image = pixel / p.form_columns / p.form_rows;
        float value = 0;
        if (row >= 0 && row < p.rows && column >= 0 && column < p.columns)
            value = x[image * p.steps.image + channel * p.steps.channel + row * p.steps.row +
                      column * p.steps.column];
        if (p.bf16) {
            ((uint16_t *)form)[i] = bfloat_of(value);
        } else {
            ((float *)form)[i] = value;
        }
    }
}

// A thread reads an element and writes the same one, so the form may be the tensor itself.
KERNEL(arrange_out, bel_cuda_arrange)
{
    float *y = (float *)at.out[0];
    const char *form = p.offset < 0 ? (const char *)y : (const char *)at.work + p.offset;
    int64_t count = p.images * p.rows * p.columns * p.channels;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        int64_t channel = i % p.channels, pixel = i / p.channels;
        int64_t column = pixel % p.columns, row = pixel / p.columns % p.rows;
        int64_t image = pixel / p.columns / p.rows;
        int64_t from = ((image * p.form_rows + row + p.margin_rows) * p.form_columns + column +
                        p.margin_columns) *
                           p.channels +
                       channel;
        float value =
            p.bf16 ? float_of(((const uint16_t *)form)[from]) : ((const float *)form)[from];
        if (p.has_bias) value += ((const float *)at.in[2])[channel];
        y[image * p.steps.image + channel * p.steps.channel + row * p.steps.row +
          column * p.steps.column] = p.relu && !(value > 0.0f) ? 0.0f : value;
    }
}
