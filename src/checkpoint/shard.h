// Private layout of a shard's report, for src/checkpoint.
#ifndef BELFRY_CHECKPOINT_SHARD_H
#define BELFRY_CHECKPOINT_SHARD_H

#include <stdbool.h>

#include "base/arena.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/digest.h"
#include "checkpoint/files.h"

// Immutable once made.
struct bel_ckpt_shard {
    bel_arena *arena; // owns the runs, their names and hashes
    int shard_index, shard_count;
    bel_ckpt_run *runs;
    int run_count;
    bel_ckpt_table_run *tables;
    int table_count;
    bool has_file; // false: bel_ckpt_hash_shard made it
    uint64_t file_size_bytes;
    uint32_t file_crc32c;
};

// Name of a piece in its file: the tensor's name if the piece is all of it, "<name>#<first>" if it
// is cut. Free with bel_free.
char *bel_ckpt_stored_name(const char *name, bool whole, int64_t first);

// Collects all shards' parts of tables, sorted as for the digest. Free the array with bel_free.
const bel_ckpt_table_run **bel_ckpt_gather_tables(bel_ckpt_shard *const *shards, int shard_count,
                                                  size_t *out_table_count);

#define BEL_CKPT_REMOVED_NAME "removed"

// Name in a file of a table's keys (BEL_CKPT_KEYS), of a delta's removed keys (BEL_CKPT_REMOVED) or
// of a column: "deep#keys", "deep#adagrad/accumulator". Free with bel_free.
char *bel_ckpt_column_name(const char *table, const char *const *columns, int column);

// Collects all shards' runs, sorted as for the digest. Free the array with bel_free.
const bel_ckpt_run **bel_ckpt_gather_runs(bel_ckpt_shard *const *shards, int shard_count,
                                          size_t *out_run_count);

#endif
