// Format of audit notes: a file is a header, then the notes one after the other. Numbers have 8
// bytes in the machine's byte order. A truncated or damaged note ends its file, as a kill may leave
// one; the step for which it was written did not happen.
#ifndef BELFRY_INPUT_BATCH_AUDIT_FORMAT_H
#define BELFRY_INPUT_BATCH_AUDIT_FORMAT_H

#include <stdint.h>

#define BEL_AUDIT_MAGIC "BELAUDT1"

typedef struct bel_audit_header {
    char magic[8];
    uint64_t fingerprint;  // the input's
    int64_t epoch_records; // positions per epoch
    int64_t block_end;
} bel_audit_header;

// Header of a note. It is followed by `position_count` pairs (epoch, number), with number -1 for a
// hole, and by the hash of header and pairs.
typedef struct bel_audit_note_header {
    int64_t step, replica, block;
    int64_t position_count;
} bel_audit_note_header;

#endif
