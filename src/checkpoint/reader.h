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
    bool checked;    // size, checksum and header are good, and its pieces are found
    bool missing;    // absent, or of another run, which a partial reader allows
} bel_reader_file;

struct bel_ckpt_reader {
    bel_arena *arena;
    char *folder;
    bool partial; // files may be missing
    bel_manifest manifest;
    bel_ckpt_reader *base;    // NULL: full; else a full one with the same tables and files
    bel_reader_file *files;   // in the manifest's order
    uint64_t **piece_offset;  // [tensor][piece]: offset of its elements in its file
    uint64_t ***table_offset; // [table][file][column - BEL_CKPT_REMOVED]: the same
};

// Loads the manifest of a reader that has an arena and a folder. Parsed texts and lists are in the
// arena.
bel_status *bel_ckpt_load_manifest(bel_ckpt_reader *reader) BEL_MUST_USE;

// --- locate.c ------------------------------------------------------------------------------------

// Makes room for the offsets of tables' columns.
void bel_ckpt_make_table_offsets(bel_ckpt_reader *reader);

// Checks a file, by its number in the manifest, and finds its pieces, unless that is done. Call it
// before the offsets of its pieces are used. NOT_FOUND: the file is missing. DATA_LOSS: it is
// corrupt.
bel_status *bel_ckpt_use_file(const bel_ckpt_reader *reader, int file) BEL_MUST_USE;

// --- base.c --------------------------------------------------------------------------------------

// DATA_LOSS: a base has another step or digest than expected, or it is a delta.
bel_status *bel_ckpt_check_is(const bel_ckpt_base *expected,
                              const bel_ckpt_reader *base) BEL_MUST_USE;

// Checks that an opened base is the one that the delta's manifest names, with the same tables and
// number of files. DATA_LOSS: it is not.
bel_status *bel_ckpt_check_base(const bel_ckpt_reader *delta,
                                const bel_ckpt_reader *base) BEL_MUST_USE;

// --- table_look.c --------------------------------------------------------------------------------

// Number of a table in the manifest; the count of tables if the name is absent.
int bel_ckpt_find_table(const bel_manifest *manifest, const char *name);

// --- table_reader.c ------------------------------------------------------------------------------

// Hashes a table's rows from the files; the run is in `arena`. DATA_LOSS: keys that do not ascend,
// or a key in two files.
bel_status *bel_ckpt_hash_table(const bel_ckpt_reader *reader, int index, bel_arena *arena,
                                const bel_ckpt_table_run **out_table) BEL_MUST_USE;

#endif
