// Internals of a batch: memory that grows to the largest batch seen and is then reused.
#ifndef BELFRY_INPUT_BATCH_BATCH_H
#define BELFRY_INPUT_BATCH_BATCH_H

#include "input/batch/fields.h"
#include "input/batch/input.h"
#include "input/source/record_stream.h"

typedef struct bel_field_memory {
    void *data; // pages
    size_t capacity_bytes;
} bel_field_memory;

typedef struct bel_batch_memory {
    const bel_batch_fields *fields; // not owned
    int64_t row_count;              // records in a full batch
    bel_arena *arena;
    bel_record *records; // all of a padded batch, else one that is reused
    int64_t record_count;
    int64_t *longest; // per symbol of an open dimension
    void **rows;      // one per field, for bel_batch_rows
    bel_field_memory *buffers;
    bel_batch_watch watch;   // note is NULL: no callback
    bel_cursor *cursor;      // owned
    bel_position *positions; // positions of the records read, one per row of a full batch
} bel_batch_memory;

// Creates an empty batch; bel_batch_destroy frees it. `fields` must outlive it; it takes the
// cursor.
bel_batch *bel_batch_make(const bel_batch_fields *fields, bel_cursor *cursor, int64_t row_count,
                          bool padded);

// Batches of fixed shapes are filled record by record, between begin and set_count. Padded ones are
// assembled when all their records are read.

// Makes room for a batch of fixed shapes, before its first record.
bel_status *bel_batch_begin(bel_batch *batch) BEL_MUST_USE;

// Addresses of row `row` in each field, valid until the next call: for writing a record directly
// into it.
void *const *bel_batch_rows(bel_batch *batch, int64_t row);

// Copies a record of fixed shapes into row `row`. DATA_LOSS: it has other fields than the batch.
bel_status *bel_batch_place(bel_batch *batch, int64_t row, const bel_record *record) BEL_MUST_USE;

// Checks that a record has the fields of a padded batch and no dimension above a fixed one, else
// DATA_LOSS. For callers that continue the batch after a bad record.
bel_status *bel_batch_check(const bel_batch *batch, const bel_record *record) BEL_MUST_USE;

// Assembles the first `count` of the batch's records, padded. DATA_LOSS: a record has other fields
// than the batch, or is larger than a fixed dimension.
bel_status *bel_batch_place_padded(bel_batch *batch, int64_t count) BEL_MUST_USE;

// Bytes of memory, which only grow: those of its fields, and of the records that are read for it.
size_t bel_batch_bytes(const bel_batch *batch);

// Sets the leading dimension of all fields.
void bel_batch_set_count(bel_batch *batch, int64_t count);

#endif
