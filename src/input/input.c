// Opening a dataset and reading its blocks: position → record number → record → map → batch. All
// that decides what a block holds is fixed at opening, so blocks can be read in any order by any
// thread, each with a batch of its own.
//
// There are three ways to a batch: without maps and padding a source writes straight into the
// rows; with maps one record's memory serves all in turn; padded, all records must be there
// before the longest is known. The fingerprint begins with a version number ("input 2"), which
// must rise when the same description gives other blocks; of a filter it has the records that
// were kept, of maps their number and identities, as code cannot be compared.
#include "input/input.h"

#include <string.h>

#include "base/alloc.h"
#include "base/crash.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/str.h"
#include "input/batch.h"
#include "input/opened.h"

// --- One record ----------------------------------------------------------------------------------

static bel_status *drop_fields(const bel_map_stage *stage, bel_record *record)
{
    for (size_t i = 0; stage->drop != NULL && stage->drop[i] != NULL; i++) {
        if (bel_record_remove(record, stage->drop[i])) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "the drop list names \"%s\", but there is no such field", stage->drop[i]);
    }
    return NULL;
}

// Calls the user's function. What it returns counts before what it did to the record.
static bel_status *apply_map(const bel_map_stage *stage, bel_record *record, bool *out_skip)
{
    bel_status *status = stage->map(stage->user, record, out_skip);
    bel_status *stuck = bel_record_take_status(record);
    if (status == NULL) {
        status = stuck;
    } else {
        bel_status_ignore(stuck); // most likely what `status` is about
    }
    if (status == NULL && !*out_skip) status = drop_fields(stage, record);
    return status;
}

// Reads and maps the record of a position. *out_skip: a map left it out.
static bel_status *make_record(const bel_input *input, bel_position position, bel_record *record,
                               bool *out_skip)
{
    *out_skip = false;
    BEL_TRY(bel_source_read_record(input->source, position.number, record));
    record->epoch = position.epoch;
    for (size_t i = 0; i < input->description.map_count && !*out_skip; i++) {
        BEL_TRY_CTX(apply_map(&input->description.maps[i], record, out_skip), "%s",
                    bel_record_origin(record));
    }
    return NULL;
}

// --- Opening -------------------------------------------------------------------------------------

// Asks `keep` about every record that reaches the filter.
static bel_status *list_kept(const bel_input *input, const bel_stage *stage, bel_record *record,
                             bel_number_list *kept)
{
    bel_position_cache *cache = bel_position_cache_create(&input->positions);
    bel_status *status = NULL;
    for (int64_t i = 0; i < input->positions.length && status == NULL; i++) {
        int64_t number = bel_positions_at(&input->positions, cache, i).number;
        bel_arena_reset(record->arena);
        status = bel_source_read_record(input->source, number, record);
        if (status != NULL || !stage->keep(stage->user, record)) continue;
        status = bel_number_list_append(kept, i);
    }
    bel_position_cache_destroy(cache);
    return status;
}

// Stages in the order of the description, each asked for what it leaves of the one before.
static bel_status *add_stages(bel_input *input, bel_record *record)
{
    bel_positions_init(&input->positions, input->source->record_count);
    for (size_t i = 0; i < input->description.stage_count; i++) {
        const bel_stage *stage = &input->description.stages[i];
        if (stage->kind != BEL_STAGE_FILTER) {
            BEL_TRY(bel_positions_add(&input->positions, stage));
            continue;
        }
        bel_number_list kept = {0};
        bel_status *status = list_kept(input, stage, record, &kept);
        if (status != NULL) {
            bel_number_list_deinit(&kept);
            return status;
        }
        bel_positions_add_kept(&input->positions, &kept);
    }
    return NULL;
}

// Only calling the maps shows what they make: on the first record that they do not skip.
static bel_status *learn_fields(bel_input *input, bel_record *record)
{
    const bel_description *description = &input->description;
    if (description->map_count == 0) {
        return bel_batch_fields_from_source(input->arena, input->source, description,
                                            &input->fields);
    }
    const bel_positions *positions = &input->positions;
    int64_t count =
        positions->length < positions->epoch_records ? positions->length : positions->epoch_records;
    bel_position_cache *cache = bel_position_cache_create(positions);
    bel_status *status = NULL;
    bool skipped = true;
    for (int64_t i = 0; i < count && status == NULL && skipped; i++) {
        bel_arena_reset(record->arena);
        status = make_record(input, bel_positions_at(positions, cache, i), record, &skipped);
    }
    bel_position_cache_destroy(cache);
    BEL_TRY(status);
    if (skipped) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "map: expected a record to learn the fields from; %lld came and all were "
                       "skipped",
                       (long long)count);
    }
    return bel_batch_fields_from_record(input->arena, record, description, &input->fields);
}

// What decides which records are in which block, as text.
static uint64_t take_fingerprint(const bel_input *input)
{
    const bel_source *source = input->source;
    const bel_description *description = &input->description;
    bel_str text = {0};
    char shape_text[BEL_SHAPE_TEXT];
    bel_str_printf(&text, "input 2\nsource %s records=%lld bytes=%llu content=%016llx ",
                   source->kind->name, (long long)source->record_count,
                   (unsigned long long)source->size_bytes, (unsigned long long)source->content);
    source->kind->describe(source, &text);
    for (int i = 0; i < source->field_count; i++) {
        const bel_source_field *field = &source->fields[i];
        bel_str_printf(&text, "\nfield %s %s %s", field->name, bel_dtype_name(field->dtype),
                       bel_shape_text(&field->shape, shape_text));
    }
    for (size_t i = 0; i < input->positions.count; i++) {
        const bel_position_stage *stage = &input->positions.stages[i];
        size_t kept_bytes = stage->kept.count * sizeof(int64_t);
        bel_str_printf(
            &text, "\nstage %d count=%lld index=%lld seed=%llu kept=%zu,%016llx",
            (int)stage->stage.kind, (long long)stage->stage.count, (long long)stage->stage.index,
            (unsigned long long)stage->stage.seed, stage->kept.count,
            (unsigned long long)(kept_bytes > 0 ? bel_hash64(stage->kept.items, kept_bytes) : 0));
    }
    bel_str_printf(&text, "\nmaps %zu\nbatch %lld padded=%d", description->map_count,
                   (long long)description->batch_size, description->padded);
    for (size_t i = 0; i < description->map_count; i++) {
        const char *identity = description->maps[i].identity;
        if (identity != NULL) bel_str_printf(&text, "\nmap %zu %s", i, identity);
    }
    for (int i = 0; i < description->padded_shape_count; i++) {
        const bel_padded_shape *padded = &description->padded_shapes[i];
        bel_str_printf(&text, "\npadded %s", padded->field);
        for (int32_t dim = 0; dim < padded->shape.rank; dim++)
            bel_str_printf(&text, " %lld", (long long)padded->shape.dims[dim]);
    }
    uint64_t fingerprint = bel_hash64(text.text, text.length);
    bel_str_deinit(&text);
    return fingerprint;
}

// The source first; the record that filters and maps are tried on is gone afterwards.
static bel_status *open_parts(bel_input *input, const bel_column_names *like)
{
    BEL_TRY(bel_source_open(&input->description.source, like, &input->source));
    bel_arena *arena = bel_arena_create();
    bel_record record;
    bel_record_init(&record, arena);
    bel_status *status = add_stages(input, &record);
    if (status == NULL) status = learn_fields(input, &record);
    bel_record_deinit(&record);
    bel_arena_destroy(arena);
    if (status == NULL) input->fingerprint = take_fingerprint(input);
    return status;
}

bel_status *bel_input_open(const bel_dataset *dataset, const bel_column_names *like,
                           bel_input **out_input)
{
    const bel_description *description;
    BEL_TRY(bel_dataset_describe(dataset, &description));
    bel_input *input = bel_xcalloc(1, sizeof *input);
    input->arena = bel_arena_create();
    bel_description_copy(input->arena, description, &input->description);
    bel_status *status = open_parts(input, like);
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
    bel_description_release(&input->description);
    bel_positions_deinit(&input->positions);
    bel_source_destroy(input->source);
    bel_arena_destroy(input->arena);
    bel_free(input);
}

// --- Questions -----------------------------------------------------------------------------------

const bel_column_names *bel_input_names(const bel_input *input)
{
    return input->source->names;
}

int bel_input_field_count(const bel_input *input)
{
    return input->fields.count;
}

const char *bel_input_field_name(const bel_input *input, int field)
{
    return input->fields.items[field].name;
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

int64_t bel_input_batch_size(const bel_input *input)
{
    return input->description.batch_size;
}

int64_t bel_input_epoch_records(const bel_input *input)
{
    return input->positions.epoch_records;
}

int64_t bel_input_records(const bel_input *input)
{
    return input->positions.length;
}

int64_t bel_input_block_count(const bel_input *input, bool with_partial)
{
    if (input->positions.endless) return INT64_MAX;
    int64_t batch_size = input->description.batch_size, length = input->positions.length;
    return length / batch_size + (with_partial && length % batch_size > 0 ? 1 : 0);
}

uint64_t bel_input_fingerprint(const bel_input *input)
{
    return input->fingerprint;
}

// --- Blocks --------------------------------------------------------------------------------------

bel_batch *bel_batch_create(const bel_input *input)
{
    int64_t batch_size = input->description.batch_size, length = input->positions.length;
    return bel_batch_make(&input->fields, &input->positions,
                          length < batch_size ? length : batch_size, input->description.padded);
}

// Without maps and padding nobody looks at a record on its way: the source writes it into its row.
static bel_status *read_rows(const bel_input *input, int64_t first, int64_t count, bel_batch *batch)
{
    BEL_TRY(bel_batch_begin(batch));
    for (int64_t i = 0; i < count; i++) {
        int64_t number =
            bel_positions_at(&input->positions, batch->memory->cache, first + i).number;
        bel_sink sink = {.rows = bel_batch_rows(batch, i)};
        BEL_TRY(input->source->kind->read(input->source, number, &sink));
    }
    bel_batch_set_count(batch, count);
    return NULL;
}

// With fixed shapes a record is copied into the batch as soon as it is mapped, so that one record's
// memory serves all of them.
static bel_status *read_mapped(const bel_input *input, int64_t first, int64_t count,
                               bel_batch *batch)
{
    bel_batch_memory *memory = batch->memory;
    int64_t kept = 0;
    BEL_TRY(bel_batch_begin(batch));
    for (int64_t i = first; i < first + count; i++) {
        bel_position position = bel_positions_at(&input->positions, memory->cache, i);
        bool skip;
        bel_arena_reset(memory->arena);
        BEL_TRY(make_record(input, position, &memory->records[0], &skip));
        if (!skip) BEL_TRY(bel_batch_place(batch, kept++, &memory->records[0]));
    }
    bel_batch_set_count(batch, kept);
    return NULL;
}

// How long the longest record is shows when all of them are there.
static bel_status *read_padded(const bel_input *input, int64_t first, int64_t count,
                               bel_batch *batch)
{
    bel_batch_memory *memory = batch->memory;
    int64_t kept = 0;
    bel_arena_reset(memory->arena);
    for (int64_t i = first; i < first + count; i++) {
        bel_position position = bel_positions_at(&input->positions, memory->cache, i);
        bool skip;
        BEL_TRY(make_record(input, position, &memory->records[kept], &skip));
        if (!skip) kept++;
    }
    BEL_TRY(bel_batch_place_padded(batch, kept));
    bel_batch_set_count(batch, kept);
    return NULL;
}

bel_status *bel_input_read(const bel_input *input, int64_t block, bel_batch *batch)
{
    int64_t batch_size = input->description.batch_size, length = input->positions.length;
    if (block < 0 || block > (length - 1) / batch_size || length == 0) {
        return BEL_ERR(BEL_OUT_OF_RANGE, "input: expected a block below %lld, got %lld",
                       (long long)bel_input_block_count(input, true), (long long)block);
    }
    bel_fault_point("input_reads");
    if (input->source->kind->check != NULL)
        BEL_TRY(input->source->kind->check(input->source, block));
    int64_t first = block * batch_size;
    int64_t count = length - first < batch_size ? length - first : batch_size;
    batch->block = block;
    batch->example_count = 0;
    bel_crash_set_block(block); // maps are the program's own
    bel_status *status = input->description.padded ? read_padded(input, first, count, batch)
                         : input->description.map_count > 0
                             ? read_mapped(input, first, count, batch)
                             : read_rows(input, first, count, batch);
    bel_crash_set_block(-1);
    return status;
}
