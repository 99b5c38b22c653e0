// Snapshots of tables at a shard, for checkpoints and evaluations, and loading of tables.
//
// A table has one snapshot. It ends with the first update after the master has released it, or when
// the next one begins. So an update copies a row before it changes only while a reader may need it.
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "ps/server/shard_inner.h"

void bel_shard_forget_frames(const bel_shard *shard, bel_shard_table *table)
{
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        table->pulls[w].step = -1;
        table->pulls[w].busy = table->pulls[w].waits = false;
    }
    memset(table->reported, 0,
           (size_t)shard->config.assignment->node_count * sizeof *table->reported);
    table->readers = 0;
    table->due = table->updating = false;
}

// Logs the life of a table's rows, if they do not live forever.
static void describe_life(const bel_shard *shard, bel_log_level level, int t, int64_t version)
{
    const bel_shard_settings *settings = &shard->config.settings;
    if (settings->table_admit_after <= 1 && settings->table_expire_after == 0) return;
    bel_table_tally tally = bel_table_count_all(shard->tables[t].table);
    if (tally.rows + tally.waiting + tally.expired == 0) return;
    bel_log_write(level,
                  "table \"%s\" on shard %d at step %lld: %lld rows, %lld keys wait for one; %lld "
                  "rows were created here and %lld have expired",
                  shard->config.layout->tables[t].name, shard->config.shard, (long long)version,
                  (long long)tally.rows, (long long)tally.waiting, (long long)tally.admitted,
                  (long long)tally.expired);
}

// Logs how much of a table is on disk.
static void describe_disk(const bel_shard *shard, bel_log_level level, int t, int64_t version)
{
    const char *folder = shard->config.table_disk;
    bel_table_tally tally = bel_table_count_all(shard->tables[t].table);
    if (folder == NULL || folder[0] == '\0' || tally.rows == 0) return;
    bel_log_write(
        level,
        "table \"%s\" on shard %d at step %lld: of %lld rows %lld are in a file of %.1f MB "
        "in %s (table_disk)",
        shard->config.layout->tables[t].name, shard->config.shard, (long long)version,
        (long long)tally.rows, (long long)tally.in_file, (double)tally.file_bytes * 1e-6, folder);
}

static void end_snapshot(bel_shard_table *table)
{
    if (table->has_snapshot) bel_table_snapshot_end(table->table);
    table->has_snapshot = false;
}

static bel_status *mark_snapshot(bel_shard_table *table)
{
    end_snapshot(table);
    atomic_store(&table->released, false);
    BEL_TRY(bel_table_snapshot(table->table));
    table->has_snapshot = true;
    return NULL;
}

void bel_shard_release_table(bel_shard_table *table)
{
    if (!table->has_snapshot) return;
    atomic_store(&table->released, true);
    end_snapshot(table);
}

bel_status *bel_shard_mark_table(bel_shard *shard, int t, bool ends, int64_t version)
{
    bel_log_level level = ends ? BEL_LOG_INFO : BEL_LOG_DEBUG;
    describe_life(shard, level, t, version);
    describe_disk(shard, level, t, version);
    return mark_snapshot(&shard->tables[t]);
}

bel_status *bel_shard_mark_tables(bel_shard *shard)
{
    for (int t = 0; t < shard->config.layout->table_count; t++) {
        BEL_TRY(bel_shard_mark_table(shard, t, true, shard->step));
    }
    return NULL;
}

bel_status *bel_shard_warm_up_rows(bel_shard *shard, int table, const bel_ckpt_reader *reader,
                                   const char *there)
{
    BEL_TRY(bel_table_warm_up(shard->tables[table].table, reader, there, shard->config.shard,
                              shard->config.layout->shard_count));
    return mark_snapshot(&shard->tables[table]);
}

bel_status *bel_shard_load_tables(bel_shard *shard, const bel_ckpt_reader *reader)
{
    for (int t = 0; t < shard->config.layout->table_count; t++) {
        bel_shard_table *table = &shard->tables[t];
        end_snapshot(table);
        atomic_store(&table->released, false);
        BEL_TRY(bel_table_clear(table->table));
        bel_shard_forget_frames(shard, table);
        BEL_TRY_CTX(bel_table_restore(table->table, reader, shard->config.shard,
                                      shard->config.layout->shard_count),
                    "loading %s", bel_ckpt_folder(reader));
    }
    return NULL;
}

bel_status *bel_shard_check_tables(const bel_shard *shard)
{
    for (int t = 0; t < shard->config.layout->table_count; t++) {
        if (!atomic_load(&shard->tables[t].released)) continue;
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "shard %d, table \"%s\": its snapshot was released before it was read",
                       shard->config.shard, shard->config.layout->tables[t].name);
    }
    return NULL;
}

bel_status *bel_shard_read_rows(const bel_shard *shard, int table,
                                bel_status *(*take)(void *context, int64_t count,
                                                    const int64_t *keys, const float *rows),
                                void *context)
{
    enum { BLOCK = 4096 };
    BEL_TRY(bel_shard_check_tables(shard));
    if (!shard->tables[table].has_snapshot) return NULL; // no row was changed yet
    const bel_table *from = shard->tables[table].table;
    size_t width = (size_t)shard->config.layout->tables[table].width;
    int64_t count = bel_table_snapshot_count(from), *keys = bel_xcalloc(BLOCK, sizeof *keys);
    float *rows = bel_xcalloc(BLOCK * width, sizeof *rows);
    bel_status *status = NULL;
    for (int64_t first = 0; first < count && status == NULL; first += BLOCK) {
        int64_t n = count - first < BLOCK ? count - first : BLOCK;
        status = bel_table_snapshot_range(from, first, n, keys, rows, NULL);
        if (status == NULL) status = take(context, n, keys, rows);
    }
    bel_free(keys);
    bel_free(rows);
    return status;
}
