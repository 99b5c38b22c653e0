// Windows over the records of a dataset, as records: window w has records w · shift + i · stride
// for i below size, with each field stacked. Nothing is kept between windows, so any window can be
// read independently, and records that several windows share are read for each.
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "input/source/record_stream.h"

typedef struct window_source {
    bel_source base;
    bel_arena *arena;
    const bel_window_description *window;
} window_source;

// Number of records in the window that begins at `start`.
static int64_t records_at(const window_source *source, int64_t start)
{
    const bel_window_description *window = source->window;
    const bel_positions *positions = &source->base.inner[0]->positions;
    if (positions->endless) return window->size;
    int64_t there = (positions->length - start - 1) / window->stride + 1;
    return there < window->size ? there : window->size;
}

// Makes room for `count` records like the first.
static bel_status *source_window_begin(bel_record *record, const bel_record *first, int64_t count)
{
    record->source = first->source; // errors name the window's first record
    record->number = first->number;
    for (size_t i = 0; i < first->field_count; i++) {
        const bel_tensor *tensor = &first->fields[i]->tensor;
        if (tensor->dtype == BEL_DTYPE_STRING || tensor->shape.rank + 1 >= BEL_MAX_RANK) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "%s: window: field \"%s\" is text or has too many dimensions to be "
                           "stacked; a map before it can change or drop it",
                           bel_record_origin(first), first->fields[i]->name);
        }
        bel_shape shape = {.rank = tensor->shape.rank + 1};
        shape.dims[0] = count;
        memcpy(shape.dims + 1, tensor->shape.dims, (size_t)tensor->shape.rank * sizeof *shape.dims);
        bel_record_append(record, first->fields[i]->name, tensor->dtype, &shape);
    }
    return NULL;
}

static bel_status *source_window_place(bel_record *record, const bel_record *from, int64_t index)
{
    if (from->field_count != record->field_count) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected %zu fields as in its window's first record, got %zu",
                       bel_record_origin(from), record->field_count, from->field_count);
    }
    for (size_t i = 0; i < record->field_count; i++) {
        bel_tensor *to = &record->fields[i]->tensor;
        const bel_tensor *got = bel_record_get(from, record->fields[i]->name);
        bel_shape expected = bel_shape_make(to->shape.rank - 1, to->shape.dims + 1);
        bool fits =
            got != NULL && got->dtype == to->dtype && bel_shape_equal(&got->shape, &expected);
        char text[BEL_SHAPE_TEXT];
        if (!fits) {
            return BEL_ERR(BEL_DATA_LOSS,
                           "%s: field \"%s\": expected %s of shape %s, as in its window's first "
                           "record",
                           bel_record_origin(from), record->fields[i]->name,
                           bel_dtype_name(to->dtype), bel_shape_text(&expected, text));
        }
        size_t bytes = bel_tensor_bytes(got);
        if (bytes > 0) memcpy((char *)to->data + (size_t)index * bytes, got->data, bytes);
    }
    return NULL;
}

static bel_status *window_combine(const bel_source *base, bel_cursor *cursor, bel_position at,
                                  bel_record *record, bool *out_skip)
{
    const window_source *source = (const window_source *)base;
    int64_t start = at.number * source->window->shift, count = records_at(source, start);
    bel_record *beside = &cursor->beside;
    beside->arena = record->arena;
    for (int64_t i = 0; i < count; i++) {
        int64_t position = start + i * source->window->stride;
        BEL_TRY(bel_record_stream_read(base->inner[0], cursor->inner[0], at.epoch, position, beside,
                                       out_skip));
        if (*out_skip) return NULL;
        if (i == 0) BEL_TRY(source_window_begin(record, beside, count));
        BEL_TRY(source_window_place(record, beside, i));
    }
    return NULL;
}

static void window_want(const bel_source *base, bel_cursor *cursor, bel_position at)
{
    const window_source *source = (const window_source *)base;
    int64_t start = at.number * source->window->shift, count = records_at(source, start);
    for (int64_t i = 0; i < count; i++)
        bel_record_stream_want(base->inner[0], cursor->inner[0], at.epoch,
                               start + i * source->window->stride);
}

static void window_describe(const bel_source *base, bel_str *out_text)
{
    const bel_window_description *window = ((const window_source *)base)->window;
    bel_str_printf(out_text, "size=%lld shift=%lld stride=%lld drop=%d", (long long)window->size,
                   (long long)window->shift, (long long)window->stride, window->drop_remainder);
}

static void window_destroy(bel_source *base)
{
    window_source *source = (window_source *)base;
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind window_kind = {
    .name = "window",
    .combine = window_combine,
    .want = window_want,
    .describe = window_describe,
    .destroy = window_destroy,
};

// --- Opening -------------------------------------------------------------------------------------

static int64_t window_count(const bel_window_description *window, int64_t length)
{
    int64_t span = (window->size - 1) * window->stride + 1;
    if (!window->drop_remainder) return length == 0 ? 0 : (length - 1) / window->shift + 1;
    return length < span ? 0 : (length - span) / window->shift + 1;
}

// Derives the fields if every record has the same shapes.
static void stack_fields(window_source *source)
{
    const bel_record_stream *inner = source->base.inner[0];
    size_t count = (size_t)inner->field_count;
    bel_source_field *fields = bel_arena_alloc(source->arena, count * sizeof *fields);
    for (size_t i = 0; i < count; i++) {
        const bel_shape *shape = &inner->fields[i].shape;
        if (bel_shape_elements(shape) < 0 || shape->rank + 1 >= BEL_MAX_RANK) return;
        fields[i] = inner->fields[i];
        fields[i].shape.rank++;
        fields[i].shape.dims[0] = source->window->drop_remainder ? source->window->size : -1;
        memcpy(fields[i].shape.dims + 1, shape->dims, (size_t)shape->rank * sizeof *shape->dims);
    }
    source->base.fields = fields;
    source->base.field_count = (int)count;
}

bel_status *bel_source_open_window(const bel_source_description *description,
                                   bel_record_stream **inner, bel_source **out_source)
{
    window_source *source = bel_xcalloc(1, sizeof *source);
    const bel_positions *positions = &inner[0]->positions;
    source->arena = bel_arena_create();
    source->window = &description->window;
    source->base = (bel_source){
        .kind = &window_kind,
        .inner = inner,
        .inner_count = 1,
        .endless = positions->endless,
        .record_count = INT64_MAX,
        .names = inner[0]->source->names,
    };
    if (!positions->endless)
        source->base.record_count = window_count(source->window, positions->length);
    if (inner[0]->known) stack_fields(source);
    *out_source = &source->base;
    return NULL;
}
