// Functions of elementwise.def for kernels. For operation ID: f32_ID in float, f64_ID in double
// (with PLAIN) and whole_ID in int64_t, all with (p, q, s, t). cuda/launch_elementwise.c generates
// the sources that use them.
#ifndef BELFRY_CUDA_KERNELS_ELEMENTS_H
#define BELFRY_CUDA_KERNELS_ELEMENTS_H

#include "cuda/kernels/bfloat.h"
#include "ops/kernels/scalar.h"

// Elements that a thread reads and writes with one access.
#define WIDE 4
typedef struct __attribute__((aligned(16))) wide_float {
    float v[WIDE];
} wide_float;
typedef struct __attribute__((aligned(8))) wide_uint16_t {
    uint16_t v[WIDE];
} wide_uint16_t;

#ifdef PLAIN
#include "base/real.c"
#include "ops/kernels/plain.h"
#include "tensor/half.c"
#endif

#define F32(id, f32)                                                                               \
    static inline float f32_##id(float p, float q, float s, float t)                               \
    {                                                                                              \
        (void)p, (void)q, (void)s, (void)t;                                                        \
        return (float)(f32);                                                                       \
    }
#define BINARY(id, f32, plain) F32(id, f32)
#define UNARY(id, f32, plain) F32(id, f32)
#define CURVE(id, s_name, s_default, t_name, t_default, f32, plain) F32(id, f32)
#define CURVE_GRAD(id, s_name, s_default, t_name, t_default, f32, plain) F32(id, f32)
#include "ops/kernels/elementwise.def"

static inline float f32_CAST(float p, float q, float s, float t)
{
    (void)q, (void)s, (void)t;
    return p;
}

#ifdef PLAIN
#define F64(id, plain)                                                                             \
    static inline double f64_##id(double p, double q, double s, double t)                          \
    {                                                                                              \
        (void)p, (void)q, (void)s, (void)t;                                                        \
        return (double)(plain);                                                                    \
    }
#define BINARY(id, f32, plain) F64(id, plain)
#define PLAIN_BINARY(id, plain) F64(id, plain)
#define UNARY(id, f32, plain) F64(id, plain)
#define PLAIN_UNARY(id, plain) F64(id, plain)
#define CURVE(id, s_name, s_default, t_name, t_default, f32, plain) F64(id, plain)
#define CURVE_GRAD(id, s_name, s_default, t_name, t_default, f32, plain) F64(id, plain)
#include "ops/kernels/elementwise.def"

static inline double f64_CAST(double p, double q, double s, double t)
{
    (void)q, (void)s, (void)t;
    return p;
}
#endif

#define WHOLE(id, whole)                                                                           \
    static inline int64_t whole_##id(int64_t p, int64_t q, int64_t s, int64_t t)                   \
    {                                                                                              \
        (void)p, (void)q, (void)s, (void)t;                                                        \
        return (int64_t)(whole);                                                                   \
    }
#define WHOLE_BINARY(id, whole) WHOLE(id, whole)
#define WHOLE_UNARY(id, whole) WHOLE(id, whole)
#include "ops/kernels/elementwise.def"

static inline int64_t whole_CAST(int64_t p, int64_t q, int64_t s, int64_t t)
{
    (void)q, (void)s, (void)t;
    return p;
}

#endif
