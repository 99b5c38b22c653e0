// The inner kernel of convolutions, compiled once per instruction-set level with BEL_LEVEL = v2, v3
// or v4. Every level computes fused multiply-adds in the same order, so all give the same bits; v2,
// which has no such instruction, calls fmaf and is slow.
#include "ops/kernels/conv.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

// A row of 16 channels, and how many such rows of sums fit the registers.
#if defined(__AVX512F__)
#include <immintrin.h>
enum { ROWS = 12 };
typedef __m512 channels;

static inline channels load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void store(float *p, channels x)
{
    _mm512_storeu_ps(p, x);
}

// a · b + c, with one number a for all channels.
static inline channels add_product(const float *a, channels b, channels c)
{
    return _mm512_fmadd_ps(_mm512_set1_ps(*a), b, c);
}
#elif defined(__FMA__)
#include <immintrin.h>
enum { ROWS = 6 };
typedef struct channels {
    __m256 low, high;
} channels;

static inline channels load(const float *p)
{
    return (channels){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

static inline void store(float *p, channels x)
{
    _mm256_storeu_ps(p, x.low);
    _mm256_storeu_ps(p + 8, x.high);
}

static inline channels add_product(const float *a, channels b, channels c)
{
    __m256 x = _mm256_broadcast_ss(a);
    return (channels){_mm256_fmadd_ps(x, b.low, c.low), _mm256_fmadd_ps(x, b.high, c.high)};
}
#else
#include <math.h>
#include <string.h>
enum { ROWS = 6 };
typedef struct channels {
    float x[BEL_CONV_LANES];
} channels;

static inline channels load(const float *p)
{
    channels x;
    memcpy(x.x, p, sizeof x.x);
    return x;
}

static inline void store(float *p, channels x)
{
    memcpy(p, x.x, sizeof x.x);
}

static inline channels add_product(const float *a, channels b, channels c)
{
    for (int l = 0; l < BEL_CONV_LANES; l++)
        c.x[l] = fmaf(*a, b.x[l], c.x[l]);
    return c;
}
#endif

// Statements for each of n rows. Sums are variables, not an array: compilers then keep them in
// registers.
#define EACH_1(row) row(0)
#define EACH_2(row) EACH_1(row) row(1)
#define EACH_3(row) EACH_2(row) row(2)
#define EACH_4(row) EACH_3(row) row(3)
#define EACH_5(row) EACH_4(row) row(4)
#define EACH_6(row) EACH_5(row) row(5)
#define EACH_7(row) EACH_6(row) row(6)
#define EACH_8(row) EACH_7(row) row(7)
#define EACH_9(row) EACH_8(row) row(8)
#define EACH_10(row) EACH_9(row) row(9)
#define EACH_11(row) EACH_10(row) row(10)
#define EACH_12(row) EACH_11(row) row(11)

#define START(r) channels sum_##r = load(start + r * start_step);
#define POINT(r) const float *a_##r = t->a[r];
#define ADD(r) sum_##r = add_product(a_##r + at, b_now, sum_##r);
#define STORE(r) store(t->c + t->c_rows[r], sum_##r);

#define SUM(n)                                                                                     \
    static void sum_of_##n(const bel_conv_block *t)                                                \
    {                                                                                              \
        const float *start = t->start == NULL ? zeros : t->start;                                  \
        int64_t start_step = t->start == NULL ? 0 : t->start_step;                                 \
        EACH_##n(START);                                                                           \
        EACH_##n(POINT);                                                                           \
        for (int64_t s = 0; s < t->segment_count; s++) {                                           \
            const float *b = t->b + t->segments[s].b;                                              \
            int64_t at = t->segments[s].a;                                                         \
            for (int64_t i = 0; i < t->k; i++, at += t->a_step, b += t->b_step) {                  \
                channels b_now = load(b);                                                          \
                EACH_##n(ADD);                                                                     \
            }                                                                                      \
        }                                                                                          \
        EACH_##n(STORE);                                                                           \
    }

static const float zeros[BEL_CONV_LANES];

SUM(1)
SUM(2)
SUM(3)
SUM(4)
SUM(5)
SUM(6)
#if defined(__AVX512F__)
SUM(7)
SUM(8)
SUM(9)
SUM(10)
SUM(11)
SUM(12)
#endif

typedef void sum_fn(const bel_conv_block *block);

static void run(const bel_conv_block *block)
{
    static sum_fn *const sums[ROWS + 1] = {
        NULL,
        sum_of_1,
        sum_of_2,
        sum_of_3,
        sum_of_4,
        sum_of_5,
        sum_of_6,
#if defined(__AVX512F__)
        sum_of_7,
        sum_of_8,
        sum_of_9,
        sum_of_10,
        sum_of_11,
        sum_of_12,
#endif
    };
    sums[block->rows](block);
}

const bel_conv_kernels JOIN(bel_conv_kernels_, BEL_LEVEL) = {.rows_most = ROWS, .run = run};
