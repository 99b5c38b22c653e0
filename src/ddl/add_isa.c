// The loops of one level. `out` and `also` may be operands, because elements are independent.
#include "ddl/add.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

#if defined(__clang__)
#define EACH_ALONE _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_ALONE _Pragma("GCC ivdep")
#endif

// Writes both results in one pass, while the operands are in registers.
#define ADD(type, expression)                                                                      \
    if (also == NULL) {                                                                            \
        EACH_ALONE                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (type)(expression);                                                            \
    } else {                                                                                       \
        EACH_ALONE                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type sum = (type)(expression);                                                         \
            to[i] = sum;                                                                           \
            too[i] = sum;                                                                          \
        }                                                                                          \
    }

#define OPERANDS(type)                                                                             \
    const type *x = a, *y = b;                                                                     \
    type *to = out, *too = also;

#define FLOATS(name, type)                                                                         \
    static void name(const void *a, const void *b, int64_t n, double divisor, void *out,           \
                     void *also)                                                                   \
    {                                                                                              \
        OPERANDS(type)                                                                             \
        type by = (type)divisor;                                                                   \
        if (by == 1) {                                                                             \
            ADD(type, x[i] + y[i])                                                                 \
        } else {                                                                                   \
            ADD(type, (x[i] + y[i]) / by)                                                          \
        }                                                                                          \
    }

#define WHOLE(name, type)                                                                          \
    static void name(const void *a, const void *b, int64_t n, double divisor, void *out,           \
                     void *also)                                                                   \
    {                                                                                              \
        (void)divisor;                                                                             \
        OPERANDS(type)                                                                             \
        ADD(type, x[i] + y[i])                                                                     \
    }

FLOATS(add_f32, float)
FLOATS(add_f64, double)
WHOLE(add_i32, uint32_t)
WHOLE(add_i64, uint64_t)

const bel_ddl_adders JOIN(bel_ddl_adders_, BEL_LEVEL) = {add_f32, add_f64, add_i32, add_i64};
