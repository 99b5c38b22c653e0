// Cast between all types. The main types have a loop for each pair; other pairs, such as most with
// 16-bit floats, use the plain kernel through double. Both must agree, so integers convert to f32
// through double as well, although that rounds twice above 2^53. A float truncates towards 0 and is
// clamped to the range of the integer type, and NaN becomes 0: never C's undefined conversion. An
// integer keeps its low bits, and BOOL becomes "not zero".
#include "ops/families.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/elements.h"

bel_status *bel_infer_cast(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                           bel_spec *out_outputs)
{
    (void)input_count;
    int64_t to = bel_attr_whole(attrs, "to", BEL_DTYPE_F32);
    if (to < 0 || to > BEL_DTYPE_BF16 || to == BEL_DTYPE_STRING) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "cannot cast to type number %lld", (long long)to);
    }
    out_outputs[0] = inputs[0];
    out_outputs[0].dtype = (bel_dtype)to;
    return NULL;
}

static void run_cast_reference(const bel_kernel_call *call, int64_t tile)
{
    const bel_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    bool whole = bel_element_is_whole(x->dtype) && bel_element_is_whole(y->dtype);
    int64_t end = bel_tile_end(tile, bel_shape_elements(&y->shape));
    for (int64_t i = bel_tile_begin(tile); i < end; i++) {
        if (whole) bel_element_set_whole(y, i, bel_element_get_whole(x, i));
        if (!whole) bel_element_set(y, i, bel_element_get(x, i));
    }
}

#define CAST(from, to_name, to, expression)                                                        \
    static void from##_to_##to_name(const bel_kernel_call *call, int64_t tile)                     \
    {                                                                                              \
        const from *x = call->inputs[0].data;                                                      \
        to *y = call->outputs[0].data;                                                             \
        int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));             \
        for (int64_t i = bel_tile_begin(tile); i < end; i++) {                                     \
            const from v = x[i];                                                                   \
            y[i] = expression;                                                                     \
        }                                                                                          \
    }
#define CAST_FLOAT(from)                                                                           \
    CAST(from, f32, float, (float)v)                                                               \
    CAST(from, f64, double, (double)v)                                                             \
    CAST(from, i32, int32_t, (int32_t)bel_whole_of((double)v, INT32_MIN, INT32_MAX))               \
    CAST(from, i64, int64_t, bel_whole_of((double)v, INT64_MIN, INT64_MAX))                        \
    CAST(from, u8, uint8_t, (uint8_t)bel_whole_of((double)v, 0, UINT8_MAX))                        \
    CAST(from, bool, uint8_t, v != 0)
#define CAST_WHOLE(from)                                                                           \
    CAST(from, f32, float, (float)(double)v)                                                       \
    CAST(from, f64, double, (double)v)                                                             \
    CAST(from, i32, int32_t, (int32_t)v)                                                           \
    CAST(from, i64, int64_t, (int64_t)v)                                                           \
    CAST(from, u8, uint8_t, (uint8_t)v)                                                            \
    CAST(from, bool, uint8_t, v != 0)
CAST_FLOAT(float)
CAST_FLOAT(double)
CAST_WHOLE(int32_t)
CAST_WHOLE(int64_t)
CAST_WHOLE(uint8_t)

static void f32_to_bf16(const bel_kernel_call *call, int64_t tile)
{
    int64_t begin = bel_tile_begin(tile);
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    bel_cpu_kernels_get()->to_bfloat((const float *)call->inputs[0].data + begin,
                                     (uint16_t *)call->outputs[0].data + begin, end - begin);
}

static void bf16_to_f32(const bel_kernel_call *call, int64_t tile)
{
    int64_t begin = bel_tile_begin(tile);
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    bel_cpu_kernels_get()->from_bfloat((const uint16_t *)call->inputs[0].data + begin,
                                       (float *)call->outputs[0].data + begin, end - begin);
}

// Missing pairs, such as 16-bit floats with most others, use the reference kernel.
#define TO(from)                                                                                   \
    [BEL_DTYPE_F32] = from##_to_f32, [BEL_DTYPE_F64] = from##_to_f64,                              \
    [BEL_DTYPE_I32] = from##_to_i32, [BEL_DTYPE_I64] = from##_to_i64,                              \
    [BEL_DTYPE_U8] = from##_to_u8, [BEL_DTYPE_BOOL] = from##_to_bool
static bel_kernel_fn *const casts[BEL_DTYPE_BF16 + 1][BEL_DTYPE_BF16 + 1] = {
    [BEL_DTYPE_F32] = {TO(float), [BEL_DTYPE_BF16] = f32_to_bf16},
    [BEL_DTYPE_F64] = {TO(double)},
    [BEL_DTYPE_I32] = {TO(int32_t)},
    [BEL_DTYPE_I64] = {TO(int64_t)},
    [BEL_DTYPE_U8] = {TO(uint8_t)},
    [BEL_DTYPE_BOOL] = {TO(uint8_t)},
    [BEL_DTYPE_BF16] = {[BEL_DTYPE_F32] = bf16_to_f32},
};

void bel_prepare_cast(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_kernel_fn *run = casts[call->inputs[0].dtype][call->outputs[0].dtype];
    call->run = prepare->reference || run == NULL ? run_cast_reference : run;
    call->tile_count = bel_tiles_of(bel_shape_elements(&call->outputs[0].shape));
}
