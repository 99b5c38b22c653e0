// Records: look-up by name over a handful of fields, with memory from the arena. A field that is
// added again under its name keeps its index, so the order of fields is that of the first record
// unless a map changes it, and batches find fields without a search (batch/batch.c).
//
// User code calls bel_record_add, which checks everything, since a map may compute shapes from
// data; the record keeps its first error for the caller of the map. Sources call bel_record_append,
// as they have checked at opening.
#include "input/source/record.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "input/source/source.h"
#include "store/store.h"

void bel_record_init(bel_record *record, bel_arena *arena)
{
    *record = (bel_record){.arena = arena};
}

void bel_record_deinit(bel_record *record)
{
    bel_status_destroy(record->status);
    bel_free(record->fields);
    *record = (bel_record){0};
}

void bel_record_begin(bel_record *record, const bel_source *source, int64_t number)
{
    bel_status_destroy(record->status);
    record->status = NULL;
    record->source = source;
    record->number = number;
    record->epoch = 0;
    record->field_count = 0;
}

bel_status *bel_record_take_status(bel_record *record)
{
    bel_status *status = record->status;
    record->status = NULL;
    return status;
}

// Index of a field, or field_count.
static size_t record_find(const bel_record *record, const char *name)
{
    size_t i = 0;
    while (i < record->field_count && strcmp(record->fields[i]->name, name) != 0)
        i++;
    return i;
}

const bel_tensor *bel_record_get(const bel_record *record, const char *name)
{
    size_t i = record_find(record, name);
    return i < record->field_count ? &record->fields[i]->tensor : NULL;
}

// Computes the bytes of a field, or returns an error if such a field is impossible.
static bel_status *check_field(const char *name, bel_dtype dtype, const bel_shape *shape,
                               size_t *out_size)
{
    enum { DTYPES = BEL_DTYPE_STRING + 1 };
    if (name == NULL || name[0] == '\0') {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a record's field needs a name");
    }
    if ((unsigned)dtype >= DTYPES) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "field \"%s\": no element type %d", name, (int)dtype);
    }
    if (shape->rank < 0 || shape->rank >= BEL_MAX_RANK) { // a batch adds one
        return BEL_ERR(BEL_INVALID_ARGUMENT, "field \"%s\": expected at most %d dimensions, got %d",
                       name, BEL_MAX_RANK - 1, (int)shape->rank);
    }
    char text[BEL_SHAPE_TEXT];
    int64_t elements = bel_shape_elements(shape);
    if (elements < 0 || (dtype == BEL_DTYPE_STRING && shape->rank != 1)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "field \"%s\": a %s field cannot have shape %s", name,
                       bel_dtype_name(dtype), bel_shape_text(shape, text));
    }
    size_t size;
    if (!bel_size_mul((size_t)elements, bel_dtype_size(dtype), &size) || size >= PTRDIFF_MAX / 2) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "field \"%s\": shape %s is too large for memory", name,
                       bel_shape_text(shape, text));
    }
    *out_size = size;
    return NULL;
}

// Makes a field in the arena, zeroed; a zero byte follows a text. `name` is not copied.
static bel_record_field *make_field(bel_record *record, const char *name, bel_dtype dtype,
                                    const bel_shape *shape, size_t size)
{
    size_t terminator = dtype == BEL_DTYPE_STRING ? 1 : 0;
    bel_record_field *field = bel_arena_alloc(record->arena, sizeof *field);
    field->name = name;
    field->tensor = (bel_tensor){
        .dtype = dtype,
        .shape = *shape,
        .data = bel_arena_alloc(record->arena, size + terminator),
    };
    return field;
}

static void record_append(bel_record *record, bel_record_field *field)
{
    record->fields = bel_xgrow(record->fields, &record->field_capacity, record->field_count + 1,
                               sizeof(bel_record_field *));
    record->fields[record->field_count++] = field;
}

void *bel_record_append(bel_record *record, const char *name, bel_dtype dtype,
                        const bel_shape *shape)
{
    bel_tensor known = {.dtype = dtype, .shape = *shape};
    bel_record_field *field = make_field(record, name, dtype, shape, bel_tensor_bytes(&known));
    record_append(record, field);
    return field->tensor.data;
}

void *bel_record_add(bel_record *record, const char *name, bel_dtype dtype, const bel_shape *shape)
{
    size_t size = 0;
    bel_status *status = check_field(name, dtype, shape, &size);
    if (status != NULL) {
        if (record->status == NULL) {
            record->status = status;
        } else {
            bel_status_ignore(status); // the first one counts
        }
        return NULL;
    }
    size_t place = record_find(record, name);
    const char *kept_name = place < record->field_count ? record->fields[place]->name
                                                        : bel_arena_strdup(record->arena, name);
    bel_record_field *field = make_field(record, kept_name, dtype, shape, size);
    if (place < record->field_count) {
        record->fields[place] = field;
    } else {
        record_append(record, field);
    }
    return field->tensor.data;
}

bel_status *bel_record_take_fields(bel_record *record, const bel_record *from)
{
    for (size_t i = 0; i < from->field_count; i++) {
        if (record_find(record, from->fields[i]->name) < record->field_count) {
            return BEL_ERR(BEL_DATA_LOSS, "%s: a field \"%s\" comes from two datasets",
                           bel_record_origin(record), from->fields[i]->name);
        }
        record_append(record, from->fields[i]);
    }
    return NULL;
}

// False: no such field.
static bool remove_field(bel_record *record, const char *name)
{
    size_t i = record_find(record, name);
    if (i == record->field_count) return false;
    record->field_count--;
    memmove(record->fields + i, record->fields + i + 1,
            (record->field_count - i) * sizeof(bel_record_field *));
    return true;
}

int64_t bel_record_number(const bel_record *record)
{
    return record->number;
}

int64_t bel_record_epoch(const bel_record *record)
{
    return record->epoch;
}

const char *bel_record_file(const bel_record *record)
{
    const bel_source_kind *kind = record->source->kind;
    return kind->file == NULL ? "" : kind->file(record->source, record->number);
}

const char *bel_record_path(const bel_record *record, const char *field, const char *folder)
{
    const bel_tensor *text = bel_record_get(record, field);
    if (text == NULL || text->dtype != BEL_DTYPE_STRING) return NULL;
    const char *path = text->data;
    size_t length = (size_t)text->shape.dims[0];
    if (length == 0 || strlen(path) != length) return NULL;
    const char *begin = folder == NULL ? bel_record_file(record) : folder;
    const char *slash = strrchr(begin, '/');
    size_t kept = folder != NULL ? strlen(folder) : slash == NULL ? 0 : (size_t)(slash - begin);
    bool at_root = folder == NULL && slash == begin; // "/file.csv"
    if (path[0] == '/' || bel_store_is_url(path) || (kept == 0 && !at_root))
        return bel_arena_strdup(record->arena, path);
    const char *between = kept > 0 && begin[kept - 1] == '/' ? "" : "/";
    char *joined = bel_strf("%.*s%s%s", (int)kept, begin, between, path);
    const char *result = bel_arena_strdup(record->arena, joined);
    bel_free(joined);
    return result;
}

bel_status *bel_record_drop(bel_record *record, const char *const *names)
{
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        if (remove_field(record, names[i])) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "the drop list names \"%s\", but there is no such field", names[i]);
    }
    return NULL;
}

// The origin is built on demand, as only error messages need it.
const char *bel_record_origin(const bel_record *record)
{
    bel_str text = {0};
    record->source->kind->origin(record->source, record->number, &text);
    const char *origin = bel_arena_strdup(record->arena, text.text);
    bel_str_deinit(&text);
    return origin;
}
