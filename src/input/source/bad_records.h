// Counter of bad records: those that cannot be read are left out, up to a limit.
#ifndef BELFRY_INPUT_SOURCE_BAD_RECORDS_H
#define BELFRY_INPUT_SOURCE_BAD_RECORDS_H

#include <stdint.h>

#include "belfry/status.h"

// Thread-safe.
typedef struct bel_bad_records bel_bad_records;

bel_bad_records *bel_bad_records_create(int64_t most);
void bel_bad_records_destroy(bel_bad_records *bad); // accepts NULL

// Decides on the result of reading a record. Returns NULL if there was no error, or if the error is
// about the record, which is then left out. A record is counted and logged when its message is
// first met; the first one above the limit returns an error that says so. `bad` NULL: no record may
// be left out.
bel_status *bel_bad_records_pass(bel_bad_records *bad, bel_status *status) BEL_MUST_USE;

#endif
