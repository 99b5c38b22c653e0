// A table: creation, pulls, updates and loads. table_index.c decides where rows are. Cache misses
// dominate the time, so keys are processed in groups: while one group is worked on, the records of
// the next and the index of the one after it are prefetched.
//
// An update first finds or creates all its rows, which may fail with nothing changed. Then it works
// on tiles of distinct rows, so threads need no lock. A new row's start values are a function of
// its key, computed by the thread that has the tile.
#include "ps/table/table.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/sort.h"
#include "base/str.h"
#include "ps/table/table_inner.h"

enum { TILE = 8 * BEL_TABLE_GROUP, MAX_WIDTH = 1 << 20, MAX_SLICE_BITS = 16 };

bel_table_config bel_table_describe(const char *name, int width, bel_initializer initializer,
                                    uint64_t seed, const bel_optimizer *optimizer)
{
    static const bel_table_start starts[] = {[BEL_INIT_ZEROS] = BEL_TABLE_ZEROS,
                                             [BEL_INIT_UNIFORM] = BEL_TABLE_UNIFORM,
                                             [BEL_INIT_NORMAL] = BEL_TABLE_NORMAL};
    return (bel_table_config){.name = name,
                              .width = width,
                              .start = starts[initializer.kind],
                              .scale = (float)initializer.value,
                              .seed = seed,
                              .optimizer = *optimizer};
}

// --- Creation ------------------------------------------------------------------------------------

static bel_status *check_config(const bel_table_config *config)
{
    if (config->width < 1 || config->width > MAX_WIDTH) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "table \"%s\": width must be from 1 to %d, got %d",
                       config->name, MAX_WIDTH, config->width);
    }
    if (!(isfinite(config->scale) && config->scale >= 0)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "table \"%s\": scale must be 0 or above, got %g",
                       config->name, (double)config->scale);
    }
    if (!(isfinite(config->expire_below) && config->expire_below >= 0)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "table \"%s\": expire_below must be 0 or above, got %g", config->name,
                       config->expire_below);
    }
    return NULL;
}

static bel_status *check_optimizer(const bel_table_config *config, const bel_optimizer *o)
{
    if (!bel_rule_has_rows(o->kind)) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "table \"%s\": expected the optimizer sgd, adagrad, adam, adamw or ftrl, whose "
            "rules can leave rows out, got %s",
            config->name, bel_rule_get(o)->name);
    }
    if (o->clip_norm > 0 || o->clip_global_norm > 0) {
        const char *field = o->clip_norm > 0 ? "clip_norm" : "clip_global_norm";
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "table \"%s\": %s needs the gradient of the whole variable, which a table "
                       "never has; use clip_value",
                       config->name, field);
    }
    return NULL;
}

// Chooses blocks of the smallest power of two of records that fills BEL_TABLE_BLOCK_BYTES.
static void size_blocks(bel_table *table)
{
    size_t record_bytes = table->record_floats * sizeof(float);
    int bits = 0;
    while (record_bytes << bits < BEL_TABLE_BLOCK_BYTES)
        bits++;
    table->records.bits = bits;
    table->records.bytes = record_bytes << bits;
    table->keys.bits = BEL_TABLE_KEY_BLOCK_BITS;
    table->keys.bytes = sizeof(int64_t) << BEL_TABLE_KEY_BLOCK_BITS;
}

// Adds a layer: the slots of an optimizer's rule, after those of the earlier layers.
static void add_layer(bel_table *table, int layer, const bel_optimizer *optimizer)
{
    const bel_rule *rule = bel_rule_get(optimizer);
    table->first_slots[layer] = table->slot_count;
    for (int k = 0; k < rule->slot_count; k++) {
        table->slot_start[table->slot_count++] = bel_rule_slot_start(optimizer, k);
        table->columns[table->slot_count] =
            layer == 0 ? bel_strf("%s/%s", rule->name, rule->slots[k])
                       : bel_strf("%s/%d/%s", rule->name, layer, rule->slots[k]);
    }
}

// A slice is a power of two, so that it is a range of hashes.
static void set_life(bel_table *table, const bel_table_config *config)
{
    table->admit_after = config->admit_after;
    table->expire_after = config->expire_after;
    table->expire_below = config->expire_below;
    while (table->slice_bits < MAX_SLICE_BITS &&
           INT64_C(4) << (table->slice_bits + 1) <= table->expire_after)
        table->slice_bits++;
    table->age_name = bel_strf("%s/" BEL_CKPT_AGE, table->name);
}

// Counts are rows of one float without slots, which expire as the table's rows do. They have a
// quarter of the limit; without a limit, as with a disk, they are all in memory.
static bel_status *create_uses(bel_table *table, const bel_table_config *config)
{
    char *name = bel_strf("%s/" BEL_CKPT_USES, config->name);
    int64_t memory = table->memory_limit / 4;
    table->memory_limit -= memory;
    bel_table_config uses = {.name = name,
                             .width = 1,
                             .start = BEL_TABLE_ZEROS,
                             .optimizer = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 1},
                             .memory_limit = memory,
                             .expire_after = config->expire_after,
                             .tracks_changes = config->tracks_changes};
    bel_status *status = bel_table_create(&uses, &table->uses);
    bel_free(name);
    if (status != NULL) return status;
    table->uses->counts_uses = true;
    return bel_table_check_limit(table);
}

bel_status *bel_table_create(const bel_table_config *config, bel_table **out_table)
{
    BEL_TRY(check_config(config));
    BEL_TRY(check_optimizer(config, &config->optimizer));
    for (int i = 0; i < config->other_count; i++)
        BEL_TRY(check_optimizer(config, config->others[i]));
    bel_table *table = bel_xcalloc(1, sizeof *table);
    table->name = bel_xstrdup(config->name);
    table->width = config->width;
    table->start = config->start;
    table->scale = config->scale;
    table->random =
        bel_rng_key_make(config->seed, "table", bel_hash64(config->name, strlen(config->name)));
    table->columns[0] = bel_xstrdup("values");
    add_layer(table, 0, &config->optimizer);
    for (int i = 0; i < config->other_count; i++)
        add_layer(table, i + 1, config->others[i]);
    table->memory_limit = config->disk_folder != NULL ? 0 : config->memory_limit;
    set_life(table, config);
    table->record_floats =
        (size_t)config->width * (size_t)(1 + table->slot_count) + (table->expire_after > 0);
    size_blocks(table);
    if (config->tracks_changes) bel_table_changes_init(table);
    bel_status *status = bel_table_check_limit(table);
    if (status == NULL && config->disk_folder != NULL)
        status = bel_table_disk_open(table, config->disk_folder, config->memory_limit);
    if (status == NULL) status = bel_table_index_init(table);
    if (status == NULL && table->admit_after > 1) status = create_uses(table, config);
    if (status != NULL) {
        status = bel_status_wrap(status, __FILE__, __LINE__, "table \"%s\"", config->name);
        bel_table_destroy(table);
        return status;
    }
    *out_table = table;
    return NULL;
}

void bel_table_destroy(bel_table *table)
{
    if (table == NULL) return;
    bel_table_snapshot_end(table);
    bel_table_index_deinit(table);
    bel_table_disk_close(table);
    bel_table_changes_deinit(table);
    bel_table_destroy(table->uses);
    for (int i = 0; i < 1 + table->slot_count; i++)
        bel_free(table->columns[i]);
    bel_free(table->free.at);
    bel_free(table->retired.at);
    bel_free(table->due.at);
    bel_free(table->idle.at);
    bel_free(table->wait.keys);
    bel_free(table->wait.positions);
    bel_free(table->age_name);
    bel_free(table->name);
    bel_free(table);
}

int64_t bel_table_count(const bel_table *table)
{
    return table->count;
}

bel_table_tally bel_table_count_all(const bel_table *table)
{
    const bel_table_file *file = table->disk != NULL ? table->disk->file : NULL;
    return (bel_table_tally){.rows = table->count,
                             .in_file = file != NULL ? bel_table_file_count(file) : 0,
                             .file_bytes = file != NULL ? bel_table_file_bytes(file) : 0,
                             .waiting = table->uses != NULL ? table->uses->count : 0,
                             .admitted = table->admitted,
                             .expired = table->expired};
}

int64_t bel_table_bytes(const bel_table *table)
{
    return table->bytes + (table->uses != NULL ? table->uses->bytes : 0);
}

int64_t bel_table_refused(const bel_table *table)
{
    return table->refused + (table->uses != NULL ? table->uses->refused : 0);
}

bel_status *bel_table_clear(bel_table *table)
{
    BEL_CHECK(table->snapshot == NULL);
    if (table->uses != NULL) BEL_TRY(bel_table_clear(table->uses));
    bel_table_changes_clear(table);
    for (int p = 0; p < BEL_TABLE_PARTS; p++) {
        bel_table_part *part = &table->parts[p];
        memset(part->buckets, 0, part->capacity * sizeof *part->buckets);
        part->used = 0;
    }
    table->count = table->top = 0;
    table->free.count = 0;
    bel_table_count_bytes(table);
    return bel_table_disk_clear(table);
}

// --- Pull ----------------------------------------------------------------------------------------

// With a constant width the copy is a few vector instructions.
static inline __attribute__((always_inline)) void copy_rows(const bel_table *table,
                                                            const int64_t *keys,
                                                            const uint32_t *rows, int n, int width,
                                                            float *out_rows)
{
    for (int i = 0; i < n; i++, out_rows += width) {
        if (rows[i] == BEL_TABLE_NO_ROW) {
            bel_table_start_values(table, keys[i], out_rows);
        } else {
            memcpy(out_rows, bel_table_record(table, rows[i]), (size_t)width * sizeof *out_rows);
        }
    }
}

static void copy_group(const bel_table *table, const int64_t *keys, const uint32_t *rows, int n,
                       float *out_rows)
{
    switch (table->width) {
    case 8: copy_rows(table, keys, rows, n, 8, out_rows); break;
    case 16: copy_rows(table, keys, rows, n, 16, out_rows); break;
    case 32: copy_rows(table, keys, rows, n, 32, out_rows); break;
    default: copy_rows(table, keys, rows, n, table->width, out_rows); break;
    }
}

// All rows are found before the first is read, so that reads of the file can be sorted.
static bel_status *pull_from_disk(const bel_table *table, const int64_t *keys, int64_t n,
                                  float *out_rows, uint32_t *out_places)
{
    uint64_t hashes[2][BEL_TABLE_GROUP];
    uint32_t *rows = out_places != NULL ? out_places : bel_xcalloc((size_t)n, sizeof *rows);
    bel_table_seek(table, keys, bel_table_group(0, n), hashes[0]);
    int turn = 0;
    for (int64_t i = 0; i < n; i += BEL_TABLE_GROUP, turn = 1 - turn) {
        int64_t next = i + BEL_TABLE_GROUP;
        bel_table_seek(table, keys + next, bel_table_group(next, n), hashes[1 - turn]);
        bel_table_find(table, hashes[turn], bel_table_group(i, n), 0, rows + i);
    }
    bel_status *status = bel_table_disk_pull(table, keys, rows, n, out_places != NULL, out_rows);
    if (out_places == NULL) bel_free(rows);
    return bel_status_wrap(status, __FILE__, __LINE__, "table \"%s\"", table->name);
}

// Three groups are under way: one is copied, the next group's records are fetched, and the index
// for the one after that. `rows` alternates, as a group's places are found while the preceding one
// is copied. Groups past the end are empty.
static void pull_from_memory(const bel_table *table, const int64_t *keys, int64_t n,
                             float *out_rows, uint32_t *out_places)
{
    uint64_t hashes[BEL_TABLE_GROUP];
    uint32_t rows[2][BEL_TABLE_GROUP];
    size_t width = (size_t)table->width;
    bel_table_seek(table, keys, bel_table_group(0, n), hashes);
    bel_table_find(table, hashes, bel_table_group(0, n), width, rows[0]);
    bel_table_seek(table, keys + BEL_TABLE_GROUP, bel_table_group(BEL_TABLE_GROUP, n), hashes);
    int turn = 0;
    for (int64_t i = 0; i < n; i += BEL_TABLE_GROUP, turn = 1 - turn) {
        int64_t next = i + BEL_TABLE_GROUP, after = next + BEL_TABLE_GROUP;
        bel_table_find(table, hashes, bel_table_group(next, n), width, rows[1 - turn]);
        bel_table_seek(table, keys + after, bel_table_group(after, n), hashes);
        int group = bel_table_group(i, n);
        copy_group(table, keys + i, rows[turn], group, out_rows + i * table->width);
        if (out_places != NULL) {
            memcpy(out_places + i, rows[turn], (size_t)group * sizeof *out_places);
        }
    }
}

bel_status *bel_table_pull_places(const bel_table *table, const int64_t *keys, int64_t n,
                                  float *out_rows, uint32_t *out_places)
{
    if (table->disk != NULL) return pull_from_disk(table, keys, n, out_rows, out_places);
    pull_from_memory(table, keys, n, out_rows, out_places);
    return NULL;
}

void bel_table_pull(const bel_table *table, const int64_t *keys, int64_t n, float *out_rows)
{
    BEL_CHECK(table->disk == NULL);
    pull_from_memory(table, keys, n, out_rows, NULL);
}

// --- Update --------------------------------------------------------------------------------------

typedef struct update_job {
    bel_table *table;
    const bel_rule_step *step;
    int first_slot; // the rule's
    const int64_t *keys;
    const float *sums;
    float scale;
    int64_t first, end; // positions of this portion
    int64_t old_top;    // rows from this number on are new and have no start values
} update_job;

// Finds the records of a group, NULL for a refused key, and prefetches their cache lines.
static void fetch_records(const bel_table *table, const uint32_t *rows, int n, float **out_records)
{
    for (int j = 0; j < n; j++) {
        out_records[j] = NULL;
        if (rows[j] == BEL_TABLE_REFUSED) continue;
        out_records[j] = bel_table_record(table, rows[j]);
        bel_table_prefetch(out_records[j], table->record_floats);
        if (table->changes != NULL) __builtin_prefetch(bel_table_state(table, rows[j]), 1);
    }
}

// Initializes new rows, saves the others for a snapshot, and notes their use.
static void prepare_records(const update_job *job, int64_t at, int n, float *const *records)
{
    bel_table *table = job->table;
    bel_table_note_changes(table, job->keys + at, table->rows + at, n);
    if (table->top == job->old_top && table->snapshot == NULL && table->expire_after == 0) return;
    for (int j = 0; j < n; j++) {
        uint32_t row = table->rows[at + j];
        if (row == BEL_TABLE_REFUSED) continue;
        bel_table_prepare(table, job->old_top, job->keys[at + j], row, records[j]);
    }
}

// Applies the rule to a group's rows, run by run between refused keys.
static void apply_rule(const update_job *job, int64_t at, int n, float *const *records)
{
    int width = job->table->width, end;
    for (int first = 0; first < n; first = end) {
        for (end = first; end < n && records[end] != NULL;)
            end++;
        if (end > first) {
            bel_rule_apply_rows(job->step, job->sums + (at + first) * width, job->scale,
                                records + first, job->first_slot, width, end - first);
        }
        while (end < n && records[end] == NULL)
            end++;
    }
}

// Updates the positions of one tile, on a thread of the team; no two have the same row. A group's
// records are prefetched during the work on the preceding group.
static void update_tile(void *argument, int64_t tile)
{
    const update_job *job = argument;
    const bel_table *table = job->table;
    int64_t i = job->first + tile * TILE, end = i + TILE < job->end ? i + TILE : job->end;
    float *records[2][BEL_TABLE_GROUP];
    fetch_records(table, table->rows + i, bel_table_group(i, end), records[0]);
    for (int turn = 0; i < end; turn = 1 - turn) {
        int group = bel_table_group(i, end);
        int64_t next = i + group;
        fetch_records(table, table->rows + next, bel_table_group(next, end), records[1 - turn]);
        prepare_records(job, i, group, records[turn]);
        apply_rule(job, i, group, records[turn]);
        i = next;
    }
}

// Finds the rows, and creates those of keys that need not wait.
static bel_status *find_or_admit(bel_table *table, bel_team *team, const int64_t *keys,
                                 const uint32_t *places, int64_t n)
{
    int64_t missing;
    BEL_TRY(bel_table_look_up(table, team, keys, places, n, &missing));
    bool waits = missing > 0 && table->uses != NULL;
    if (waits) BEL_TRY(bel_table_count_uses(table, team, keys, n, &missing));
    BEL_TRY(bel_table_admit(table, team, keys, n, missing, true));
    if (waits) bel_table_settle_uses(table);
    return NULL;
}

static void run_tiles(bel_team *team, update_job *job)
{
    int64_t tiles = (job->end - job->first + TILE - 1) / TILE;
    if (team != NULL) {
        bel_team_run(team, update_tile, job, tiles);
        return;
    }
    for (int64_t tile = 0; tile < tiles; tile++)
        update_tile(job, tile);
}

// All steps that may fail come first; the tiles cannot fail. With a disk a portion of the rows is
// in memory at a time, so only its first portion has failed before any row has changed.
bel_status *bel_table_update(bel_table *table, bel_team *team, const bel_rule_step *step, int layer,
                             const int64_t *keys, const uint32_t *places, const float *sums,
                             float scale, int64_t n)
{
    update_job job = {.table = table,
                      .step = step,
                      .first_slot = table->first_slots[layer],
                      .keys = keys,
                      .sums = sums,
                      .scale = scale,
                      .old_top = table->disk != NULL ? INT64_MAX : table->top};
    BEL_TRY(find_or_admit(table, team, keys, places, n));
    for (; job.first < n; job.first = job.end) {
        job.end = job.first + bel_table_portion(table, job.first, n);
        BEL_TRY(bel_table_disk_bring(table, team, keys + job.first, table->rows + job.first,
                                     job.end - job.first));
        run_tiles(team, &job);
    }
    return NULL;
}

// --- Load ----------------------------------------------------------------------------------------

// Ascending keys, as checkpoints have them, show duplicates without sorting.
static bel_status *check_distinct(const bel_table *table, const int64_t *keys, int64_t n)
{
    int64_t i = 1;
    while (i < n && keys[i - 1] < keys[i])
        i++;
    if (i >= n) return NULL;
    void *memory;
    size_t bytes = (size_t)n * 2 * sizeof(bel_keyed);
    BEL_TRY_CTX(bel_pages_create(bytes, false, "sorting keys", &memory), "table \"%s\"",
                table->name);
    bel_keyed *items = memory;
    for (i = 0; i < n; i++)
        items[i] = (bel_keyed){.key = keys[i]};
    const bel_keyed *sorted = bel_sort_keyed(items, items + n, n);
    for (i = 1; i < n && sorted[i - 1].key != sorted[i].key;)
        i++;
    bel_status *status = NULL;
    if (i < n) {
        status = BEL_ERR(BEL_DATA_LOSS, "table \"%s\": expected each key once, %lld comes twice",
                         table->name, (long long)sorted[i].key);
    }
    bel_pages_destroy(memory, bytes);
    return status;
}

// A key that already has a row is a duplicate, over several loads.
static bel_status *check_absent(const bel_table *table, const int64_t *keys, int64_t n)
{
    for (int64_t i = 0; table->count > 0 && i < n; i += BEL_TABLE_GROUP) {
        uint64_t hashes[BEL_TABLE_GROUP];
        uint32_t rows[BEL_TABLE_GROUP];
        bel_table_seek(table, keys + i, bel_table_group(i, n), hashes);
        bel_table_find(table, hashes, bel_table_group(i, n), 0, rows);
        for (int j = 0; j < bel_table_group(i, n); j++) {
            if (rows[j] == BEL_TABLE_NO_ROW) continue;
            return BEL_ERR(BEL_DATA_LOSS, "table \"%s\": expected each key once, %lld comes twice",
                           table->name, (long long)keys[i + j]);
        }
    }
    return NULL;
}

// A record is values, then slots, each of `width` floats.
static void load_row(bel_table *table, uint32_t row, const float *values, const float *const *slots,
                     int64_t at)
{
    size_t row_bytes = (size_t)table->width * sizeof *values;
    float *record = bel_table_record(table, row);
    memcpy(record, values + at * table->width, row_bytes);
    if (slots == NULL) bel_table_start_slots(table, record);
    bel_table_set_last_use(table, row, table->now);
    for (int k = 0; slots != NULL && k < table->slot_count; k++) {
        record += table->width;
        memcpy(record, slots[k] + at * table->width, row_bytes);
    }
}

bel_status *bel_table_load(bel_table *table, const int64_t *keys, const float *rows,
                           const float *const *slots, int64_t n)
{
    BEL_TRY(check_distinct(table, keys, n));
    BEL_TRY(check_absent(table, keys, n));
    int64_t missing;
    BEL_TRY(bel_table_look_up(table, NULL, keys, NULL, n, &missing));
    BEL_TRY(bel_table_admit(table, NULL, keys, n, missing, false));
    for (int64_t first = 0, end; first < n; first = end) {
        end = first + bel_table_portion(table, first, n);
        BEL_TRY_CTX(
            bel_table_disk_bring(table, NULL, keys + first, table->rows + first, end - first),
            "table \"%s\"", table->name);
        for (int64_t i = first; i < end; i++)
            load_row(table, table->rows[i], rows, slots, i);
    }
    return NULL;
}
