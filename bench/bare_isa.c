// The functions of one level, see bare.h. Arrays do not overlap, except that `to` may be `values`;
// the compiler cannot see that, so the loops say that their elements are independent.
#include "bare.h"

#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

#if defined(__clang__)
#define EACH_ALONE _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_ALONE _Pragma("GCC ivdep")
#endif

static inline float multiply_add(float a, float b, float c)
{
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

// Four rows of the matrix at a time, so that `y` is read and written a quarter as often.
static void dense(const float *x, int in, int out, const float *w, bool relu, float *y)
{
    memset(y, 0, (size_t)out * sizeof *y);
    for (int i = 0; i < in; i += 4) {
        const float *a = w + (size_t)i * (size_t)out, *b = a + out, *c = b + out, *d = c + out;
        const float xa = x[i], xb = x[i + 1], xc = x[i + 2], xd = x[i + 3];
        EACH_ALONE
        for (int j = 0; j < out; j++) {
            float sum = multiply_add(xb, b[j], multiply_add(xa, a[j], y[j]));
            y[j] = multiply_add(xd, d[j], multiply_add(xc, c[j], sum));
        }
    }
    for (int j = 0; relu && j < out; j++)
        y[j] = y[j] > 0 ? y[j] : 0;
}

// gcc and clang vectorize these loops over j; with k outside gcc leaves scalars, which take 1.6
// times as long.
static void chain(const float *x, int layers, const float *w, float *y)
{
    enum { WIDTH = BENCH_CHAIN_WIDTH };
    float now[WIDTH];
    memcpy(now, x, sizeof now);
    for (int l = 0; l < layers; l++, w += WIDTH * WIDTH) {
        float sums[WIDTH];
        for (int j = 0; j < WIDTH; j++) {
            float sum = 0;
            for (int k = 0; k < WIDTH; k++)
                sum = multiply_add(now[k], w[k * WIDTH + j], sum);
            sums[j] = sum;
        }
        memcpy(now, sums, sizeof now);
    }
    memcpy(y, now, sizeof now);
}

static void sgd(const float *a, const float *b, int64_t count, float rate, const float *values,
                float *to)
{
    EACH_ALONE
    for (int64_t i = 0; i < count; i++)
        to[i] = values[i] - rate * ((a[i] + b[i]) * 0.5f);
}

static void momentum(const float *a, const float *b, int64_t count, float rate, float kept,
                     const float *values, float *to, float *speeds)
{
    EACH_ALONE
    for (int64_t i = 0; i < count; i++) {
        float speed = multiply_add(kept, speeds[i], (a[i] + b[i]) * 0.5f);
        speeds[i] = speed;
        to[i] = values[i] - rate * speed;
    }
}

const bench_bare JOIN(bench_bare_, BEL_LEVEL) = {dense, chain, sgd, momentum};
