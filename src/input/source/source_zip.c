// Records side by side: zip gives each record the fields of the records with its number in all
// datasets, enumerate a field with the number. Additional records are read into the same arena, and
// their fields are then attached to the record.
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "input/source/record_stream.h"

typedef struct zip_source {
    bel_source base;
    bel_arena *arena;
    const bel_source_description *description;
} zip_source;

static bel_status *zip_combine(const bel_source *base, bel_cursor *cursor, bel_position at,
                               bel_record *record, bool *out_skip)
{
    BEL_TRY(bel_record_stream_read(base->inner[0], cursor->inner[0], at.epoch, at.number, record,
                                   out_skip));
    bel_record *beside = &cursor->beside;
    for (int i = 1; i < base->inner_count && !*out_skip; i++) {
        beside->arena = record->arena;
        BEL_TRY(bel_record_stream_read(base->inner[i], cursor->inner[i], at.epoch, at.number,
                                       beside, out_skip));
        if (!*out_skip) BEL_TRY(bel_record_take_fields(record, beside));
    }
    return NULL;
}

static void zip_want(const bel_source *base, bel_cursor *cursor, bel_position at)
{
    for (int i = 0; i < base->inner_count; i++)
        bel_record_stream_want(base->inner[i], cursor->inner[i], at.epoch, at.number);
}

static bel_status *enumerate_combine(const bel_source *base, bel_cursor *cursor, bel_position at,
                                     bel_record *record, bool *out_skip)
{
    const bel_source_description *description = ((const zip_source *)base)->description;
    BEL_TRY(bel_record_stream_read(base->inner[0], cursor->inner[0], at.epoch, at.number, record,
                                   out_skip));
    if (*out_skip) return NULL;
    bel_shape scalar = bel_shape_scalar();
    int64_t *number =
        bel_record_append(record, description->enumerate.field, BEL_DTYPE_I64, &scalar);
    *number = (int64_t)((uint64_t)description->enumerate.start + (uint64_t)at.number);
    return NULL;
}

static void zip_describe(const bel_source *base, bel_str *out_text)
{
    (void)base; // the datasets' descriptions suffice
    (void)out_text;
}

static void enumerate_describe(const bel_source *base, bel_str *out_text)
{
    const bel_source_description *description = ((const zip_source *)base)->description;
    bel_str_printf(out_text, "field=%s start=%lld", description->enumerate.field,
                   (long long)description->enumerate.start);
}

static void zip_destroy(bel_source *base)
{
    zip_source *source = (zip_source *)base;
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind zip_kind = {
    .name = "zip",
    .combine = zip_combine,
    .want = zip_want,
    .describe = zip_describe,
    .destroy = zip_destroy,
};

static const bel_source_kind enumerate_kind = {
    .name = "enumerate",
    .combine = enumerate_combine,
    .want = zip_want,
    .describe = enumerate_describe,
    .destroy = zip_destroy,
};

// --- Opening -------------------------------------------------------------------------------------

// Checks that no earlier dataset has a field of dataset `index`.
static bel_status *check_names(const bel_source *base, int index)
{
    const bel_record_stream *stream = base->inner[index];
    for (int f = 0; f < stream->field_count; f++) {
        const char *name = stream->fields[f].name;
        for (int i = 0; i < index; i++) {
            if (bel_record_stream_field(base->inner[i], name) == NULL) continue;
            return BEL_ERR(
                BEL_INVALID_ARGUMENT,
                "zip: datasets %d and %d both have a field \"%s\"; rename or drop one in "
                "a map",
                i, index, name);
        }
    }
    return NULL;
}

// Combines the datasets: the shortest one decides the length, and the fields are those of all,
// followed by `extra` (NULL: none).
static bel_status *put_side_by_side(zip_source *source, const bel_source_field *extra)
{
    bel_source *base = &source->base;
    int field_count = extra == NULL ? 0 : 1;
    bool known = true;
    base->record_count = INT64_MAX;
    base->endless = true;
    for (int i = 0; i < base->inner_count; i++) {
        const bel_record_stream *stream = base->inner[i];
        if (stream->positions.length < base->record_count)
            base->record_count = stream->positions.length;
        base->endless = base->endless && stream->positions.endless;
        known = known && stream->known;
        field_count += stream->field_count;
        BEL_TRY(check_names(base, i));
    }
    if (!known) return NULL;
    bel_source_field *fields = bel_arena_alloc(source->arena, (size_t)field_count * sizeof *fields);
    for (int i = 0; i < base->inner_count; i++)
        for (int f = 0; f < base->inner[i]->field_count; f++)
            fields[base->field_count++] = base->inner[i]->fields[f];
    if (extra != NULL) fields[base->field_count++] = *extra;
    base->fields = fields;
    return NULL;
}

static bel_status *zip_source_prepare(zip_source *source)
{
    if (source->description->kind == BEL_SOURCE_ZIP) return put_side_by_side(source, NULL);
    const char *name = source->description->enumerate.field;
    if (bel_record_stream_field(source->base.inner[0], name) != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "enumerate: records have a field \"%s\" already; choose another name", name);
    }
    const bel_source_field number = {
        .name = name, .dtype = BEL_DTYPE_I64, .shape = bel_shape_scalar()};
    return put_side_by_side(source, &number);
}

bel_status *bel_source_open_zip(const bel_source_description *description,
                                bel_record_stream **inner, bel_source **out_source)
{
    zip_source *source = bel_xcalloc(1, sizeof *source);
    source->arena = bel_arena_create();
    source->description = description;
    source->base = (bel_source){
        .kind = description->kind == BEL_SOURCE_ZIP ? &zip_kind : &enumerate_kind,
        .inner = inner,
        .inner_count = description->inner_count,
        .names = inner[0]->source->names,
    };
    bel_status *status = zip_source_prepare(source);
    if (status != NULL) {
        zip_destroy(&source->base);
        return status;
    }
    *out_source = &source->base;
    return NULL;
}
