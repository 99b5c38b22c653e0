// Format: the number of fields (or LEFT_OUT), and for each field: length of its name, name and a
// zero byte, type, rank, dimensions, bytes. A record that could not be made is instead: FAILED, the
// code of the error, its message. All numbers have 64 bits in the machine's byte order. A reader
// trusts nothing: it checks every length against the bytes that are left.
#include "input/source/packed_record.h"

#include <string.h>

#include "base/str.h"

static const uint64_t LEFT_OUT = UINT64_MAX, FAILED = UINT64_MAX - 1;

static void packed_record_put(bel_str *out, uint64_t number)
{
    bel_str_append(out, (const char *)&number, sizeof number);
}

void bel_packed_record_write(const bel_record *record, bel_str *out)
{
    packed_record_put(out, record == NULL ? LEFT_OUT : record->field_count);
    for (size_t i = 0; record != NULL && i < record->field_count; i++) {
        const char *name = record->fields[i]->name;
        const bel_tensor *tensor = &record->fields[i]->tensor;
        size_t bytes = bel_tensor_bytes(tensor);
        packed_record_put(out, strlen(name));
        bel_str_append(out, name, strlen(name) + 1);
        packed_record_put(out, (uint64_t)tensor->dtype);
        packed_record_put(out, (uint64_t)tensor->shape.rank);
        for (int32_t d = 0; d < tensor->shape.rank; d++)
            packed_record_put(out, (uint64_t)tensor->shape.dims[d]);
        if (bytes > 0) bel_str_append(out, tensor->data, bytes);
    }
}

void bel_packed_record_write_error(const bel_status *error, bel_str *out)
{
    packed_record_put(out, FAILED);
    packed_record_put(out, (uint64_t)bel_status_code(error));
    bel_str_puts(out, bel_status_message(error));
}

typedef struct reader {
    const char *at, *end;
} reader;

static bool packed_record_take(reader *r, uint64_t *out_number)
{
    if ((size_t)(r->end - r->at) < sizeof *out_number) return false;
    memcpy(out_number, r->at, sizeof *out_number);
    r->at += sizeof *out_number;
    return true;
}

static bool take_shape(reader *r, bel_shape *out_shape)
{
    uint64_t rank;
    if (!packed_record_take(r, &rank) || rank >= BEL_MAX_RANK) return false;
    *out_shape = (bel_shape){.rank = (int32_t)rank};
    for (uint64_t d = 0; d < rank; d++) {
        uint64_t dim;
        if (!packed_record_take(r, &dim) || dim > INT64_MAX) return false;
        out_shape->dims[d] = (int64_t)dim;
    }
    return true;
}

static bool take_field(reader *r, bel_record *record)
{
    uint64_t name_length, dtype;
    if (!packed_record_take(r, &name_length) || name_length >= (uint64_t)(r->end - r->at))
        return false;
    const char *name = r->at;
    if (name[name_length] != '\0') return false;
    r->at += name_length + 1;
    bel_shape shape;
    if (!packed_record_take(r, &dtype) || dtype > BEL_DTYPE_STRING || !take_shape(r, &shape))
        return false;
    int64_t elements = bel_shape_elements(&shape);
    size_t size = bel_dtype_size((bel_dtype)dtype), left = (size_t)(r->end - r->at);
    if (elements < 0 || (uint64_t)elements > left / size) return false;
    void *to = bel_record_append(record, name, (bel_dtype)dtype, &shape);
    size_t bytes = (size_t)elements * size;
    if (bytes > 0) memcpy(to, r->at, bytes);
    r->at += bytes;
    return true;
}

static bel_status *broken(void)
{
    return BEL_ERR(BEL_DATA_LOSS, "these bytes are no record");
}

bel_status *bel_packed_record_read(const char *data, size_t size, bel_record *record,
                                   bool *out_skip)
{
    reader r = {data, data + size};
    uint64_t count, code;
    if (!packed_record_take(&r, &count)) return broken();
    if (count == FAILED) {
        if (!packed_record_take(&r, &code) || code == BEL_OK || code > BEL_UNAUTHENTICATED)
            return broken();
        if (r.at == r.end || *r.at == '\0') return broken(); // every error has a message
        return BEL_ERR((bel_code)code, "%.*s", (int)(r.end - r.at), r.at);
    }
    *out_skip = count == LEFT_OUT;
    for (uint64_t i = 0; count != LEFT_OUT && i < count; i++)
        if (!take_field(&r, record)) return broken();
    return r.at == r.end ? NULL : broken();
}
