// Records have few fields, so names are searched one after another.
#include "input/record.h"

#include <string.h>

#include "base/alloc.h"
#include "input/source.h"

void bel_record_init(bel_record *record, bel_arena *arena)
{
    *record = (bel_record){.arena = arena};
}

void bel_record_deinit(bel_record *record)
{
    bel_free(record->fields);
    *record = (bel_record){0};
}

void bel_record_begin(bel_record *record, const struct bel_source *source, int64_t number)
{
    record->source = source;
    record->number = number;
    record->field_count = 0;
    record->fault = NULL;
}

static bel_record_field *find(const bel_record *record, const char *name)
{
    for (size_t i = 0; i < record->field_count; i++) {
        if (strcmp(record->fields[i].name, name) == 0) return &record->fields[i];
    }
    return NULL;
}

const bel_tensor *bel_record_get(const bel_record *record, const char *name)
{
    const bel_record_field *field = find(record, name);
    return field == NULL ? NULL : &field->value;
}

// Zeroed memory of a field, with one zero byte behind it for strings; NULL when it cannot be.
static void *field_memory(bel_record *record, bel_dtype dtype, const bel_shape *shape)
{
    if ((unsigned)dtype > BEL_DTYPE_STRING || shape->rank < 0 || shape->rank > BEL_MAX_RANK) {
        return NULL;
    }
    int64_t elements = bel_shape_elements(shape);
    size_t bytes;
    if (elements < 0 || elements == INT64_MAX) return NULL;
    if (!bel_size_mul((size_t)elements, bel_dtype_size(dtype), &bytes)) return NULL;
    return bel_arena_alloc(record->arena, bytes + 1);
}

void *bel_record_append(bel_record *record, const char *name, bel_dtype dtype,
                        const bel_shape *shape)
{
    record->fields = bel_xgrow(record->fields, &record->field_capacity, record->field_count + 1,
                               sizeof *record->fields);
    void *memory = field_memory(record, dtype, shape);
    if (memory == NULL) return NULL;
    record->fields[record->field_count++] = (bel_record_field){
        .name = name, .value = {.dtype = dtype, .shape = *shape, .data = memory}};
    return memory;
}

void *bel_record_add(bel_record *record, const char *name, bel_dtype dtype, const bel_shape *shape)
{
    const char *kept_name = bel_arena_strdup(record->arena, name);
    bel_record_field *same = find(record, name);
    void *memory;
    if (same == NULL) {
        memory = bel_record_append(record, kept_name, dtype, shape);
    } else {
        memory = field_memory(record, dtype, shape);
        if (memory != NULL) {
            same->value = (bel_tensor){.dtype = dtype, .shape = *shape, .data = memory};
        }
    }
    if (memory == NULL) record->fault = kept_name;
    return memory;
}

void bel_record_remove(bel_record *record, const char *name)
{
    bel_record_field *field = find(record, name);
    if (field == NULL) return;
    bel_record_field *end = record->fields + record->field_count;
    memmove(field, field + 1, (size_t)(end - field - 1) * sizeof *field);
    record->field_count--;
}

const char *bel_record_origin(const bel_record *record)
{
    return record->source->ops->origin(record->source, record->number, record->arena);
}
