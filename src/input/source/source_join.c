// Source whose records come one at a time from one of several datasets: one dataset after the other
// (concatenate), in turn (interleave), or by chance (sample). The three differ only in the mapping
// from a number to a dataset and a record. All datasets must have the same fields, which is checked
// at opening.
//
// If sample passes through a dataset several times within an epoch, each pass counts as a separate
// epoch, so that a shuffle inside it has another order in each. Passes get numbers that no other
// epoch has: dataset i has at most record_count / length + 1 of them.
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "input/order/epoch_orders.h"
#include "input/order/interleave.h"
#include "input/order/sampling.h"
#include "input/source/record_stream.h"

typedef struct join_source {
    bel_source base;
    bel_arena *arena;
    const bel_source_description *description;
    int64_t *lengths; // length of each dataset
    int64_t *firsts;  // concatenate: number of each dataset's first record
    bel_interleave order;
    bel_sampling sampling;
    bel_epoch_orders *draws;
} join_source;

// Record of an inner dataset.
typedef struct place {
    int dataset;
    int64_t epoch, position;
} place;

// --- From numbers to records ---------------------------------------------------------------------

static bel_status *place_drawn(const join_source *source, bel_cursor *cursor, bel_position at,
                               place *out_place)
{
    const int64_t *draws;
    size_t count;
    BEL_TRY(bel_epoch_orders_get(source->draws, at.epoch, &cursor->hold, &draws, &count));
    int dataset = bel_sampling_dataset(draws[at.number]);
    int64_t drawn = bel_sampling_position(draws[at.number]), length = source->lengths[dataset];
    uint64_t passes = (uint64_t)(source->sampling.record_count / length) + 1;
    if (source->sampling.record_count == 0) passes = 1;
    *out_place =
        (place){.dataset = dataset,
                .epoch = (int64_t)((uint64_t)at.epoch * passes + (uint64_t)(drawn / length)),
                .position = drawn % length};
    return NULL;
}

static bel_status *find_place(const join_source *source, bel_cursor *cursor, bel_position at,
                              place *out_place)
{
    if (source->description->kind == BEL_SOURCE_SAMPLE)
        return place_drawn(source, cursor, at, out_place);
    if (source->description->kind == BEL_SOURCE_INTERLEAVE) {
        bel_interleave_part part = bel_interleave_at(&source->order, at.number);
        *out_place = (place){part.dataset, at.epoch, part.start};
        return NULL;
    }
    size_t dataset = bel_last_at_most(source->firsts, (size_t)source->base.inner_count, at.number);
    *out_place = (place){(int)dataset, at.epoch, at.number - source->firsts[dataset]};
    return NULL;
}

static bel_status *join_combine(const bel_source *base, bel_cursor *cursor, bel_position at,
                                bel_record *record, bool *out_skip)
{
    place from;
    BEL_TRY(find_place((const join_source *)base, cursor, at, &from));
    return bel_record_stream_read(base->inner[from.dataset], cursor->inner[from.dataset],
                                  from.epoch, from.position, record, out_skip);
}

static void join_want(const bel_source *base, bel_cursor *cursor, bel_position at)
{
    place from;
    bel_status *status = find_place((const join_source *)base, cursor, at, &from);
    if (status == NULL)
        bel_record_stream_want(base->inner[from.dataset], cursor->inner[from.dataset], from.epoch,
                               from.position);
    bel_status_ignore(status); // join_combine has it
}

// The caller adds the descriptions of the datasets.
static void join_describe(const bel_source *base, bel_str *out_text)
{
    const join_source *source = (const join_source *)base;
    const bel_source_description *description = source->description;
    if (description->kind == BEL_SOURCE_INTERLEAVE) {
        bel_str_printf(out_text, "cycle=%d block=%lld", description->interleave.cycle_length,
                       (long long)description->interleave.block_length);
    } else if (description->kind == BEL_SOURCE_SAMPLE) {
        bel_str_printf(out_text, "seed=%llu weights", (unsigned long long)description->sample.seed);
        for (int i = 0; i < base->inner_count; i++)
            bel_str_printf(out_text, " %a", description->sample.weights[i]);
    }
}

static void join_destroy(bel_source *base)
{
    join_source *source = (join_source *)base;
    bel_epoch_orders_destroy(source->draws);
    bel_interleave_deinit(&source->order);
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind concatenate_kind = {
    .name = "concatenate",
    .combine = join_combine,
    .want = join_want,
    .describe = join_describe,
    .destroy = join_destroy,
};

static const bel_source_kind interleave_kind = {
    .name = "interleave",
    .combine = join_combine,
    .want = join_want,
    .describe = join_describe,
    .destroy = join_destroy,
};

static const bel_source_kind sample_kind = {
    .name = "sample",
    .combine = join_combine,
    .want = join_want,
    .describe = join_describe,
    .destroy = join_destroy,
};

// --- Opening -------------------------------------------------------------------------------------

// Checks for the same fields by name, type and rank.
static bel_status *check_fields(const char *kind, const bel_record_stream *first,
                                const bel_record_stream *other, int index)
{
    for (int i = 0; i < first->field_count; i++) {
        const bel_source_field *expected = &first->fields[i];
        const bel_source_field *got = bel_record_stream_field(other, expected->name);
        if (got == NULL) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "%s: expected a field \"%s\" in dataset %d as in dataset 0, got none",
                           kind, expected->name, index);
        }
        if (got->dtype == expected->dtype && got->shape.rank == expected->shape.rank) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: field \"%s\": expected %s of %d dimensions in dataset %d as in dataset "
                       "0, got %s of %d",
                       kind, expected->name, bel_dtype_name(expected->dtype),
                       (int)expected->shape.rank, index, bel_dtype_name(got->dtype),
                       (int)got->shape.rank);
    }
    if (other->field_count == first->field_count) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: expected %d fields in dataset %d as in dataset 0, got %d", kind,
                   first->field_count, index, other->field_count);
}

static bool same_shapes(const bel_record_stream *first, const bel_record_stream *other)
{
    for (int i = 0; i < first->field_count; i++) {
        const bel_source_field *field = bel_record_stream_field(other, first->fields[i].name);
        if (!bel_shape_equal(&field->shape, &first->fields[i].shape)) return false;
    }
    return true;
}

// Gets the lengths of the datasets, and checks that these are compatible.
static bel_status *look_at_datasets(join_source *source, const char *kind)
{
    bel_source *base = &source->base;
    bool known = true;
    for (int i = 0; i < base->inner_count; i++) {
        const bel_record_stream *stream = base->inner[i];
        int64_t length = stream->positions.length;
        if (stream->positions.endless) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "%s: dataset %d is repeated forever; repeat what comes out instead",
                           kind, i);
        }
        if (__builtin_add_overflow(base->record_count, length, &base->record_count) ||
            base->record_count >= (int64_t)1 << BEL_SAMPLING_POSITION_BITS) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected fewer than 2^%d records in all",
                           kind, BEL_SAMPLING_POSITION_BITS);
        }
        source->lengths[i] = length;
        BEL_TRY(check_fields(kind, base->inner[0], stream, i));
        known = known && stream->known && same_shapes(base->inner[0], stream);
    }
    if (known) {
        base->fields = base->inner[0]->fields;
        base->field_count = base->inner[0]->field_count;
    }
    return NULL;
}

static bel_status *prepare_draws(join_source *source)
{
    const bel_source_description *description = source->description;
    int64_t record_count = description->sample.record_count;
    for (int i = 0; i < source->base.inner_count; i++) {
        if (source->lengths[i] > 0 || record_count == 0) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "sample: expected records in dataset %d, got none", i);
    }
    source->sampling = (bel_sampling){.weights = description->sample.weights,
                                      .lengths = source->lengths,
                                      .count = source->base.inner_count,
                                      .record_count = record_count,
                                      .seed = description->sample.seed};
    source->draws = bel_epoch_orders_create(bel_sampling_make, &source->sampling);
    if (record_count > 0) source->base.record_count = record_count;
    return NULL;
}

static bel_status *join_source_prepare(join_source *source)
{
    bel_source *base = &source->base;
    int count = base->inner_count;
    BEL_TRY(look_at_datasets(source, base->kind->name));
    if (source->description->kind == BEL_SOURCE_SAMPLE) return prepare_draws(source);
    if (source->description->kind == BEL_SOURCE_INTERLEAVE) {
        int cycle = source->description->interleave.cycle_length;
        bel_interleave_init(&source->order, source->lengths, count,
                            cycle == 0 || cycle > count ? count : cycle,
                            source->description->interleave.block_length);
        return NULL;
    }
    int64_t first = 0;
    for (int i = 0; i < count; i++) {
        source->firsts[i] = first;
        first += source->lengths[i];
    }
    return NULL;
}

bel_status *bel_source_open_join(const bel_source_description *description,
                                 bel_record_stream **inner, bel_source **out_source)
{
    join_source *source = bel_xcalloc(1, sizeof *source);
    size_t count = (size_t)description->inner_count;
    source->arena = bel_arena_create();
    source->description = description;
    source->lengths = bel_arena_alloc(source->arena, count * sizeof *source->lengths);
    source->firsts = bel_arena_alloc(source->arena, count * sizeof *source->firsts);
    source->base = (bel_source){.kind = &concatenate_kind,
                                .inner = inner,
                                .inner_count = description->inner_count,
                                .names = inner[0]->source->names};
    if (description->kind == BEL_SOURCE_INTERLEAVE) source->base.kind = &interleave_kind;
    if (description->kind == BEL_SOURCE_SAMPLE) source->base.kind = &sample_kind;
    bel_status *status = join_source_prepare(source);
    if (status != NULL) {
        join_destroy(&source->base);
        return status;
    }
    *out_source = &source->base;
    return NULL;
}
