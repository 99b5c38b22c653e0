// Tables of an opened checkpoint: rows delivered in blocks, hashed, and checked. Loading decides
// anew which shard holds which key, so a shard is shown the rows of all files that may have some of
// its keys, and keeps those that it wants. Blocks bound the memory for a table of any size.
//
// Each block is checked for ascending keys. Only verification checks that no key is in two files,
// by a merge of the files' keys: loading does not need it, as each file has passed its checksum.
#include "checkpoint/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "checkpoint/reader.h"
#include "checkpoint/table_rows.h"

// --- Delivery ---------------------------------------------------------------------------------

// Moves the wanted rows to the front.
static int64_t keep_wanted(const bel_table_rows *rows, const bel_ckpt_row_sink *sink)
{
    const bel_ckpt_table *info = bel_table_rows_info(rows);
    if (sink->wants == NULL) return rows->count;
    int64_t kept = 0, width = info->width;
    for (int64_t i = 0; i < rows->count; i++) {
        if (!sink->wants(sink->context, rows->keys[i])) continue;
        for (int c = 0; c < info->column_count; c++) {
            memmove(rows->columns[c] + kept * width, rows->columns[c] + i * width,
                    (size_t)width * sizeof(float));
        }
        rows->keys[kept++] = rows->keys[i];
    }
    return kept;
}

// Delivers a file's rows, block by block.
static bel_status *hand_out(bel_table_rows *rows, int file, const bel_ckpt_row_sink *sink)
{
    bel_table_rows_begin(rows, file);
    for (;;) {
        BEL_TRY(bel_table_rows_next(rows));
        if (rows->count == 0) return NULL;
        int64_t kept = keep_wanted(rows, sink);
        const float *columns[BEL_CKPT_MAX_COLUMNS];
        memcpy(columns, rows->columns, sizeof columns);
        if (kept > 0) BEL_TRY(sink->take(sink->context, kept, rows->keys, columns));
    }
}

// Appends e.g. "width 16, columns values, adam/m".
static void append_table(bel_str *out, const bel_ckpt_table *table)
{
    bel_str_printf(out, "width %d, columns", table->width);
    for (int c = 0; c < table->column_count; c++)
        bel_str_printf(out, "%s %s", c > 0 ? "," : "", table->columns[c]);
}

// Fails if width or columns differ from the expected ones.
static bel_status *table_reader_refuse(const bel_ckpt_reader *reader,
                                       const bel_ckpt_table *expected, const bel_ckpt_table *got)
{
    bel_str text = {0};
    append_table(&text, expected);
    bel_str_puts(&text, "; got ");
    append_table(&text, got);
    bel_status *status = BEL_ERR(BEL_DATA_LOSS, "checkpoint %s: table \"%s\": expected %s",
                                 reader->folder, expected->name, text.text);
    bel_str_deinit(&text);
    return status;
}

static bel_status *no_table(const bel_ckpt_reader *reader, const char *name)
{
    return BEL_ERR(BEL_NOT_FOUND, "checkpoint %s has no table \"%s\"", reader->folder, name);
}

bel_status *bel_ckpt_read_table_file(const bel_ckpt_reader *reader, const bel_ckpt_table *expected,
                                     int file, const bel_ckpt_row_sink *sink)
{
    int table = bel_ckpt_find_table(&reader->manifest, expected->name);
    if (table == reader->manifest.table_count) return no_table(reader, expected->name);
    const bel_ckpt_table *got = &reader->manifest.tables[table].table;
    if (!bel_ckpt_same_table(expected, got)) return table_reader_refuse(reader, expected, got);
    bel_table_rows rows;
    bel_table_rows_open(reader, table, true, 1, &rows);
    bel_status *status = hand_out(&rows, file, sink);
    bel_table_rows_close(&rows);
    if (status == NULL) return NULL;
    return bel_status_wrap(status, __FILE__, __LINE__, "checkpoint %s", reader->folder);
}

bel_status *bel_ckpt_read_table(const bel_ckpt_reader *reader, const bel_ckpt_table *expected,
                                const bel_ckpt_row_sink *sink)
{
    for (int f = 0; f < bel_ckpt_file_count(reader); f++)
        BEL_TRY(bel_ckpt_read_table_file(reader, expected, f, sink));
    return NULL;
}

bel_status *bel_ckpt_read_rows(const bel_ckpt_reader *reader, const char *name, int width,
                               const bel_ckpt_row_sink *sink)
{
    int table = bel_ckpt_find_table(&reader->manifest, name);
    if (table == reader->manifest.table_count) return no_table(reader, name);
    bel_ckpt_table expected = reader->manifest.tables[table].table;
    expected.width = width;
    return bel_ckpt_read_table(reader, &expected, sink);
}

// --- Verification --------------------------------------------------------------------------------

// Sums the hashes of a column's rows, each hashed with its key, so the sum is independent of the
// rows' order and shards.
static bel_status *hash_columns(bel_table_rows *rows, int file_count, bel_hash128 *sums)
{
    const bel_ckpt_table *info = bel_table_rows_info(rows);
    for (int f = 0; f < file_count; f++) {
        bel_table_rows_begin(rows, f);
        for (;;) {
            BEL_TRY(bel_table_rows_next(rows));
            if (rows->count == 0) break;
            for (int c = 0; c < info->column_count; c++)
                bel_ckpt_hash_rows(rows->keys, rows->columns[c], info->width, rows->count,
                                   &sums[c]);
        }
    }
    return NULL;
}

// Finds a key that is in two files, and counts the rows. Their number must be that of the manifest.
static bel_status *check_disjoint(const bel_ckpt_reader *reader, int table)
{
    int64_t expected = reader->manifest.tables[table].all, count = 0;
    bel_ckpt_cursor *cursor = bel_ckpt_cursor_open(reader, table, false);
    bel_ckpt_row row;
    bool more = true;
    bel_status *status = NULL;
    while (status == NULL && more) {
        status = bel_ckpt_cursor_next(cursor, &row, &more);
        count += status == NULL && more;
    }
    bel_ckpt_cursor_close(cursor);
    if (status == NULL && count != expected) {
        status = BEL_ERR(BEL_DATA_LOSS, "table \"%s\": expected %lld rows, got %lld",
                         reader->manifest.tables[table].table.name, (long long)expected,
                         (long long)count);
    }
    return status;
}

bel_status *bel_ckpt_hash_table(const bel_ckpt_reader *reader, int index, bel_arena *arena,
                                const bel_ckpt_table_run **out_table)
{
    bel_ckpt_table_run run = {0};
    bel_ckpt_table table = bel_ckpt_table_at(reader, index, &run.row_count);
    run.name = table.name;
    run.width = table.width;
    run.column_count = table.column_count;
    run.columns = table.columns;
    bel_hash128 *sums = bel_arena_alloc(arena, (size_t)table.column_count * sizeof *sums);
    run.sums = sums;
    BEL_TRY(check_disjoint(reader, index));
    bel_table_rows rows;
    bel_table_rows_open(reader, index, true, 1, &rows);
    bel_status *status = hash_columns(&rows, reader->manifest.file_count, sums);
    bel_table_rows_close(&rows);
    BEL_TRY(status);
    *out_table = bel_arena_copy(arena, &run, sizeof run);
    return NULL;
}
