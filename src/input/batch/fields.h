// Fields of a batch, from which the model is built before the first batch is read.
#ifndef BELFRY_INPUT_BATCH_FIELDS_H
#define BELFRY_INPUT_BATCH_FIELDS_H

#include "input/source/record_stream.h"

// A field without its batch dimension. Open dimensions are symbols, BEL_DIM_TIME and below.
typedef struct bel_batch_field {
    const char *name;
    bel_dtype dtype;
    bel_shape shape;
    double scale; // as in source.h
    bool pads_with_zeros;
    unsigned char pad[sizeof(double)]; // otherwise the element that pads
} bel_batch_field;

// Immutable once learned.
typedef struct bel_batch_fields {
    bel_batch_field *items;
    int count;
    int symbol_count; // open dimensions are BEL_DIM_TIME - k, 0 <= k < symbol_count
} bel_batch_fields;

// Index of an open dimension's symbol: k of BEL_DIM_TIME - k.
static inline int64_t bel_symbol_index(int64_t dim)
{
    return BEL_DIM_TIME - dim;
}

// Finds the fields of a stream's records. With padded batches, dimensions become open unless
// `padded_shapes` or the source fixes them. Memory comes from `arena`. INVALID_ARGUMENT: a text
// field, or padded shapes or pad values that fit no field.
bel_status *bel_batch_fields_make(bel_arena *arena, const bel_record_stream *stream,
                                  const bel_description *description,
                                  bel_batch_fields *out_fields) BEL_MUST_USE;

#endif
