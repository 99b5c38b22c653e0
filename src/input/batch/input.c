// Opened dataset, and reading of its blocks: the records of a stream (record_stream.h) into
// batches. Opening fixes the content of each block, so any thread can read blocks in any order,
// with a separate batch for each thread.
//
// There are three ways to fill a batch. Without maps and padding a source writes straight into the
// rows, several at once if it can. With maps one record's memory serves all records in turn. With
// padding all records must be read before the longest is known.
//
// The fingerprint begins with a version number ("input 2"), which must rise when the same
// description gives other blocks. It contains a filter's kept records. For maps it has only their
// number and identities, since code cannot be compared.
#include "input/batch/input.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "input/batch/ahead.h"
#include "input/batch/batch.h"
#include "input/batch/opened.h"
#include "store/store.h"

// --- Opening -------------------------------------------------------------------------------------

// Hash of all that determines the records of each block.
static uint64_t take_fingerprint(const bel_input *input, int64_t epochs)
{
    const bel_description *description = &input->description;
    bel_str text = {0};
    bel_str_puts(&text, "input 2\n");
    bel_record_stream_describe(input->stream, epochs, &text);
    bel_str_printf(&text, "\nbatch %lld padded=%d", (long long)description->batch_size,
                   description->padded);
    for (int i = 0; i < description->padded_shape_count; i++) {
        const bel_padded_shape *padded = &description->padded_shapes[i];
        bel_str_printf(&text, "\npadded %s", padded->field);
        for (int32_t dim = 0; dim < padded->shape.rank; dim++)
            bel_str_printf(&text, " %lld", (long long)padded->shape.dims[dim]);
    }
    for (int i = 0; i < description->pad_value_count; i++) {
        bel_str_printf(&text, "\npad %s %a", description->pad_values[i].field,
                       description->pad_values[i].value);
    }
    uint64_t fingerprint = bel_hash64(text.text, text.length);
    bel_str_deinit(&text);
    return fingerprint;
}

static bel_input_facts gather_facts(const bel_input *input)
{
    const bel_source *source = input->stream->source;
    const bel_positions *positions = &input->stream->positions;
    const bel_stage *last =
        positions->count > 0 ? &positions->stages[positions->count - 1].stage : NULL;
    bool some = source->kind->file != NULL && source->record_count > 0;
    size_t count = (size_t)input->fields.count;
    double *scales = bel_arena_alloc(input->arena, (count + 1) * sizeof *scales);
    for (size_t f = 0; f < count; f++)
        scales[f] = input->fields.items[f].scale == 0 ? 1 : input->fields.items[f].scale;
    return (bel_input_facts){.names = source->names,
                             .table = source->table,
                             .file = some ? source->kind->file(source, 0) : NULL,
                             .scales = scales,
                             .epoch_records = positions->epoch_records,
                             .records = positions->endless ? INT64_MAX : positions->length,
                             .epochs =
                                 last != NULL && last->kind == BEL_STAGE_REPEAT ? last->count : 0,
                             .fingerprint = take_fingerprint(input, 0)};
}

// A growing file has no last record, and a stage that renumbers may need later ones first.
static bel_status *check_growing(const bel_record_stream *stream, bool whole)
{
    const bel_source *source = stream->source;
    for (int i = 0; i < source->inner_count; i++)
        BEL_TRY(check_growing(source->inner[i], false));
    if (source->kind->look == NULL || (whole && stream->positions.count == 0)) return NULL;
    return BEL_ERR(
        BEL_INVALID_ARGUMENT,
        "a file that is followed is read in order, once: no shuffle, repeat, filter or "
        "other stage that renumbers records may follow it, and no dataset be made of it");
}

static bel_status *open_parts(bel_input *input, const bel_input_use *use)
{
    if (input->description.most_bad_records > 0)
        input->bad = bel_bad_records_create(input->description.most_bad_records);
    const bel_opening opening = {.like = use->like, .at_once = use->at_once, .bad = input->bad};
    BEL_TRY(bel_record_stream_open(&input->description, &opening, &input->stream));
    BEL_TRY(check_growing(input->stream, true));
    BEL_TRY(
        bel_batch_fields_make(input->arena, input->stream, &input->description, &input->fields));
    input->elsewhere = use->facts != NULL;
    input->facts = use->facts != NULL ? *use->facts : gather_facts(input);
    return NULL;
}

bel_status *bel_input_open(const bel_dataset *dataset, const bel_input_use *use,
                           bel_input **out_input)
{
    const bel_description *description;
    BEL_TRY(bel_dataset_describe(dataset, &description));
    bel_input *input = bel_xcalloc(1, sizeof *input);
    input->arena = bel_arena_create();
    bel_description_copy(input->arena, description, &input->description);
    input->readers = bel_xcalloc(1, sizeof *input->readers);
    pthread_mutex_init(&input->readers->mutex, NULL);
    bel_status *status = open_parts(input, use != NULL ? use : &(bel_input_use){0});
    if (status != NULL) {
        bel_input_destroy(input);
        return status;
    }
    *out_input = input;
    return NULL;
}

void bel_input_destroy(bel_input *input)
{
    if (input == NULL) return;
    bel_record_stream_destroy(input->stream);
    bel_bad_records_destroy(input->bad);
    bel_description_release(&input->description);
    bel_arena_destroy(input->arena);
    pthread_mutex_destroy(&input->readers->mutex);
    bel_free(input->readers);
    bel_free(input);
}

// --- Questions -----------------------------------------------------------------------------------

const bel_column_names *bel_input_names(const bel_input *input)
{
    return input->facts.names;
}

const char *bel_input_file(const bel_input *input)
{
    return input->facts.file;
}

const bel_columns *bel_input_table(const bel_input *input)
{
    return input->facts.table;
}

int bel_input_field_count(const bel_input *input)
{
    return input->fields.count;
}

const char *bel_input_field_name(const bel_input *input, int field)
{
    return input->fields.items[field].name;
}

int bel_input_find_field(const bel_input *input, const char *name)
{
    for (int f = 0; f < bel_input_field_count(input); f++)
        if (strcmp(bel_input_field_name(input, f), name) == 0) return f;
    return -1;
}

bool bel_input_field_is_label(const bel_input *input, int field)
{
    const char *name = bel_input_field_name(input, field);
    bool label = strcmp(name, BEL_LABEL_FIELD) == 0;
    for (int i = 0; i < input->description.label_count; i++)
        label = label || strcmp(input->description.labels[i], name) == 0;
    return label;
}

void bel_input_field_spec(const bel_input *input, int field, bel_dtype *out_dtype,
                          bel_shape *out_shape)
{
    const bel_batch_field *found = &input->fields.items[field];
    bel_shape shape = {.rank = found->shape.rank + 1};
    shape.dims[0] = BEL_DIM_BATCH;
    memcpy(shape.dims + 1, found->shape.dims, (size_t)found->shape.rank * sizeof *shape.dims);
    *out_dtype = found->dtype;
    *out_shape = shape;
}

double bel_input_field_scale(const bel_input *input, int field)
{
    return input->facts.scales[field];
}

int64_t bel_input_batch_size(const bel_input *input)
{
    return input->description.batch_size;
}

int64_t bel_input_epoch_records(const bel_input *input)
{
    return input->facts.epoch_records;
}

int64_t bel_input_records(const bel_input *input)
{
    return input->facts.records;
}

void bel_input_set_origin(bel_input *input, int64_t origin)
{
    BEL_CHECK(origin >= 0 && origin < input->description.batch_size);
    input->origin = origin;
}

double bel_input_follow_secs(const bel_input *input)
{
    const bel_source_description *source = &input->description.source;
    return source->kind == BEL_SOURCE_CSV ? source->csv.follow_secs : 0;
}

// Number of records before a block.
static bel_status *records_before(const bel_input *input, int64_t block, int64_t *out_records)
{
    if (!__builtin_mul_overflow(block, input->description.batch_size, out_records) &&
        !__builtin_add_overflow(*out_records, input->origin, out_records))
        return NULL;
    return BEL_ERR(BEL_OUT_OF_RANGE, "block %lld of a growing file", (long long)block);
}

bel_status *bel_input_look(const bel_input *input, int64_t block, int64_t *out_missing)
{
    const bel_source *source = input->stream->source;
    *out_missing = 0;
    if (source->kind->look == NULL) return NULL;
    int64_t wanted, there;
    BEL_TRY(records_before(input, block + 1, &wanted));
    BEL_TRY(source->kind->look(source, wanted, &there));
    *out_missing = there < wanted ? wanted - there : 0;
    return NULL;
}

bool bel_input_reads(const bel_input *input)
{
    const bel_source *source = input->stream->source;
    return source->kind->reads != NULL && source->kind->reads(source);
}

bel_status *bel_input_begin(const bel_input *input, int64_t block, const char *mark)
{
    const bel_source *source = input->stream->source;
    int64_t records;
    if (source->kind->begin == NULL) return NULL;
    BEL_TRY(records_before(input, block, &records));
    return source->kind->begin(source, records, records > 0 ? mark : NULL);
}

void bel_input_join(const bel_input *input, bel_input_reader *reader)
{
    bel_input_readers *readers = input->readers;
    pthread_mutex_lock(&readers->mutex);
    *reader = (bel_input_reader){.next = readers->first};
    readers->first = reader;
    pthread_mutex_unlock(&readers->mutex);
}

void bel_input_leave(const bel_input *input, bel_input_reader *reader)
{
    bel_input_readers *readers = input->readers;
    pthread_mutex_lock(&readers->mutex);
    bel_input_reader **at = &readers->first;
    while (*at != reader)
        at = &(*at)->next;
    *at = reader->next;
    pthread_mutex_unlock(&readers->mutex);
}

void bel_input_pass(const bel_input *input, bel_input_reader *reader, int64_t block)
{
    const bel_source *source = input->stream->source;
    bel_input_readers *readers = input->readers;
    int64_t first = INT64_MAX, records;
    if (source->kind->pass == NULL) return;
    pthread_mutex_lock(&readers->mutex);
    reader->block = block;
    for (const bel_input_reader *each = readers->first; each != NULL; each = each->next)
        if (each->block < first) first = each->block;
    pthread_mutex_unlock(&readers->mutex);
    if (first == INT64_MAX || first == 0) return;
    bel_status *status = records_before(input, first, &records);
    if (status == NULL) source->kind->pass(source, records);
    bel_status_ignore(status); // no file has such a block
}

bel_status *bel_input_mark(const bel_input *input, int64_t block, bel_str *out_text)
{
    const bel_source *source = input->stream->source;
    int64_t records, there;
    BEL_TRY(records_before(input, block, &records));
    if (records == 0) return NULL;
    BEL_TRY(source->kind->look(source, records, &there));
    if (there >= records) return source->kind->mark(source, records, out_text);
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s: training has read %lld rows, and it has only %lld now; hint: a new log "
                   "needs a new training, with --warm_start",
                   bel_input_followed(input), (long long)records, (long long)there);
}

void bel_input_unfinished(const bel_input *input, bel_str *out_text)
{
    const bel_source *source = input->stream->source;
    if (source->kind->unfinished != NULL) source->kind->unfinished(source, out_text);
}

const char *bel_input_followed(const bel_input *input)
{
    return input->stream->source->kind->file(input->stream->source, 0);
}

int64_t bel_input_block_count(const bel_input *input, bool with_partial)
{
    if (input->facts.records == INT64_MAX) return INT64_MAX;
    int64_t batch_size = input->description.batch_size;
    int64_t left = input->facts.records - input->origin;
    if (left < 0) left = 0;
    return left / batch_size + (with_partial && left % batch_size > 0 ? 1 : 0);
}

uint64_t bel_input_fingerprint(const bel_input *input)
{
    return input->facts.fingerprint;
}

int64_t bel_input_epochs(const bel_input *input)
{
    return input->facts.epochs;
}

uint64_t bel_input_fingerprint_of_epochs(const bel_input *input, int64_t epochs)
{
    if (!input->elsewhere) return take_fingerprint(input, epochs);
    return epochs == input->facts.epochs ? input->facts.fingerprint : 0;
}

// --- Blocks --------------------------------------------------------------------------------------

bel_batch *bel_batch_create(const bel_input *input)
{
    int64_t batch_size = input->description.batch_size, length = input->stream->positions.length;
    return bel_batch_make(&input->fields, bel_cursor_create(input->stream),
                          length < batch_size ? length : batch_size, input->description.padded);
}

// Reads records into the batch's rows from `*kept` on. `count` is 1 if bad records are left out.
static bel_status *read_straight(const bel_input *input, const int64_t *numbers, int64_t count,
                                 bel_batch *batch, int64_t *kept)
{
    const bel_source *source = input->stream->source;
    void *const *rows = bel_batch_rows(batch, *kept);
    bel_status *status = source->kind->read_rows != NULL
                             ? source->kind->read_rows(source, numbers, count, rows)
                             : source->kind->read(source, numbers[0], &(bel_sink){.rows = rows});
    if (status == NULL) *kept += count;
    return bel_bad_records_pass(input->bad, status);
}

// Reads without maps and padding: the source writes one or several records directly into their
// rows.
static bel_status *read_rows(const bel_input *input, bel_ahead *ahead, bel_batch *batch)
{
    enum { AT_ONCE = 256 };
    const bel_position *positions = batch->memory->positions;
    const int64_t count = batch->position_count;
    const bool several = input->stream->source->kind->read_rows != NULL && input->bad == NULL;
    int64_t numbers[AT_ONCE], kept = 0;
    int waiting = 0;
    BEL_TRY(bel_batch_begin(batch));
    for (int64_t i = 0; i < count; i++) {
        bel_ahead_reach(ahead, i);
        if (positions[i].number >= 0) numbers[waiting++] = positions[i].number; // else a hole
        if (waiting == 0 || (several && waiting < AT_ONCE && i + 1 < count)) continue;
        BEL_TRY(read_straight(input, numbers, waiting, batch, &kept));
        waiting = 0;
    }
    bel_batch_set_count(batch, kept);
    return NULL;
}

// Reads records of fixed shapes. Each is copied into the batch as soon as it is mapped, so that one
// record's memory serves all of them.
static bel_status *read_mapped(const bel_input *input, bel_ahead *ahead, bel_batch *batch)
{
    bel_batch_memory *memory = batch->memory;
    bel_record *record = &memory->records[0];
    int64_t kept = 0;
    BEL_TRY(bel_batch_begin(batch));
    for (int64_t i = 0; i < batch->position_count; i++) {
        bool skip;
        bel_ahead_reach(ahead, i);
        bel_arena_reset(memory->arena);
        bel_status *status = bel_record_stream_read_at(input->stream, memory->cursor,
                                                       memory->positions[i], record, &skip);
        bool there = status == NULL && !skip;
        if (there) status = bel_batch_place(batch, kept, record);
        if (there && status == NULL) kept++;
        BEL_TRY(bel_bad_records_pass(input->bad, status));
    }
    bel_batch_set_count(batch, kept);
    return NULL;
}

// Reads padded batches: the length of the longest record is known only after all are read.
static bel_status *read_padded(const bel_input *input, bel_ahead *ahead, bel_batch *batch)
{
    bel_batch_memory *memory = batch->memory;
    int64_t kept = 0;
    bel_arena_reset(memory->arena);
    for (int64_t i = 0; i < batch->position_count; i++) {
        bool skip;
        bel_record *record = &memory->records[kept];
        bel_ahead_reach(ahead, i);
        bel_status *status = bel_record_stream_read_at(input->stream, memory->cursor,
                                                       memory->positions[i], record, &skip);
        bool there = status == NULL && !skip;
        if (there && input->bad != NULL) status = bel_batch_check(batch, record); // else below
        if (there && status == NULL) kept++;
        BEL_TRY(bel_bad_records_pass(input->bad, status));
    }
    BEL_TRY(bel_batch_place_padded(batch, kept));
    bel_batch_set_count(batch, kept);
    return NULL;
}

// The records' places are known before the first one is read, so they can be prefetched.
static bel_status *read_positions(const bel_input *input, int64_t first, bel_batch *batch)
{
    const bel_record_stream *stream = input->stream;
    bel_batch_memory *memory = batch->memory;
    BEL_TRY(bel_positions_range(&stream->positions, memory->cursor->cache, 0, first,
                                batch->position_count, memory->positions));
    for (int64_t i = 0; stream->source->may_lack && i < batch->position_count; i++)
        bel_record_stream_want_at(stream, memory->cursor, memory->positions[i]);
    bel_ahead ahead = bel_ahead_begin(stream->source, memory->positions, batch->position_count);
    bool straight = stream->description->map_count == 0 && stream->source->kind->read != NULL;
    return input->description.padded ? read_padded(input, &ahead, batch)
           : straight                ? read_rows(input, &ahead, batch)
                                     : read_mapped(input, &ahead, batch);
}

bel_status *bel_input_read(const bel_input *input, int64_t block, bel_batch *batch)
{
    const bel_record_stream *stream = input->stream;
    int64_t batch_size = input->description.batch_size;
    int64_t length = stream->positions.length - input->origin;
    if (input->elsewhere) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "input: its data is on other hosts, and cannot be read here");
    }
    if (block < 0 || length <= 0 || block > (length - 1) / batch_size) {
        return BEL_ERR(BEL_OUT_OF_RANGE, "input: expected a block below %lld, got %lld",
                       (long long)bel_input_block_count(input, true), (long long)block);
    }
    bel_fault_point("input_reads");
    BEL_TRY(bel_record_stream_check(stream, block));
    int64_t left = length - block * batch_size, first = input->origin + block * batch_size;
    batch->block = block;
    batch->example_count = 0;
    batch->position_count = left < batch_size ? left : batch_size;
    bel_crash_set_block(block); // names the block if a map, the program's code, crashes
    bel_status *status = read_positions(input, first, batch);
    bel_crash_set_block(-1);
    return status;
}

bel_status *bel_input_finish(const bel_input *input, double most_secs)
{
    bool compared = true;
    if (input->elsewhere) return NULL;
    int64_t deadline_ns = bel_clock_ns() + (int64_t)(most_secs * 1e9);
    BEL_TRY(bel_record_stream_finish(input->stream, deadline_ns, &compared));
    if (!compared) {
        bel_log_write(BEL_LOG_WARN,
                      "input: training ends before all bytes of its objects were compared with "
                      "their checksums: only lengths and tags were; the next job that reads them "
                      "on this host compares them");
    }
    return NULL;
}

char *bel_input_damage(const bel_input *input)
{
    bool compared = true;
    if (input->elsewhere) return NULL;
    bel_free(bel_store_take_damage()); // it concerns other data, such as an evaluation's
    bel_status_ignore(bel_record_stream_finish(input->stream, 0, &compared)); // the line has it
    return bel_store_take_damage();
}
