// Private layout of an opened checkpoint, for src/checkpoint.
#ifndef BELFRY_CHECKPOINT_READER_H
#define BELFRY_CHECKPOINT_READER_H

#include "checkpoint/digest.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"

typedef struct bel_reader_file {
    bel_disk_file disk;
    bel_safetensors_list list;
    int pieces_used; // entries of `list` that the manifest knows
    bool missing;    // allowed for a part of a checkpoint
} bel_reader_file;

struct bel_ckpt_reader {
    bel_arena *arena;
    char *folder;
    bool part; // files may be missing
    bel_manifest manifest;
    bel_reader_file *files;   // in the manifest's order
    uint64_t **piece_offset;  // [tensor][piece]: offset of its elements in its file
    uint64_t ***table_offset; // [table][file][1 + column]: the same; 0 for the keys
};

// Loads the manifest of a reader that has an arena and a folder. Parsed texts and lists are in the
// arena.
bel_status *bel_ckpt_load_manifest(bel_ckpt_reader *reader) BEL_MUST_USE;

// Reads bytes of a file, by its number in the manifest. NOT_FOUND: the file is missing.
bel_status *bel_ckpt_read_here(const bel_ckpt_reader *reader, int file, uint64_t offset, void *out,
                               size_t bytes) BEL_MUST_USE;

// Finds an entry of a file that the manifest names, and counts it.
bel_status *bel_ckpt_locate(bel_reader_file *file, const char *name, bel_dtype dtype,
                            const bel_shape *shape, uint64_t *out_offset) BEL_MUST_USE;

// --- table_reader.c ------------------------------------------------------------------------------

bel_status *bel_ckpt_locate_tables(bel_ckpt_reader *reader) BEL_MUST_USE;

// Hashes a table's rows from the files; the run is in `arena`. DATA_LOSS: keys that do not ascend,
// or a key in two files.
bel_status *bel_ckpt_hash_table(const bel_ckpt_reader *reader, int index, bel_arena *arena,
                                const bel_ckpt_table_run **out_table) BEL_MUST_USE;

#endif
