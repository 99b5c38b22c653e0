// Internals of a record: named fields in an arena that its owner resets.
#ifndef BELFRY_INPUT_SOURCE_RECORD_H
#define BELFRY_INPUT_SOURCE_RECORD_H

#include "base/arena.h"
#include "belfry/dataset.h"

struct bel_source;

typedef struct bel_record_field {
    const char *name;
    bel_tensor tensor;
} bel_record_field;

// A record. Thread-compatible. Fields never move, and replaced ones stay in the arena, so pointers
// from bel_record_get stay readable until the arena is reset.
struct bel_record {
    bel_arena *arena;                // not owned
    const struct bel_source *source; // origin, with `number`
    int64_t number;
    int64_t epoch;             // 0 unless the reader of a batch sets it
    bel_record_field **fields; // the array is owned, the fields are in the arena
    size_t field_count;
    size_t field_capacity;
    bel_status *status; // owned: the first failed bel_record_add
};

// Makes an empty record for `arena`; deinit frees the memory it owns, and accepts a zeroed record.
void bel_record_init(bel_record *record, bel_arena *arena);
void bel_record_deinit(bel_record *record);

// Empties the record, and makes it record `number` of `source`.
void bel_record_begin(bel_record *record, const struct bel_source *source, int64_t number);

// The same as bel_record_add, for a name that is new and outlives the record, and for a valid
// shape.
void *bel_record_append(bel_record *record, const char *name, bel_dtype dtype,
                        const bel_shape *shape);

// Adds the fields of `from`, which must use the same arena. DATA_LOSS: the record already has a
// field of that name.
bel_status *bel_record_take_fields(bel_record *record, const bel_record *from) BEL_MUST_USE;

// Transfers the first error to the caller; NULL: no error.
bel_status *bel_record_take_status(bel_record *record) BEL_MUST_USE;

// Removes the fields of a NULL-terminated list (NULL: none). INVALID_ARGUMENT: a field is absent.
bel_status *bel_record_drop(bel_record *record, const char *const *names) BEL_MUST_USE;

#endif
