// manifest.json: a description of a checkpoint, with the places of its tensors' pieces. The file
// ends in a CRC-32C of its text, which detects a flipped bit in a step or a seed like one in a
// tensor. docs/formats/checkpoint.md is the normative description.
#ifndef BELFRY_CHECKPOINT_MANIFEST_H
#define BELFRY_CHECKPOINT_MANIFEST_H

#include "base/arena.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/table.h"

typedef struct bel_str bel_str; // base/str.h

#define BEL_MANIFEST_NAME "manifest.json"
#define BEL_MANIFEST_FORMAT "belfry-checkpoint"

// End of the file: a member with the checksum of all bytes before it.
#define BEL_MANIFEST_SEAL_HEAD "  \"crc32c\": \""
#define BEL_MANIFEST_SEAL_TAIL "\"\n}\n"

// Checkpoints without tables have version 1, full ones with tables version 2, and deltas version 3.
enum {
    BEL_MANIFEST_PLAIN_VERSION = 1,
    BEL_MANIFEST_TABLE_VERSION = 2,
    BEL_MANIFEST_VERSION = 3,
    BEL_MANIFEST_MAX_BYTES = 100000000,
};

// A shard file.
typedef struct bel_manifest_file {
    const char *name; // a plain name in the checkpoint's folder
    uint64_t size_bytes;
    uint32_t crc32c;
} bel_manifest_file;

// A run of elements and the file that holds it.
typedef struct bel_manifest_piece {
    int64_t first;
    int64_t count;
    int file_index;
} bel_manifest_piece;

typedef struct bel_manifest_tensor {
    const char *name;
    bel_dtype dtype;
    bel_shape shape;
    bel_manifest_piece *pieces; // ascending, gapless from the first to the last element
    int piece_count;
} bel_manifest_tensor;

typedef struct bel_manifest_table {
    bel_ckpt_table table;
    int64_t *rows;    // rows in each file
    int64_t *removed; // in each file of a delta; NULL: the checkpoint is full
    int64_t all;      // rows of the table
} bel_manifest_table;

// All its pointers are into one arena.
typedef struct bel_manifest {
    bel_ckpt_info info;
    bel_hash128 digest;
    bel_manifest_file *files; // ascending by name
    int file_count;
    bel_manifest_tensor *tensors; // ascending by name
    int tensor_count;
    bel_manifest_table *tables; // ascending by name; no tensor has the name
    int table_count;
} bel_manifest;

void bel_manifest_write(const bel_manifest *manifest, bel_str *out);

// Parses a manifest into `arena`; `source` names it in errors. For any text, a result has the
// order, ranges and coverage promised above. DATA_LOSS: torn, corrupt or malformed. UNIMPLEMENTED:
// written in a later format.
bel_status *bel_manifest_parse(const char *text, size_t length, const char *source,
                               bel_arena *arena, bel_manifest *out_manifest) BEL_MUST_USE;

#endif
