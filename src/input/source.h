// Sources: numbered records that can be read in any order by any thread.
#ifndef BELFRY_INPUT_SOURCE_H
#define BELFRY_INPUT_SOURCE_H

#include "base/str.h"
#include "input/bad_records.h"
#include "input/column_names.h"
#include "input/description.h"
#include "input/positions.h"
#include "input/record.h"

typedef struct bel_source bel_source;
struct bel_cursor;
struct bel_record_stream;

// Where a source writes a record: into rows of a batch when nobody looks at the record on its way,
// else into a record.
typedef struct bel_sink {
    bel_record *record; // NULL: into rows
    void *const *rows;  // one for each of the source's fields
} bel_sink;

// How sources are opened.
typedef struct bel_opening {
    // Names of the columns that a model was trained with: the vector has those, in that order, and
    // the label must be that one. NULL: nothing is known.
    const bel_column_names *like;
    // All records are read as soon as it is opened, and once: wrong values are found then, and are
    // not looked for before.
    bool at_once;
    // Records that cannot be read keep their numbers, and are left out when they are read. NULL:
    // they are errors, as early as possible.
    bel_bad_records *bad;
} bel_opening;

// In how many steps a record is fetched into the caches before it is read (ahead.h).
enum { BEL_AHEAD_STEPS = 3 };

// What each kind of source does.
typedef struct bel_source_kind {
    const char *name; // enters the fingerprint
    // Before a block is read: DATA_LOSS when a file has become shorter. NULL: there are no files.
    bel_status *(*check)(const bel_source *source, int64_t block);
    // Writes each field of record `number` to its bel_sink_place. Errors name their place.
    bel_status *(*read)(const bel_source *source, int64_t number, const bel_sink *sink);
    // `read` of several records into rows that follow each other; rows[f]: the first one of field
    // f. The error of the first record that has one; what is written is not looked at then. NULL:
    // they are read one by one.
    bel_status *(*read_rows)(const bel_source *source, const int64_t *numbers, int64_t count,
                             void *const *rows);
    // Step `step`, from 0 on, of fetching record `number` into the caches. It waits for nothing but
    // what the step before has fetched, and changes nothing. NULL: records cannot be fetched.
    void (*ahead)(const bel_source *source, int64_t number, int step);
    // Instead of `read`, of a source that is made of datasets: reads them into an empty record.
    // *out_skip, false before: there is no record here.
    bel_status *(*combine)(const bel_source *source, struct bel_cursor *cursor, bel_position at,
                           bel_record *record, bool *out_skip);
    // Where a record comes from, for messages: "train.csv:17". NULL with `combine` where its
    // datasets say it.
    void (*origin)(const bel_source *source, int64_t number, bel_str *out_text);
    // The path of the file that a record comes from, which lives as long as the source. NULL: its
    // records come from no file that paths in them could be relative to.
    const char *(*file)(const bel_source *source, int64_t number);
    // Settings that change what records hold, without pathnames: they enter the fingerprint.
    void (*describe)(const bel_source *source, bel_str *out_text);
    void (*destroy)(bel_source *source);
} bel_source_kind;

// A field that every record has. A first dimension of -1 is another one in each record; that of a
// text always is.
typedef struct bel_source_field {
    const char *name;
    bel_dtype dtype;
    bel_shape shape;
    double scale; // the source has multiplied what is in its files by it; 0: it has not
} bel_source_field;

// Every kind begins its own struct with this one. Immutable once opened, so thread-safe.
struct bel_source {
    const bel_source_kind *kind;
    int64_t record_count; // INT64_MAX when endless
    bool endless;
    uint64_t size_bytes;              // of what was opened, unpacked
    uint64_t content;                 // hash of it: other data of the same size are other data
    const bel_source_field *fields;   // in the order in which `read` adds them
    int field_count;                  // 0: only reading shows
    struct bel_record_stream **inner; // the datasets that it is made of
    int inner_count;
    const bel_column_names *names;   // of its columns; NULL: it has none
    const struct bel_columns *table; // the description of its columns; NULL: it has none
};

// Memory for field `field` of the record being read: zeroed in a record, with old content in a row.
// `length` is its first dimension, if that is open, and is not used otherwise.
void *bel_sink_place(const bel_sink *sink, const bel_source *source, int field, int64_t length);

// Reads a whole record; what was in it before is gone. `cursor`: of the stream that the source
// belongs to.
bel_status *bel_source_read_record(const bel_source *source, struct bel_cursor *cursor,
                                   bel_position at, bel_record *record,
                                   bool *out_skip) BEL_MUST_USE;

// Reads records once, so that a value that is wrong is not found after hours of training: all of
// them, or of large sources as many at the beginning and at the end as take half a second. (None
// where the opening says that they are read at once.)
bel_status *bel_source_read_some(const bel_source *source, const bel_opening *opening) BEL_MUST_USE;

// Opens what is described; pointers in the description must outlive the source, `like` need not.
// INVALID_ARGUMENT: a column that the model was trained with is missing, or the label is another.
bel_status *bel_source_open(const bel_source_description *description, const bel_opening *opening,
                            bel_source **out_source) BEL_MUST_USE;
void bel_source_destroy(bel_source *source); // with its datasets; accepts NULL

// One opener per kind, in source_<kind>.c.
bel_status *bel_source_open_csv(const bel_csv_options *options, const bel_opening *opening,
                                bel_source **out_source) BEL_MUST_USE;
bel_status *bel_source_open_table(const bel_csv_options *options, const bel_opening *opening,
                                  bel_source **out_source) BEL_MUST_USE;
bel_status *bel_source_open_idx(const bel_idx_description *description,
                                bel_source **out_source) BEL_MUST_USE;
bel_status *bel_source_open_memory(const bel_memory_description *description,
                                   bel_source **out_source) BEL_MUST_USE;
bel_status *bel_source_open_text(const bel_text_description *description,
                                 bel_source **out_source) BEL_MUST_USE;

bel_status *bel_source_open_tfrecord(const bel_tfrecord_options *options,
                                     const bel_opening *opening,
                                     bel_source **out_source) BEL_MUST_USE;
bel_status *bel_source_open_generator(const bel_generator_description *description,
                                      const bel_opening *opening,
                                      bel_source **out_source) BEL_MUST_USE;
// And of what is made of datasets. They stay the caller's when this fails.
bel_status *bel_source_open_join(const bel_source_description *description,
                                 struct bel_record_stream **inner,
                                 bel_source **out_source) BEL_MUST_USE;
bel_status *bel_source_open_zip(const bel_source_description *description,
                                struct bel_record_stream **inner,
                                bel_source **out_source) BEL_MUST_USE;
bel_status *bel_source_open_window(const bel_source_description *description,
                                   struct bel_record_stream **inner,
                                   bel_source **out_source) BEL_MUST_USE;
bel_status *bel_source_open_flat(const bel_source_description *description,
                                 struct bel_record_stream **inner,
                                 bel_source **out_source) BEL_MUST_USE;
bel_status *bel_source_open_cache(const bel_source_description *description,
                                  struct bel_record_stream **inner,
                                  bel_source **out_source) BEL_MUST_USE;

#endif
