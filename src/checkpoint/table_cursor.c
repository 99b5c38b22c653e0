// Rows of a table in ascending order of keys: a merge of the checkpoint's files, whose rows ascend.
// One block of each file is in memory, and of a delta three. The blocks are smaller, the more files
// there are, so that memory does not grow with the number of shards. A search of all files for the
// least key is cheap for the few files that a checkpoint has.
#include "base/alloc.h"
#include "checkpoint/reader.h"
#include "checkpoint/table.h"
#include "checkpoint/table_rows.h"

typedef struct cursor_file {
    bel_table_rows rows;
    int64_t at; // next row of the block
    bool done;
} cursor_file;

struct bel_ckpt_cursor {
    cursor_file *files;
    int file_count;
    int last_file; // file with the row before; -1: none yet
    int64_t last;  // its key
};

bel_ckpt_cursor *bel_ckpt_cursor_open(const bel_ckpt_reader *reader, int table, bool columns)
{
    bel_ckpt_cursor *cursor = bel_xcalloc(1, sizeof *cursor);
    cursor->file_count = reader->manifest.file_count;
    cursor->last_file = -1;
    int open = columns ? cursor->file_count : 1; // keys need little memory
    cursor->files = bel_xcalloc((size_t)cursor->file_count + 1, sizeof *cursor->files);
    for (int f = 0; f < cursor->file_count; f++) {
        bel_table_rows_open(reader, table, columns, open, &cursor->files[f].rows);
        bel_table_rows_begin(&cursor->files[f].rows, f);
    }
    return cursor;
}

void bel_ckpt_cursor_close(bel_ckpt_cursor *cursor)
{
    if (cursor == NULL) return;
    for (int f = 0; f < cursor->file_count; f++)
        bel_table_rows_close(&cursor->files[f].rows);
    bel_free(cursor->files);
    bel_free(cursor);
}

// Reads a file's next block if the last one has no more rows.
static bel_status *fill_file(cursor_file *file)
{
    if (file->done || file->at < file->rows.count) return NULL;
    BEL_TRY(bel_table_rows_next(&file->rows));
    file->at = 0;
    file->done = file->rows.count == 0;
    return NULL;
}

static int64_t next_key(const cursor_file *file)
{
    return file->rows.keys[file->at];
}

static bel_status *check_once(const bel_ckpt_cursor *cursor, int file, int64_t key)
{
    if (cursor->last_file < 0 || key != cursor->last) return NULL;
    const bel_table_rows *rows = &cursor->files[file].rows;
    return BEL_ERR(BEL_DATA_LOSS, "table \"%s\": key %lld is in %s and in %s",
                   bel_table_rows_info(rows)->name, (long long)key,
                   rows->reader->files[cursor->last_file].disk.path,
                   rows->reader->files[file].disk.path);
}

bel_status *bel_ckpt_cursor_next(bel_ckpt_cursor *cursor, bel_ckpt_row *out_row, bool *out_more)
{
    int least = -1;
    for (int f = 0; f < cursor->file_count; f++) {
        BEL_TRY(fill_file(&cursor->files[f]));
        if (cursor->files[f].done) continue;
        if (least < 0 || next_key(&cursor->files[f]) < next_key(&cursor->files[least])) least = f;
    }
    *out_more = least >= 0;
    if (least < 0) return NULL;
    cursor_file *file = &cursor->files[least];
    const bel_ckpt_table *info = bel_table_rows_info(&file->rows);
    int64_t key = next_key(file);
    BEL_TRY(check_once(cursor, least, key));
    out_row->key = key;
    for (int c = 0; c < info->column_count && file->rows.columns[c] != NULL; c++)
        out_row->columns[c] = file->rows.columns[c] + file->at * info->width;
    file->at++;
    cursor->last = key;
    cursor->last_file = least;
    return NULL;
}
