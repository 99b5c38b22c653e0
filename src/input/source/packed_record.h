// Serialized form of a record, kept in memory or in a file, and read by the same build of Belfry.
#ifndef BELFRY_INPUT_SOURCE_PACKED_RECORD_H
#define BELFRY_INPUT_SOURCE_PACKED_RECORD_H

#include "input/source/record.h"

typedef struct bel_str bel_str; // base/str.h

// Appends the record to `out`; NULL: a map left it out.
void bel_packed_record_write(const bel_record *record, bel_str *out);
// Appends an error instead of a record that could not be made. The caller keeps the error.
void bel_packed_record_write_error(const bel_status *error, bel_str *out);

// Reads a record. Its names point into the bytes, which must outlive it. If the bytes hold an
// error, returns that error. DATA_LOSS: invalid bytes.
bel_status *bel_packed_record_read(const char *data, size_t size, bel_record *record,
                                   bool *out_skip) BEL_MUST_USE;

#endif
