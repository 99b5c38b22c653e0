// lanes.h with SSE4.1, which has no fused multiply-add: it uses doubles, four lanes at a time. A
// product of two floats is exact in double. The sum is rounded to double and then to float. This
// differs from a single rounding only if the first result is halfway between two floats, or below
// the normal ones; these few are recomputed one by one.
#include <smmintrin.h>

#include "ops/kernels/fused.h"

enum { LANES_PARTS = 4 };

typedef struct lanes {
    __m128 x[LANES_PARTS];
} lanes;
typedef __m128d number; // twice

#define LANES_ROWS                                                                                 \
    {                                                                                              \
        [1] = 4, [2] = 2, [4] = 1                                                                  \
    }
#define LANES_TILES(tile)                                                                          \
    tile(1, 1) tile(2, 1) tile(3, 1) tile(4, 1) tile(1, 2) tile(2, 2) tile(1, 4)
enum { LANES_WIDTH = 1, LANES_CACHED = 1 << 15 };

LANES_INLINE lanes lanes_load(const float *p)
{
    lanes x;
    for (int i = 0; i < LANES_PARTS; i++)
        x.x[i] = _mm_loadu_ps(p + 4 * i);
    return x;
}

LANES_INLINE void lanes_store(float *p, lanes x)
{
    for (int i = 0; i < LANES_PARTS; i++)
        _mm_storeu_ps(p + 4 * i, x.x[i]);
}

LANES_INLINE number number_load(const float *p)
{
    return _mm_set1_pd((double)*p);
}

// Computes the four sums one by one.
static __attribute__((noinline, cold)) __m128 lanes_fused_slowly(double x, __m128 b, __m128 c)
{
    float to[4], from[4];
    _mm_storeu_ps(from, b);
    _mm_storeu_ps(to, c);
    for (int l = 0; l < 4; l++)
        to[l] = bel_fused((float)x, from[l], to[l]);
    return _mm_loadu_ps(to);
}

LANES_INLINE __m128 lanes_fused(number x, __m128 b, __m128 c)
{
    __m128d low = _mm_add_pd(_mm_mul_pd(x, _mm_cvtps_pd(b)), _mm_cvtps_pd(c));
    __m128d high = _mm_mul_pd(x, _mm_cvtps_pd(_mm_movehl_ps(b, b)));
    high = _mm_add_pd(high, _mm_cvtps_pd(_mm_movehl_ps(c, c)));
    // The last 29 bits of a double are those that a float lacks: halfway is 1 and then zeros.
    __m128 first = _mm_castpd_ps(low), second = _mm_castpd_ps(high);
    __m128i ends = _mm_castps_si128(_mm_shuffle_ps(first, second, 0x88));
    __m128i heads = _mm_castps_si128(_mm_shuffle_ps(first, second, 0xdd));
    ends = _mm_and_si128(ends, _mm_set1_epi32(0x1fffffff));
    __m128i halfway = _mm_cmpeq_epi32(ends, _mm_set1_epi32(0x10000000));
    // Not 0 and below 2^-126, by the upper half of the bits; 0 - 1 is the largest of all.
    heads = _mm_and_si128(heads, _mm_set1_epi32(0x7fffffff));
    heads = _mm_sub_epi32(heads, _mm_set1_epi32(1));
    __m128i least = _mm_min_epu32(heads, _mm_set1_epi32(0x38100000 - 2));
    __m128i hard = _mm_or_si128(halfway, _mm_cmpeq_epi32(least, heads));
    if (__builtin_expect(_mm_movemask_epi8(hard) != 0, 0))
        return lanes_fused_slowly(_mm_cvtsd_f64(x), b, c);
    return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}

LANES_INLINE lanes lanes_add_product(number x, lanes b, lanes c)
{
    for (int i = 0; i < LANES_PARTS; i++)
        c.x[i] = lanes_fused(x, b.x[i], c.x[i]);
    return c;
}

LANES_INLINE lanes lanes_multiply(number x, lanes b)
{
    __m128 twice = _mm_cvtpd_ps(x), all = _mm_movelh_ps(twice, twice);
    for (int i = 0; i < LANES_PARTS; i++)
        b.x[i] = _mm_mul_ps(all, b.x[i]);
    return b;
}

LANES_INLINE lanes lanes_add(lanes x, lanes y)
{
    for (int i = 0; i < LANES_PARTS; i++)
        x.x[i] = _mm_add_ps(x.x[i], y.x[i]);
    return x;
}

LANES_INLINE lanes lanes_subtract(lanes x, lanes y)
{
    for (int i = 0; i < LANES_PARTS; i++)
        x.x[i] = _mm_sub_ps(x.x[i], y.x[i]);
    return x;
}

LANES_INLINE lanes lanes_relu(lanes x)
{
    for (int i = 0; i < LANES_PARTS; i++)
        x.x[i] = _mm_max_ps(x.x[i], _mm_setzero_ps()); // returns the second operand for NaN
    return x;
}

enum { LANES_TURNED = 4 };
LANES_INLINE void lanes_turn(const float *from, int64_t step, lanes out[LANES_TURNED])
{
    for (int i = 0; i < LANES_PARTS; i++, from += 4 * step) {
        __m128 x[4];
        for (int l = 0; l < 4; l++)
            x[l] = _mm_loadu_ps(from + l * step);
        _MM_TRANSPOSE4_PS(x[0], x[1], x[2], x[3]);
        for (int l = 0; l < 4; l++)
            out[l].x[i] = x[l];
    }
}
