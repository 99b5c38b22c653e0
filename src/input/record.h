// Inside of a record: named fields in an arena that somebody else empties.
#ifndef BELFRY_INPUT_RECORD_H
#define BELFRY_INPUT_RECORD_H

#include "base/arena.h"
#include "belfry/dataset.h"

struct bel_source;

typedef struct bel_record_field {
    const char *name;
    bel_tensor tensor;
} bel_record_field;

// Thread-compatible. Fields never move and replaced ones stay in the arena, so what
// bel_record_get gave out stays readable until the arena is reset.
struct bel_record {
    bel_arena *arena;                // not owned
    const struct bel_source *source; // with `number`, where it came from
    int64_t number;
    int64_t epoch;             // 0 unless who reads for a batch says otherwise
    bel_record_field **fields; // the array is owned, the fields are in the arena
    size_t field_count;
    size_t field_capacity;
    bel_status *status; // owned: the first impossible bel_record_add
};

// An empty record for `arena`; deinit frees what it owns. A zeroed record may be deinited too.
void bel_record_init(bel_record *record, bel_arena *arena);
void bel_record_deinit(bel_record *record);

// Empties the record to be read anew as record `number` of `source`.
void bel_record_begin(bel_record *record, const struct bel_source *source, int64_t number);

// bel_record_add for a name that is new and outlives the record, and for a shape that is known to
// be possible.
void *bel_record_append(bel_record *record, const char *name, bel_dtype dtype,
                        const bel_shape *shape);

// Adds the fields of `from`, whose memory is of the same arena. DATA_LOSS: the record has one of
// such a name already.
bel_status *bel_record_take_fields(bel_record *record, const bel_record *from) BEL_MUST_USE;

// The error that stuck, now the caller's; NULL when there is none.
bel_status *bel_record_take_status(bel_record *record) BEL_MUST_USE;

// Removes the fields of a NULL-terminated list (NULL: none). INVALID_ARGUMENT: one is not there.
bel_status *bel_record_drop(bel_record *record, const char *const *names) BEL_MUST_USE;

#endif
