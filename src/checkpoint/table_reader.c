// Tables of an opened checkpoint: rows delivered in blocks, hashed, and checked. Loading decides
// anew which shard holds which key, so a shard is shown the rows of all files that may have some of
// its keys, and keeps those that it wants. Blocks bound the memory for a table of any size.
//
// Each block is checked for ascending keys. Only verification checks that no key is in two files,
// by a merge of the files' keys: loading does not need it, as each file has passed its checksum.
#include "checkpoint/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "checkpoint/reader.h"
#include "checkpoint/shard.h"

enum { BLOCK_FLOATS = 1 << 18, MAX_BLOCK_ROWS = 4096 };

int bel_ckpt_table_count(const bel_ckpt_reader *reader)
{
    return reader->manifest.table_count;
}

bel_ckpt_table bel_ckpt_table_at(const bel_ckpt_reader *reader, int index, int64_t *out_row_count)
{
    const bel_manifest_table *table = &reader->manifest.tables[index];
    *out_row_count = 0;
    for (int f = 0; f < reader->manifest.file_count; f++)
        *out_row_count += table->rows[f];
    return table->table;
}

// --- Blocks of a file ----------------------------------------------------------------------------

// Reader of one file's rows, block after block.
typedef struct block_reader {
    const bel_ckpt_reader *reader;
    int table, file;
    int64_t next;     // first row of the next block in the file
    int64_t capacity; // rows
    int64_t count;    // rows in the block
    int64_t *keys;
    float *columns[BEL_CKPT_MAX_COLUMNS]; // filled as far as read
} block_reader;

// Opens a block of the rows for which BLOCK_FLOATS holds one column, at least one.
static void open_block(const bel_ckpt_reader *reader, int table, block_reader *out)
{
    const bel_ckpt_table *info = &reader->manifest.tables[table].table;
    int64_t fit = BLOCK_FLOATS / info->width;
    int64_t capacity = fit < 1 ? 1 : fit < MAX_BLOCK_ROWS ? fit : MAX_BLOCK_ROWS;
    *out = (block_reader){.reader = reader, .table = table, .capacity = capacity};
    out->keys = bel_xcalloc((size_t)capacity, sizeof *out->keys);
    for (int c = 0; c < info->column_count; c++)
        out->columns[c] = bel_xcalloc((size_t)(capacity * info->width), sizeof(float));
}

static void close_block(block_reader *block)
{
    bel_free(block->keys);
    for (int c = 0; c < BEL_CKPT_MAX_COLUMNS; c++)
        bel_free(block->columns[c]);
}

static bel_status *read_at(const block_reader *block, int column, int64_t first, int64_t n,
                           size_t row_bytes, void *out)
{
    const bel_ckpt_reader *reader = block->reader;
    BEL_TRY(bel_ckpt_use_file(reader, block->file));
    uint64_t offset = reader->table_offset[block->table][block->file][1 + column];
    return bel_disk_file_read(&reader->files[block->file].disk,
                              offset + (uint64_t)first * row_bytes, out, (size_t)n * row_bytes);
}

// Reads the keys of the next block; no keys at the end of the file.
static bel_status *next_keys(block_reader *block)
{
    const bel_manifest_table *table = &block->reader->manifest.tables[block->table];
    int64_t left = table->rows[block->file] - block->next;
    int64_t last = block->count > 0 ? block->keys[block->count - 1] : 0;
    bool any = block->count > 0;
    block->count = left < block->capacity ? left : block->capacity;
    BEL_TRY(read_at(block, BEL_CKPT_KEYS, block->next, block->count, sizeof(int64_t), block->keys));
    for (int64_t i = 0; i < block->count; i++) {
        if (any && block->keys[i] <= last) {
            return BEL_ERR(
                BEL_DATA_LOSS, "%s: table \"%s\": row %lld: expected a key above %lld, got %lld",
                block->reader->files[block->file].disk.path, table->table.name,
                (long long)(block->next + i), (long long)last, (long long)block->keys[i]);
        }
        any = true;
        last = block->keys[i];
    }
    block->next += block->count;
    return NULL;
}

// Reads the rows of the block, after next_keys has advanced.
static bel_status *read_columns(block_reader *block)
{
    const bel_ckpt_table *info = &block->reader->manifest.tables[block->table].table;
    for (int c = 0; c < info->column_count; c++) {
        BEL_TRY(read_at(block, c, block->next - block->count, block->count,
                        (size_t)info->width * sizeof(float), block->columns[c]));
    }
    return NULL;
}

static void begin_file(block_reader *block, int file)
{
    block->file = file;
    block->next = block->count = 0;
}

// --- Delivery ---------------------------------------------------------------------------------

// Moves the wanted rows to the front.
static int64_t keep_wanted(block_reader *block, const bel_ckpt_row_sink *sink)
{
    const bel_ckpt_table *info = &block->reader->manifest.tables[block->table].table;
    if (sink->wants == NULL) return block->count;
    int64_t kept = 0, width = info->width;
    for (int64_t i = 0; i < block->count; i++) {
        if (!sink->wants(sink->context, block->keys[i])) continue;
        for (int c = 0; c < info->column_count; c++) {
            memmove(block->columns[c] + kept * width, block->columns[c] + i * width,
                    (size_t)width * sizeof(float));
        }
        block->keys[kept++] = block->keys[i];
    }
    return kept;
}

// Delivers a file's rows, block by block. Saves the last key of a block before keep_wanted, which
// moves keys.
static bel_status *hand_out(block_reader *block, int file, const bel_ckpt_row_sink *sink)
{
    begin_file(block, file);
    for (;;) {
        BEL_TRY(next_keys(block));
        if (block->count == 0) return NULL;
        int64_t last = block->keys[block->count - 1];
        BEL_TRY(read_columns(block));
        int64_t kept = keep_wanted(block, sink);
        const float *columns[BEL_CKPT_MAX_COLUMNS];
        memcpy(columns, block->columns, sizeof columns);
        if (kept > 0) BEL_TRY(sink->take(sink->context, kept, block->keys, columns));
        block->keys[block->count - 1] = last; // the check of the next block compares with it
    }
}

static int by_name(const void *a, const void *b)
{
    const bel_manifest_table *left = a, *right = b;
    return strcmp(left->table.name, right->table.name);
}

// Bisects the ascending names. Returns the count of tables if the name is absent.
static int find_table(const bel_manifest *manifest, const char *name)
{
    bel_manifest_table key = {.table = {.name = name}};
    size_t count = (size_t)manifest->table_count;
    const bel_manifest_table *found =
        count == 0 ? NULL : bsearch(&key, manifest->tables, count, sizeof key, by_name);
    return found == NULL ? manifest->table_count : (int)(found - manifest->tables);
}

bool bel_ckpt_has_table(const bel_ckpt_reader *reader, const char *name)
{
    return find_table(&reader->manifest, name) < reader->manifest.table_count;
}

bool bel_ckpt_is_model_table(const bel_ckpt_reader *reader, const char *name)
{
    const char *last = strrchr(name, '/');
    if (last == NULL) return true;
    if (strcmp(last + 1, BEL_CKPT_AGE) != 0 && strcmp(last + 1, BEL_CKPT_USES) != 0) return true;
    char *owner = bel_strf("%.*s", (int)(last - name), name);
    bool found = bel_ckpt_has_table(reader, owner);
    bel_free(owner);
    return !found;
}

static bool same_table(const bel_ckpt_table *a, const bel_ckpt_table *b)
{
    if (a->width != b->width || a->column_count != b->column_count) return false;
    for (int c = 0; c < a->column_count; c++)
        if (strcmp(a->columns[c], b->columns[c]) != 0) return false;
    return true;
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

int bel_ckpt_file_count(const bel_ckpt_reader *reader)
{
    return reader->manifest.file_count;
}

bel_status *bel_ckpt_read_table_file(const bel_ckpt_reader *reader, const bel_ckpt_table *expected,
                                     int file, const bel_ckpt_row_sink *sink)
{
    int table = find_table(&reader->manifest, expected->name);
    if (table == reader->manifest.table_count) return no_table(reader, expected->name);
    const bel_ckpt_table *got = &reader->manifest.tables[table].table;
    if (!same_table(expected, got)) return table_reader_refuse(reader, expected, got);
    block_reader block;
    open_block(reader, table, &block);
    bel_status *status = hand_out(&block, file, sink);
    close_block(&block);
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
    int table = find_table(&reader->manifest, name);
    if (table == reader->manifest.table_count) return no_table(reader, name);
    bel_ckpt_table expected = reader->manifest.tables[table].table;
    expected.width = width;
    return bel_ckpt_read_table(reader, &expected, sink);
}

// --- Verification --------------------------------------------------------------------------------

// Sums the hashes of a column's rows, each hashed with its key, so the sum is independent of the
// rows' order and shards.
static bel_status *hash_columns(block_reader *block, bel_hash128 *sums)
{
    const bel_ckpt_table *info = &block->reader->manifest.tables[block->table].table;
    for (int f = 0; f < block->reader->manifest.file_count; f++) {
        begin_file(block, f);
        for (;;) {
            BEL_TRY(next_keys(block));
            if (block->count == 0) break;
            BEL_TRY(read_columns(block));
            for (int c = 0; c < info->column_count; c++)
                bel_ckpt_hash_rows(block->keys, block->columns[c], info->width, block->count,
                                   &sums[c]);
        }
    }
    return NULL;
}

// Merges the files' keys, which ascend in each file, and detects a key that is in two of them.
static bel_status *merge_keys(block_reader *blocks, int64_t *at, int file_count)
{
    int last_file = -1;
    int64_t last = 0;
    for (;;) {
        int least = -1;
        for (int f = 0; f < file_count; f++) {
            if (at[f] == blocks[f].count && blocks[f].count > 0) {
                BEL_TRY(next_keys(&blocks[f]));
                at[f] = 0;
            }
            if (blocks[f].count == 0) continue;
            if (least < 0 || blocks[f].keys[at[f]] < blocks[least].keys[at[least]]) least = f;
        }
        if (least < 0) return NULL;
        int64_t key = blocks[least].keys[at[least]++];
        if (last_file >= 0 && key == last) {
            const bel_reader_file *files = blocks[0].reader->files;
            return BEL_ERR(BEL_DATA_LOSS, "table \"%s\": key %lld is in %s and in %s",
                           blocks[0].reader->manifest.tables[blocks[0].table].table.name,
                           (long long)key, files[last_file].disk.path, files[least].disk.path);
        }
        last = key;
        last_file = least;
    }
}

// Holds one block of keys per file.
static bel_status *check_disjoint(const bel_ckpt_reader *reader, int table)
{
    int file_count = reader->manifest.file_count;
    block_reader *blocks = bel_xcalloc((size_t)file_count, sizeof *blocks);
    int64_t *at = bel_xcalloc((size_t)file_count, sizeof *at);
    bel_status *status = NULL;
    for (int f = 0; f < file_count; f++) {
        blocks[f] =
            (block_reader){.reader = reader, .table = table, .file = f, .capacity = MAX_BLOCK_ROWS};
        blocks[f].keys = bel_xcalloc(MAX_BLOCK_ROWS, sizeof *blocks[f].keys);
    }
    for (int f = 0; f < file_count && status == NULL; f++)
        status = next_keys(&blocks[f]);
    if (status == NULL) status = merge_keys(blocks, at, file_count);
    for (int f = 0; f < file_count; f++)
        close_block(&blocks[f]);
    bel_free(blocks);
    bel_free(at);
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
    block_reader block;
    open_block(reader, index, &block);
    bel_status *status = hash_columns(&block, sums);
    close_block(&block);
    BEL_TRY(status);
    *out_table = bel_arena_copy(arena, &run, sizeof run);
    return NULL;
}
