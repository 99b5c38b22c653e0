// Kernels of the stand-in for cuDNN, with one thread per element of the result. Sums are f32, in
// the order of the loops.
#include "library_kernel.h"

static long long place(const library_tensor *t, int n, int c, int h, int w)
{
    return n * t->steps[0] + c * t->steps[1] + h * t->steps[2] + w * t->steps[3];
}

// Indices of element i, counted in the order n, c, h, w.
static void find(const library_tensor *t, long long i, int *at)
{
    for (int d = 3; d >= 0; d--) {
        at[d] = (int)(i % t->dims[d]);
        i /= t->dims[d];
    }
}

static long long count_of(const library_tensor *t)
{
    return (long long)t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
}

static float read_in(const library_convolution *p, int which, long long at)
{
    return rounded(number_of(p->in[which], at, p->bf16), p->dropped);
}

static void write_out(const library_convolution *p, long long at, float sum)
{
    float y = p->alpha * sum;
    if (p->beta != 0) y += p->beta * number_of(p->out, at, p->bf16);
    set_number(p->out, at, p->bf16, y);
}

KERNEL(cudnnConvolutionForward, library_convolution)
{
    use_workspace(&p.workspace);
    int out_of_group = p.w.dims[0] / p.groups;
    for (long long i = THREAD; i < count_of(&p.y); i += THREADS) {
        int at[4];
        find(&p.y, i, at);
        int first = at[1] / out_of_group * p.w.dims[1];
        float sum = 0;
        for (int c = 0; c < p.w.dims[1]; c++)
            for (int r = 0; r < p.w.dims[2]; r++)
                for (int s = 0; s < p.w.dims[3]; s++) {
                    int h = at[2] * p.stride[0] - p.pad[0] + r * p.dilation[0];
                    int w = at[3] * p.stride[1] - p.pad[1] + s * p.dilation[1];
                    if (h < 0 || h >= p.x.dims[2] || w < 0 || w >= p.x.dims[3]) continue;
                    sum += read_in(&p, 0, place(&p.x, at[0], first + c, h, w)) *
                           read_in(&p, 1, place(&p.w, at[1], c, r, s));
                }
        write_out(&p, place(&p.y, at[0], at[1], at[2], at[3]), sum);
    }
}

KERNEL(cudnnConvolutionBackwardData, library_convolution)
{
    use_workspace(&p.workspace);
    int out_of_group = p.w.dims[0] / p.groups;
    for (long long i = THREAD; i < count_of(&p.x); i += THREADS) {
        int at[4];
        find(&p.x, i, at);
        int first = at[1] / p.w.dims[1] * out_of_group, c = at[1] % p.w.dims[1];
        float sum = 0;
        for (int k = 0; k < out_of_group; k++)
            for (int r = 0; r < p.w.dims[2]; r++)
                for (int s = 0; s < p.w.dims[3]; s++) {
                    int h = at[2] + p.pad[0] - r * p.dilation[0];
                    int w = at[3] + p.pad[1] - s * p.dilation[1];
                    if (h < 0 || h % p.stride[0] != 0 || h / p.stride[0] >= p.y.dims[2]) continue;
                    if (w < 0 || w % p.stride[1] != 0 || w / p.stride[1] >= p.y.dims[3]) continue;
                    sum += read_in(&p, 0, place(&p.w, first + k, c, r, s)) *
                           read_in(&p, 1, place(&p.y, at[0], first + k, h / p.stride[0],
                                                w / p.stride[1]));
                }
        write_out(&p, place(&p.x, at[0], at[1], at[2], at[3]), sum);
    }
}

KERNEL(cudnnConvolutionBackwardFilter, library_convolution)
{
    use_workspace(&p.workspace);
    int out_of_group = p.w.dims[0] / p.groups;
    for (long long i = THREAD; i < count_of(&p.w); i += THREADS) {
        int at[4];
        find(&p.w, i, at);
        int c = at[0] / out_of_group * p.w.dims[1] + at[1];
        float sum = 0;
        for (int n = 0; n < p.y.dims[0]; n++)
            for (int y = 0; y < p.y.dims[2]; y++)
                for (int x = 0; x < p.y.dims[3]; x++) {
                    int h = y * p.stride[0] - p.pad[0] + at[2] * p.dilation[0];
                    int w = x * p.stride[1] - p.pad[1] + at[3] * p.dilation[1];
                    if (h < 0 || h >= p.x.dims[2] || w < 0 || w >= p.x.dims[3]) continue;
                    sum += read_in(&p, 0, place(&p.x, n, c, h, w)) *
                           read_in(&p, 1, place(&p.y, n, at[0], y, x));
                }
        write_out(&p, place(&p.w, at[0], at[1], at[2], at[3]), sum);
    }
}
