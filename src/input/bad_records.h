// Records that cannot be read and are left out, up to a number of them.
#ifndef BELFRY_INPUT_BAD_RECORDS_H
#define BELFRY_INPUT_BAD_RECORDS_H

#include <stdint.h>

#include "belfry/status.h"

// Thread-safe.
typedef struct bel_bad_records bel_bad_records;

bel_bad_records *bel_bad_records_create(int64_t most);
void bel_bad_records_destroy(bel_bad_records *bad); // accepts NULL

// What came of reading a record: NULL when that went well, or when the error is about the record
// and it is to be left out. A record is counted and logged when it is first met, by its message;
// with one more than allowed the error says so. `bad` NULL: no record may be left out.
bel_status *bel_bad_records_pass(bel_bad_records *bad, bel_status *status) BEL_MUST_USE;

#endif
