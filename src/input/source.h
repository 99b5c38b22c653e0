// What a source of records is: a fixed number of records, each readable by its number from any
// thread. A plan is its description, kept by the dataset; opening it makes the source.
#ifndef BELFRY_INPUT_SOURCE_H
#define BELFRY_INPUT_SOURCE_H

#include "base/arena.h"
#include "base/str.h"
#include "belfry/dataset.h"
#include "input/record.h"

typedef struct bel_source bel_source;

// A field of a record or batch row. A STRING field has rank 1 and an open length.
typedef struct bel_field_spec {
    char *name; // owned
    bel_dtype dtype;
    bel_shape shape;
} bel_field_spec;

// Where a source writes the fields of one record: straight into the rows of a batch, or into a
// record that somebody looks at first.
typedef struct bel_sink {
    bel_record *record; // NULL: into rows
    void **rows;        // one per field, each as large as the field's shape says
} bel_sink;

typedef struct bel_source_ops {
    const char *kind; // "csv", for the fingerprint

    // Writes record `number` field by field to bel_sink_place(…). Reads only what it needs.
    bel_status *(*read)(const bel_source *source, int64_t number, const bel_sink *sink);

    // "train.csv:17", in memory of `arena`.
    const char *(*origin)(const bel_source *source, int64_t number, bel_arena *arena);

    // Adds to `text` what the records depend on besides their number and fields: sizes and options.
    void (*describe)(const bel_source *source, bel_str *text);

    void (*destroy)(bel_source *source);
} bel_source_ops;

// The head of every source. Immutable, so thread-safe.
struct bel_source {
    const bel_source_ops *ops;
    int64_t record_count;
    int field_count;
    bel_field_spec *fields; // owned
};

typedef struct bel_source_plan {
    bel_status *(*open)(const struct bel_source_plan *plan, bel_source **out_source);
    void (*destroy)(struct bel_source_plan *plan);
} bel_source_plan;

// Adds a field to a source that is being opened.
void bel_source_add_field(bel_source *source, const char *name, bel_dtype dtype,
                          const bel_shape *shape);

// Frees the fields.
void bel_source_deinit(bel_source *source);

// True when no field is a string, so that records fit into rows.
bool bel_source_has_fixed_shapes(const bel_source *source);

// Reads a record with all its fields.
bel_status *bel_source_read_record(const bel_source *source, int64_t number,
                                   bel_record *out_record) BEL_MUST_USE;

// Zeroed (record) or old (rows) memory for field `field`; `length` counts only for strings.
static inline void *bel_sink_place(const bel_sink *sink, const bel_source *source, int field,
                                   int64_t length)
{
    if (sink->record == NULL) return sink->rows[field];
    const bel_field_spec *spec = &source->fields[field];
    bel_shape shape = spec->shape;
    if (spec->dtype == BEL_DTYPE_STRING) shape.dims[0] = length;
    return bel_record_append(sink->record, spec->name, spec->dtype, &shape);
}

#endif
