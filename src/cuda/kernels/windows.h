// Taps of a window inside of an image, and windows that reach a place of it.
#ifndef BELFRY_CUDA_KERNELS_WINDOWS_H
#define BELFRY_CUDA_KERNELS_WINDOWS_H

#include "cuda/kernels/images.h"

// a / b, for a >= 0. All threads of a launch have the same b, which is mostly one of these.
static inline int32_t quotient(int32_t a, int32_t b)
{
    return b == 1 ? a : b == 2 ? a >> 1 : a / b;
}

// Taps [first, end) that are inside, at output `at`: bel_window_inside.
static inline void taps_inside(const bel_cuda_window *w, int32_t at, int32_t *first, int32_t *end)
{
    int32_t start = at * w->stride - w->pad, step = w->dilation;
    *first = start < 0 ? quotient(step - 1 - start, step) : 0;
    *end = w->in > start ? quotient(w->in - start + step - 1, step) : 0;
    if (*end > w->kernel) *end = w->kernel;
}

// Outputs [first, end) whose windows reach place `at`, ignoring gaps between their taps.
static inline void outputs_around(const bel_cuda_window *w, int32_t at, int32_t *first,
                                  int32_t *end)
{
    int32_t last = at + w->pad, reach = (w->kernel - 1) * w->dilation;
    *first = last > reach ? quotient(last - reach + w->stride - 1, w->stride) : 0;
    *end = quotient(last, w->stride) + 1;
    if (*end > w->out) *end = w->out;
}

// The tap with which output `from` reads place `at`; negative: none.
static inline int32_t tap_between(const bel_cuda_window *w, int32_t from, int32_t at)
{
    int32_t distance = at + w->pad - from * w->stride;
    int32_t tap = quotient(distance, w->dilation);
    return tap * w->dilation == distance ? tap : -1;
}

#endif
