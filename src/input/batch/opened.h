// Internals of an opened dataset.
#ifndef BELFRY_INPUT_BATCH_OPENED_H
#define BELFRY_INPUT_BATCH_OPENED_H

#include <pthread.h>

#include "input/batch/fields.h"
#include "input/batch/input.h"
#include "input/source/record_stream.h"

// Readers of a followed file.
typedef struct bel_input_readers {
    pthread_mutex_t mutex;
    bel_input_reader *first;
} bel_input_readers;

struct bel_input {
    bel_arena *arena;
    bel_description description; // a copy
    bel_record_stream *stream;
    bel_batch_fields fields;
    bel_input_facts facts;
    bool elsewhere;       // the facts are those of an input in another process
    int64_t origin;       // first record of block 0
    bel_bad_records *bad; // NULL: no record may be left out
    bel_input_readers *readers;
};

#endif
