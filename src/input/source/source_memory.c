// Records in memory. Reading copies them, so that a map that writes through a field cannot change
// the user's data. Opening does not copy the data. It must stay unchanged while the source is open,
// because its hash is computed at opening and enters the fingerprint.
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "input/files/fetch_ahead.h"
#include "input/source/source.h"

typedef struct memory_source {
    bel_source base;
    bel_arena *arena;
    const bel_memory_field *data;
} memory_source;

static bel_status *memory_read(const bel_source *base, int64_t number, const bel_sink *sink)
{
    const memory_source *source = (const memory_source *)base;
    for (int i = 0; i < base->field_count; i++) {
        const bel_source_field *field = &base->fields[i];
        void *to = bel_sink_place(sink, base, i, 0);
        size_t size = (size_t)bel_shape_elements(&field->shape) * bel_dtype_size(field->dtype);
        const unsigned char *from = source->data[i].data.data;
        if (size > 0) memcpy(to, from + (size_t)number * size, size);
    }
    return NULL;
}

static void memory_ahead(const bel_source *base, int64_t number, int step)
{
    const memory_source *source = (const memory_source *)base;
    if (step + 1 < BEL_AHEAD_STEPS) return;
    for (int i = 0; i < base->field_count; i++) {
        const bel_source_field *field = &base->fields[i];
        size_t size = (size_t)bel_shape_elements(&field->shape) * bel_dtype_size(field->dtype);
        const unsigned char *from = source->data[i].data.data;
        if (size > 0) bel_ahead_fetch(from + (size_t)number * size, size);
    }
}

static void memory_origin(const bel_source *base, int64_t number, bel_str *out_text)
{
    (void)base;
    bel_str_printf(out_text, "record %lld", (long long)number);
}

static void memory_describe(const bel_source *base, bel_str *out_text)
{
    (void)base; // its fields say everything
    (void)out_text;
}

static void memory_destroy(bel_source *base)
{
    memory_source *source = (memory_source *)base;
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind memory_kind = {
    .name = "memory",
    .read = memory_read,
    .ahead = memory_ahead,
    .origin = memory_origin,
    .describe = memory_describe,
    .destroy = memory_destroy,
};

static bel_status *check_field(const bel_memory_description *description, int index)
{
    const bel_memory_field *field = &description->fields[index];
    if (field->name == NULL || field->name[0] == '\0') {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "memory: field %d has no name", index);
    }
    for (int i = 0; i < index; i++) {
        if (strcmp(description->fields[i].name, field->name) == 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "memory: two fields are named \"%s\"",
                           field->name);
        }
    }
    unsigned dtype = field->data.dtype;
    if (dtype == BEL_DTYPE_STRING || dtype > BEL_DTYPE_BF16) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "memory: field \"%s\" cannot be of type %s",
                       field->name, bel_dtype_name(field->data.dtype));
    }
    char text[BEL_SHAPE_TEXT];
    const bel_shape *shape = &field->data.shape;
    int64_t elements =
        shape->rank < 1 || shape->rank > BEL_MAX_RANK ? -1 : bel_shape_elements(shape);
    if (elements < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "memory: field \"%s\": expected a shape [record_count, …]", field->name);
    }
    if (bel_tensor_bytes(&field->data) > PTRDIFF_MAX) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "memory: field \"%s\": %s is too large for memory",
                       field->name, bel_shape_text(shape, text));
    }
    if (elements > 0 && field->data.data == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "memory: field \"%s\" of shape %s has no data",
                       field->name, bel_shape_text(shape, text));
    }
    int64_t expected = description->fields[0].data.shape.dims[0];
    if (shape->dims[0] != expected) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "memory: field \"%s\": expected %lld records as in field \"%s\", got %lld",
                       field->name, (long long)expected, description->fields[0].name,
                       (long long)shape->dims[0]);
    }
    return NULL;
}

bel_status *bel_source_open_memory(const bel_memory_description *description,
                                   bel_source **out_source)
{
    for (int i = 0; i < description->field_count; i++)
        BEL_TRY(check_field(description, i));

    memory_source *source = bel_xcalloc(1, sizeof *source);
    source->arena = bel_arena_create();
    source->data = description->fields;
    size_t count = (size_t)description->field_count;
    bel_source_field *fields = bel_arena_alloc(source->arena, count * sizeof *fields);
    uint64_t size_bytes = 0, content = 0;
    for (size_t i = 0; i < count; i++) {
        const bel_tensor *data = &description->fields[i].data;
        fields[i] = (bel_source_field){
            .name = description->fields[i].name,
            .dtype = data->dtype,
            .shape = bel_shape_make(data->shape.rank - 1, data->shape.dims + 1),
        };
        size_bytes += bel_tensor_bytes(data);
        content = bel_hash64_more(content, data->data, bel_tensor_bytes(data));
    }
    source->base = (bel_source){
        .kind = &memory_kind,
        .record_count = description->fields[0].data.shape.dims[0],
        .size_bytes = size_bytes,
        .content = content,
        .fields = fields,
        .field_count = description->field_count,
    };
    *out_source = &source->base;
    return NULL;
}
