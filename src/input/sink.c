// Destination of a batch's records, for all kinds of sources: the rows of a batch, or a record that
// maps and filters can read. Sources write through it without knowing which. It is a separate file
// because source.c calls the openers of all kinds, and these call the sink: in one file they would
// be a cycle.
#include "input/source.h"

#include "base/arena.h"

void *bel_sink_place(const bel_sink *sink, const bel_source *source, int field, int64_t length)
{
    if (sink->record == NULL) return sink->rows[field];
    const bel_source_field *spec = &source->fields[field];
    bel_shape shape = spec->shape;
    if (shape.rank > 0 && shape.dims[0] < 0) shape.dims[0] = length;
    return bel_record_append(sink->record, spec->name, spec->dtype, &shape);
}

bel_status *bel_source_read_record(const bel_source *source, struct bel_cursor *cursor,
                                   bel_position at, bel_record *record, bool *out_skip)
{
    bel_record_begin(record, source, at.number);
    if (source->kind->combine != NULL) {
        return source->kind->combine(source, cursor, at, record, out_skip);
    }
    return source->kind->read(source, at.number, &(bel_sink){.record = record});
}

// Reads the records of a leaf: no dataset is inside.
static bel_status *read_range(const bel_source *source, int64_t first, int64_t end,
                              bel_record *record, bel_bad_records *bad)
{
    for (int64_t i = first; i < end; i++) {
        bel_arena_reset(record->arena);
        bel_record_begin(record, source, i);
        bel_status *status = source->kind->read(source, i, &(bel_sink){.record = record});
        BEL_TRY(bel_bad_records_pass(bad, status));
    }
    return NULL;
}

bel_status *bel_source_read_some(const bel_source *source, const bel_opening *opening)
{
    if (opening->at_once) return NULL;
    enum { LOOKED_AT_BYTES = 64 << 20 };
    int64_t count = source->record_count, half = count;
    if (source->size_bytes > LOOKED_AT_BYTES) {
        half = (int64_t)((double)count * (LOOKED_AT_BYTES / 2) / (double)source->size_bytes);
    }
    int64_t second = half < count - half ? count - half : half;
    bel_arena *arena = bel_arena_create();
    bel_record record;
    bel_record_init(&record, arena);
    bel_status *status = read_range(source, 0, half, &record, opening->bad);
    if (status == NULL) status = read_range(source, second, count, &record, opening->bad);
    bel_record_deinit(&record);
    bel_arena_destroy(arena);
    return status;
}
