// Assigns symbols to open dimensions. A user may write BEL_DIM_TIME or below in several fields:
// equal symbols are one dimension, padded to one length. Every other open dimension gets a separate
// symbol, below those of the user.
#include "input/batch/fields.h"

#include <string.h>

enum { MAX_USER_SYMBOLS = 64 };

static const bel_padded_shape *find_padded(const bel_description *description, const char *name)
{
    for (int i = 0; i < description->padded_shape_count; i++) {
        const bel_padded_shape *padded = &description->padded_shapes[i];
        if (strcmp(padded->field, name) == 0) return padded;
    }
    return NULL;
}

// Checks that each padded shape names a different field, and that its symbols are in range.
static bel_status *check_padded(const bel_description *description, bel_batch_fields *fields)
{
    for (int i = 0; i < description->padded_shape_count; i++) {
        const bel_padded_shape *padded = &description->padded_shapes[i];
        bool known = false;
        for (int j = 0; j < fields->count; j++)
            known = known || strcmp(fields->items[j].name, padded->field) == 0;
        if (!known || find_padded(description, padded->field) != padded) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "padded_batch: %s named \"%s\"",
                           known ? "expected one shape, got two for the field"
                                 : "a shape is given, but there is no field",
                           padded->field);
        }
        for (int32_t dim = 0; dim < padded->shape.rank; dim++) {
            int64_t symbol = padded->shape.dims[dim];
            if (symbol >= BEL_DIM_BATCH) continue;
            if (bel_symbol_index(symbol) >= MAX_USER_SYMBOLS) {
                return BEL_ERR(BEL_INVALID_ARGUMENT,
                               "padded_batch: field \"%s\": expected an open dimension of %d or "
                               "above, got %lld",
                               padded->field, BEL_DIM_TIME - MAX_USER_SYMBOLS + 1,
                               (long long)symbol);
            }
            int used = (int)bel_symbol_index(symbol) + 1;
            if (used > fields->symbol_count) fields->symbol_count = used;
        }
    }
    return NULL;
}

// Gives each open dimension its symbol. `fixed` says that all records have the shape at hand.
static bel_status *open_dims(const bel_description *description, bool fixed, bel_batch_field *field,
                             int *symbol_count)
{
    bool varies = fixed && field->shape.rank > 0 && field->shape.dims[0] < 0;
    if (!description->padded && varies) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "dataset: field \"%s\" has another length in each record, which "
                       "padded_batch takes, not batch",
                       field->name);
    }
    if (!description->padded) return NULL;
    const bel_padded_shape *padded = find_padded(description, field->name);
    if (padded == NULL && fixed) {
        if (varies) field->shape.dims[0] = BEL_DIM_TIME - (*symbol_count)++;
        return NULL;
    }
    if (padded != NULL && padded->shape.rank != field->shape.rank) {
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "padded_batch: field \"%s\" has shape %s: expected a padded shape of %d "
                       "dimensions, got %d",
                       field->name, bel_shape_text(&field->shape, text), (int)field->shape.rank,
                       (int)padded->shape.rank);
    }
    for (int32_t i = 0; i < field->shape.rank; i++) {
        int64_t dim = padded == NULL ? BEL_DIM_BATCH : padded->shape.dims[i];
        if (dim == BEL_DIM_BATCH) dim = BEL_DIM_TIME - (*symbol_count)++;
        field->shape.dims[i] = dim;
    }
    return NULL;
}

// Converts `value` to an element of a field's type; false: impossible.
static bool make_element(bel_dtype dtype, double value, unsigned char *out)
{
    bool whole = value >= -0x1p53 && value <= 0x1p53 && value == (double)(int64_t)value;
    float f32 = (float)value;
    int32_t i32 = whole && value >= INT32_MIN && value <= INT32_MAX ? (int32_t)value : 0;
    int64_t i64 = whole ? (int64_t)value : 0;
    switch (dtype) {
    case BEL_DTYPE_F32: memcpy(out, &f32, sizeof f32); return true;
    case BEL_DTYPE_F64: memcpy(out, &value, sizeof value); return true;
    case BEL_DTYPE_I32: memcpy(out, &i32, sizeof i32); return whole && (double)i32 == value;
    case BEL_DTYPE_I64: memcpy(out, &i64, sizeof i64); return whole;
    case BEL_DTYPE_U8: *out = (unsigned char)i32; return whole && i32 >= 0 && i32 <= 255;
    case BEL_DTYPE_BOOL: *out = (unsigned char)i32; return value == 0 || value == 1;
    default: return value == 0; // 16-bit types
    }
}

static bel_status *set_pad_values(const bel_description *description, bel_batch_fields *fields)
{
    for (int i = 0; i < description->pad_value_count; i++) {
        const bel_pad_value *pad = &description->pad_values[i];
        bel_batch_field *field = NULL;
        for (int j = 0; j < fields->count; j++)
            if (strcmp(fields->items[j].name, pad->field) == 0) field = &fields->items[j];
        if (field == NULL || !field->pads_with_zeros) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "pad_value: %s named \"%s\"",
                           field == NULL ? "there is no field" : "expected one value for the field",
                           pad->field);
        }
        if (!make_element(field->dtype, pad->value, field->pad)) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "pad_value: field \"%s\" of type %s cannot hold %g", pad->field,
                           bel_dtype_name(field->dtype), pad->value);
        }
        field->pads_with_zeros = false;
    }
    return NULL;
}

static bel_status *fields_finish(const bel_description *description, bool fixed,
                                 bel_batch_fields *fields)
{
    for (int i = 0; i < fields->count; i++) {
        if (fields->items[i].dtype != BEL_DTYPE_STRING) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "dataset: field \"%s\" is text, which cannot be in a batch; turn it into "
                       "numbers with a map and name it in its drop list",
                       fields->items[i].name);
    }
    if (fields->count == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "dataset: expected fields in a record, got none");
    }
    BEL_TRY(check_padded(description, fields));
    BEL_TRY(set_pad_values(description, fields));
    for (int i = 0; i < fields->count; i++)
        BEL_TRY(open_dims(description, fixed, &fields->items[i], &fields->symbol_count));
    return NULL;
}

bel_status *bel_batch_fields_make(bel_arena *arena, const bel_record_stream *stream,
                                  const bel_description *description, bel_batch_fields *out_fields)
{
    size_t count = (size_t)stream->field_count;
    bel_batch_fields fields = {.count = stream->field_count};
    fields.items = bel_arena_alloc(arena, count * sizeof *fields.items);
    for (size_t i = 0; i < count; i++) {
        const bel_source_field *field = &stream->fields[i];
        fields.items[i] = (bel_batch_field){
            .name = bel_arena_strdup(arena, field->name),
            .dtype = field->dtype,
            .shape = field->shape,
            .scale = field->scale,
            .pads_with_zeros = true,
        };
    }
    BEL_TRY(fields_finish(description, stream->known, &fields));
    *out_fields = fields;
    return NULL;
}
