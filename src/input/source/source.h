// Sources: numbered records that can be read in any order by any thread.
#ifndef BELFRY_INPUT_SOURCE_SOURCE_H
#define BELFRY_INPUT_SOURCE_SOURCE_H

#include "input/dataset/description.h"
#include "input/order/positions.h"
#include "input/source/bad_records.h"
#include "input/source/record.h"
#include "input/table/column_names.h"

typedef struct bel_str bel_str; // base/str.h
typedef struct bel_source bel_source;
struct bel_cursor;
struct bel_record_stream;

// Destination of a record that a source reads: rows of a batch if nothing looks at the record on
// its way, else a record.
typedef struct bel_sink {
    bel_record *record; // NULL: into rows
    void *const *rows;  // one per field of the source
} bel_sink;

// How sources are opened.
typedef struct bel_opening {
    // Names of the columns that a model was trained with. The vector has those columns, in that
    // order, and the label must be the same. NULL: unknown.
    const bel_column_names *like;
    // All records are read once, as soon as the source is open. Wrong values are found then, so
    // opening does not look for them.
    bool at_once;
    // Records that cannot be read keep their numbers, and are left out when they are read. NULL:
    // they are errors, reported as early as possible.
    bel_bad_records *bad;
} bel_opening;

// Number of steps in which a record is fetched into the caches before it is read (batch/ahead.h).
enum { BEL_AHEAD_STEPS = 3 };

// Operations of a kind of source.
typedef struct bel_source_kind {
    const char *name; // enters the fingerprint
    // Called before a block is read. DATA_LOSS: a file has become shorter. NULL: no files.
    bel_status *(*check)(const bel_source *source, int64_t block);
    // Sets *out_records to the number of records that are there. If they are fewer than `wanted` it
    // looks for more, and does not wait. NULL: all records are there.
    bel_status *(*look)(const bel_source *source, int64_t wanted, int64_t *out_records);
    // Whether records that a look lacks are being read (bel_input_reads). NULL: never.
    bool (*reads)(const bel_source *source);
    // Waits until all bytes are compared with the checksums of their store, at most until
    // `deadline_ns`. *out_compared, initially true: false if they are not. ABORTED: some do not
    // match. NULL: opening has compared them.
    bel_status *(*finish)(const bel_source *source, int64_t deadline_ns, bool *out_compared);
    // Begins after the first `records` records: `mark` is of these, NULL if `records` is 0.
    // DATA_LOSS: it is not. Records before them are not read. Only sources with `look` have it.
    bel_status *(*begin)(const bel_source *source, int64_t records, const char *mark);
    // Tells that records before this one are not read again, nor their marks made. Only sources
    // with `look` have it.
    void (*pass)(const bel_source *source, int64_t records);
    // Appends a text that tells the first `records` records, at least one, from those of another
    // file. DATA_LOSS: they are not there. Only sources with `look` have it.
    bel_status *(*mark)(const bel_source *source, int64_t records, bel_str *out_text);
    // Appends where a last record begins that is not whole yet. Only sources with `look` have it.
    void (*unfinished)(const bel_source *source, bel_str *out_text);
    // Writes each field of record `number` to its bel_sink_place. Errors name their place.
    bel_status *(*read)(const bel_source *source, int64_t number, const bel_sink *sink);
    // `read` of several records into consecutive rows; rows[f] is the first one of field f. Returns
    // the error of the first record that has one; the caller does not use the rows then. NULL:
    // records are read one by one.
    bel_status *(*read_rows)(const bel_source *source, const int64_t *numbers, int64_t count,
                             void *const *rows);
    // Step `step`, from 0 on, of fetching record `number` into the caches. It waits only for
    // what the step before has fetched, and changes nothing. NULL: records cannot be fetched.
    void (*ahead)(const bel_source *source, int64_t number, int step);
    // Begins to fetch a record from a store, if it is absent. Does not wait for it, and changes no
    // data. Called if `may_lack`. NULL: opening has read all records, or only reading finds which
    // ones a record is made of.
    void (*want)(const bel_source *source, struct bel_cursor *cursor, bel_position at);
    // Replaces `read` in a source that is made of datasets: reads them into an empty record.
    // *out_skip, initially false: there is no record here.
    bel_status *(*combine)(const bel_source *source, struct bel_cursor *cursor, bel_position at,
                           bel_record *record, bool *out_skip);
    // Appends the origin of a record, for messages: "train.csv:17". NULL with `combine`: the
    // source's datasets report it.
    void (*origin)(const bel_source *source, int64_t number, bel_str *out_text);
    // Path of the file that a record comes from, valid as long as the source. NULL: records come
    // from no file that paths in them could be relative to.
    const char *(*file)(const bel_source *source, int64_t number);
    // Appends the settings that change what records hold, without pathnames. They enter the
    // fingerprint.
    void (*describe)(const bel_source *source, bel_str *out_text);
    void (*destroy)(bel_source *source);
} bel_source_kind;

// Field that every record has. A first dimension of -1 differs from record to record; that of a
// text always is -1.
typedef struct bel_source_field {
    const char *name;
    bel_dtype dtype;
    bel_shape shape;
    double scale; // factor that the source has applied to its files' values; 0: none
} bel_source_field;

// Source of records: the first member of every kind's struct. Immutable once opened, so
// thread-safe.
struct bel_source {
    const bel_source_kind *kind;
    int64_t record_count; // INT64_MAX when endless
    bool endless;
    bool may_lack;                    // some bytes may be absent: those of a partial copy
    uint64_t size_bytes;              // size of the opened data, unpacked
    uint64_t content;                 // hash of the opened data: tells data of equal size apart
    const bel_source_field *fields;   // in the order in which `read` adds them
    int field_count;                  // 0: unknown until records are read
    struct bel_record_stream **inner; // the datasets that the source is made of
    int inner_count;
    const bel_column_names *names;   // names of its columns; NULL: no columns
    const struct bel_columns *table; // description of its columns; NULL: no description
};

// Memory for field `field` of the record being read: zeroed in a record, with old content in a row.
// `length` is the field's first dimension if that is open, and is ignored otherwise.
void *bel_sink_place(const bel_sink *sink, const bel_source *source, int field, int64_t length);

// Reads a whole record and replaces what was in it. `cursor` is that of the stream that the source
// belongs to.
bel_status *bel_source_read_record(const bel_source *source, struct bel_cursor *cursor,
                                   bel_position at, bel_record *record,
                                   bool *out_skip) BEL_MUST_USE;

// Reads records once, so that a wrong value is not found after hours of training. Reads all of
// them, or 64 MiB at the beginning and end of a large source, which take about half a second. Reads
// none if the opening says that all are read at once.
bel_status *bel_source_read_some(const bel_source *source, const bel_opening *opening) BEL_MUST_USE;

// Opens the described source. Pointers in the description must outlive it, but `like` need not.
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
bel_status *bel_source_open_memory_table(const bel_memory_table_description *description,
                                         bel_source **out_source) BEL_MUST_USE;
bel_status *bel_source_open_text(const bel_text_description *description,
                                 bel_source **out_source) BEL_MUST_USE;

bel_status *bel_source_open_tfrecord(const bel_tfrecord_options *options,
                                     const bel_opening *opening,
                                     bel_source **out_source) BEL_MUST_USE;
bel_status *bel_source_open_tokens(const bel_token_options *options,
                                   bel_source **out_source) BEL_MUST_USE;
bel_status *bel_source_open_generator(const bel_generator_description *description,
                                      const bel_opening *opening,
                                      bel_source **out_source) BEL_MUST_USE;
// Openers of sources that are made of datasets. On failure the caller still owns the datasets.
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
