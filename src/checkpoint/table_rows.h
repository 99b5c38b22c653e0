// Rows of a table of an opened checkpoint, file by file and block by block, private to
// src/checkpoint. The rows of a delta are merged with those of its base: both ascend by key, and so
// do the removed keys. A block bounds the memory for a table of any size.
#ifndef BELFRY_CHECKPOINT_TABLE_ROWS_H
#define BELFRY_CHECKPOINT_TABLE_ROWS_H

#include "checkpoint/reader.h"
#include "checkpoint/table.h"

// One file's rows, or removed keys, of one checkpoint.
typedef struct bel_table_run_reader {
    const bel_ckpt_reader *reader;
    int table, file;
    int key_column;   // BEL_CKPT_KEYS or BEL_CKPT_REMOVED
    int column_count; // columns to read
    int64_t next;     // first row of the next block in the file
    int64_t capacity; // rows
    int64_t count;    // rows in the block; 0: the file has no more
    int64_t at;       // first row of the block that the merge has not taken
    int64_t last;     // key of the row before the block
    int64_t *keys;
    float *columns[BEL_CKPT_MAX_COLUMNS];
} bel_table_run_reader;

// Rows of a block, of which the caller has `open` at once. Blocks of a column have 1 MiB together,
// but each has at least 16 KiB, or one row.
int64_t bel_table_block_rows(const bel_ckpt_table *info, int open);

// Opens the keys in `key_column` of table number `table`, with the first `column_count` columns, in
// blocks of `capacity` rows. Close it before the reader.
void bel_table_run_open(const bel_ckpt_reader *reader, int table, int key_column, int column_count,
                        int64_t capacity, bel_table_run_reader *out);
void bel_table_run_close(bel_table_run_reader *run);
void bel_table_run_begin(bel_table_run_reader *run, int file); // at the first row of a file

// Reads the next block; no rows at the end of the file. DATA_LOSS: keys do not ascend, or the file
// cannot be read.
bel_status *bel_table_run_next(bel_table_run_reader *run) BEL_MUST_USE;

// The caller may change keys and columns of a block.
typedef struct bel_table_rows {
    const bel_ckpt_reader *reader;
    int64_t count; // rows in the block; 0: the file has no more
    int64_t *keys;
    float *columns[BEL_CKPT_MAX_COLUMNS];
    // Only for the next block:
    bel_table_run_reader own; // rows of the checkpoint's files
    // Only for a delta: rows of its base, and keys that have no row now.
    bel_table_run_reader base, removed;
    int64_t capacity; // rows of a merged block
    float older;      // ages: steps since the base
} bel_table_rows;

// Opens table number `table`, with its columns or only its keys. The caller has `open` of them at
// once: the more, the smaller is a block.
void bel_table_rows_open(const bel_ckpt_reader *reader, int table, bool columns, int open,
                         bel_table_rows *out_rows);
void bel_table_rows_close(bel_table_rows *rows);

static inline const bel_ckpt_table *bel_table_rows_info(const bel_table_rows *rows)
{
    return &rows->reader->manifest.tables[rows->own.table].table;
}

// Begins one of the checkpoint's files. A file of a delta and the file of that number of its base
// have the rows of the same keys.
void bel_table_rows_begin(bel_table_rows *rows, int file);

// Reads the next block. DATA_LOSS: keys do not ascend, a delta removes a key that its base does not
// have, or a file cannot be read.
bel_status *bel_table_rows_next(bel_table_rows *rows) BEL_MUST_USE;

#endif
