// lanes.h in plain C, for every processor. The fused multiply-add is made of doubles.
#include <string.h>

typedef struct lanes {
    float x[LANES];
} lanes;
typedef float number;

#define LANES_ROWS                                                                                 \
    {                                                                                              \
        [1] = 6, [2] = 3, [4] = 1                                                                  \
    }
#define LANES_TILES(tile)                                                                          \
    tile(1, 1) tile(2, 1) tile(3, 1) tile(4, 1) tile(5, 1) tile(6, 1) tile(1, 2) tile(2, 2)        \
        tile(3, 2) tile(1, 4)
enum { LANES_WIDTH = 1, LANES_CACHED = 1 << 16 };

LANES_INLINE lanes lanes_load(const float *p)
{
    lanes x;
    memcpy(x.x, p, sizeof x.x);
    return x;
}

LANES_INLINE lanes lanes_load_some(const float *p, int64_t n)
{
    lanes x = {{0}};
    memcpy(x.x, p, (size_t)n * sizeof *p);
    return x;
}

LANES_INLINE void lanes_store(float *p, lanes x)
{
    memcpy(p, x.x, sizeof x.x);
}

LANES_INLINE void lanes_store_some(float *p, lanes x, int64_t n)
{
    memcpy(p, x.x, (size_t)n * sizeof *p);
}

LANES_INLINE number number_load(const float *p)
{
    return *p;
}

// a · b + c, rounded once. The product is exact in double; the sum is rounded to odd there, which
// makes the second rounding harmless (Boldo and Melquiond 2008).
LANES_INLINE float fused(float a, float b, float c)
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

LANES_INLINE lanes lanes_add_product(number x, lanes b, lanes c)
{
    for (int l = 0; l < LANES; l++)
        c.x[l] = fused(x, b.x[l], c.x[l]);
    return c;
}

enum { LANES_TURNED = 4 };
LANES_INLINE void lanes_turn(const float *from, int64_t step, lanes out[LANES_TURNED])
{
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < LANES_TURNED; i++)
            out[i].x[l] = from[l * step + i];
}
