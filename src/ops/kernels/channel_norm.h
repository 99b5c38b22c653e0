// Normalization of one channel from its sums, one number at a time. Like scalar.h, these are also
// compiled into GPU kernels (cuda/norm.cu).
#ifndef BELFRY_OPS_KERNELS_CHANNEL_NORM_H
#define BELFRY_OPS_KERNELS_CHANNEL_NORM_H

#include "ops/kernels/plain.h"

// Map of the elements of a channel: y = factor · u + second · v + offset.
typedef struct bel_channel_map {
    double factor, second, offset;
} bel_channel_map;

// u = x.
static inline bel_channel_map bel_channel_forward(double scale, double bias, double mean,
                                                  double inverse)
{
    bel_channel_map a;
    a.factor = scale * inverse;
    a.second = 0;
    a.offset = bias - mean * a.factor;
    return a;
}

// Mean and variance of `count` > 0 elements from their sum and the sum of their squares.
static inline void bel_channel_statistics(double sum, double squares, double count,
                                          double *out_mean, double *out_variance)
{
    *out_mean = sum / count;
    *out_variance = bel_larger_of(squares / count - *out_mean * *out_mean, 0);
}

static inline double bel_channel_moved(double old, double now, double momentum)
{
    return old * momentum + now * (1 - momentum);
}

static inline double bel_channel_inverse(double variance, double epsilon)
{
    return 1 / sqrt(variance + epsilon);
}

// With x' = (x - mean) / deviation: Σ dy x', from Σ dy and Σ dy x.
static inline double bel_channel_scaled(double sum, double products, double mean, double inverse)
{
    return inverse * (products - mean * sum);
}

// u = dy, v = x: dx = scale / deviation · (dy - sum / m - x' scaled / m), without the last two
// terms if the statistics were not the batch's, count 0 (Ioffe & Szegedy 2015, section 3).
static inline bel_channel_map bel_channel_backward(double scale, double mean, double inverse,
                                                   double sum, double scaled, double count)
{
    bel_channel_map a;
    a.factor = scale * inverse;
    a.second = a.offset = 0;
    if (count == 0) return a;
    a.second = -a.factor * inverse * scaled / count;
    a.offset = -a.factor * sum / count - a.second * mean;
    return a;
}

// Mean and variance from moments, which are sums if `by_sums`. Sums of squares are used unchanged,
// as floats that replicas added: their difference may have no digit left, or be below 0.
static inline void bel_channel_whole(int by_sums, double count, double mean, double squares,
                                     double *out_mean, double *out_variance)
{
    if (by_sums) {
        float m = (float)mean / (float)count;
        *out_mean = (double)m;
        *out_variance = bel_larger_of((double)((float)squares / (float)count - m * m), 0);
    } else {
        *out_mean = mean;
        *out_variance = squares / count;
    }
}

#endif
