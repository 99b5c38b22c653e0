// Images and windows for kernels: see images.h. Indices within an image are 32 bits, where division
// is cheap; distances between images of a tensor may be larger. Images that do not fit are refused
// here, before anything runs.
#include "cuda/images.h"

bel_cuda_image_steps bel_cuda_steps_of(const bel_image_steps *steps)
{
    return (bel_cuda_image_steps){steps->image, steps->channel, steps->row, steps->column};
}

static int64_t divisor_of(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

bel_status *bel_cuda_windows_of(const bel_window *window, bel_cuda_window out_windows[2])
{
    const int64_t most = INT32_MAX / 4;
    bel_cuda_window made[2];
    for (int d = 0; d < 2; d++) {
        int64_t divisor = divisor_of(window->stride[d], window->dilation[d]);
        int64_t reach = window->in[d] + window->pad[d] + window->pad_end[d];
        int64_t extent = (window->kernel[d] - 1) * window->dilation[d] + 1;
        bool fits = reach <= most && extent <= most && window->stride[d] <= most &&
                    window->out[d] <= most / window->stride[d] && window->dilation[d] <= most;
        if (!fits) return BEL_ERR(BEL_UNIMPLEMENTED, "the images are too large for a GPU");
        made[d] = (bel_cuda_window){.in = (int32_t)window->in[d],
                                    .out = (int32_t)window->out[d],
                                    .kernel = (int32_t)window->kernel[d],
                                    .stride = (int32_t)window->stride[d],
                                    .dilation = (int32_t)window->dilation[d],
                                    .pad = (int32_t)window->pad[d],
                                    .pad_end = (int32_t)window->pad_end[d],
                                    .period = (int32_t)(window->stride[d] / divisor),
                                    .advance = (int32_t)(window->dilation[d] / divisor)};
    }
    out_windows[0] = made[0];
    out_windows[1] = made[1];
    return NULL;
}

bool bel_cuda_is_last(const bel_image_steps *steps)
{
    return steps->channel == 1 && steps->column != 1;
}
