// Opened dataset before its batch stage: records by (epoch, position). input.c cuts the outermost
// stream into blocks. Sources that read datasets contain the other streams.
//
// A dataset inside another one is read again in each epoch of the outer one. The reader therefore
// passes the epoch: a shuffle inside has another order in each.
#ifndef BELFRY_INPUT_SOURCE_RECORD_STREAM_H
#define BELFRY_INPUT_SOURCE_RECORD_STREAM_H

#include "input/order/epoch_orders.h"
#include "input/order/positions.h"
#include "input/source/source.h"

// Immutable once opened, so thread-safe.
typedef struct bel_record_stream {
    const bel_description *description; // source, stages and maps; must outlive the stream
    bel_source *source;
    bel_positions positions;
    // Fields of a record. `known`: every record has these shapes. Otherwise they are those of the
    // first record that no map skipped, and other records may have other lengths.
    const bel_source_field *fields;
    int field_count;
    bool known;
    uint16_t *bucket_of; // pages: each record's bucket by its number, or NULL
    size_t bucket_bytes;
    uint64_t files;       // digest of the files that records name; 0: no such files
    bel_bad_records *bad; // not owned; NULL: bad records are errors
    bel_arena *arena;
} bel_record_stream;

// A reader's separate state for a stream: the orders last used, memory for records. Bound to one
// thread at a time.
typedef struct bel_cursor bel_cursor;
struct bel_cursor {
    bel_position_cache *cache;
    bel_cursor **inner; // one for each dataset inside the source
    int inner_count;
    bel_record beside;   // the record whose fields such a source adds to another one
    bel_epoch_hold hold; // hold on the source's order, if it has one for each epoch
};

bel_cursor *bel_cursor_create(const bel_record_stream *stream);
void bel_cursor_destroy(bel_cursor *cursor); // accepts NULL

// Errors: those of sources, stages and maps.
bel_status *bel_record_stream_open(const bel_description *description, const bel_opening *opening,
                                   bel_record_stream **out_stream) BEL_MUST_USE;
void bel_record_stream_destroy(bel_record_stream *stream); // accepts NULL

// The records' field of this name; NULL: no such field.
const bel_source_field *bel_record_stream_field(const bel_record_stream *stream, const char *name);

// Reads and maps the record at `position` of `epoch`. *out_skip: a map skipped it.
bel_status *bel_record_stream_read(const bel_record_stream *stream, bel_cursor *cursor,
                                   int64_t epoch, int64_t position, bel_record *record,
                                   bool *out_skip) BEL_MUST_USE;
// The same for a position that is already looked up. *out_skip is true for a hole, too.
bel_status *bel_record_stream_read_at(const bel_record_stream *stream, bel_cursor *cursor,
                                      bel_position at, bel_record *record,
                                      bool *out_skip) BEL_MUST_USE;

// Begins to fetch the record at `position` of `epoch` from a store, if it is absent. Its reader has
// the errors.
void bel_record_stream_want(const bel_record_stream *stream, bel_cursor *cursor, int64_t epoch,
                            int64_t position);
// The same for a position that is already looked up.
void bel_record_stream_want_at(const bel_record_stream *stream, bel_cursor *cursor,
                               bel_position at);

// Appends all that determines the record at each position, as text for the fingerprint. `epochs`:
// the count to write for a repeat that is the last stage; 0: the repeat's count.
void bel_record_stream_describe(const bel_record_stream *stream, int64_t epochs, bel_str *out_text);

// Runs the checks of the source and of the sources of all datasets inside. Errors: those of checks.
bel_status *bel_record_stream_check(const bel_record_stream *stream, int64_t block) BEL_MUST_USE;

// The same for `finish` (source.h). *out_compared must be set to true before.
bel_status *bel_record_stream_finish(const bel_record_stream *stream, int64_t deadline_ns,
                                     bool *out_compared) BEL_MUST_USE;

#endif
