// Tables in checkpoints: rows by key, each shard's in the file of that shard, in order of keys.
//
// A row has a key and some columns of `width` floats: its values, then the optimizer's slots. Which
// shard holds a row is no matter of the checkpoint: any number of shards loads what any other
// number wrote, and the digest is the same. Nobody here has room for a table: a shard's rows are
// asked for in blocks, column by column as the file wants them, and a loading shard is handed
// blocks of those rows that it wants.
#ifndef BELFRY_CHECKPOINT_TABLE_H
#define BELFRY_CHECKPOINT_TABLE_H

#include "checkpoint/checkpoint.h"

enum { BEL_CKPT_KEYS = -1, BEL_CKPT_MAX_COLUMNS = 16, BEL_CKPT_MAX_WIDTH = 1 << 20 };

typedef struct bel_ckpt_table {
    const char *name;           // like a tensor's, and no tensor's
    int width;                  // floats of a row in a column, ≥ 1
    int column_count;           // ≥ 1
    const char *const *columns; // "values", "adagrad/accumulator": without '#', none twice
} bel_ckpt_table;

// What a shard has of a table.
typedef struct bel_ckpt_rows {
    bel_ckpt_table table;
    int64_t row_count;
    // Writes the keys of rows [first, first + n), ascending and none twice, and of one column their
    // floats, n × width; for BEL_CKPT_KEYS `out_floats` is NULL. Called with `first` rising, once
    // for each column; always the same rows.
    bel_status *(*read)(void *context, int64_t first, int64_t n, int64_t *out_keys, int column,
                        float *out_floats);
    void *context;
} bel_ckpt_rows;

// bel_ckpt_write_shard with tables. Every shard writes every table, also one of which it has no
// row. INVALID_ARGUMENT: a name is empty, not UTF-8, used twice or holds a '#'; no column, or keys
// that do not ascend. Else the errors of `read` and of files.
bel_status *bel_ckpt_write_shard_tables(const char *folder, int shard_index, int shard_count,
                                        const bel_ckpt_piece *pieces, int piece_count,
                                        const bel_ckpt_rows *tables, int table_count,
                                        bel_ckpt_shard **out_shard) BEL_MUST_USE;

// Tables of an opened checkpoint, in byte order of their names. What is pointed to lives as long as
// the reader.
int bel_ckpt_table_count(const bel_ckpt_reader *reader);
bel_ckpt_table bel_ckpt_table_at(const bel_ckpt_reader *reader, int index, int64_t *out_row_count);

// Who loads rows: blocks of up to some thousand, with a pointer for each column.
typedef struct bel_ckpt_row_sink {
    bool (*wants)(void *context, int64_t key); // NULL: all
    bel_status *(*take)(void *context, int64_t n, const int64_t *keys, const float *const *columns);
    void *context;
} bel_ckpt_row_sink;

// Reads a table's rows, file after file, those of a file in order of keys. NOT_FOUND: no such
// table. DATA_LOSS: another width or other columns than `expected` (both said), keys of a file that
// do not ascend, or a file that cannot be read. A key in two files is found by who takes both, and
// by bel_ckpt_verify. Else the errors of `take`.
bel_status *bel_ckpt_read_table(const bel_ckpt_reader *reader, const bel_ckpt_table *expected,
                                const bel_ckpt_row_sink *sink) BEL_MUST_USE;

// The same for the values alone, whatever slots are beside them: `take` finds them in columns[0].
bel_status *bel_ckpt_read_rows(const bel_ckpt_reader *reader, const char *name, int width,
                               const bel_ckpt_row_sink *sink) BEL_MUST_USE;

#endif
