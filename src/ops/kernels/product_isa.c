// Blocks of sums of products, compiled once per instruction-set level with BEL_LEVEL = v2, v3 or
// v4. Every level computes fused multiply-adds in the same order, so all give the same bits; v2,
// which has no such instruction, makes them of doubles and is many times slower.
#include "ops/kernels/product.h"

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
#include <string.h>
enum { ROWS = 6 };
typedef struct channels {
    float x[BEL_PRODUCT_LANES];
} channels;

// a · b + c, rounded once. The product is exact in double; the sum is rounded to odd there, which
// makes the second rounding harmless (Boldo and Melquiond 2008).
static inline float fused(float a, float b, float c)
{
    double product = (double)a * (double)b, addend = (double)c, sum = product + addend;
    double part = sum - product;
    double error = (product - (sum - part)) + (addend - part); // Knuth's two-sum; NaN at infinity
    int64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if ((bits & 1) == 0 && (error > 0 || error < 0)) bits += (error > 0) == (sum > 0) ? 1 : -1;
    memcpy(&sum, &bits, sizeof bits);
    return (float)sum;
}

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
    for (int l = 0; l < BEL_PRODUCT_LANES; l++)
        c.x[l] = fused(*a, b.x[l], c.x[l]);
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

// Four products at a time leave nothing else to do.
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll_count(4)")
#else
#define UNROLL _Pragma("GCC unroll 4")
#endif

#define SUM(n)                                                                                     \
    static void sum_of_##n(const bel_product_block *t)                                             \
    {                                                                                              \
        const float *start = t->start == NULL ? zeros : t->start;                                  \
        int64_t start_step = t->start == NULL ? 0 : t->start_step;                                 \
        EACH_##n(START);                                                                           \
        EACH_##n(POINT);                                                                           \
        for (int64_t s = 0; s < t->segment_count; s++) {                                           \
            const float *b = t->b + t->segments[s].b;                                              \
            int64_t at = t->segments[s].a;                                                         \
            UNROLL                                                                                 \
            for (int64_t i = 0; i < t->k; i++, at += t->a_step, b += t->b_step) {                  \
                channels b_now = load(b);                                                          \
                EACH_##n(ADD);                                                                     \
            }                                                                                      \
        }                                                                                          \
        EACH_##n(STORE);                                                                           \
    }

static const float zeros[BEL_PRODUCT_LANES];

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

typedef void sum_fn(const bel_product_block *block);

// By the number of rows: each has a function of its own, whose sums are registers.
static void run(const bel_product_block *block)
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

// --- Transposing ---------------------------------------------------------------------------------

#if defined(__AVX2__)
// Eight numbers of each of eight rows: to[i · to_step + l] = rows[l][i].
static inline void transpose_8(const float *const *rows, int64_t at, float *to, int64_t to_step)
{
    __m256 a[8], b[8];
    for (int i = 0; i < 8; i++)
        a[i] = _mm256_loadu_ps(rows[i] + at);
    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
        a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
        a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
        a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * to_step, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * to_step, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}
#endif

static void transpose(const float *from, int64_t step, int64_t rows, int64_t k, float *to,
                      int64_t to_step)
{
    for (int64_t first = 0; first < to_step; first += 8, to += 8) {
        const float *lines[8];
        for (int64_t l = 0; l < 8; l++)
            lines[l] = from + (first + l < rows ? first + l : rows - 1) * step;
        int64_t i = 0;
#if defined(__AVX2__)
        for (; i + 8 <= k; i += 8)
            transpose_8(lines, i, to + i * to_step, to_step);
#endif
        for (; i < k; i++)
            for (int64_t l = 0; l < 8; l++)
                to[i * to_step + l] = lines[l][i];
    }
}

const bel_product_kernels JOIN(bel_product_kernels_,
                               BEL_LEVEL) = {.rows_most = ROWS, .run = run, .transpose = transpose};
