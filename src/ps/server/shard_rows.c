// Rows of tables at a shard. A step: workers ask for rows, which are read as they are; every node
// reports sums of rows; when all have, they are summed over the tree and the rows are updated. Rows
// have one place, not two: everybody who asks for rows in a step has got them before he reports.
#include <string.h>

#include "base/alloc.h"
#include "ps/server/shard_inner.h"

static void forget_pulls(const bel_shard *shard, bel_shard_table *table)
{
    for (int w = 0; w < shard->config.deal->worker_count; w++)
        table->pulls[w].step = -1;
}

bel_status *bel_shard_create_tables(bel_shard *shard)
{
    const bel_layout *layout = shard->config.layout;
    size_t nodes = (size_t)shard->config.deal->node_count;
    size_t workers = (size_t)shard->config.deal->worker_count;
    shard->tables = bel_xcalloc((size_t)layout->table_count, sizeof *shard->tables);
    shard->node_firsts = bel_xcalloc(nodes, sizeof *shard->node_firsts);
    for (size_t k = 0; k < nodes; k++)
        shard->node_firsts[k] = shard->config.deal->nodes[k].first;
    for (int t = 0; t < layout->table_count; t++) {
        bel_shard_table *table = &shard->tables[t];
        table->reports = bel_xcalloc(nodes, sizeof *table->reports);
        table->reported = bel_xcalloc(nodes, sizeof *table->reported);
        table->pulls = bel_xcalloc(workers, sizeof *table->pulls);
        forget_pulls(shard, table);
        const bel_layout_table *from = &layout->tables[t];
        const bel_table_config config =
            bel_table_describe(from->name, from->width, from->initializer, shard->config.seed,
                               &shard->config.optimizer);
        BEL_TRY(bel_table_create(&config, &table->table));
    }
    return NULL;
}

void bel_shard_destroy_tables(bel_shard *shard)
{
    for (int t = 0; shard->tables != NULL && t < shard->config.layout->table_count; t++) {
        bel_shard_table *table = &shard->tables[t];
        for (int w = 0; table->pulls != NULL && w < shard->config.deal->worker_count; w++) {
            bel_free(table->pulls[w].rows);
            bel_free(table->pulls[w].places);
        }
        bel_free(table->pulls);
        bel_free(table->reports);
        bel_free(table->reported);
        bel_row_sum_deinit(&table->sum);
        bel_free(table->places);
        bel_table_destroy(table->table);
    }
    bel_free(shard->tables);
    bel_free(shard->node_firsts);
}

void bel_shard_begin_tables_locked(bel_shard *shard)
{
    shard->tables_done = 0;
    for (int t = 0; t < shard->config.layout->table_count; t++) {
        shard->tables[t].arrived = 0;
        memset(shard->tables[t].reported, 0,
               (size_t)shard->config.deal->node_count * sizeof *shard->tables[t].reported);
    }
}

// --- Frames --------------------------------------------------------------------------------------

static void take_pull_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    bel_shard_table *table = &shard->tables[frame->chunk];
    bel_shard_pull *pull = &table->pulls[worker];
    int64_t count = (int64_t)(frame->payload_bytes / sizeof(int64_t));
    if (frame->payload_bytes % sizeof(int64_t) != 0 ||
        !bel_row_keys_check(frame->payload, count, shard->config.shard,
                            shard->config.layout->shard_count)) {
        bel_shard_fail_locked(shard, frame, "keys that do not ascend, or of another shard");
        return;
    }
    if (pull->busy || (pull->step == frame->step && pull->number >= frame->node)) {
        shard->counters.repeated++;
        return;
    }
    *pull = (bel_shard_pull){.busy = true,
                             .step = frame->step,
                             .number = frame->node,
                             .keys = frame->payload,
                             .count = count,
                             .rows = pull->rows,
                             .places = pull->places,
                             .capacity = pull->capacity,
                             .place_capacity = pull->place_capacity};
    bel_shard_push_locked(
        shard, (bel_shard_job){.kind = BEL_JOB_ROWS, .local = frame->chunk, .worker = worker});
}

static void take_rows_locked(bel_shard *shard, const bel_frame *frame)
{
    bel_shard_table *table = &shard->tables[frame->chunk];
    const bel_layout *layout = shard->config.layout;
    if (frame->node < 0 || frame->node >= shard->config.deal->node_count ||
        !bel_row_set_read(frame->payload, frame->payload_bytes, layout->tables[frame->chunk].width,
                          shard->config.shard, layout->shard_count, &table->reports[frame->node])) {
        bel_shard_fail_locked(shard, frame, "no report of rows of this shard");
        return;
    }
    if (table->reported[frame->node]) {
        shard->counters.repeated++;
        return;
    }
    bel_shard_decision_known_locked(shard, frame->decision);
    table->reported[frame->node] = true;
    if (++table->arrived == shard->config.deal->node_count) {
        bel_shard_push_locked(shard, (bel_shard_job){.kind = BEL_JOB_TABLE, .local = frame->chunk});
    }
}

void bel_shard_take_rows_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    if (worker < 0 || frame->chunk < 0 || frame->chunk >= shard->config.layout->table_count) {
        bel_shard_fail_locked(shard, frame, "no such table");
    } else if (frame->kind == BEL_FRAME_ROW_PULL) {
        take_pull_locked(shard, frame, worker);
    } else {
        take_rows_locked(shard, frame);
    }
}

// --- Work ----------------------------------------------------------------------------------------

void bel_shard_answer_rows(bel_shard *shard, int table, int worker)
{
    bel_shard_pull *pull = &shard->tables[table].pulls[worker];
    size_t floats = (size_t)pull->count * (size_t)shard->config.layout->tables[table].width;
    pull->rows = bel_xgrow(pull->rows, &pull->capacity, floats + 1, sizeof *pull->rows);
    pull->places = bel_xgrow(pull->places, &pull->place_capacity, (size_t)pull->count + 1,
                             sizeof *pull->places);
    bel_table_pull_places(shard->tables[table].table, pull->keys, pull->count, pull->rows,
                          pull->places);
}

void bel_shard_rows_answered_locked(bel_shard *shard, int table, int worker)
{
    bel_shard_pull *pull = &shard->tables[table].pulls[worker];
    size_t width = (size_t)shard->config.layout->tables[table].width;
    pull->busy = false;
    bel_shard_send_locked(
        shard, shard->config.worker_lanes[worker],
        (bel_frame){.kind = BEL_FRAME_ROWS,
                    .step = pull->step,
                    .chunk = table,
                    .node = pull->number,
                    .payload = pull->rows,
                    .payload_bytes = (size_t)pull->count * width * sizeof(float)});
}

static bel_status *mark_snapshot(bel_shard_table *table)
{
    if (table->has_snapshot) bel_table_snapshot_end(table->table);
    table->has_snapshot = false;
    BEL_TRY(bel_table_snapshot(table->table));
    table->has_snapshot = true;
    return NULL;
}

#define UNKNOWN (BEL_TABLE_NOWHERE - 1) // no row has this number

// Both lists ascend: what the pull knows of the rows' places.
static void note_places(const bel_shard_pull *pull, const bel_row_set *rows, uint32_t *places)
{
    int64_t i = 0, k = 0;
    while (i < rows->count && k < pull->count) {
        if (rows->keys[i] == pull->keys[k]) places[i] = pull->places[k];
        bool next = rows->keys[i] <= pull->keys[k];
        k += pull->keys[k] <= rows->keys[i];
        i += next;
    }
}

// Where rows are that workers report: where they were when they pulled them for this step. NULL: it
// is not known of all, as when a worker plays its replicas in turns and pulls for each.
static const uint32_t *find_places(const bel_shard *shard, bel_shard_table *table,
                                   const bel_row_set *rows)
{
    table->places = bel_xgrow(table->places, &table->place_capacity, (size_t)rows->count + 1,
                              sizeof *table->places);
    for (int64_t i = 0; i < rows->count; i++)
        table->places[i] = UNKNOWN;
    for (int w = 0; w < shard->config.deal->worker_count; w++)
        if (table->pulls[w].step == shard->step) note_places(&table->pulls[w], rows, table->places);
    for (int64_t i = 0; i < rows->count; i++)
        if (table->places[i] == UNKNOWN) return NULL;
    return table->places;
}

bel_status *bel_shard_update_table(bel_shard *shard, int t)
{
    bel_shard_table *table = &shard->tables[t];
    const bel_deal *deal = shard->config.deal;
    int width = shard->config.layout->tables[t].width;
    bel_row_set all =
        bel_row_sum_run(&table->sum, shard->node_firsts, table->reports, deal->node_count, width);
    bel_rule_step numbers = bel_rule_begin(&shard->config.optimizer, shard->step);
    const uint32_t *places = find_places(shard, table, &all);
    BEL_TRY_CTX(bel_table_update_places(table->table, NULL, &numbers, all.keys, places, all.rows,
                                        bel_shard_scale(shard), all.count),
                "shard %d, table \"%s\"", shard->config.shard,
                shard->config.layout->tables[t].name);
    return (shard->decision & BEL_DECIDE_SAVE) != 0 ? mark_snapshot(table) : NULL;
}

// --- Snapshots and checkpoints -------------------------------------------------------------------

bel_status *bel_shard_mark_tables(bel_shard *shard)
{
    for (int t = 0; t < shard->config.layout->table_count; t++)
        BEL_TRY(mark_snapshot(&shard->tables[t]));
    return NULL;
}

bel_status *bel_shard_load_tables(bel_shard *shard, const bel_ckpt_reader *reader)
{
    for (int t = 0; t < shard->config.layout->table_count; t++) {
        bel_shard_table *table = &shard->tables[t];
        if (table->has_snapshot) bel_table_snapshot_end(table->table);
        table->has_snapshot = false;
        bel_table_clear(table->table);
        forget_pulls(shard, table);
        BEL_TRY_CTX(bel_table_restore(table->table, reader, shard->config.shard,
                                      shard->config.layout->shard_count),
                    "loading %s", bel_ckpt_folder(reader));
    }
    return NULL;
}

bel_status *bel_shard_read_rows(const bel_shard *shard, int table,
                                bel_status *(*take)(void *context, int64_t count,
                                                    const int64_t *keys, const float *rows),
                                void *context)
{
    enum { BLOCK = 4096 };
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
