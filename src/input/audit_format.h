// The bytes of notes: a file begins with a header; notes follow, one behind the other. Numbers are
// 8 bytes as they lie in memory. A note that is cut off or damaged ends its file, as a kill may
// leave one, and the step it was for did not come about.
#ifndef BELFRY_INPUT_AUDIT_FORMAT_H
#define BELFRY_INPUT_AUDIT_FORMAT_H

#include <stdint.h>

#define BEL_AUDIT_MAGIC "BELAUDT1"

typedef struct bel_audit_header {
    char magic[8];
    uint64_t fingerprint;  // of the input
    int64_t epoch_records; // positions of an epoch
    int64_t block_end;
} bel_audit_header;

// Behind it `position_count` pairs (epoch, number), number -1 for a hole, and the hash of all that.
typedef struct bel_audit_note_header {
    int64_t step, replica, block;
    int64_t position_count;
} bel_audit_note_header;

#endif
