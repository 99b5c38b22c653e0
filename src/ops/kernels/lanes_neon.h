// lanes.h with the vectors of aarch64: 16 lanes are four registers of 32. Its fused multiply-add is
// part of every such processor.
#include <arm_neon.h>

enum { LANES_PARTS = 4 };

typedef struct lanes {
    float32x4_t x[LANES_PARTS];
} lanes;
typedef float32x4_t number;

LANES_INLINE lanes lanes_load(const float *p)
{
    lanes x;
    for (int i = 0; i < LANES_PARTS; i++)
        x.x[i] = vld1q_f32(p + 4 * i);
    return x;
}

LANES_INLINE void lanes_store(float *p, lanes x)
{
    for (int i = 0; i < LANES_PARTS; i++)
        vst1q_f32(p + 4 * i, x.x[i]);
}

LANES_INLINE number number_load(const float *p)
{
    return vld1q_dup_f32(p);
}

LANES_INLINE lanes lanes_add_product(number x, lanes b, lanes c)
{
    for (int i = 0; i < LANES_PARTS; i++)
        c.x[i] = vfmaq_f32(c.x[i], x, b.x[i]);
    return c;
}

LANES_INLINE lanes lanes_multiply(number x, lanes b)
{
    for (int i = 0; i < LANES_PARTS; i++)
        b.x[i] = vmulq_f32(x, b.x[i]);
    return b;
}

LANES_INLINE lanes lanes_add(lanes x, lanes y)
{
    for (int i = 0; i < LANES_PARTS; i++)
        x.x[i] = vaddq_f32(x.x[i], y.x[i]);
    return x;
}

LANES_INLINE lanes lanes_subtract(lanes x, lanes y)
{
    for (int i = 0; i < LANES_PARTS; i++)
        x.x[i] = vsubq_f32(x.x[i], y.x[i]);
    return x;
}

LANES_INLINE lanes lanes_relu(lanes x)
{
    float32x4_t zero = vdupq_n_f32(0);
    for (int i = 0; i < LANES_PARTS; i++)
        x.x[i] = vbslq_f32(vcgtq_f32(x.x[i], zero), x.x[i], zero);
    return x;
}

enum { LANES_TURNED = 4 };
LANES_INLINE void lanes_turn(const float *from, int64_t step, lanes out[LANES_TURNED])
{
    for (int i = 0; i < LANES_PARTS; i++, from += 4 * step) {
        float32x4x2_t a = vtrnq_f32(vld1q_f32(from), vld1q_f32(from + step));
        float32x4x2_t b = vtrnq_f32(vld1q_f32(from + 2 * step), vld1q_f32(from + 3 * step));
        out[0].x[i] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
        out[1].x[i] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
        out[2].x[i] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
        out[3].x[i] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
    }
}
