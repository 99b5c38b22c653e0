// Blocks of rows, and the merge of a delta with its base. Each block is checked for ascending keys,
// on which the merge relies. Rows of the base between two keys of the delta are copied together, so
// the merge of a large base with a small delta is mostly memcpy.
#include "checkpoint/table_rows.h"

#include <string.h>

#include "base/alloc.h"

enum { BLOCK_FLOATS = 1 << 18, LEAST_FLOATS = 1 << 12, MAX_BLOCK_ROWS = 4096 };

// --- One file ------------------------------------------------------------------------------------

int64_t bel_table_block_rows(const bel_ckpt_table *info, int open)
{
    int64_t share = BLOCK_FLOATS / (open < 1 ? 1 : open);
    int64_t fit = (share < LEAST_FLOATS ? LEAST_FLOATS : share) / info->width;
    return fit < 1 ? 1 : fit < MAX_BLOCK_ROWS ? fit : MAX_BLOCK_ROWS;
}

static int64_t *make_block(const bel_ckpt_table *info, int column_count, int64_t capacity,
                           float **columns)
{
    for (int c = 0; c < column_count; c++)
        columns[c] = bel_xcalloc((size_t)(capacity * info->width), sizeof(float));
    return bel_xcalloc((size_t)capacity, sizeof(int64_t));
}

static void free_block(int64_t *keys, float **columns)
{
    bel_free(keys);
    for (int c = 0; c < BEL_CKPT_MAX_COLUMNS; c++)
        bel_free(columns[c]);
}

void bel_table_run_open(const bel_ckpt_reader *reader, int table, int key_column, int column_count,
                        int64_t capacity, bel_table_run_reader *out)
{
    const bel_ckpt_table *info = &reader->manifest.tables[table].table;
    *out = (bel_table_run_reader){.reader = reader,
                                  .table = table,
                                  .key_column = key_column,
                                  .column_count = column_count,
                                  .capacity = capacity};
    out->keys = make_block(info, column_count, out->capacity, out->columns);
}

void bel_table_run_begin(bel_table_run_reader *run, int file)
{
    run->file = file;
    run->next = run->count = run->at = 0;
}

static bel_status *read_at(const bel_table_run_reader *run, int column, size_t row_bytes, void *out)
{
    const bel_ckpt_reader *reader = run->reader;
    BEL_TRY(bel_ckpt_use_file(reader, run->file));
    uint64_t offset = reader->table_offset[run->table][run->file][column - BEL_CKPT_REMOVED];
    return bel_disk_file_read(&reader->files[run->file].disk,
                              offset + (uint64_t)run->next * row_bytes, out,
                              (size_t)run->count * row_bytes);
}

void bel_table_run_close(bel_table_run_reader *run)
{
    free_block(run->keys, run->columns);
}

static bel_status *check_ascending(bel_table_run_reader *run)
{
    for (int64_t i = 0; i < run->count; i++) {
        if ((run->next > 0 || i > 0) && run->keys[i] <= run->last) {
            return BEL_ERR(
                BEL_DATA_LOSS, "%s: table \"%s\": %s %lld: expected a key above %lld, got %lld",
                run->reader->files[run->file].disk.path,
                run->reader->manifest.tables[run->table].table.name,
                run->key_column == BEL_CKPT_KEYS ? "row" : "removed key",
                (long long)(run->next + i), (long long)run->last, (long long)run->keys[i]);
        }
        run->last = run->keys[i];
    }
    return NULL;
}

bel_status *bel_table_run_next(bel_table_run_reader *run)
{
    const bel_manifest_table *table = &run->reader->manifest.tables[run->table];
    bool keys = run->key_column == BEL_CKPT_KEYS;
    int64_t left = (keys ? table->rows : table->removed)[run->file] - run->next;
    run->count = left < run->capacity ? left : run->capacity;
    run->at = 0;
    BEL_TRY(read_at(run, run->key_column, sizeof(int64_t), run->keys));
    BEL_TRY(check_ascending(run));
    for (int c = 0; c < run->column_count; c++)
        BEL_TRY(read_at(run, c, (size_t)table->table.width * sizeof(float), run->columns[c]));
    run->next += run->count;
    return NULL;
}

// --- A delta and its base ------------------------------------------------------------------------

void bel_table_rows_open(const bel_ckpt_reader *reader, int table, bool columns, int open,
                         bel_table_rows *out_rows)
{
    const bel_ckpt_table *info = &reader->manifest.tables[table].table;
    int column_count = columns ? info->column_count : 0;
    int64_t capacity = bel_table_block_rows(info, open);
    *out_rows = (bel_table_rows){.reader = reader};
    bel_table_run_open(reader, table, BEL_CKPT_KEYS, column_count, capacity, &out_rows->own);
    if (reader->base == NULL) return;
    int there = bel_ckpt_find_table(&reader->base->manifest, info->name);
    bel_table_run_open(reader->base, there, BEL_CKPT_KEYS, column_count, capacity, &out_rows->base);
    bel_table_run_open(reader, table, BEL_CKPT_REMOVED, 0, capacity, &out_rows->removed);
    out_rows->capacity = capacity;
    out_rows->keys = make_block(info, column_count, out_rows->capacity, out_rows->columns);
    const bel_ckpt_info *about = &reader->manifest.info;
    if (bel_ckpt_is_age_table(reader, info->name))
        out_rows->older = (float)(about->step - about->base.step);
}

void bel_table_rows_close(bel_table_rows *rows)
{
    if (rows->reader == NULL) return;
    if (rows->reader->base != NULL) free_block(rows->keys, rows->columns);
    bel_table_run_close(&rows->own);
    bel_table_run_close(&rows->base);
    bel_table_run_close(&rows->removed);
}

void bel_table_rows_begin(bel_table_rows *rows, int file)
{
    rows->count = 0;
    bel_table_run_begin(&rows->own, file);
    if (rows->reader->base == NULL) return;
    bel_table_run_begin(&rows->base, file);
    bel_table_run_begin(&rows->removed, file);
}

static bool is_empty(const bel_table_run_reader *run)
{
    return run->at == run->count;
}

// Reads a block if nothing is left of the last one; at the end of the file none.
static bel_status *fill(bel_table_run_reader *run)
{
    return is_empty(run) ? bel_table_run_next(run) : NULL;
}

// Moves n rows of a run to the end of the merged block.
static void append(bel_table_rows *rows, bel_table_run_reader *from, int64_t n, float older)
{
    int64_t width = bel_table_rows_info(rows)->width;
    memcpy(rows->keys + rows->count, from->keys + from->at, (size_t)n * sizeof *rows->keys);
    for (int c = 0; c < from->column_count; c++) {
        float *to = rows->columns[c] + rows->count * width;
        memcpy(to, from->columns[c] + from->at * width, (size_t)(n * width) * sizeof(float));
        for (int64_t i = 0; older > 0 && i < n * width; i++)
            to[i] += older;
    }
    rows->count += n;
    from->at += n;
}

// Number of the base's rows in its block before the next key of the delta, at most `most`.
static int64_t rows_before(const bel_table_rows *rows, int64_t most)
{
    const bel_table_run_reader *base = &rows->base, *own = &rows->own, *removed = &rows->removed;
    int64_t n = 0, left = base->count - base->at;
    if (left < most) most = left;
    bool bounded = !is_empty(own) || !is_empty(removed);
    int64_t border = INT64_MAX;
    if (!is_empty(own)) border = own->keys[own->at];
    if (!is_empty(removed) && removed->keys[removed->at] < border)
        border = removed->keys[removed->at];
    while (n < most && (!bounded || base->keys[base->at + n] < border))
        n++;
    return n;
}

static bel_status *bad_removal(const bel_table_rows *rows)
{
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s: table \"%s\": key %lld is removed, and its base has no such row, or it has "
                   "a row",
                   rows->reader->files[rows->own.file].disk.path, bel_table_rows_info(rows)->name,
                   (long long)rows->removed.keys[rows->removed.at]);
}

// Takes one step of the merge at a key of the delta: the base's rows before it are done.
static bel_status *take_key(bel_table_rows *rows)
{
    bel_table_run_reader *base = &rows->base, *own = &rows->own, *removed = &rows->removed;
    bool removes =
        !is_empty(removed) && (is_empty(own) || removed->keys[removed->at] <= own->keys[own->at]);
    int64_t key = removes ? removed->keys[removed->at] : own->keys[own->at];
    bool in_base = !is_empty(base) && base->keys[base->at] == key;
    bool in_both = removes && !is_empty(own) && own->keys[own->at] == key;
    if (removes && (in_both || !in_base)) return bad_removal(rows);
    if (in_base) base->at++;
    if (removes)
        removed->at++;
    else
        append(rows, own, 1, 0);
    return NULL;
}

static bel_status *merge_block(bel_table_rows *rows)
{
    rows->count = 0;
    while (rows->count < rows->capacity) {
        BEL_TRY(fill(&rows->base));
        BEL_TRY(fill(&rows->own));
        BEL_TRY(fill(&rows->removed));
        int64_t n = rows_before(rows, rows->capacity - rows->count);
        append(rows, &rows->base, n, rows->older);
        if (n > 0) continue;
        if (is_empty(&rows->own) && is_empty(&rows->removed)) return NULL;
        BEL_TRY(take_key(rows));
    }
    return NULL;
}

bel_status *bel_table_rows_next(bel_table_rows *rows)
{
    if (rows->reader->base != NULL) return merge_block(rows);
    BEL_TRY(bel_table_run_next(&rows->own));
    rows->count = rows->own.count;
    rows->keys = rows->own.keys;
    memcpy(rows->columns, rows->own.columns, sizeof rows->columns);
    return NULL;
}
