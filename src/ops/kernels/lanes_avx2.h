// lanes.h with AVX2 and FMA: 16 lanes are two of the 16 registers.
#include <immintrin.h>

typedef struct lanes {
    __m256 low, high;
} lanes;
typedef __m256 number;

// Sets all bits in the lanes [at, at + 8) before lane n.
LANES_INLINE __m256i lanes_first(int64_t n, int at)
{
    const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n - at), places);
}

LANES_INLINE lanes lanes_load(const float *p)
{
    return (lanes){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

#define LANES_MASKED
LANES_INLINE lanes lanes_load_some(const float *p, int64_t n)
{
    return (lanes){_mm256_maskload_ps(p, lanes_first(n, 0)),
                   _mm256_maskload_ps(p + 8, lanes_first(n, 8))};
}

LANES_INLINE void lanes_store(float *p, lanes x)
{
    _mm256_storeu_ps(p, x.low);
    _mm256_storeu_ps(p + 8, x.high);
}

// Parts of 4, 2 and 1: a masked store takes hundreds of cycles on AMD's Zen 3, and a branch that
// always goes the same way none.
LANES_INLINE void lanes_store_some_8(float *p, __m256 x, int64_t n)
{
    __m128 part = _mm256_castps256_ps128(x);
    if (n == 8) {
        _mm256_storeu_ps(p, x);
        return;
    }
    if (n >= 4) {
        _mm_storeu_ps(p, part);
        part = _mm256_extractf128_ps(x, 1);
        p += 4;
        n -= 4;
    }
    if (n >= 2) {
        _mm_storel_pi((__m64 *)(void *)p, part);
        part = _mm_movehl_ps(part, part);
        p += 2;
        n -= 2;
    }
    if (n == 1) _mm_store_ss(p, part);
}

LANES_INLINE void lanes_store_some(float *p, lanes x, int64_t n)
{
    __m256 rest = x.low;
    if (n >= 8) {
        _mm256_storeu_ps(p, x.low);
        rest = x.high;
        p += 8;
        n -= 8;
    }
    lanes_store_some_8(p, rest, n);
}

LANES_INLINE number number_load(const float *p)
{
    return _mm256_broadcast_ss(p);
}

LANES_INLINE lanes lanes_add_product(number x, lanes b, lanes c)
{
    return (lanes){_mm256_fmadd_ps(x, b.low, c.low), _mm256_fmadd_ps(x, b.high, c.high)};
}

LANES_INLINE lanes lanes_multiply(number x, lanes b)
{
    return (lanes){_mm256_mul_ps(x, b.low), _mm256_mul_ps(x, b.high)};
}

LANES_INLINE lanes lanes_add(lanes x, lanes y)
{
    return (lanes){_mm256_add_ps(x.low, y.low), _mm256_add_ps(x.high, y.high)};
}

LANES_INLINE lanes lanes_subtract(lanes x, lanes y)
{
    return (lanes){_mm256_sub_ps(x.low, y.low), _mm256_sub_ps(x.high, y.high)};
}

LANES_INLINE lanes lanes_relu(lanes x)
{
    __m256 zero = _mm256_setzero_ps(); // the second operand, result of a NaN
    return (lanes){_mm256_max_ps(x.low, zero), _mm256_max_ps(x.high, zero)};
}

// Four numbers of rows l and l + 4 form a register; squares of 4 · 4 are transposed within its
// 128-bit parts.
enum { LANES_TURNED = 4 };
LANES_INLINE void lanes_turn_8(const float *from, int64_t step, __m256 out[LANES_TURNED])
{
    __m256 x[4];
    for (int l = 0; l < 4; l++, from += step) {
        x[l] = _mm256_castps128_ps256(_mm_loadu_ps(from));
        x[l] = _mm256_insertf128_ps(x[l], _mm_loadu_ps(from + 4 * step), 1);
    }
    __m256 a = _mm256_unpacklo_ps(x[0], x[1]), b = _mm256_unpackhi_ps(x[0], x[1]);
    __m256 c = _mm256_unpacklo_ps(x[2], x[3]), d = _mm256_unpackhi_ps(x[2], x[3]);
    out[0] = _mm256_shuffle_ps(a, c, 0x44);
    out[1] = _mm256_shuffle_ps(a, c, 0xee);
    out[2] = _mm256_shuffle_ps(b, d, 0x44);
    out[3] = _mm256_shuffle_ps(b, d, 0xee);
}

LANES_INLINE void lanes_turn(const float *from, int64_t step, lanes out[LANES_TURNED])
{
    __m256 low[LANES_TURNED], high[LANES_TURNED];
    lanes_turn_8(from, step, low);
    lanes_turn_8(from + 8 * step, step, high);
    for (int i = 0; i < LANES_TURNED; i++)
        out[i] = (lanes){low[i], high[i]};
}
