// A record as bytes, to be kept in memory or in a file and read again by the same build of Belfry.
#ifndef BELFRY_INPUT_PACKED_RECORD_H
#define BELFRY_INPUT_PACKED_RECORD_H

#include "base/str.h"
#include "input/record.h"

// Appends the record to `out`; NULL stands for one that a map left out.
void bel_packed_record_write(const bel_record *record, bel_str *out);
// The same for one that could not be made: why, in place of it. The error stays the caller's.
void bel_packed_record_write_error(const bel_status *error, bel_str *out);

// Makes the record again. Names stay where the bytes are, which must outlive it. What could not be
// made is its error once more. DATA_LOSS: these bytes are no record.
bel_status *bel_packed_record_read(const char *data, size_t size, bel_record *record,
                                   bool *out_skip) BEL_MUST_USE;

#endif
