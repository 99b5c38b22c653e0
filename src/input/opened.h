// Inside of an opened dataset.
#ifndef BELFRY_INPUT_OPENED_H
#define BELFRY_INPUT_OPENED_H

#include "input/fields.h"
#include "input/input.h"
#include "input/record_stream.h"

struct bel_input {
    bel_arena *arena;
    bel_description description; // a copy
    bel_record_stream *stream;
    bel_batch_fields fields;
    uint64_t fingerprint;
    int64_t origin;       // the record with which block 0 begins
    bel_bad_records *bad; // NULL: none may be left out
};

#endif
