// Deltas are cumulative since their base, so a key is in one of three places: the delta's rows, its
// removed keys, or the base. A pull looks in that order. The tables of a delta begin with zeros,
// which are cheap: start values come from the base's table, whose key for random numbers is the
// training's.
//
// The number of rows in the manifest must be that of the base with the changes. A delta on other
// rows has another number, unless it is also wrong by chance; the digest of the base, which the
// manifest of a delta names, decides that before.
#include "ps/table/row_layers.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "checkpoint/row_map.h"
#include "checkpoint/setting_names.h"
#include "optim/settings.h"
#include "ps/table/rows.h"
#include "ps/table/table_inner.h"

struct bel_row_base {
    bel_rows rows;           // if mapped without a row, for the start values
    bel_ckpt_row_map **maps; // by table; NULL: `rows` has all rows
    bel_ckpt_base id;
    int users; // layers that have it
};

enum { PULL_BLOCK = 64 };

// --- Base ----------------------------------------------------------------------------------------

static void base_release(bel_row_base *base)
{
    if (base == NULL || --base->users > 0) return;
    for (int t = 0; base->maps != NULL && t < base->rows.count; t++)
        bel_ckpt_row_map_destroy(base->maps[t]);
    bel_free(base->maps);
    bel_rows_deinit(&base->rows);
    bel_free(base);
}

static bel_status *take_rows(void *table, int64_t count, const int64_t *keys,
                             const float *const *columns)
{
    return bel_rows_add(table, count, keys, columns[0]);
}

// Whether the training keeps rows on a disk, so that memory may not suffice for all.
static bool is_on_disk(const bel_ckpt_reader *reader)
{
    const char *folder = bel_ckpt_setting(reader, BEL_SETTING_TABLE_DISK);
    return folder != NULL && folder[0] != '\0';
}

static bel_status *base_map(bel_row_base *base, const bel_graph *graph, const bel_ckpt_reader *full,
                            bool quiet)
{
    int64_t rows = 0;
    base->maps = bel_xcalloc(graph->table_count + 1, sizeof(bel_ckpt_row_map *));
    for (size_t t = 0; t < graph->table_count; t++) {
        const bel_graph_table *table = &graph->tables[t];
        BEL_TRY(bel_ckpt_row_map_open(full, table->name, table->width, &base->maps[t]));
        rows += bel_ckpt_row_map_count(base->maps[t]);
    }
    bel_log_write(quiet ? BEL_LOG_DEBUG : BEL_LOG_INFO,
                  "%s: %lld rows are read in place, as the training has table_disk",
                  bel_ckpt_folder(full), (long long)rows);
    return NULL;
}

// Loads the rows of a full checkpoint.
static bel_status *base_load(bel_row_base *base, const bel_graph *graph,
                             const bel_ckpt_reader *full)
{
    BEL_TRY(bel_rows_init(&base->rows, graph, bel_ckpt_reader_info(full)->seed));
    for (int t = 0; t < base->rows.count; t++) {
        const bel_ckpt_row_sink sink = {.take = take_rows, .context = base->rows.tables[t]};
        BEL_TRY(
            bel_ckpt_read_change(full, graph->tables[t].name, graph->tables[t].width, &sink, NULL));
    }
    return NULL;
}

static bool is_base(const bel_row_base *base, const bel_ckpt_base *id)
{
    return base->id.step == id->step && base->id.digest.low == id->digest.low &&
           base->id.digest.high == id->digest.high;
}

static bel_status *base_get(bel_row_layers *layers, const bel_graph *graph,
                            const bel_ckpt_reader *reader, const bel_row_layers *const *others,
                            int other_count)
{
    const bel_ckpt_info *info = bel_ckpt_reader_info(reader);
    bel_ckpt_base id = info->base;
    if (id.step == 0) id = (bel_ckpt_base){info->step, bel_ckpt_reader_digest(reader)};
    layers->base_step = id.step;
    for (int i = 0; i < other_count; i++) {
        if (others[i]->base == NULL || !is_base(others[i]->base, &id)) continue;
        layers->base = others[i]->base;
        layers->base->users++;
        layers->shares = true;
        return NULL;
    }
    layers->base = bel_xcalloc(1, sizeof *layers->base);
    layers->base->id = id;
    layers->base->users = 1;
    const bel_ckpt_reader *full = bel_ckpt_base_reader(reader);
    if (full == NULL) full = reader;
    if (graph->table_count == 0 || !is_on_disk(reader)) return base_load(layers->base, graph, full);
    BEL_TRY(bel_rows_init(&layers->base->rows, graph, bel_ckpt_reader_info(full)->seed));
    return base_map(layers->base, graph, full, layers->quiet);
}

// --- Delta ---------------------------------------------------------------------------------------

// The load of a table of a delta.
typedef struct change {
    const bel_table *base;
    bel_table *rows;     // those of the delta
    bel_table **removed; // made for the first key
    int64_t replaced;    // rows that the base has, too
    int64_t count, gone; // rows and removed keys
    float *base_rows;    // room for a block
    size_t capacity;
    const char *name;
} change;

static bel_status *make_table(const char *name, int width, bel_table **out_table)
{
    bel_optimizer none = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 1};
    BEL_TRY(bel_optimizer_check(&none));
    const bel_table_config config =
        bel_table_describe(name, width, (bel_initializer){.kind = BEL_INIT_ZEROS}, 0, &none);
    return bel_table_create(&config, out_table);
}

// These tables are in memory, so a pull cannot fail.
static void pull_places(const bel_table *table, const int64_t *keys, int64_t n, float *out_rows,
                        uint32_t *out_places)
{
    // Only a table on disk has errors of reading.
    bel_status_ignore(bel_table_pull_places(table, keys, n, out_rows, out_places));
}

// Counts the keys that have a row in the base.
static int64_t count_there(change *c, int64_t count, const int64_t *keys)
{
    uint32_t places[PULL_BLOCK];
    int64_t there = 0;
    c->base_rows = bel_xgrow(c->base_rows, &c->capacity,
                             (size_t)PULL_BLOCK * (size_t)c->base->width, sizeof(float));
    for (int64_t first = 0; first < count; first += PULL_BLOCK) {
        int64_t n = count - first < PULL_BLOCK ? count - first : PULL_BLOCK;
        pull_places(c->base, keys + first, n, c->base_rows, places);
        for (int64_t i = 0; i < n; i++)
            there += places[i] != BEL_TABLE_NOWHERE;
    }
    return there;
}

static bel_status *take_changed(void *context, int64_t count, const int64_t *keys,
                                const float *const *columns)
{
    change *c = context;
    c->count += count;
    c->replaced += count_there(c, count, keys);
    return bel_rows_add(c->rows, count, keys, columns[0]);
}

static bel_status *take_removed(void *context, int64_t count, const int64_t *keys,
                                const float *const *columns)
{
    (void)columns;
    change *c = context;
    if (count_there(c, count, keys) != count)
        return BEL_ERR(BEL_DATA_LOSS, "table \"%s\": a key is removed that has no row in the base",
                       c->name);
    if (*c->removed == NULL) BEL_TRY(make_table(c->name, 1, c->removed));
    float *zeros = bel_xcalloc((size_t)count, sizeof *zeros);
    bel_status *status = bel_rows_add(*c->removed, count, keys, zeros);
    bel_free(zeros);
    c->gone += count;
    return status;
}

static int64_t rows_in(const bel_ckpt_reader *reader, const char *name)
{
    int64_t rows = 0;
    for (int t = 0; t < bel_ckpt_table_count(reader); t++) {
        int64_t count;
        const bel_ckpt_table table = bel_ckpt_table_at(reader, t, &count);
        if (strcmp(table.name, name) == 0) rows = count;
    }
    return rows;
}

static bel_status *load_change(bel_row_layers *layers, const bel_graph *graph, int t,
                               const bel_ckpt_reader *reader)
{
    const bel_graph_table *table = &graph->tables[t];
    BEL_TRY(make_table(table->name, table->width, &layers->changed[t]));
    change c = {.base = layers->base->rows.tables[t],
                .rows = layers->changed[t],
                .removed = &layers->removed[t],
                .name = table->name};
    const bel_ckpt_row_sink rows = {.take = take_changed, .context = &c};
    const bel_ckpt_row_sink removed = {.take = take_removed, .context = &c};
    bel_status *status = bel_ckpt_read_change(reader, table->name, table->width, &rows, &removed);
    bel_free(c.base_rows);
    BEL_TRY(status);
    int64_t expected = rows_in(reader, table->name);
    int64_t got = bel_table_count(c.base) + c.count - c.replaced - c.gone;
    if (got != expected) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "table \"%s\": expected %lld rows, got %lld from the base and the delta",
                       table->name, (long long)expected, (long long)got);
    }
    layers->changed_count += c.count;
    layers->removed_count += c.gone;
    return NULL;
}

static bel_status *map_change(bel_row_layers *layers, const bel_graph *graph, int t,
                              const bel_ckpt_reader *reader)
{
    const bel_graph_table *table = &graph->tables[t];
    BEL_TRY(bel_ckpt_row_map_open(reader, table->name, table->width, &layers->maps[t]));
    layers->changed_count += bel_ckpt_row_map_count(layers->maps[t]);
    layers->removed_count += bel_ckpt_row_map_removed(layers->maps[t]);
    return bel_ckpt_row_map_check(layers->maps[t], layers->base->maps[t],
                                  rows_in(reader, table->name));
}

bel_status *bel_row_layers_load(bel_row_layers *layers, const bel_graph *graph,
                                const bel_ckpt_reader *reader, const bel_row_layers *const *others,
                                int other_count)
{
    BEL_TRY(base_get(layers, graph, reader, others, other_count));
    if (bel_ckpt_reader_info(reader)->base.step == 0) return NULL;
    layers->table_count = (int)graph->table_count;
    if (layers->base->maps != NULL) {
        layers->maps = bel_xcalloc(graph->table_count + 1, sizeof(bel_ckpt_row_map *));
        for (int t = 0; t < layers->table_count; t++)
            BEL_TRY(map_change(layers, graph, t, reader));
        return NULL;
    }
    layers->changed = bel_xcalloc(graph->table_count + 1, sizeof(bel_table *));
    layers->removed = bel_xcalloc(graph->table_count + 1, sizeof(bel_table *));
    for (int t = 0; t < layers->table_count; t++)
        BEL_TRY(load_change(layers, graph, t, reader));
    return NULL;
}

void bel_row_layers_deinit(bel_row_layers *layers)
{
    for (int t = 0; layers->maps != NULL && t < layers->table_count; t++)
        bel_ckpt_row_map_destroy(layers->maps[t]);
    for (int t = 0; layers->changed != NULL && t < layers->table_count; t++) {
        bel_table_destroy(layers->changed[t]);
        bel_table_destroy(layers->removed[t]);
    }
    bel_free(layers->maps);
    bel_free(layers->changed);
    bel_free(layers->removed);
    base_release(layers->base);
    *layers = (bel_row_layers){0};
}

int64_t bel_row_layers_bytes(const bel_row_layers *layers)
{
    int64_t bytes = 0;
    for (int t = 0; layers->base != NULL && t < layers->base->rows.count; t++)
        bytes += bel_table_bytes(layers->base->rows.tables[t]);
    for (int t = 0; layers->changed != NULL && t < layers->table_count; t++) {
        if (layers->changed[t] != NULL) bytes += bel_table_bytes(layers->changed[t]);
        if (layers->removed[t] != NULL) bytes += bel_table_bytes(layers->removed[t]);
    }
    return bytes;
}

// --- Pulls ---------------------------------------------------------------------------------------

// Pulls up to PULL_BLOCK rows. Runs of keys that the delta does not have come from the base.
static void pull_block(const bel_row_layers *layers, int table, const int64_t *keys, int64_t n,
                       float *out)
{
    uint32_t changed[PULL_BLOCK], removed[PULL_BLOCK];
    float none[PULL_BLOCK];
    const bel_table *base = layers->base->rows.tables[table];
    const int width = base->width;
    pull_places(layers->changed[table], keys, n, out, changed);
    bool removes = layers->removed[table] != NULL;
    if (removes) pull_places(layers->removed[table], keys, n, none, removed);
    for (int64_t i = 0; i < n;) {
        int64_t end = i;
        while (end < n && changed[end] == BEL_TABLE_NOWHERE &&
               (!removes || removed[end] == BEL_TABLE_NOWHERE))
            end++;
        if (end > i) {
            bel_table_pull(base, keys + i, end - i, out + i * width);
            i = end;
            continue;
        }
        if (changed[i] == BEL_TABLE_NOWHERE) bel_table_start_values(base, keys[i], out + i * width);
        i++;
    }
}

static void pull_mapped(const bel_row_layers *layers, int table, const int64_t *keys, int64_t count,
                        float *out)
{
    const bel_table *start = layers->base->rows.tables[table];
    const bel_ckpt_row_map *base = layers->base->maps[table];
    const bel_ckpt_row_map *delta = layers->maps != NULL ? layers->maps[table] : NULL;
    for (int64_t i = 0; i < count; i++, out += start->width) {
        if (delta != NULL && bel_ckpt_row_map_get(delta, keys[i], out)) continue;
        bool removed = delta != NULL && bel_ckpt_row_map_removes(delta, keys[i]);
        if (removed || !bel_ckpt_row_map_get(base, keys[i], out))
            bel_table_start_values(start, keys[i], out);
    }
}

void bel_row_layers_pull(const void *context, int table, const int64_t *keys, int64_t count,
                         float *out_rows)
{
    const bel_row_layers *layers = context;
    const bel_table *base = layers->base->rows.tables[table];
    if (layers->base->maps != NULL) {
        pull_mapped(layers, table, keys, count, out_rows);
        return;
    }
    if (layers->changed == NULL) {
        bel_table_pull(base, keys, count, out_rows);
        return;
    }
    for (int64_t first = 0; first < count; first += PULL_BLOCK) {
        int64_t n = count - first < PULL_BLOCK ? count - first : PULL_BLOCK;
        pull_block(layers, table, keys + first, n, out_rows + first * base->width);
    }
}
