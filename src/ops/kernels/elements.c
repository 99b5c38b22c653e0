// Element access by type: a switch for each element, slow but simple, for the plain kernels. A
// float is rounded from double once. An integer from double is clamped to its range, and one set as
// an integer keeps its low bits. Strings never get here. bel_broadcast_index divides once for each
// dimension of an element; fast kernels use walks instead (walk.h).
#include "ops/kernels/elements.h"

#include "base/check.h"
#include "tensor/half.h"

double bel_element_get(const bel_tensor *tensor, int64_t index)
{
    switch (tensor->dtype) {
    case BEL_DTYPE_F32: return (double)((const float *)tensor->data)[index];
    case BEL_DTYPE_F64: return ((const double *)tensor->data)[index];
    case BEL_DTYPE_I32: return (double)((const int32_t *)tensor->data)[index];
    case BEL_DTYPE_I64: return (double)((const int64_t *)tensor->data)[index];
    case BEL_DTYPE_U8:
    case BEL_DTYPE_BOOL: return (double)((const uint8_t *)tensor->data)[index];
    case BEL_DTYPE_F16: return bel_half_get(((const uint16_t *)tensor->data)[index]);
    case BEL_DTYPE_BF16: return bel_bfloat_get(((const uint16_t *)tensor->data)[index]);
    case BEL_DTYPE_STRING: break;
    }
    BEL_UNREACHABLE("strings are no numbers");
    return 0;
}

void bel_element_set(const bel_tensor *tensor, int64_t index, double value)
{
    switch (tensor->dtype) {
    case BEL_DTYPE_F32: ((float *)tensor->data)[index] = (float)value; return;
    case BEL_DTYPE_F64: ((double *)tensor->data)[index] = value; return;
    case BEL_DTYPE_I32:
        ((int32_t *)tensor->data)[index] = (int32_t)bel_whole_of(value, INT32_MIN, INT32_MAX);
        return;
    case BEL_DTYPE_I64:
        ((int64_t *)tensor->data)[index] = bel_whole_of(value, INT64_MIN, INT64_MAX);
        return;
    case BEL_DTYPE_U8:
        ((uint8_t *)tensor->data)[index] = (uint8_t)bel_whole_of(value, 0, UINT8_MAX);
        return;
    case BEL_DTYPE_BOOL: ((uint8_t *)tensor->data)[index] = value != 0.0; return;
    case BEL_DTYPE_F16: ((uint16_t *)tensor->data)[index] = bel_half_make(value); return;
    case BEL_DTYPE_BF16: ((uint16_t *)tensor->data)[index] = bel_bfloat_make(value); return;
    case BEL_DTYPE_STRING: break;
    }
    BEL_UNREACHABLE("strings are no numbers");
}

bool bel_element_is_whole(bel_dtype dtype)
{
    return dtype == BEL_DTYPE_I32 || dtype == BEL_DTYPE_I64 || dtype == BEL_DTYPE_U8 ||
           dtype == BEL_DTYPE_BOOL;
}

int64_t bel_element_get_whole(const bel_tensor *tensor, int64_t index)
{
    switch (tensor->dtype) {
    case BEL_DTYPE_I32: return ((const int32_t *)tensor->data)[index];
    case BEL_DTYPE_I64: return ((const int64_t *)tensor->data)[index];
    default: return ((const uint8_t *)tensor->data)[index];
    }
}

void bel_element_set_whole(const bel_tensor *tensor, int64_t index, int64_t value)
{
    switch (tensor->dtype) {
    case BEL_DTYPE_I32: ((int32_t *)tensor->data)[index] = (int32_t)value; return;
    case BEL_DTYPE_I64: ((int64_t *)tensor->data)[index] = value; return;
    case BEL_DTYPE_BOOL: ((uint8_t *)tensor->data)[index] = value != 0; return;
    default: ((uint8_t *)tensor->data)[index] = (uint8_t)value; return;
    }
}

int64_t bel_element_class(const bel_tensor *row, double threshold)
{
    int64_t count = bel_shape_elements(&row->shape), best = 0;
    if (count == 2 && threshold != 0.5) return bel_element_get(row, 1) > (double)(float)threshold;
    if (row->dtype == BEL_DTYPE_F32) {
        const float *values = row->data;
        for (int64_t i = 1; i < count; i++)
            if (values[i] > values[best]) best = i;
        return best;
    }
    for (int64_t i = 1; i < count; i++)
        if (bel_element_get(row, i) > bel_element_get(row, best)) best = i;
    return best;
}

int64_t bel_broadcast_index(const bel_shape *output, const bel_shape *input, int64_t index)
{
    int64_t result = 0, stride = 1;
    for (int32_t i = 0; i < input->rank; i++) {
        int64_t output_dim = output->dims[output->rank - 1 - i];
        int64_t input_dim = input->dims[input->rank - 1 - i];
        if (input_dim != 1) result += index % output_dim * stride;
        index /= output_dim;
        stride *= input_dim;
    }
    return result;
}
