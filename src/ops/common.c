// Rules that several families share: axes, broadcasting, types. A missing or empty list of axes
// means all of them, and negative ones count from the end. An open dimension broadcasts only with
// itself and with 1: whether two symbols have the same size is unknown until shapes are closed, and
// then the rule runs again.
#include <string.h>

#include "ops/families.h"

bel_status *bel_read_axis(const bel_attr_list *attrs, int64_t otherwise, int32_t rank,
                          int32_t *out_axis)
{
    int64_t given = bel_attr_whole(attrs, "axis", otherwise);
    int64_t axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "axis %lld does not exist in rank %d",
                       (long long)given, (int)rank);
    }
    *out_axis = (int32_t)axis;
    return NULL;
}

bel_status *bel_read_axes(const bel_attr_list *attrs, int32_t rank, bool out_listed[BEL_MAX_RANK])
{
    const bel_shape *axes = bel_attr_ints(attrs, "axes");
    memset(out_listed, axes == NULL || axes->rank == 0, BEL_MAX_RANK * sizeof(bool));
    for (int32_t i = 0; axes != NULL && i < axes->rank; i++) {
        int64_t axis = axes->dims[i] < 0 ? axes->dims[i] + rank : axes->dims[i];
        if (axis < 0 || axis >= rank) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "axis %lld does not exist in rank %d",
                           (long long)axes->dims[i], (int)rank);
        }
        out_listed[axis] = true;
    }
    return NULL;
}

bel_status *bel_read_ints(const bel_attr_list *attrs, const char *name, const bel_shape **out_ints)
{
    *out_ints = bel_attr_ints(attrs, name);
    if (*out_ints != NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "the attribute %s is missing", name);
}

bel_status *bel_needs_i64(bel_dtype dtype)
{
    if (dtype == BEL_DTYPE_I64) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "indices must be i64, got %s", bel_dtype_name(dtype));
}

bel_status *bel_broadcast_shapes(const bel_shape *a, const bel_shape *b, bel_shape *out_shape)
{
    bel_shape shape = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int32_t i = 0; i < shape.rank; i++) { // from the last dimension
        int64_t p = i < a->rank ? a->dims[a->rank - 1 - i] : 1;
        int64_t q = i < b->rank ? b->dims[b->rank - 1 - i] : 1;
        if (p != q && p != 1 && q != 1) {
            char at[BEL_SHAPE_TEXT], bt[BEL_SHAPE_TEXT];
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "shapes %s and %s do not broadcast (dimension %d from the end)%s",
                           bel_shape_text(a, at), bel_shape_text(b, bt), (int)i + 1,
                           p < 0 || q < 0 ? ": an open dimension fits 1 and itself only" : "");
        }
        shape.dims[shape.rank - 1 - i] = p == 1 ? q : p;
    }
    *out_shape = shape;
    return NULL;
}

bel_status *bel_check_like(const char *what, const bel_spec *got, const bel_spec *want)
{
    bool fits = got->dtype == want->dtype && got->shape.rank == want->shape.rank;
    for (int32_t d = 0; fits && d < want->shape.rank; d++) {
        int64_t p = got->shape.dims[d], q = want->shape.dims[d];
        fits = p == q || p < 0 || q < 0;
    }
    if (fits) return NULL;
    char gt[BEL_SHAPE_TEXT], wt[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "expected %s %s %s, got %s %s", what,
                   bel_dtype_name(want->dtype), bel_shape_text(&want->shape, wt),
                   bel_dtype_name(got->dtype), bel_shape_text(&got->shape, gt));
}
