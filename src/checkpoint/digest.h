// Digest of a checkpoint: one number that identifies the bits of its tensors, independently of the
// number of shards and the layout of the files. docs/formats/checkpoint.md defines it:
//
// XXH3-128 over, for each tensor in byte order of names: name, zero byte, dtype name, zero byte,
// rank (u32), each dimension (i64), then the XXH3-64 of each run of BEL_GRAIN elements (u64).
// Integers are little-endian. Pieces begin at grain borders, so the process that holds a piece can
// hash its grains without the others. Tables follow: a sum of row hashes for each column.
#ifndef BELFRY_CHECKPOINT_DIGEST_H
#define BELFRY_CHECKPOINT_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "belfry/tensor.h"

// A run of elements of a tensor with the hashes of its grains.
typedef struct bel_ckpt_run {
    const char *name;
    bel_dtype dtype;
    bel_shape shape; // shape of the whole tensor
    int64_t first;
    int64_t count;
    const uint64_t *grain_hashes; // bel_ckpt_grain_count(count) entries
    int shard_index;              // shard whose file holds the run
} bel_ckpt_run;

// A shard's part of a table. A row's hash is seeded with its key, and hashes are added modulo
// 2^128: the sum of a whole column is the sum over shards, whichever shard holds a row. Count and
// sums are of all rows of the shard, also where its file has only those that differ from a base.
typedef struct bel_ckpt_table_run {
    const char *name;
    int width;
    int column_count;
    const char *const *columns;
    int64_t row_count;
    const bel_hash128 *sums; // for each column
    int64_t file_rows;       // rows in its file
    int64_t removed;         // keys of the base that have no row any more; -1: the file is full
    int shard_index;
} bel_ckpt_table_run;

// Number of grains in `count` elements that begin at a grain border. The last grain may be short.
size_t bel_ckpt_grain_count(int64_t count);

// Hashes the grains of `count` elements that begin at a grain border.
void bel_ckpt_hash_grains(bel_dtype dtype, const void *data, int64_t count, uint64_t *out_hashes);

// Sorts by name, then by first element, then by shard.
void bel_ckpt_sort_runs(const bel_ckpt_run **runs, size_t run_count);

// Sorts by name, then by shard.
void bel_ckpt_sort_tables(const bel_ckpt_table_run **tables, size_t table_count);

// Digest of sorted runs, which together cover whole tensors and tables.
bel_hash128 bel_ckpt_digest_runs(const bel_ckpt_run *const *runs, size_t run_count,
                                 const bel_ckpt_table_run *const *tables, size_t table_count);

#endif
