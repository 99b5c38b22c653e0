// lanes.h with AVX-512: 16 lanes are one of the 32 registers. A cycle has two fused multiply-adds
// and two loads, so tiles of 6 rows by 64 lanes keep the arithmetic units busy: 24 products for 10
// loads, and few enough instructions for a core that two hardware threads share.
#include <immintrin.h>

typedef __m512 lanes;
typedef __m512 number;

#define LANES_ROWS                                                                                 \
    {                                                                                              \
        [1] = 16, [2] = 12, [4] = 6, [8] = 3                                                       \
    }
#define LANES_TILES(tile)                                                                          \
    tile(1, 1) tile(2, 1) tile(3, 1) tile(4, 1) tile(5, 1) tile(6, 1) tile(7, 1) tile(8, 1)        \
        tile(9, 1) tile(10, 1) tile(11, 1) tile(12, 1) tile(13, 1) tile(14, 1) tile(15, 1)         \
            tile(16, 1) tile(1, 2) tile(2, 2) tile(3, 2) tile(4, 2) tile(5, 2) tile(6, 2)          \
                tile(7, 2) tile(8, 2) tile(9, 2) tile(10, 2) tile(11, 2) tile(12, 2) tile(1, 4)    \
                    tile(2, 4) tile(3, 4) tile(4, 4) tile(5, 4) tile(6, 4) tile(1, 8) tile(2, 8)   \
                        tile(3, 8)
enum { LANES_WIDTH = 4, LANES_CACHED = 1 << 17 };

LANES_INLINE __mmask16 lanes_first(int64_t n)
{
    return (__mmask16)((1u << n) - 1);
}

LANES_INLINE lanes lanes_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

#define LANES_MASKED
LANES_INLINE lanes lanes_load_some(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(lanes_first(n), p);
}

LANES_INLINE void lanes_store(float *p, lanes x)
{
    _mm512_storeu_ps(p, x);
}

LANES_INLINE void lanes_store_some(float *p, lanes x, int64_t n)
{
    if (n == 8) { // an unmasked store can be loaded again at once
        _mm256_storeu_ps(p, _mm512_castps512_ps256(x));
    } else {
        _mm512_mask_storeu_ps(p, lanes_first(n), x);
    }
}

LANES_INLINE number number_load(const float *p)
{
    return _mm512_set1_ps(*p);
}

LANES_INLINE lanes lanes_add_product(number x, lanes b, lanes c)
{
    return _mm512_fmadd_ps(x, b, c);
}

LANES_INLINE lanes lanes_multiply(number x, lanes b)
{
    return _mm512_mul_ps(x, b);
}

LANES_INLINE lanes lanes_add(lanes x, lanes y)
{
    return _mm512_add_ps(x, y);
}

LANES_INLINE lanes lanes_subtract(lanes x, lanes y)
{
    return _mm512_sub_ps(x, y);
}

LANES_INLINE lanes lanes_relu(lanes x)
{
    return _mm512_max_ps(x, _mm512_setzero_ps()); // returns the second operand for NaN
}

// Eight numbers of rows l and l + 4, for l < 4, form four registers; the squares of 4 · 4 in their
// quarters are transposed. With the same of the rows 8 further down, whose quarters follow, columns
// are complete.
enum { LANES_TURNED = 8 };
LANES_INLINE void lanes_turn(const float *from, int64_t step, lanes out[LANES_TURNED])
{
    __m512 x[2][4];
    for (int half = 0; half < 2; half++) {
        const float *row = from + 8 * half * step;
        __m512 in[4];
        for (int l = 0; l < 4; l++, row += step) {
            __m256d low = _mm256_castps_pd(_mm256_loadu_ps(row));
            __m256d high = _mm256_castps_pd(_mm256_loadu_ps(row + 4 * step));
            in[l] = _mm512_castpd_ps(_mm512_insertf64x4(_mm512_castpd256_pd512(low), high, 1));
        }
        __m512 a = _mm512_unpacklo_ps(in[0], in[1]), b = _mm512_unpackhi_ps(in[0], in[1]);
        __m512 c = _mm512_unpacklo_ps(in[2], in[3]), d = _mm512_unpackhi_ps(in[2], in[3]);
        x[half][0] = _mm512_shuffle_ps(a, c, 0x44);
        x[half][1] = _mm512_shuffle_ps(a, c, 0xee);
        x[half][2] = _mm512_shuffle_ps(b, d, 0x44);
        x[half][3] = _mm512_shuffle_ps(b, d, 0xee);
    }
    for (int c = 0; c < 4; c++) {
        out[c] = _mm512_shuffle_f32x4(x[0][c], x[1][c], 0x88);
        out[c + 4] = _mm512_shuffle_f32x4(x[0][c], x[1][c], 0xdd);
    }
}
