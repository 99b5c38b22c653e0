// A dataset before its batch stage, opened: records by (epoch, position). The outermost one is cut
// into blocks by input.c; others are what sources are made of that read datasets.
//
// A dataset inside another one is read anew in each epoch of that one, so whoever reads it says
// which epoch: a shuffle inside has another order in each.
#ifndef BELFRY_INPUT_RECORD_STREAM_H
#define BELFRY_INPUT_RECORD_STREAM_H

#include "input/epoch_orders.h"
#include "input/positions.h"
#include "input/source.h"

// Immutable once opened, so thread-safe.
typedef struct bel_record_stream {
    const bel_description *description; // its source, stages and maps; must outlive it
    bel_source *source;
    bel_positions positions;
    // What a record has. `known`: every record has these shapes; else they are those of the first
    // record that no map skipped, and others may have other lengths.
    const bel_source_field *fields;
    int field_count;
    bool known;
    uint16_t *bucket_of; // pages: each record's bucket by its number, or NULL
    size_t bucket_bytes;
    uint64_t files;       // digest of the files that records name; 0: they name none
    bel_bad_records *bad; // not owned; NULL: none may be left out
    bel_arena *arena;
} bel_record_stream;

// What reading a stream needs of its own: orders last used, room for records. Bound to one thread
// at a time.
typedef struct bel_cursor bel_cursor;
struct bel_cursor {
    bel_position_cache *cache;
    bel_cursor **inner; // one for each dataset that the source is made of
    int inner_count;
    bel_record beside;   // where such a source reads what it adds to a record
    bel_epoch_hold hold; // of the source's order, where it has one by epochs
};

bel_cursor *bel_cursor_create(const bel_record_stream *stream);
void bel_cursor_destroy(bel_cursor *cursor); // accepts NULL

// Errors: those of sources, stages and maps.
bel_status *bel_record_stream_open(const bel_description *description, const bel_opening *opening,
                                   bel_record_stream **out_stream) BEL_MUST_USE;
void bel_record_stream_destroy(bel_record_stream *stream); // accepts NULL

// The field of its records by name; NULL: there is none.
const bel_source_field *bel_record_stream_field(const bel_record_stream *stream, const char *name);

// Reads and maps the record at `position` of `epoch`. *out_skip: a map left it out.
bel_status *bel_record_stream_read(const bel_record_stream *stream, bel_cursor *cursor,
                                   int64_t epoch, int64_t position, bel_record *record,
                                   bool *out_skip) BEL_MUST_USE;
// The same for a position that was looked up already. *out_skip also for a hole.
bel_status *bel_record_stream_read_at(const bel_record_stream *stream, bel_cursor *cursor,
                                      bel_position at, bel_record *record,
                                      bool *out_skip) BEL_MUST_USE;

// All that decides which records are where, as text for the fingerprint. `epochs`: the count that
// the text has of a repeat that is the last stage; 0: its own.
void bel_record_stream_describe(const bel_record_stream *stream, int64_t epochs, bel_str *out_text);

// The errors that a source's check has, of all files of all datasets inside.
bel_status *bel_record_stream_check(const bel_record_stream *stream, int64_t block) BEL_MUST_USE;

#endif
