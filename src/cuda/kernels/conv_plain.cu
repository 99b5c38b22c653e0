// Convolutions in the order of the plain kernel of ops/conv.c. A thread makes one element of the
// result: it adds the products in that kernel's order, and rounds the sum to the element's type
// after each.
#include "cuda/kernels/conv.h"
#include "cuda/kernels/plain_elements.h"
#include "cuda/kernels/windows.h"

// Inputs x, w, bias.
KERNEL(conv_plain_output, bel_cuda_conv_plain)
{
    const bel_cuda_window *r = &p.window[0], *c = &p.window[1];
    int64_t channels = p.groups * p.out, count = p.n * channels * r->out * c->out;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        int32_t column = (int32_t)(i % c->out), row = (int32_t)(i / c->out % r->out), first[2],
                end[2];
        int64_t o = i / c->out / r->out % channels, image = i / c->out / r->out / channels;
        int64_t x = (image * p.groups + o / p.out) * p.in * r->in * c->in;
        int64_t w = o * p.in * r->kernel * c->kernel;
        taps_inside(r, row, &first[0], &end[0]);
        taps_inside(c, column, &first[1], &end[1]);
        double sum = p.has_bias ? plain_get(at.in[2], p.is_f64, o) : 0;
        for (int64_t d = 0; d < p.in;
             d++, x += (int64_t)r->in * c->in, w += r->kernel * c->kernel) {
            for (int32_t s = first[0]; s < end[0]; s++) {
                int64_t x_row = x + (row * r->stride - r->pad + s * r->dilation) * (int64_t)c->in;
                for (int32_t t = first[1]; t < end[1]; t++) {
                    int32_t x_column = column * c->stride - c->pad + t * c->dilation;
                    sum += plain_get(at.in[0], p.is_f64, x_row + x_column) *
                           plain_get(at.in[1], p.is_f64, w + s * c->kernel + t);
                    sum = plain_kept(p.is_f64, sum);
                }
            }
        }
        plain_set(at.out[0], p.is_f64, i, sum);
    }
}

// Inputs dy, w and, for ConvTranspose, a bias.
KERNEL(conv_plain_input, bel_cuda_conv_plain)
{
    const bel_cuda_window *r = &p.window[0], *c = &p.window[1];
    int64_t channels = p.groups * p.in, count = p.n * channels * r->in * c->in;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        int32_t column = (int32_t)(i % c->in), row = (int32_t)(i / c->in % r->in), first[2], end[2];
        int64_t channel = i / c->in / r->in % channels, image = i / c->in / r->in / channels;
        int64_t o = channel / p.in * p.out, last = o + p.out;
        outputs_around(r, row, &first[0], &end[0]);
        outputs_around(c, column, &first[1], &end[1]);
        double sum = p.has_bias ? plain_get(at.in[2], p.is_f64, channel) : 0;
        for (; o < last; o++) {
            int64_t dy = (image * p.groups * p.out + o) * r->out * c->out;
            int64_t w = (o * p.in + channel % p.in) * r->kernel * c->kernel;
            for (int32_t s = first[0]; s < end[0]; s++) {
                int32_t row_tap = tap_between(r, s, row);
                if (row_tap < 0) continue;
                for (int32_t t = first[1]; t < end[1]; t++) {
                    int32_t tap = tap_between(c, t, column);
                    if (tap < 0) continue;
                    sum += plain_get(at.in[0], p.is_f64, dy + s * (int64_t)c->out + t) *
                           plain_get(at.in[1], p.is_f64, w + row_tap * c->kernel + tap);
                    sum = plain_kept(p.is_f64, sum);
                }
            }
        }
        plain_set(at.out[0], p.is_f64, i, sum);
    }
}

// Inputs dy, x.
KERNEL(conv_plain_weights, bel_cuda_conv_plain)
{
    const bel_cuda_window *r = &p.window[0], *c = &p.window[1];
    int64_t count = p.groups * p.out * p.in * r->kernel * c->kernel;
    for (int64_t i = THREAD; i < count; i += THREADS) {
        int32_t column_tap = (int32_t)(i % c->kernel),
                row_tap = (int32_t)(i / c->kernel % r->kernel);
        int64_t d = i / c->kernel / r->kernel % p.in, o = i / c->kernel / r->kernel / p.in;
        double sum = 0;
        for (int64_t image = 0; image < p.n; image++) {
            int64_t dy = (image * p.groups * p.out + o) * r->out * c->out;
            int64_t x = ((image * p.groups + o / p.out) * p.in + d) * r->in * c->in;
            for (int32_t s = 0; s < r->out; s++) {
                int32_t row = s * r->stride - r->pad + row_tap * r->dilation;
                if (row < 0 || row >= r->in) continue;
                for (int32_t t = 0; t < c->out; t++) {
                    int32_t column = t * c->stride - c->pad + column_tap * c->dilation;
                    if (column < 0 || column >= c->in) continue;
                    sum += plain_get(at.in[0], p.is_f64, dy + s * (int64_t)c->out + t) *
                           plain_get(at.in[1], p.is_f64, x + row * (int64_t)c->in + column);
                    sum = plain_kept(p.is_f64, sum);
                }
            }
        }
        plain_set(at.out[0], p.is_f64, i, sum);
    }
}
