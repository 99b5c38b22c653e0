// Copies records into batches. Every field of a batch is one block of memory, row after row; a row
// is the part of one record. A padded row is as large as the longest record needs. Blocks only grow
// and keep no content. So a row of fixed shape must be written completely, and a padded one is
// first filled with the padding value, unless its record fills it.
//
// The first record decides the fields. Each further one is checked against them, since a map may
// change its result. Fields at the same index as in the first record are found without a search. A
// batch belongs to one thread at a time.
#include "input/batch/batch.h"

#include <string.h>

#include "base/alloc.h"

// [count, row…]
static bel_shape with_batch_dim(const bel_shape *row, int64_t count)
{
    bel_shape shape = {.rank = row->rank + 1};
    shape.dims[0] = count;
    for (int32_t i = 0; i < row->rank; i++)
        shape.dims[i + 1] = row->dims[i];
    return shape;
}

static bel_shape row_shape(const bel_tensor *field)
{
    return bel_shape_make(field->shape.rank - 1, field->shape.dims + 1);
}

bel_batch *bel_batch_make(const bel_batch_fields *fields, bel_cursor *cursor, int64_t row_count,
                          bool padded)
{
    size_t field_count = (size_t)fields->count;
    bel_batch_memory *memory = bel_xcalloc(1, sizeof *memory);
    *memory = (bel_batch_memory){
        .fields = fields,
        .row_count = row_count,
        .arena = bel_arena_create(),
        .record_count = padded ? row_count : 1,
        .longest = bel_xcalloc((size_t)fields->symbol_count, sizeof *memory->longest),
        .rows = bel_xcalloc(field_count, sizeof *memory->rows),
        .buffers = bel_xcalloc(field_count, sizeof *memory->buffers),
        .cursor = cursor,
        .positions = bel_xcalloc((size_t)row_count, sizeof *memory->positions),
    };
    memory->records = bel_xcalloc((size_t)memory->record_count, sizeof *memory->records);
    for (int64_t i = 0; i < memory->record_count; i++)
        bel_record_init(&memory->records[i], memory->arena);

    bel_batch *batch = bel_xcalloc(1, sizeof *batch);
    *batch = (bel_batch){
        .block = -1,
        .field_count = fields->count,
        .fields = bel_xcalloc(field_count, sizeof *batch->fields),
        .positions = memory->positions,
        .memory = memory,
    };
    for (int i = 0; i < fields->count; i++) {
        batch->fields[i].dtype = fields->items[i].dtype;
        batch->fields[i].shape = with_batch_dim(&fields->items[i].shape, 0);
    }
    return batch;
}

static void batch_memory_drop(const bel_batch_memory *memory, bel_field_memory *buffer)
{
    if (buffer->data != NULL && memory->watch.note != NULL)
        memory->watch.note(memory->watch.context, buffer->data, buffer->capacity_bytes, false);
    bel_pages_destroy(buffer->data, buffer->capacity_bytes);
    *buffer = (bel_field_memory){.data = NULL};
}

void bel_batch_destroy(bel_batch *batch)
{
    if (batch == NULL) return;
    bel_batch_memory *memory = batch->memory;
    for (int64_t i = 0; i < memory->record_count; i++)
        bel_record_deinit(&memory->records[i]);
    for (int i = 0; i < batch->field_count; i++)
        batch_memory_drop(memory, &memory->buffers[i]);
    bel_cursor_destroy(memory->cursor);
    bel_arena_destroy(memory->arena);
    bel_free(memory->records);
    bel_free(memory->positions);
    bel_free(memory->longest);
    bel_free(memory->rows);
    bel_free(memory->buffers);
    bel_free(memory);
    bel_free(batch->fields);
    bel_free(batch);
}

size_t bel_batch_bytes(const bel_batch *batch)
{
    const bel_batch_memory *memory = batch->memory;
    size_t bytes = bel_arena_bytes(memory->arena) +
                   (size_t)memory->row_count * sizeof *memory->positions +
                   (size_t)memory->record_count * sizeof *memory->records;
    for (int i = 0; i < batch->field_count; i++)
        bytes += memory->buffers[i].capacity_bytes;
    return bytes;
}

void bel_batch_set_count(bel_batch *batch, int64_t count)
{
    batch->example_count = count;
    for (int i = 0; i < batch->field_count; i++)
        batch->fields[i].shape.dims[0] = count;
}

// Makes room in a field for `count` rows of shape `row`; keeps no content.
static bel_status *batch_reserve(bel_batch *batch, int index, const bel_shape *row, int64_t count)
{
    bel_tensor *field = &batch->fields[index];
    bel_field_memory *buffer = &batch->memory->buffers[index];
    bel_shape shape = with_batch_dim(row, count);
    size_t needed;
    int64_t elements = bel_shape_elements(&shape);
    if (!bel_size_mul((size_t)elements, bel_dtype_size(field->dtype), &needed)) {
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "field \"%s\": a batch of shape %s is too large",
                       batch->memory->fields->items[index].name, bel_shape_text(&shape, text));
    }
    if (needed > buffer->capacity_bytes) {
        const bel_batch_watch *watch = &batch->memory->watch;
        void *data;
        BEL_TRY(bel_pages_create(needed, false, "a batch", &data));
        batch_memory_drop(batch->memory, buffer);
        *buffer = (bel_field_memory){.data = data, .capacity_bytes = needed};
        if (watch->note != NULL) watch->note(watch->context, data, needed, true);
    }
    field->shape = shape;
    field->data = buffer->data;
    return NULL;
}

// --- Records against fields ----------------------------------------------------------------------

// Finds the record's field for field `index` of the batch, and checks its type and rank.
static bel_status *find_field(const bel_batch *batch, int index, const bel_record *record,
                              const bel_tensor **out_field)
{
    const bel_batch_field *expected = &batch->memory->fields->items[index];
    bool in_place = (size_t)index < record->field_count &&
                    strcmp(record->fields[index]->name, expected->name) == 0;
    const bel_tensor *got =
        in_place ? &record->fields[index]->tensor : bel_record_get(record, expected->name);
    if (got == NULL) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected a field \"%s\", got none",
                       bel_record_origin(record), expected->name);
    }
    if (got->dtype != expected->dtype || got->shape.rank != expected->shape.rank) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: field \"%s\": expected %s of %d dimensions, got %s of %d",
                       bel_record_origin(record), expected->name, bel_dtype_name(expected->dtype),
                       (int)expected->shape.rank, bel_dtype_name(got->dtype), (int)got->shape.rank);
    }
    *out_field = got;
    return NULL;
}

// Every field of the batch is looked up, so only a record with more fields has an unknown one.
static bel_status *check_field_count(const bel_batch *batch, const bel_record *record)
{
    if (record->field_count == (size_t)batch->field_count) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected %d fields as in the first record, got %zu",
                   bel_record_origin(record), batch->field_count, record->field_count);
}

// --- Fixed shapes --------------------------------------------------------------------------------

bel_status *bel_batch_begin(bel_batch *batch)
{
    const bel_batch_memory *memory = batch->memory;
    for (int i = 0; i < batch->field_count; i++)
        BEL_TRY(batch_reserve(batch, i, &memory->fields->items[i].shape, memory->row_count));
    return NULL;
}

void *const *bel_batch_rows(bel_batch *batch, int64_t row)
{
    const bel_batch_memory *memory = batch->memory;
    for (int i = 0; i < batch->field_count; i++) {
        bel_shape shape = memory->fields->items[i].shape;
        bel_tensor one = {.dtype = batch->fields[i].dtype, .shape = shape};
        size_t bytes = bel_tensor_bytes(&one);
        char *first = batch->fields[i].data; // NULL where rows have no elements
        memory->rows[i] = bytes > 0 ? first + (size_t)row * bytes : first;
    }
    return memory->rows;
}

bel_status *bel_batch_place(bel_batch *batch, int64_t row, const bel_record *record)
{
    for (int i = 0; i < batch->field_count; i++) {
        const bel_batch_field *expected = &batch->memory->fields->items[i];
        const bel_tensor *got;
        BEL_TRY(find_field(batch, i, record, &got));
        if (!bel_shape_equal(&got->shape, &expected->shape)) {
            char expected_text[BEL_SHAPE_TEXT], got_text[BEL_SHAPE_TEXT];
            return BEL_ERR(BEL_DATA_LOSS,
                           "%s: field \"%s\": expected shape %s as in the first record, got %s "
                           "(padded_batch takes records of different lengths)",
                           bel_record_origin(record), expected->name,
                           bel_shape_text(&expected->shape, expected_text),
                           bel_shape_text(&got->shape, got_text));
        }
        size_t bytes = bel_tensor_bytes(got);
        if (bytes > 0)
            memcpy((char *)batch->fields[i].data + (size_t)row * bytes, got->data, bytes);
    }
    return check_field_count(batch, record);
}

// --- Padded shapes -------------------------------------------------------------------------------

// Checks that the record fits. Open dimensions are widened in `longest`, unless that is NULL.
static bel_status *batch_fit(const bel_batch *batch, const bel_record *record, int64_t *longest)
{
    for (int i = 0; i < batch->field_count; i++) {
        const bel_batch_field *expected = &batch->memory->fields->items[i];
        const bel_tensor *got;
        BEL_TRY(find_field(batch, i, record, &got));
        for (int32_t dim = 0; dim < got->shape.rank; dim++) {
            int64_t limit = expected->shape.dims[dim], length = got->shape.dims[dim];
            if (limit >= 0 && length > limit) {
                return BEL_ERR(BEL_DATA_LOSS,
                               "%s: field \"%s\": expected at most %lld in dimension %d, which the "
                               "padded shape fixes, got %lld",
                               bel_record_origin(record), expected->name, (long long)limit,
                               (int)dim, (long long)length);
            }
            if (limit >= 0 || longest == NULL) continue;
            int64_t *symbol = &longest[bel_symbol_index(limit)];
            if (length > *symbol) *symbol = length;
        }
    }
    return check_field_count(batch, record);
}

bel_status *bel_batch_check(const bel_batch *batch, const bel_record *record)
{
    return batch_fit(batch, record, NULL);
}

// Copies `from` into the corner of `to`, which has the same rank, is at least as large in each
// dimension, and is filled with the padding value.
static void copy_into_corner(const bel_tensor *from, const bel_shape *to_shape, char *to)
{
    size_t element = bel_dtype_size(from->dtype);
    int32_t rank = from->shape.rank;
    if (rank == 0 || bel_shape_equal(&from->shape, to_shape)) {
        size_t bytes = bel_tensor_bytes(from);
        if (bytes > 0) memcpy(to, from->data, bytes);
        return;
    }
    // Runs along the last dimension are contiguous in both; run r of `from` begins at element r ·
    // length. Its place in `to` has the same coordinates in wider strides.
    int64_t length = from->shape.dims[rank - 1];
    int64_t elements = bel_shape_elements(&from->shape);
    if (elements == 0) return;
    const char *source = from->data;
    size_t run_bytes = (size_t)length * element;
    for (int64_t run = 0; run < elements / length; run++) {
        int64_t offset = 0, stride = to_shape->dims[rank - 1], rest = run;
        for (int32_t dim = rank - 2; dim >= 0; dim--) {
            offset += rest % from->shape.dims[dim] * stride;
            rest /= from->shape.dims[dim];
            stride *= to_shape->dims[dim];
        }
        memcpy(to + (size_t)offset * element, source + (size_t)run * run_bytes, run_bytes);
    }
}

static void fill_with_pad(const bel_batch_field *field, char *row, size_t row_bytes)
{
    if (field->pads_with_zeros) {
        memset(row, 0, row_bytes);
        return;
    }
    size_t element = bel_dtype_size(field->dtype);
    for (size_t at = 0; at < row_bytes; at += element)
        memcpy(row + at, field->pad, element);
}

// Fills a field. Open dimensions become the longest of the batch; rows are contiguous and of this
// size.
static bel_status *fill_field(bel_batch *batch, int index, int64_t count)
{
    const bel_batch_memory *memory = batch->memory;
    bel_shape row = memory->fields->items[index].shape;
    for (int32_t dim = 0; dim < row.rank; dim++) {
        if (row.dims[dim] < 0) row.dims[dim] = memory->longest[bel_symbol_index(row.dims[dim])];
    }
    BEL_TRY(batch_reserve(batch, index, &row, count));
    bel_tensor *field = &batch->fields[index];
    size_t row_bytes = count == 0 ? 0 : bel_tensor_bytes(field) / (size_t)count;
    bel_shape to_shape = row_shape(field);
    for (int64_t i = 0; i < count; i++) {
        const bel_tensor *from;
        BEL_TRY(find_field(batch, index, &memory->records[i], &from));
        char *to = field->data; // NULL where rows have no elements
        if (row_bytes > 0) to += (size_t)i * row_bytes;
        if (row_bytes > 0 && !bel_shape_equal(&from->shape, &to_shape))
            fill_with_pad(&memory->fields->items[index], to, row_bytes);
        copy_into_corner(from, &to_shape, to);
    }
    return NULL;
}

bel_status *bel_batch_place_padded(bel_batch *batch, int64_t count)
{
    const bel_batch_memory *memory = batch->memory;
    for (int i = 0; i < memory->fields->symbol_count; i++)
        memory->longest[i] = 0;
    for (int64_t i = 0; i < count; i++)
        BEL_TRY(batch_fit(batch, &memory->records[i], memory->longest));
    for (int i = 0; i < batch->field_count; i++)
        BEL_TRY(fill_field(batch, i, count));
    return NULL;
}
