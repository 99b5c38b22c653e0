// Element types, shapes and views. The product of a shape is -1 if a dimension is open and
// INT64_MAX on overflow, so that a caller's comparison with its limit refuses both. Open dimensions
// are negative numbers, one for each symbol: two are equal only if they are the same symbol. A view
// owns nothing.
#include "belfry/tensor.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/number.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [BEL_DTYPE_F32] = {"f32", 4},       [BEL_DTYPE_F64] = {"f64", 8},
    [BEL_DTYPE_I32] = {"i32", 4},       [BEL_DTYPE_I64] = {"i64", 8},
    [BEL_DTYPE_U8] = {"u8", 1},         [BEL_DTYPE_BOOL] = {"bool", 1},
    [BEL_DTYPE_STRING] = {"string", 1}, [BEL_DTYPE_F16] = {"f16", 2},
    [BEL_DTYPE_BF16] = {"bf16", 2},
};

size_t bel_dtype_size(bel_dtype dtype)
{
    BEL_CHECK((size_t)dtype < sizeof dtypes / sizeof dtypes[0]);
    return dtypes[dtype].size;
}

const char *bel_dtype_name(bel_dtype dtype)
{
    return (size_t)dtype < sizeof dtypes / sizeof dtypes[0] ? dtypes[dtype].name : "unknown";
}

bel_shape bel_shape_make(int32_t rank, const int64_t *dims)
{
    BEL_CHECK(rank >= 0 && rank <= BEL_MAX_RANK);
    bel_shape shape = {.rank = rank};
    memcpy(shape.dims, dims, (size_t)rank * sizeof *dims);
    return shape;
}

bel_shape bel_shape_scalar(void)
{
    return (bel_shape){.rank = 0};
}

bool bel_shape_equal(const bel_shape *a, const bel_shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

int64_t bel_shape_elements(const bel_shape *shape)
{
    int64_t count = 1;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0) return -1;
        if (__builtin_mul_overflow(count, shape->dims[i], &count)) return INT64_MAX;
    }
    return count;
}

const char *bel_shape_text(const bel_shape *shape, char text[BEL_SHAPE_TEXT])
{
    size_t used = 0;
    text[used++] = '[';
    for (int32_t i = 0; i < shape->rank && used + 24 < BEL_SHAPE_TEXT; i++) {
        const char *separator = i > 0 ? ", " : "";
        int wrote = shape->dims[i] < 0
                        ? bel_snprintf(text + used, BEL_SHAPE_TEXT - used, "%s?", separator)
                        : bel_snprintf(text + used, BEL_SHAPE_TEXT - used, "%s%lld", separator,
                                       (long long)shape->dims[i]);
        used += (size_t)wrote;
    }
    bel_snprintf(text + used, BEL_SHAPE_TEXT - used, "]");
    return text;
}

size_t bel_tensor_bytes(const bel_tensor *tensor)
{
    int64_t elements = bel_shape_elements(&tensor->shape);
    BEL_CHECK(elements >= 0);
    size_t bytes;
    bool fits = bel_size_mul((size_t)elements, bel_dtype_size(tensor->dtype), &bytes);
    return fits ? bytes : SIZE_MAX;
}
