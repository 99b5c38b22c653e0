// Datasets in which a record becomes several, or none. The user's function counts the parts of each
// record once, when the dataset is opened; prefix sums map a number to its record and the part of
// it. So any part can be made independently.
#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "input/source/record_stream.h"

typedef struct flat_source {
    bel_source base;
    const bel_flat_description *flat;
    bel_number_list firsts; // number of each record's first part
} flat_source;

static bel_status *source_flat_apply(const bel_flat_description *flat, bel_record *record,
                                     int64_t part, bool *out_skip)
{
    bel_status *status = flat->map(flat->user, record, part, out_skip);
    bel_status *stuck = bel_record_take_status(record);
    if (status == NULL) {
        status = stuck;
    } else {
        bel_status_ignore(stuck); // most likely what `status` is about
    }
    if (status == NULL && !*out_skip) status = bel_record_drop(record, flat->drop);
    return status;
}

static bel_status *flat_combine(const bel_source *base, bel_cursor *cursor, bel_position at,
                                bel_record *record, bool *out_skip)
{
    const flat_source *source = (const flat_source *)base;
    const bel_number_list *firsts = &source->firsts;
    size_t from = bel_last_at_most(firsts->items, firsts->count, at.number);
    BEL_TRY(bel_record_stream_read(base->inner[0], cursor->inner[0], at.epoch, (int64_t)from,
                                   record, out_skip));
    if (*out_skip) return NULL;
    BEL_TRY_CTX(source_flat_apply(source->flat, record, at.number - firsts->items[from], out_skip),
                "%s", bel_record_origin(record));
    return NULL;
}

// The functions cannot be compared, but how many records they make can.
static void flat_describe(const bel_source *base, bel_str *out_text)
{
    const bel_number_list *firsts = &((const flat_source *)base)->firsts;
    size_t bytes = firsts->count * sizeof *firsts->items;
    uint64_t hash = bytes > 0 ? bel_hash64(firsts->items, bytes) : 0;
    bel_str_printf(out_text, "firsts=%zu,%016llx", firsts->count, (unsigned long long)hash);
}

static void flat_destroy(bel_source *base)
{
    flat_source *source = (flat_source *)base;
    bel_number_list_deinit(&source->firsts);
    bel_free(source);
}

static const bel_source_kind flat_kind = {
    .name = "flat_map",
    .combine = flat_combine,
    .describe = flat_describe,
    .destroy = flat_destroy,
};

// Asks for the number of records that a record becomes.
static bel_status *ask_count(const flat_source *source, bel_cursor *cursor, int64_t position,
                             bel_record *record, int64_t *out_count)
{
    bool skip;
    *out_count = 0;
    const bel_record_stream *inner = source->base.inner[0];
    bel_status *status = bel_record_stream_read(inner, cursor, 0, position, record, &skip);
    if (status != NULL) *out_count = 1; // a bad record stays until it is read
    if (status != NULL || skip) return bel_bad_records_pass(inner->bad, status);
    *out_count = source->flat->count(source->flat->user, record);
    if (*out_count >= 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: flat_map: expected a count of 0 or more, got %lld",
                   bel_record_origin(record), (long long)*out_count);
}

static bel_status *count_parts(flat_source *source)
{
    const bel_record_stream *inner = source->base.inner[0];
    if (inner->positions.endless) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "flat_map: the dataset is repeated forever; repeat what comes out instead");
    }
    bel_cursor *cursor = bel_cursor_create(inner);
    bel_arena *arena = bel_arena_create();
    bel_record record;
    bel_record_init(&record, arena);
    bel_status *status = NULL;
    for (int64_t i = 0; i < inner->positions.length && status == NULL; i++) {
        int64_t count;
        bel_arena_reset(arena);
        status = ask_count(source, cursor, i, &record, &count);
        if (status == NULL)
            status = bel_number_list_append(&source->firsts, source->base.record_count);
        if (status != NULL) break;
        if (__builtin_add_overflow(source->base.record_count, count, &source->base.record_count))
            status = BEL_ERR(BEL_INVALID_ARGUMENT, "flat_map: more than 2^63 records");
    }
    bel_record_deinit(&record);
    bel_arena_destroy(arena);
    bel_cursor_destroy(cursor);
    return status;
}

bel_status *bel_source_open_flat(const bel_source_description *description,
                                 bel_record_stream **inner, bel_source **out_source)
{
    flat_source *source = bel_xcalloc(1, sizeof *source);
    source->flat = &description->flat;
    source->base = (bel_source){
        .kind = &flat_kind, .inner = inner, .inner_count = 1, .names = inner[0]->source->names};
    bel_status *status = count_parts(source);
    if (status != NULL) {
        flat_destroy(&source->base);
        return status;
    }
    *out_source = &source->base;
    return NULL;
}
