// A key is looked for in each file, as its shard is not known here: few files have it in their
// range of keys by chance, and a checkpoint has few files. The bisection begins in a list of every
// 512th key, which stays in the caches, and ends in one page of the file. So a row that is not in
// memory costs two reads of the disk.
#include "checkpoint/row_map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint/reader.h"

enum { STRIDE = 512 };

// Ascending keys in a file, and the rows beside them.
typedef struct run {
    const unsigned char *keys, *values; // any alignment
    int64_t count;
    int64_t *marks; // keys 0, STRIDE, 2 · STRIDE …
} run;

typedef struct mapped_file {
    void *memory;
    size_t size;
    run rows, removed;
} mapped_file;

struct bel_ckpt_row_map {
    char *name;
    size_t row_bytes;
    int file_count;
    mapped_file *files;
};

static int64_t key_at(const run *r, int64_t number)
{
    int64_t key;
    memcpy(&key, r->keys + number * (int64_t)sizeof key, sizeof key);
    return key;
}

// --- Opening -------------------------------------------------------------------------------------

// Notes every STRIDE-th key. False: *out_number does not ascend.
static bool mark_keys(run *r, int64_t *out_number)
{
    r->marks = bel_xcalloc((size_t)(r->count / STRIDE) + 1, sizeof *r->marks);
    int64_t last = 0;
    for (int64_t i = 0; i < r->count; i++) {
        const int64_t key = key_at(r, i);
        *out_number = i;
        if (i > 0 && key <= last) return false;
        if (i % STRIDE == 0) r->marks[i / STRIDE] = key;
        last = key;
    }
    return true;
}

static bel_status *map_run(const bel_ckpt_row_map *map, const mapped_file *file, const char *path,
                           const uint64_t *offsets, int column, int64_t count, run *out_run)
{
    int64_t number;
    out_run->count = count;
    out_run->keys = (const unsigned char *)file->memory + offsets[column - BEL_CKPT_REMOVED];
    if (column == BEL_CKPT_KEYS)
        out_run->values = (const unsigned char *)file->memory + offsets[0 - BEL_CKPT_REMOVED];
    if (mark_keys(out_run, &number)) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: table \"%s\": %s %lld: expected a key above %lld, got %lld",
                   path, map->name, column == BEL_CKPT_KEYS ? "row" : "removed key",
                   (long long)number, (long long)key_at(out_run, number - 1),
                   (long long)key_at(out_run, number));
}

static bel_status *map_file(const bel_ckpt_row_map *map, const bel_ckpt_reader *reader, int table,
                            int number, mapped_file *file)
{
    const bel_manifest_table *its = &reader->manifest.tables[table];
    BEL_TRY(bel_ckpt_use_file(reader, number));
    const bel_disk_file *disk = &reader->files[number].disk;
    const uint64_t *offsets = reader->table_offset[table][number];
    file->size = (size_t)disk->size_bytes;
    void *memory = mmap(NULL, file->size, PROT_READ, MAP_SHARED, disk->descriptor, 0);
    if (memory == MAP_FAILED) return bel_file_error(errno, "map", disk->path);
    file->memory = memory;
    BEL_TRY(map_run(map, file, disk->path, offsets, BEL_CKPT_KEYS, its->rows[number], &file->rows));
    if (its->removed != NULL)
        BEL_TRY(map_run(map, file, disk->path, offsets, BEL_CKPT_REMOVED, its->removed[number],
                        &file->removed));
    (void)posix_madvise(memory, file->size, POSIX_MADV_RANDOM); // only a matter of speed
    return NULL;
}

bel_status *bel_ckpt_row_map_open(const bel_ckpt_reader *reader, const char *name, int width,
                                  bel_ckpt_row_map **out_map)
{
    const int table = bel_ckpt_find_table(&reader->manifest, name);
    if (table == reader->manifest.table_count)
        return BEL_ERR(BEL_NOT_FOUND, "checkpoint %s has no table \"%s\"", reader->folder, name);
    const bel_ckpt_table *info = &reader->manifest.tables[table].table;
    if (info->width != width)
        return BEL_ERR(BEL_DATA_LOSS, "checkpoint %s: table \"%s\": expected width %d, got %d",
                       reader->folder, name, width, info->width);
    bel_ckpt_row_map *map = bel_xcalloc(1, sizeof *map);
    map->name = bel_xstrdup(name);
    map->row_bytes = (size_t)width * sizeof(float);
    map->file_count = reader->manifest.file_count;
    map->files = bel_xcalloc((size_t)map->file_count + 1, sizeof *map->files);
    for (int f = 0; f < map->file_count; f++) {
        bel_status *status = map_file(map, reader, table, f, &map->files[f]);
        if (status == NULL) continue;
        bel_ckpt_row_map_destroy(map);
        return status;
    }
    *out_map = map;
    return NULL;
}

void bel_ckpt_row_map_destroy(bel_ckpt_row_map *map)
{
    if (map == NULL) return;
    for (int f = 0; f < map->file_count; f++) {
        mapped_file *file = &map->files[f];
        if (file->memory != NULL) munmap(file->memory, file->size);
        bel_free(file->rows.marks);
        bel_free(file->removed.marks);
    }
    bel_free(map->files);
    bel_free(map->name);
    bel_free(map);
}

// --- Rows ----------------------------------------------------------------------------------------

// Number of the key in a run; -1: it is not there.
static int64_t find(const run *r, int64_t key)
{
    if (r->count == 0 || key < r->marks[0]) return -1;
    int64_t first = 0, end = (r->count - 1) / STRIDE + 1;
    while (end - first > 1) {
        const int64_t middle = first + (end - first) / 2;
        if (r->marks[middle] <= key)
            first = middle;
        else
            end = middle;
    }
    first *= STRIDE;
    end = first + STRIDE < r->count ? first + STRIDE : r->count;
    while (end - first > 1) {
        const int64_t middle = first + (end - first) / 2;
        if (key_at(r, middle) <= key)
            first = middle;
        else
            end = middle;
    }
    return key_at(r, first) == key ? first : -1;
}

bool bel_ckpt_row_map_get(const bel_ckpt_row_map *map, int64_t key, float *out_values)
{
    for (int f = 0; f < map->file_count; f++) {
        const run *rows = &map->files[f].rows;
        const int64_t number = find(rows, key);
        if (number < 0) continue;
        memcpy(out_values, rows->values + (size_t)number * map->row_bytes, map->row_bytes);
        return true;
    }
    return false;
}

bool bel_ckpt_row_map_removes(const bel_ckpt_row_map *map, int64_t key)
{
    for (int f = 0; f < map->file_count; f++)
        if (find(&map->files[f].removed, key) >= 0) return true;
    return false;
}

int64_t bel_ckpt_row_map_count(const bel_ckpt_row_map *map)
{
    int64_t count = 0;
    for (int f = 0; f < map->file_count; f++)
        count += map->files[f].rows.count;
    return count;
}

int64_t bel_ckpt_row_map_removed(const bel_ckpt_row_map *map)
{
    int64_t count = 0;
    for (int f = 0; f < map->file_count; f++)
        count += map->files[f].removed.count;
    return count;
}

static bool has_row(const bel_ckpt_row_map *map, int64_t key)
{
    for (int f = 0; f < map->file_count; f++)
        if (find(&map->files[f].rows, key) >= 0) return true;
    return false;
}

bel_status *bel_ckpt_row_map_check(const bel_ckpt_row_map *delta, const bel_ckpt_row_map *base,
                                   int64_t all)
{
    int64_t count = bel_ckpt_row_map_count(base);
    for (int f = 0; f < delta->file_count; f++) {
        const run *rows = &delta->files[f].rows, *removed = &delta->files[f].removed;
        for (int64_t i = 0; i < rows->count; i++)
            count += !has_row(base, key_at(rows, i));
        for (int64_t i = 0; i < removed->count; i++) {
            const int64_t key = key_at(removed, i);
            if (!has_row(base, key) || has_row(delta, key))
                return BEL_ERR(BEL_DATA_LOSS,
                               "table \"%s\": key %lld is removed, and its base has no such row, "
                               "or it has a row",
                               delta->name, (long long)key);
        }
        count -= removed->count;
    }
    if (count == all) return NULL;
    return BEL_ERR(BEL_DATA_LOSS,
                   "table \"%s\": expected %lld rows, got %lld from the base and the delta",
                   delta->name, (long long)all, (long long)count);
}
