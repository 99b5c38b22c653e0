// Tables in checkpoints: rows by key, each shard's rows in its file, in order of keys.
//
// A row has a key and some columns of `width` floats: its values, then the optimizer's slots. The
// checkpoint does not depend on which shard holds a row: any number of shards loads what any other
// number wrote, and the digest is the same. No process needs memory for a whole table. The writer
// requests a shard's rows in blocks, column by column in file order, and a loading shard receives
// blocks of the rows that it wants.
#ifndef BELFRY_CHECKPOINT_TABLE_H
#define BELFRY_CHECKPOINT_TABLE_H

#include "checkpoint/checkpoint.h"

enum {
    BEL_CKPT_KEYS = -1,
    BEL_CKPT_REMOVED = -2,
    BEL_CKPT_MAX_COLUMNS = 16,
    BEL_CKPT_MAX_WIDTH = 1 << 20,
};

typedef struct bel_ckpt_table {
    const char *name;           // rules of a tensor's name; no tensor has it
    int width;                  // floats of a row in a column, ≥ 1
    int column_count;           // ≥ 1
    const char *const *columns; // "values", "adagrad/accumulator": without '#', none twice
} bel_ckpt_table;

// A delta of a table: its rows are those that were created or changed since a base.
typedef struct bel_ckpt_change {
    int64_t all;            // rows of the shard, also those that are as in the base
    const int64_t *removed; // ascending keys that have a row in the base and none now
    int64_t removed_count;
    // Adds the hashes of the rows that are as in the base, for each column.
    bel_status *(*add_rest)(void *context, bel_hash128 *sums);
} bel_ckpt_change;

// A shard's rows of a table.
typedef struct bel_ckpt_rows {
    bel_ckpt_table table;
    int64_t row_count;
    // Writes the keys of rows [first, first + n), strictly ascending, and their n × width floats
    // of one column. For BEL_CKPT_KEYS `out_floats` is NULL. Called with `first` ascending, once
    // for each column; must give the same rows each time.
    bel_status *(*read)(void *context, int64_t first, int64_t n, int64_t *out_keys, int column,
                        float *out_floats);
    void *context;
    const bel_ckpt_change *change; // NULL: all rows
} bel_ckpt_rows;

// Adds the hashes of n rows of a column to a sum modulo 2^128, as in a checkpoint's digest.
void bel_ckpt_hash_rows(const int64_t *keys, const float *rows, int width, int64_t n,
                        bel_hash128 *sum);

// bel_ckpt_write_shard with tables. Every shard writes every table, even without rows of it.
// INVALID_ARGUMENT: a name is empty, not UTF-8, used twice or holds a '#'; no column; or keys do
// not ascend. Otherwise the errors of `read` and of files.
bel_status *bel_ckpt_write_shard_tables(const char *folder, int shard_index, int shard_count,
                                        const bel_ckpt_piece *pieces, int piece_count,
                                        const bel_ckpt_rows *tables, int table_count,
                                        bel_ckpt_shard **out_shard) BEL_MUST_USE;

// Sums of a table that the shard wrote, for each column. The table must be in the report.
const bel_hash128 *bel_ckpt_shard_sums(const bel_ckpt_shard *shard, const char *table);

// Tables of an opened checkpoint, in byte order of their names. The pointers are valid as long as
// the reader.
int bel_ckpt_table_count(const bel_ckpt_reader *reader);
bel_ckpt_table bel_ckpt_table_at(const bel_ckpt_reader *reader, int index, int64_t *out_row_count);

// For a delta: the rows that its files have, and the keys that they remove. For a full checkpoint
// all rows, and 0.
void bel_ckpt_table_change(const bel_ckpt_reader *reader, int index, int64_t *out_row_count,
                           int64_t *out_removed);

// Whether two tables have the same width and columns.
bool bel_ckpt_same_table(const bel_ckpt_table *a, const bel_ckpt_table *b);

bool bel_ckpt_has_table(const bel_ckpt_reader *reader, const char *name);

// Tables beside the table NAME: "NAME/age", the ages of its rows, and "NAME/uses", the uses of keys
// that have no row yet. The settings table_expire_after and table_admit_after say that they are
// there; without them such a name is a table of the model. Returns false for these tables beside.
#define BEL_CKPT_AGE "age"
#define BEL_CKPT_USES "uses"
bool bel_ckpt_is_model_table(const bel_ckpt_reader *reader, const char *name);
// Returns true for "NAME/age", also if NAME has ages and is itself such a table.
bool bel_ckpt_is_age_table(const bel_ckpt_reader *reader, const char *name);

// Receiver of loaded rows, in blocks of up to some thousand, with a pointer for each column.
typedef struct bel_ckpt_row_sink {
    bool (*wants)(void *context, int64_t key); // NULL: all
    bel_status *(*take)(void *context, int64_t n, const int64_t *keys, const float *const *columns);
    void *context;
} bel_ckpt_row_sink;

// Reads a table's rows, file by file, in order of keys in each file; those of a delta's base are in
// place. NOT_FOUND: no such table. DATA_LOSS: width or columns differ from `expected` (the message
// has both), a file's keys do not ascend, or a file cannot be read. A key in two files is detected
// only by bel_ckpt_verify or by a sink that takes both. Otherwise the errors of `take`.
bel_status *bel_ckpt_read_table(const bel_ckpt_reader *reader, const bel_ckpt_table *expected,
                                const bel_ckpt_row_sink *sink) BEL_MUST_USE;

// The same for the rows in one of the checkpoint's bel_ckpt_file_count files, of which each was
// written by the shard of that number.
int bel_ckpt_file_count(const bel_ckpt_reader *reader);
bel_status *bel_ckpt_read_table_file(const bel_ckpt_reader *reader, const bel_ckpt_table *expected,
                                     int file, const bel_ckpt_row_sink *sink) BEL_MUST_USE;

// The same for only the values, with any slots beside them: `take` gets them in columns[0].
bel_status *bel_ckpt_read_rows(const bel_ckpt_reader *reader, const char *name, int width,
                               const bel_ckpt_row_sink *sink) BEL_MUST_USE;

// All rows of a table, in ascending order of keys, also those of a delta's base. Keeps a block of
// each file in memory, up to 3 MiB a column in all (more with over 64 files). Bound to one thread.
typedef struct bel_ckpt_cursor bel_ckpt_cursor;
typedef struct bel_ckpt_row {
    int64_t key;
    const float *columns[BEL_CKPT_MAX_COLUMNS]; // the row's floats; valid until the next row
} bel_ckpt_row;

// Opens table number `index` of a reader, which must outlive the cursor. Without `columns` rows
// have only keys.
bel_ckpt_cursor *bel_ckpt_cursor_open(const bel_ckpt_reader *reader, int index, bool columns);
void bel_ckpt_cursor_close(bel_ckpt_cursor *cursor);

// Gets the next row; *out_more is false after the last. DATA_LOSS: a file's keys do not ascend, a
// key is in two files, or a file cannot be read.
bel_status *bel_ckpt_cursor_next(bel_ckpt_cursor *cursor, bel_ckpt_row *out_row,
                                 bool *out_more) BEL_MUST_USE;

// Reads only the rows that the checkpoint's files have, with their values in columns[0], and then
// the keys that a delta removes, without columns. A full checkpoint has all rows and removes no
// key. The sinks take all (`wants` is not read). Errors as above.
bel_status *bel_ckpt_read_change(const bel_ckpt_reader *reader, const char *name, int width,
                                 const bel_ckpt_row_sink *rows,
                                 const bel_ckpt_row_sink *removed) BEL_MUST_USE;

#endif
