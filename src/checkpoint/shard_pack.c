// A shard's report as bytes: numbers are little-endian and 8 bytes wide, texts follow their length.
//
//   version, shard index, shard count, has file, file bytes, file CRC-32C, run count; per run:
//   name, dtype, rank, dims, first, count, hash of each grain; table count; per table: name, width,
//   row count, rows in the file, removed keys + 1 (0: the file is full), column count; per column:
//   name, sum of hashes (low, high)
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "checkpoint/shard.h"
#include "checkpoint/table.h"

enum { VERSION = 3, NUMBER_BYTES = 8 };

// --- Packing -------------------------------------------------------------------------------------

static void shard_pack_put(bel_str *out, uint64_t value)
{
    char bytes[NUMBER_BYTES];
    for (int i = 0; i < NUMBER_BYTES; i++)
        bytes[i] = (char)(uint8_t)(value >> (8 * i));
    bel_str_append(out, bytes, sizeof bytes);
}

static void put_text(bel_str *out, const char *text)
{
    shard_pack_put(out, strlen(text));
    bel_str_append(out, text, strlen(text));
}

static void put_table(bel_str *out, const bel_ckpt_table_run *table)
{
    put_text(out, table->name);
    shard_pack_put(out, (uint64_t)table->width);
    shard_pack_put(out, (uint64_t)table->row_count);
    shard_pack_put(out, (uint64_t)table->file_rows);
    shard_pack_put(out, (uint64_t)(table->removed + 1));
    shard_pack_put(out, (uint64_t)table->column_count);
    for (int c = 0; c < table->column_count; c++) {
        put_text(out, table->columns[c]);
        shard_pack_put(out, table->sums[c].low);
        shard_pack_put(out, table->sums[c].high);
    }
}

uint8_t *bel_ckpt_shard_pack(const bel_ckpt_shard *shard, size_t *out_bytes)
{
    bel_str out = {0};
    shard_pack_put(&out, VERSION);
    shard_pack_put(&out, (uint64_t)shard->shard_index);
    shard_pack_put(&out, (uint64_t)shard->shard_count);
    shard_pack_put(&out, shard->has_file);
    shard_pack_put(&out, shard->file_size_bytes);
    shard_pack_put(&out, shard->file_crc32c);
    shard_pack_put(&out, (uint64_t)shard->run_count);
    for (int i = 0; i < shard->run_count; i++) {
        const bel_ckpt_run *run = &shard->runs[i];
        put_text(&out, run->name);
        shard_pack_put(&out, (uint64_t)run->dtype);
        shard_pack_put(&out, (uint64_t)run->shape.rank);
        for (int32_t d = 0; d < run->shape.rank; d++)
            shard_pack_put(&out, (uint64_t)run->shape.dims[d]);
        shard_pack_put(&out, (uint64_t)run->first);
        shard_pack_put(&out, (uint64_t)run->count);
        for (size_t g = 0; g < bel_ckpt_grain_count(run->count); g++)
            shard_pack_put(&out, run->grain_hashes[g]);
    }
    shard_pack_put(&out, (uint64_t)shard->table_count);
    for (int i = 0; i < shard->table_count; i++)
        put_table(&out, &shard->tables[i]);
    *out_bytes = out.length;
    return (uint8_t *)out.text;
}

// --- Unpacking -----------------------------------------------------------------------------------

// Cursor over the bytes. Reading past the end gives zeros and clears `good`.
typedef struct cursor {
    const uint8_t *bytes;
    size_t left;
    bool good;
} cursor;

static uint64_t cursor_get(cursor *c)
{
    if (c->left < NUMBER_BYTES) {
        c->good = false;
        return 0;
    }
    uint64_t value = 0;
    for (int i = 0; i < NUMBER_BYTES; i++)
        value |= (uint64_t)c->bytes[i] << (8 * i);
    c->bytes += NUMBER_BYTES;
    c->left -= NUMBER_BYTES;
    return value;
}

// Reads a number; refuses one above `most`.
static uint64_t get_up_to(cursor *c, uint64_t most)
{
    uint64_t value = cursor_get(c);
    if (value <= most) return value;
    c->good = false;
    return 0;
}

static char *get_text(cursor *c, bel_arena *arena)
{
    size_t length = (size_t)get_up_to(c, c->left);
    if (length > c->left || memchr(c->bytes, 0, length) != NULL) c->good = false;
    if (!c->good) return NULL;
    char *text = bel_arena_alloc(arena, length + 1);
    memcpy(text, c->bytes, length);
    c->bytes += length;
    c->left -= length;
    return text;
}

static void get_run(cursor *c, bel_ckpt_shard *shard, bel_ckpt_run *run)
{
    *run = (bel_ckpt_run){.name = get_text(c, shard->arena), .shard_index = shard->shard_index};
    run->dtype = (bel_dtype)get_up_to(c, BEL_DTYPE_STRING);
    run->shape.rank = (int32_t)get_up_to(c, BEL_MAX_RANK);
    for (int32_t d = 0; d < run->shape.rank; d++)
        run->shape.dims[d] = (int64_t)get_up_to(c, INT64_MAX);
    run->first = (int64_t)get_up_to(c, INT64_MAX);
    run->count = (int64_t)get_up_to(c, INT64_MAX - BEL_GRAIN);
    size_t grains = bel_ckpt_grain_count(run->count);
    if (!c->good || grains > c->left / NUMBER_BYTES) {
        c->good = false;
        return;
    }
    uint64_t *hashes = bel_arena_alloc(shard->arena, grains * sizeof *hashes);
    for (size_t g = 0; g < grains; g++)
        hashes[g] = cursor_get(c);
    run->grain_hashes = hashes;
}

static void get_table(cursor *c, bel_ckpt_shard *shard, bel_ckpt_table_run *table)
{
    *table =
        (bel_ckpt_table_run){.name = get_text(c, shard->arena), .shard_index = shard->shard_index};
    table->width = (int)get_up_to(c, BEL_CKPT_MAX_WIDTH);
    const uint64_t most_rows = INT64_MAX / BEL_CKPT_MAX_WIDTH;
    table->row_count = (int64_t)get_up_to(c, most_rows);
    table->file_rows = (int64_t)get_up_to(c, most_rows);
    table->removed = (int64_t)get_up_to(c, most_rows) - 1;
    table->column_count = (int)get_up_to(c, BEL_CKPT_MAX_COLUMNS);
    const char **names = bel_arena_alloc(shard->arena, BEL_CKPT_MAX_COLUMNS * sizeof *names);
    bel_hash128 *sums = bel_arena_alloc(shard->arena, BEL_CKPT_MAX_COLUMNS * sizeof *sums);
    for (int i = 0; i < table->column_count; i++) {
        names[i] = get_text(c, shard->arena);
        sums[i].low = cursor_get(c);
        sums[i].high = cursor_get(c);
    }
    table->columns = names;
    table->sums = sums;
}

bel_status *bel_ckpt_shard_unpack(const uint8_t *bytes, size_t count, bel_ckpt_shard **out_shard)
{
    cursor c = {bytes, count, true};
    bel_ckpt_shard *shard = bel_xcalloc(1, sizeof *shard);
    shard->arena = bel_arena_create();
    bool same_version = cursor_get(&c) == VERSION;
    shard->shard_index = (int)get_up_to(&c, INT32_MAX);
    shard->shard_count = (int)get_up_to(&c, INT32_MAX);
    shard->has_file = get_up_to(&c, 1) == 1;
    shard->file_size_bytes = cursor_get(&c);
    shard->file_crc32c = (uint32_t)get_up_to(&c, UINT32_MAX);
    shard->run_count = (int)get_up_to(&c, c.left / NUMBER_BYTES); // each run takes more
    shard->runs = bel_arena_alloc(shard->arena, (size_t)shard->run_count * sizeof *shard->runs);
    for (int i = 0; c.good && i < shard->run_count; i++)
        get_run(&c, shard, &shard->runs[i]);
    shard->table_count = (int)get_up_to(&c, c.left / NUMBER_BYTES);
    shard->tables =
        bel_arena_alloc(shard->arena, (size_t)shard->table_count * sizeof *shard->tables);
    for (int i = 0; c.good && i < shard->table_count; i++)
        get_table(&c, shard, &shard->tables[i]);
    if (same_version && c.good && c.left == 0) {
        *out_shard = shard;
        return NULL;
    }
    bel_ckpt_shard_destroy(shard);
    return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed report of a checkpoint's shard");
}
