// Pipeline from position to record number to record to map. Opening fixes the content of each
// position, so any thread can read positions in any order, with a separate cursor for each thread.
//
// Opening also finds the fields: from the source or, with maps, from the first record that they do
// not skip.
#include "input/source/record_stream.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "input/order/buckets.h"
#include "input/order/slide.h"
#include "input/source/named_files.h"

// --- One record ----------------------------------------------------------------------------------

// Calls the user's function. Its status has precedence over errors of its calls on the record.
static bel_status *apply_map(const bel_map_stage *stage, bel_record *record, bool *out_skip)
{
    bel_status *status = stage->map(stage->user, record, out_skip);
    bel_status *stuck = bel_record_take_status(record);
    if (status == NULL) {
        status = stuck;
    } else {
        bel_status_ignore(stuck); // most likely the cause of `status`
    }
    if (status == NULL && !*out_skip) status = bel_record_drop(record, stage->drop);
    return status;
}

bel_status *bel_record_stream_read_at(const bel_record_stream *stream, bel_cursor *cursor,
                                      bel_position at, bel_record *record, bool *out_skip)
{
    const bel_description *description = stream->description;
    *out_skip = at.number < 0;
    if (*out_skip) return NULL;
    BEL_TRY(bel_source_read_record(stream->source, cursor, at, record, out_skip));
    record->epoch = at.epoch;
    for (size_t i = 0; i < description->map_count && !*out_skip; i++) {
        BEL_TRY_CTX(apply_map(&description->maps[i], record, out_skip), "%s",
                    bel_record_origin(record));
    }
    return NULL;
}

bel_status *bel_record_stream_read(const bel_record_stream *stream, bel_cursor *cursor,
                                   int64_t epoch, int64_t position, bel_record *record,
                                   bool *out_skip)
{
    bel_position at;
    BEL_TRY(bel_positions_at(&stream->positions, cursor->cache, epoch, position, &at));
    return bel_record_stream_read_at(stream, cursor, at, record, out_skip);
}

void bel_record_stream_want_at(const bel_record_stream *stream, bel_cursor *cursor, bel_position at)
{
    const bel_source *source = stream->source;
    bool wants = source->may_lack && source->kind->want != NULL && at.number >= 0;
    if (wants) source->kind->want(source, cursor, at);
}

void bel_record_stream_want(const bel_record_stream *stream, bel_cursor *cursor, int64_t epoch,
                            int64_t position)
{
    bel_position at;
    if (!stream->source->may_lack) return;
    bel_status *status = bel_positions_at(&stream->positions, cursor->cache, epoch, position, &at);
    if (status == NULL) bel_record_stream_want_at(stream, cursor, at);
    bel_status_ignore(status); // its reader has it
}

// --- Cursors -------------------------------------------------------------------------------------

bel_cursor *bel_cursor_create(const bel_record_stream *stream)
{
    const bel_source *source = stream->source;
    bel_cursor *cursor = bel_xcalloc(1, sizeof *cursor);
    cursor->cache = bel_position_cache_create(&stream->positions);
    cursor->inner = bel_xcalloc((size_t)source->inner_count, sizeof(bel_cursor *));
    cursor->inner_count = source->inner_count;
    for (int i = 0; i < source->inner_count; i++)
        cursor->inner[i] = bel_cursor_create(source->inner[i]);
    return cursor;
}

void bel_cursor_destroy(bel_cursor *cursor)
{
    if (cursor == NULL) return;
    for (int i = 0; i < cursor->inner_count; i++)
        bel_cursor_destroy(cursor->inner[i]);
    bel_record_deinit(&cursor->beside);
    bel_epoch_hold_release(&cursor->hold);
    bel_position_cache_destroy(cursor->cache);
    bel_free(cursor->inner);
    bel_free(cursor);
}

// --- Opening -------------------------------------------------------------------------------------

// Function that a stage calls for every record that reaches it, in epoch 0. `position` is the
// record's position in the stage's input. `record` is NULL for a bad record, which keeps its place
// until it is read.
typedef bel_status *look(void *context, const bel_record *record, int64_t position, int64_t number);

static bel_status *look_at_all(const bel_record_stream *stream, bel_record *record, look *ask,
                               void *context)
{
    bel_cursor *cursor = bel_cursor_create(stream);
    bel_status *status = NULL;
    for (int64_t i = 0; i < stream->positions.length && status == NULL; i++) {
        bool skip = false;
        bel_position at;
        status = bel_positions_at(&stream->positions, cursor->cache, 0, i, &at);
        if (status != NULL) break;
        bel_arena_reset(record->arena);
        status = bel_source_read_record(stream->source, cursor, at, record, &skip);
        bool bad = status != NULL;
        status = bel_bad_records_pass(stream->bad, status);
        if (status == NULL && !skip) status = ask(context, bad ? NULL : record, i, at.number);
    }
    bel_cursor_destroy(cursor);
    return status;
}

typedef struct filtering {
    const bel_stage *stage;
    bel_number_list kept;
} filtering;

static bel_status *ask_keep(void *context, const bel_record *record, int64_t position,
                            int64_t number)
{
    (void)number;
    filtering *f = context;
    if (record != NULL && !f->stage->keep(f->stage->user, record)) return NULL;
    return bel_number_list_append(&f->kept, position);
}

static bel_status *add_filter(bel_record_stream *stream, const bel_stage *stage, bel_record *record)
{
    filtering f = {.stage = stage};
    bel_status *status = look_at_all(stream, record, ask_keep, &f);
    if (status == NULL) bel_positions_add_kept(&stream->positions, &f.kept);
    bel_number_list_deinit(&f.kept);
    return status;
}

static bel_status *add_slide(bel_record_stream *stream, const bel_stage *stage)
{
    bel_positions *positions = &stream->positions;
    bel_slide *slide = bel_arena_alloc(stream->arena, sizeof *slide);
    *slide = (bel_slide){.count = positions->length,
                         .buffer_size = stage->count,
                         .seed = stage->seed,
                         .order = positions->order_count};
    return bel_positions_add_ordered(positions, stage, positions->length,
                                     bel_epoch_orders_create(bel_slide_make, slide));
}

typedef struct bucketing {
    const bel_stage *stage;
    uint16_t *of;
    int64_t *counts;
} bucketing;

// Bucket b holds lengths >= boundary b - 1 and < boundary b.
static bel_status *ask_length(void *context, const bel_record *record, int64_t position,
                              int64_t number)
{
    (void)position;
    bucketing *b = context;
    const bel_stage *stage = b->stage;
    int64_t length = record == NULL ? INT64_MIN : stage->length(stage->user, record);
    size_t bucket = 0;
    if (length >= stage->boundaries[0])
        bucket = bel_last_at_most(stage->boundaries, (size_t)stage->count, length) + 1;
    b->of[number] = (uint16_t)bucket;
    b->counts[bucket]++;
    return NULL;
}

static bel_status *add_buckets(bel_record_stream *stream, const bel_stage *stage,
                               bel_record *record)
{
    bel_positions *positions = &stream->positions;
    int64_t batch_size = stream->description->batch_size;
    if (batch_size == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "bucket_by_length: expected it in the dataset that is "
                                             "batched, got it in one that another is made of");
    }
    if (positions->endless) return bel_positions_add_ordered(positions, stage, 0, NULL);
    void *of;
    size_t bytes = ((size_t)stream->source->record_count + 1) * sizeof(uint16_t); // never 0
    BEL_TRY(bel_pages_create(bytes, false, "the records' buckets", &of));
    stream->bucket_of = of;
    stream->bucket_bytes = bytes;
    bel_buckets *buckets = bel_arena_alloc(stream->arena, sizeof *buckets);
    *buckets = (bel_buckets){.positions = positions,
                             .stage_count = positions->count,
                             .count = positions->length,
                             .of = of,
                             .bucket_count = (int)stage->count + 1,
                             .batch_size = batch_size};
    bucketing b = {.stage = stage, .of = of};
    b.counts = bel_xcalloc((size_t)buckets->bucket_count, sizeof *b.counts);
    bel_status *status = look_at_all(stream, record, ask_length, &b);
    int64_t length = bel_buckets_length(buckets, b.counts);
    bel_free(b.counts);
    BEL_TRY(status);
    return bel_positions_add_ordered(positions, stage, length,
                                     bel_epoch_orders_create(bel_buckets_make, buckets));
}

// Adds the stages in the description's order. Each may look at the records that the ones before
// leave.
static bel_status *add_stages(bel_record_stream *stream, bel_record *record)
{
    bel_positions_init(&stream->positions, stream->source->record_count, stream->source->endless);
    for (size_t i = 0; i < stream->description->stage_count; i++) {
        const bel_stage *stage = &stream->description->stages[i];
        switch (stage->kind) {
        case BEL_STAGE_FILTER: BEL_TRY(add_filter(stream, stage, record)); break;
        case BEL_STAGE_SLIDE: BEL_TRY(add_slide(stream, stage)); break;
        case BEL_STAGE_BUCKET: BEL_TRY(add_buckets(stream, stage, record)); break;
        default: BEL_TRY(bel_positions_add(&stream->positions, stage));
        }
    }
    return NULL;
}

// Adds the sizes of the files that raw records name to the digest. Ignores unreadable records here.
static bel_status *look_at_files(bel_record_stream *stream, bel_record *record)
{
    const bel_description *description = stream->description;
    const bel_source *source = stream->source;
    if (description->named_files_count == 0 || source->endless) return NULL;
    bel_cursor *cursor = bel_cursor_create(stream);
    bel_arena *arena = bel_arena_create();
    const char **paths = NULL;
    size_t capacity = 0, used = 0;
    int64_t count = source->record_count, distance = count / BEL_NAMED_FILES_MOST;
    if (distance == 0) distance = 1;
    for (int64_t n = 0; n < count && n / distance < BEL_NAMED_FILES_MOST; n += distance) {
        bool skip = false;
        bel_arena_reset(record->arena);
        bel_status *status =
            bel_source_read_record(source, cursor, (bel_position){0, n}, record, &skip);
        for (int i = 0; i < description->named_files_count && status == NULL && !skip; i++) {
            const bel_named_files *named = &description->named_files[i];
            const char *path = bel_record_path(record, named->field, named->folder);
            paths = bel_xgrow(paths, &capacity, used + 1, sizeof *paths);
            paths[used++] = path != NULL ? bel_arena_strdup(arena, path) : NULL;
        }
        bel_status_ignore(status); // reading the record reports it
    }
    bel_status *looked = bel_named_files_digest(paths, used, &stream->files);
    bel_free(paths);
    bel_arena_destroy(arena);
    bel_cursor_destroy(cursor);
    return looked;
}

// Copies the fields of a record to the stream.
static void keep_fields(bel_record_stream *stream, const bel_record *record)
{
    bel_source_field *fields = bel_arena_alloc(stream->arena, record->field_count * sizeof *fields);
    for (size_t i = 0; i < record->field_count; i++) {
        const bel_record_field *field = record->fields[i];
        fields[i] = (bel_source_field){.name = bel_arena_strdup(stream->arena, field->name),
                                       .dtype = field->tensor.dtype,
                                       .shape = field->tensor.shape};
    }
    stream->fields = fields;
    stream->field_count = (int)record->field_count;
}

// Finds the fields. Only calling the maps shows theirs: on the first record that they do not skip.
static bel_status *learn_fields(bel_record_stream *stream, bel_record *record)
{
    const bel_source *source = stream->source;
    if (stream->description->map_count == 0 && source->field_count > 0) {
        stream->fields = source->fields;
        stream->field_count = source->field_count;
        stream->known = true;
        return NULL;
    }
    const bel_positions *positions = &stream->positions;
    int64_t count =
        positions->length < positions->epoch_records ? positions->length : positions->epoch_records;
    bel_cursor *cursor = bel_cursor_create(stream);
    bel_status *status = NULL;
    bool skipped = true;
    for (int64_t i = 0; i < count && status == NULL && skipped; i++) {
        bel_arena_reset(record->arena);
        status = bel_record_stream_read(stream, cursor, 0, i, record, &skipped);
        skipped = skipped || status != NULL;
        status = bel_bad_records_pass(stream->bad, status);
    }
    bel_cursor_destroy(cursor);
    BEL_TRY(status);
    if (skipped) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "map: expected a record to learn the fields from; %lld came and all were "
                       "skipped",
                       (long long)count);
    }
    keep_fields(stream, record);
    return NULL;
}

bel_status *bel_record_stream_open(const bel_description *description, const bel_opening *opening,
                                   bel_record_stream **out_stream)
{
    bel_record_stream *stream = bel_xcalloc(1, sizeof *stream);
    stream->description = description;
    stream->bad = opening->bad;
    stream->arena = bel_arena_create();
    bel_arena *arena = bel_arena_create(); // memory of the record for filters and maps
    bel_record record;
    bel_record_init(&record, arena);
    bel_status *status = bel_source_open(&description->source, opening, &stream->source);
    if (status == NULL) status = add_stages(stream, &record);
    if (status == NULL) status = learn_fields(stream, &record);
    if (status == NULL) status = look_at_files(stream, &record);
    bel_record_deinit(&record);
    bel_arena_destroy(arena);
    if (status != NULL) {
        bel_record_stream_destroy(stream);
        return status;
    }
    *out_stream = stream;
    return NULL;
}

void bel_record_stream_destroy(bel_record_stream *stream)
{
    if (stream == NULL) return;
    bel_positions_deinit(&stream->positions);
    bel_pages_destroy(stream->bucket_of, stream->bucket_bytes);
    bel_source_destroy(stream->source);
    bel_arena_destroy(stream->arena);
    bel_free(stream);
}

const bel_source_field *bel_record_stream_field(const bel_record_stream *stream, const char *name)
{
    for (int i = 0; i < stream->field_count; i++)
        if (strcmp(stream->fields[i].name, name) == 0) return &stream->fields[i];
    return NULL;
}

// --- Text and check ------------------------------------------------------------------------------

void bel_record_stream_describe(const bel_record_stream *stream, int64_t epochs, bel_str *out_text)
{
    const bel_source *source = stream->source;
    char shape_text[BEL_SHAPE_TEXT];
    bel_str_printf(out_text, "source %s records=%lld bytes=%llu content=%016llx ",
                   source->kind->name, (long long)source->record_count,
                   (unsigned long long)source->size_bytes, (unsigned long long)source->content);
    source->kind->describe(source, out_text);
    for (int i = 0; i < source->inner_count; i++) {
        bel_str_printf(out_text, "\ndataset %d {", i);
        bel_record_stream_describe(source->inner[i], 0, out_text);
        bel_str_puts(out_text, "}");
    }
    for (int i = 0; i < source->field_count; i++) {
        const bel_source_field *field = &source->fields[i];
        bel_str_printf(out_text, "\nfield %s %s %s", field->name, bel_dtype_name(field->dtype),
                       bel_shape_text(&field->shape, shape_text));
    }
    for (size_t i = 0; i < stream->positions.count; i++) {
        const bel_position_stage *stage = &stream->positions.stages[i];
        size_t kept_bytes = stage->kept.count * sizeof(int64_t);
        bool others = epochs != 0 && i + 1 == stream->positions.count &&
                      stage->stage.kind == BEL_STAGE_REPEAT;
        bel_str_printf(
            out_text, "\nstage %d count=%lld index=%lld seed=%llu kept=%zu,%016llx",
            (int)stage->stage.kind, (long long)(others ? epochs : stage->stage.count),
            (long long)stage->stage.index, (unsigned long long)stage->stage.seed, stage->kept.count,
            (unsigned long long)(kept_bytes > 0 ? bel_hash64(stage->kept.items, kept_bytes) : 0));
        for (int64_t b = 0; stage->stage.kind == BEL_STAGE_BUCKET && b < stage->stage.count; b++)
            bel_str_printf(out_text, " %lld", (long long)stage->stage.boundaries[b]);
    }
    if (stream->bucket_bytes > 0) {
        bel_str_printf(out_text, " buckets=%016llx",
                       (unsigned long long)bel_hash64(stream->bucket_of, stream->bucket_bytes));
    }
    if (stream->files != 0)
        bel_str_printf(out_text, "\nfiles=%016llx", (unsigned long long)stream->files);
    const bel_description *description = stream->description;
    bel_str_printf(out_text, "\nmaps %zu", description->map_count);
    for (size_t i = 0; i < description->map_count; i++) {
        const char *identity = description->maps[i].identity;
        if (identity != NULL) bel_str_printf(out_text, "\nmap %zu %s", i, identity);
    }
}

bel_status *bel_record_stream_check(const bel_record_stream *stream, int64_t block)
{
    const bel_source *source = stream->source;
    if (source->kind->check != NULL) BEL_TRY(source->kind->check(source, block));
    for (int i = 0; i < source->inner_count; i++)
        BEL_TRY(bel_record_stream_check(source->inner[i], block));
    return NULL;
}

bel_status *bel_record_stream_finish(const bel_record_stream *stream, int64_t deadline_ns,
                                     bool *out_compared)
{
    const bel_source *source = stream->source;
    if (source->kind->finish != NULL)
        BEL_TRY(source->kind->finish(source, deadline_ns, out_compared));
    for (int i = 0; i < source->inner_count; i++)
        BEL_TRY(bel_record_stream_finish(source->inner[i], deadline_ns, out_compared));
    return NULL;
}
