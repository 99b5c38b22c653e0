// The inside of a record: named fields whose memory lies in an arena that several records share.
// Thread-compatible: a record belongs to the batch that is being read.
#ifndef BELFRY_INPUT_RECORD_H
#define BELFRY_INPUT_RECORD_H

#include "base/arena.h"
#include "belfry/dataset.h"

struct bel_source;

typedef struct bel_record_field {
    const char *name; // the source's or the arena's
    bel_tensor value;
} bel_record_field;

// The arena is borrowed: whoever resets it begins all its records anew.
struct bel_record {
    bel_arena *arena;
    const struct bel_source *source;
    int64_t number; // in the source
    bel_record_field *fields;
    size_t field_count;
    size_t field_capacity;
    const char *fault; // what a user's map did wrong in bel_record_add, or NULL
};

void bel_record_init(bel_record *record, bel_arena *arena);
void bel_record_deinit(bel_record *record);

// Makes the record empty and gives it its origin.
void bel_record_begin(bel_record *record, const struct bel_source *source, int64_t number);

// Adds a field without looking for one of the same name. `name` must live as long as the record.
void *bel_record_append(bel_record *record, const char *name, bel_dtype dtype,
                        const bel_shape *shape);

// Removes the field; a missing one is fine.
void bel_record_remove(bel_record *record, const char *name);

#endif
