// lanes.h in plain C, for every processor.
#include <string.h>

#include "ops/kernels/fused.h"

typedef struct lanes {
    float x[LANES];
} lanes;
typedef float number;

LANES_INLINE lanes lanes_load(const float *p)
{
    lanes x;
    memcpy(x.x, p, sizeof x.x);
    return x;
}

LANES_INLINE void lanes_store(float *p, lanes x)
{
    memcpy(p, x.x, sizeof x.x);
}

LANES_INLINE number number_load(const float *p)
{
    return *p;
}

LANES_INLINE lanes lanes_add_product(number x, lanes b, lanes c)
{
    for (int l = 0; l < LANES; l++)
        c.x[l] = bel_fused(x, b.x[l], c.x[l]);
    return c;
}

LANES_INLINE lanes lanes_multiply(number x, lanes b)
{
    for (int i = 0; i < LANES; i++)
        b.x[i] *= x;
    return b;
}

LANES_INLINE lanes lanes_add(lanes x, lanes y)
{
    for (int i = 0; i < LANES; i++)
        x.x[i] += y.x[i];
    return x;
}

LANES_INLINE lanes lanes_subtract(lanes x, lanes y)
{
    for (int i = 0; i < LANES; i++)
        x.x[i] -= y.x[i];
    return x;
}

LANES_INLINE lanes lanes_relu(lanes x)
{
    for (int l = 0; l < LANES; l++)
        x.x[l] = x.x[l] > 0 ? x.x[l] : 0;
    return x;
}

enum { LANES_TURNED = 4 };
LANES_INLINE void lanes_turn(const float *from, int64_t step, lanes out[LANES_TURNED])
{
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < LANES_TURNED; i++)
            out[i].x[l] = from[l * step + i];
}
