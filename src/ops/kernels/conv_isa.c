// The inner kernel of convolutions, compiled once per instruction-set level with BEL_LEVEL = v2, v3
// or v4. Every level computes fused multiply-adds in the same order, so all give the same bits; v2,
// which has no such instruction, calls fmaf and is slow.
#include "ops/kernels/conv.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

// 16 channels are VECTORS vectors; ROWS × VECTORS sums fit the registers.
#if defined(__AVX512F__)
#include <immintrin.h>
enum { VECTORS = 1, LANES = 16, ROWS = 12 };
typedef __m512 vector;
#define ZERO() _mm512_setzero_ps()
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define SPREAD(p) _mm512_set1_ps(*(p))
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#elif defined(__FMA__)
#include <immintrin.h>
enum { VECTORS = 2, LANES = 8, ROWS = 6 };
typedef __m256 vector;
#define ZERO() _mm256_setzero_ps()
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define SPREAD(p) _mm256_broadcast_ss(p)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#else
#include <math.h>
enum { VECTORS = 16, LANES = 1, ROWS = 6 };
typedef float vector;
#define ZERO() 0.0f
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#define SPREAD(p) (*(p))
#define FMA(a, b, c) fmaf(a, b, c)
#endif

// One function for each number of rows, so that the loops over rows vanish.
#define SUM(n)                                                                                     \
    static void sum_##n(const bel_conv_block *t)                                                   \
    {                                                                                              \
        vector sums[n][VECTORS];                                                                   \
        for (int r = 0; r < n; r++)                                                                \
            for (int v = 0; v < VECTORS; v++)                                                      \
                sums[r][v] =                                                                       \
                    t->start == NULL ? ZERO() : LOAD(t->start + r * t->start_step + v * LANES);    \
        for (int64_t s = 0; s < t->segment_count; s++) {                                           \
            const float *b = t->b + t->segments[s].b, *a[n];                                       \
            for (int r = 0; r < n; r++)                                                            \
                a[r] = t->a + t->segments[s].a + t->a_rows[r];                                     \
            for (int64_t i = 0, at = 0; i < t->k; i++, at += t->a_step, b += t->b_step) {          \
                vector channels[VECTORS];                                                          \
                for (int v = 0; v < VECTORS; v++)                                                  \
                    channels[v] = LOAD(b + v * LANES);                                             \
                for (int r = 0; r < n; r++) {                                                      \
                    vector x = SPREAD(a[r] + at);                                                  \
                    for (int v = 0; v < VECTORS; v++)                                              \
                        sums[r][v] = FMA(x, channels[v], sums[r][v]);                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (int r = 0; r < n; r++)                                                                \
            for (int v = 0; v < VECTORS; v++)                                                      \
                STORE(t->c + t->c_rows[r] + v * LANES, sums[r][v]);                                \
    }

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
        sum_1,
        sum_2,
        sum_3,
        sum_4,
        sum_5,
        sum_6,
#if defined(__AVX512F__)
        sum_7,
        sum_8,
        sum_9,
        sum_10,
        sum_11,
        sum_12,
#endif
    };
    sums[block->rows](block);
}

const bel_conv_kernels JOIN(bel_conv_kernels_, BEL_LEVEL) = {.rows_most = ROWS, .run = run};
