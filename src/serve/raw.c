// Bytes of tensors as they travel: little-endian, as the processor has them, so numbers are copied.
// Only texts have another form. All sizes come from strangers, and are compared before a byte is
// read.
#include "serve/raw.h"

#include <string.h>

#include "base/str.h"

bool bel_raw_is_cells(const bel_infer *infer, int input, bel_dtype dtype)
{
    return infer->version->inputs[input].column != NULL && dtype == BEL_DTYPE_STRING;
}

bel_status *bel_raw_place_cells(bel_infer *infer, int input, const bel_shape *shape,
                                bel_cell_rows *out_rows)
{
    char text[BEL_SHAPE_TEXT];
    if (shape->rank != 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "\"%s\": expected a shape of one size, got %s",
                       infer->version->inputs[input].column->name, bel_shape_text(shape, text));
    }
    return bel_infer_place_cells(infer, input, shape->dims[0], out_rows);
}

static bel_status *read_cells(const bel_cell_rows *to, const char *data, size_t size)
{
    int64_t rows = to->tensor.shape.dims[0], i = 0;
    for (; i < rows && size >= sizeof(uint32_t); i++) {
        uint32_t length;
        memcpy(&length, data, sizeof length);
        if (length > size - sizeof length) break;
        const bel_cell cell = {data + sizeof length, length};
        BEL_TRY(bel_cells_put(to, cell, i));
        data += sizeof length + length;
        size -= sizeof length + length;
    }
    if (i == rows && size == 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "\"%s\": expected %lld texts in the binary data, got %s",
                   to->column->name, (long long)rows, i < rows ? "fewer" : "more");
}

static bel_status *copy_elements(const char *name, const bel_tensor *tensor, const char *data,
                                 size_t size)
{
    size_t expected = bel_tensor_bytes(tensor);
    if (size != expected)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "input \"%s\": expected %zu bytes, got %zu", name,
                       expected, size);
    for (size_t i = 0; i < size && tensor->dtype == BEL_DTYPE_BOOL; i++)
        if ((unsigned char)data[i] > 1)
            return BEL_ERR(BEL_INVALID_ARGUMENT, "input \"%s\": a BOOL is a byte 0 or 1, got %u",
                           name, (unsigned)(unsigned char)data[i]);
    if (size > 0) memcpy(tensor->data, data, size);
    return NULL;
}

bel_status *bel_raw_take_elements(const bel_infer *infer, int input, const bel_tensor *tensor)
{
    const bel_served *version = infer->version;
    const bel_column *column = version->inputs[input].column;
    if (column == NULL) return NULL;
    bool is_number = column->kind == BEL_COLUMN_NUMBER;
    bool is_index =
        version->live != NULL && column->kind == BEL_COLUMN_CATEGORY && bel_cells_are_ids(column);
    for (int64_t i = 0; i < tensor->shape.dims[0] && is_number; i++)
        BEL_TRY(bel_cells_put_number(version->columns, column, ((const double *)tensor->data)[i], i,
                                     tensor));
    for (int64_t i = 0; i < tensor->shape.dims[0] && is_index; i++)
        BEL_TRY(bel_cells_index_to_id(column, (int64_t *)tensor->data + i));
    return NULL;
}

bel_status *bel_raw_read(bel_infer *infer, int input, bel_dtype dtype, const bel_shape *shape,
                         const char *data, size_t size)
{
    bel_cell_rows cells;
    bel_tensor tensor;
    if (bel_raw_is_cells(infer, input, dtype)) {
        BEL_TRY(bel_raw_place_cells(infer, input, shape, &cells));
        return read_cells(&cells, data, size);
    }
    BEL_TRY(bel_infer_place(infer, input, dtype, shape, &tensor));
    BEL_TRY(copy_elements(infer->version->inputs[input].port.name, &tensor, data, size));
    return bel_raw_take_elements(infer, input, &tensor);
}

void bel_raw_write(const bel_infer *infer, int output, bel_str *out)
{
    const bel_tensor tensor = bel_infer_output(infer, output);
    if (tensor.dtype != BEL_DTYPE_STRING) {
        bel_str_append(out, tensor.data, bel_tensor_bytes(&tensor));
        return;
    }
    for (int64_t i = 0; i < tensor.shape.dims[0]; i++) {
        const char *name = bel_infer_class(infer, i);
        uint32_t length = (uint32_t)strlen(name);
        bel_str_append(out, (const char *)&length, sizeof length);
        bel_str_append(out, name, length);
    }
}
