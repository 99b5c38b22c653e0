// Streams that write a shard's tables into its file, private to src/checkpoint. A table becomes one
// tensor of keys and one tensor per column, in a delta also one of removed keys. Each is written in
// one pass over the sorted rows. The pass over a column also sums its hashes, so the digest does
// not read the rows again.
#ifndef BELFRY_CHECKPOINT_SHARD_TABLES_H
#define BELFRY_CHECKPOINT_SHARD_TABLES_H

#include "checkpoint/safetensors.h"
#include "checkpoint/shard.h"
#include "checkpoint/table.h"

typedef struct bel_table_stream bel_table_stream;

typedef struct bel_table_streams {
    bel_table_stream *streams;
    bel_safetensors_input *inputs; // one per stream
    int count;
} bel_table_streams;

bel_status *bel_ckpt_check_tables(const bel_ckpt_rows *tables, int table_count,
                                  const bel_ckpt_piece *pieces, int piece_count) BEL_MUST_USE;
void bel_ckpt_open_streams(const bel_ckpt_rows *tables, int table_count,
                           bel_table_streams *out_streams);
void bel_ckpt_close_streams(bel_table_streams *streams);

// Records the written tables in the shard's report. Errors of a delta's `add_rest`.
bel_status *bel_ckpt_describe_tables(const bel_ckpt_rows *tables, int table_count,
                                     const bel_table_streams *streams,
                                     bel_ckpt_shard *shard) BEL_MUST_USE;

#endif
