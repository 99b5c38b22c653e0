// A shard's tables on their way into its file, for the files of this room. A table becomes tensors:
// its keys, and each column. Each is written in one run over the sorted rows; the run over a column
// also makes its sum of hashes, so the rows are not read once more for the digest.
#ifndef BELFRY_CHECKPOINT_SHARD_TABLES_H
#define BELFRY_CHECKPOINT_SHARD_TABLES_H

#include "checkpoint/safetensors.h"
#include "checkpoint/shard.h"
#include "checkpoint/table.h"

typedef struct bel_table_stream bel_table_stream;

typedef struct bel_table_streams {
    bel_table_stream *streams;
    bel_safetensors_input *inputs; // for each stream
    int count;
} bel_table_streams;

bel_status *bel_ckpt_check_tables(const bel_ckpt_rows *tables, int table_count,
                                  const bel_ckpt_piece *pieces, int piece_count) BEL_MUST_USE;
void bel_ckpt_open_streams(const bel_ckpt_rows *tables, int table_count,
                           bel_table_streams *out_streams);
void bel_ckpt_close_streams(bel_table_streams *streams);

// Notes in the shard's report what was written.
void bel_ckpt_describe_tables(const bel_ckpt_rows *tables, int table_count,
                              const bel_table_streams *streams, bel_ckpt_shard *shard);

#endif
