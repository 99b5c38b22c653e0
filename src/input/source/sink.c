// Destination of a batch's records, for all kinds of sources: the rows of a batch, or a record that
// maps and filters can read. Sources write through it without knowing which. It is a separate file
// because source.c calls the openers of all kinds, and these call the sink: in one file they would
// be a cycle.
#include "input/source/source.h"

#include "base/arena.h"
#include "base/thread.h"

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
                              bel_bad_records *bad)
{
    bel_arena *arena = bel_arena_create();
    bel_record record;
    bel_record_init(&record, arena);
    bel_status *status = NULL;
    for (int64_t i = first; i < end && status == NULL; i++) {
        bel_arena_reset(arena);
        bel_record_begin(&record, source, i);
        status = source->kind->read(source, i, &(bel_sink){.record = &record});
        status = bel_bad_records_pass(bad, status);
    }
    bel_record_deinit(&record);
    bel_arena_destroy(arena);
    return status;
}

// A range of records, read in tiles on all cores.
typedef struct tiles {
    const bel_source *source;
    int64_t first, end;
} tiles;

enum { TILE = 4096 };

static bel_status *read_tile(void *argument, int64_t number)
{
    const tiles *t = argument;
    int64_t first = t->first + number * TILE, left = t->end - first;
    return read_range(t->source, first, first + (left < TILE ? left : TILE), NULL);
}

static bel_status *read_tiles(const bel_source *source, bel_team *team, int64_t first, int64_t end)
{
    tiles t = {.source = source, .first = first, .end = end};
    return bel_team_try(team, read_tile, &t, (end - first + TILE - 1) / TILE);
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
    if (opening->bad != NULL) { // bad records are reported in their order
        BEL_TRY(read_range(source, 0, half, opening->bad));
        return read_range(source, second, count, opening->bad);
    }
    bel_team *team = bel_team_create_some(half <= 4 * TILE ? 1 : bel_available_cores());
    bel_status *status = read_tiles(source, team, 0, half);
    if (status == NULL) status = read_tiles(source, team, second, count);
    bel_team_destroy(team);
    return status;
}
