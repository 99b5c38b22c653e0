// Rows of tables at a shard. In a step, workers ask for rows, which are read in their present
// state. Every node reports sums of rows; when all have, the sums are added over the tree and the
// rows are updated. Rows are stored once, not twice: a worker that asks for rows in a step has
// received them before it reports. A replacement that repeats a step that is finished here gets its
// predecessor's answers.
#include "base/alloc.h"
#include "base/log.h"
#include "ps/server/shard_inner.h"

// If the configuration has no rooms, answers are in the shard's memory, one room for each worker.
static bel_status *make_answer_rooms(bel_shard *shard)
{
    const bel_assignment *assignment = shard->config.assignment;
    shard->answer_rooms =
        bel_xcalloc((size_t)assignment->worker_count, sizeof *shard->answer_rooms);
    for (int w = 0; w < assignment->worker_count; w++) {
        size_t bytes = bel_row_buffer_answer_bytes(shard->config.layout, assignment, w);
        if (bytes > 0) BEL_TRY(bel_pages_create(bytes, false, "rows", &shard->answer_rooms[w]));
    }
    return NULL;
}

// A worker may pull once for each of its replicas, and at most `most` rows in all.
static void create_pull(const bel_shard *shard, bel_shard_pull *pull, int t, int worker)
{
    const bel_shard_config *config = &shard->config;
    const bel_assignment *assignment = config->assignment;
    void *const *rooms = config->answer_rooms != NULL ? config->answer_rooms : shard->answer_rooms;
    size_t offset = bel_row_buffer_answers(config->layout, assignment, worker, t);
    pull->most = bel_row_buffer_ids(config->layout, assignment, worker, t);
    pull->limit = bel_assignment_replicas(assignment, worker);
    pull->counts = bel_xcalloc((size_t)pull->limit, sizeof *pull->counts);
    pull->firsts = bel_xcalloc((size_t)pull->limit, sizeof *pull->firsts);
    pull->rows = (float *)(void *)((char *)rooms[worker] + offset);
    pull->places = bel_xcalloc((size_t)pull->most + 1, sizeof *pull->places);
}

// Describes a table with the optimizers of the step functions that update it; it has rows even if
// no function does.
static bel_table_config describe_table(const bel_shard *shard, int t)
{
    const bel_layout_table *from = &shard->config.layout->tables[t];
    int variable = shard->config.layout->variable_count + t, found = 0;
    bel_table_config config =
        bel_table_describe(from->name, from->width, from->initializer, shard->config.settings.seed,
                           bel_shard_group_in(shard, 0, variable)->optimizer);
    for (int f = 0; f < shard->config.settings.function_count; f++) {
        if (!bel_layout_table_changes(from, f)) continue;
        const bel_optimizer *optimizer = bel_shard_group_in(shard, f, variable)->optimizer;
        if (found == 0) {
            config.optimizer = *optimizer;
        } else {
            config.others[config.other_count++] = optimizer;
        }
        found++;
    }
    return config;
}

// Reports and sets by node, pulls by worker; the weights of a sum follow those of the reports.
static bel_status *create_table(const bel_shard *shard, bel_shard_table *table, int t)
{
    size_t nodes = (size_t)shard->config.assignment->node_count;
    size_t workers = (size_t)shard->config.assignment->worker_count;
    table->reports = bel_xcalloc(nodes, sizeof *table->reports);
    table->weights = bel_xcalloc(2 * nodes, sizeof *table->weights);
    table->set_weights = table->weights + nodes;
    table->reported = bel_xcalloc(nodes, sizeof *table->reported);
    table->sets = bel_xcalloc(nodes, sizeof *table->sets);
    table->pulls = bel_xcalloc(workers, sizeof *table->pulls);
    for (size_t w = 0; w < workers; w++)
        create_pull(shard, &table->pulls[w], t, (int)w);
    bel_shard_forget_frames(shard, table);
    bel_table_config config = describe_table(shard, t);
    config.memory_limit = shard->config.table_memory;
    const char *folder = shard->config.table_disk;
    config.disk_folder = folder != NULL && folder[0] != '\0' ? folder : NULL;
    config.admit_after = shard->config.settings.table_admit_after;
    config.expire_after = shard->config.settings.table_expire_after;
    config.expire_below = shard->config.settings.table_expire_below;
    config.tracks_changes = shard->config.settings.tracks_changes;
    return bel_table_create(&config, &table->table);
}

bel_status *bel_shard_create_tables(bel_shard *shard)
{
    const bel_layout *layout = shard->config.layout;
    const bel_assignment *assignment = shard->config.assignment;
    shard->tables = bel_xcalloc((size_t)layout->table_count, sizeof *shard->tables);
    shard->node_firsts = bel_xcalloc((size_t)assignment->node_count, sizeof *shard->node_firsts);
    for (int k = 0; k < assignment->node_count; k++)
        shard->node_firsts[k] = assignment->nodes[k].first;
    if (shard->config.answer_rooms == NULL) BEL_TRY(make_answer_rooms(shard));
    for (int t = 0; t < layout->table_count; t++)
        BEL_TRY(create_table(shard, &shard->tables[t], t));
    return NULL;
}

static void destroy_pulls(const bel_shard *shard, bel_shard_table *table)
{
    for (int w = 0; table->pulls != NULL && w < shard->config.assignment->worker_count; w++) {
        bel_free(table->pulls[w].counts);
        bel_free(table->pulls[w].firsts);
        bel_free(table->pulls[w].places);
    }
    bel_free(table->pulls);
}

void bel_shard_destroy_tables(bel_shard *shard)
{
    const bel_layout *layout = shard->config.layout;
    const bel_assignment *assignment = shard->config.assignment;
    for (int t = 0; shard->tables != NULL && t < layout->table_count; t++) {
        bel_shard_table *table = &shard->tables[t];
        destroy_pulls(shard, table);
        bel_free(table->reports);
        bel_free(table->weights);
        bel_free(table->reported);
        bel_free(table->sets);
        bel_row_sum_deinit(&table->sum);
        bel_free(table->places);
        bel_free(table->means);
        bel_table_destroy(table->table);
    }
    for (int w = 0; shard->answer_rooms != NULL && w < assignment->worker_count; w++)
        bel_pages_destroy(shard->answer_rooms[w],
                          bel_row_buffer_answer_bytes(layout, assignment, w));
    bel_free(shard->answer_rooms);
    bel_free(shard->tables);
    bel_free(shard->node_firsts);
}

void bel_shard_begin_tables_locked(bel_shard *shard)
{
    shard->work.tables_done = 0;
    for (int t = 0; t < shard->config.layout->table_count; t++)
        shard->tables[t].queued = false;
}

// --- Readers and updates -------------------------------------------------------------------------

// In lockstep readers and updates cannot meet: all workers have their rows before the last report
// arrives. Otherwise they take turns. An answer is a copy like those of chunks: with a ledger no
// version is published while one is being made.
static void read_rows_locked(bel_shard *shard, int t, int worker)
{
    shard->tables[t].readers++;
    shard->tables[t].pulls[worker].waits = false;
    shard->work.copies++;
    bel_shard_push_locked(shard,
                          (bel_shard_job){.kind = BEL_JOB_ROWS, .local = t, .worker = worker});
}

// With readers the update waits for the last of them (bel_shard_rows_answered_locked).
void bel_shard_table_due_locked(bel_shard *shard, int t)
{
    bel_shard_table *table = &shard->tables[t];
    table->due = table->readers > 0;
    if (table->due) return;
    table->updating = true;
    bel_shard_push_locked(shard, (bel_shard_job){.kind = BEL_JOB_TABLE, .local = t});
}

// Answers row pulls of tables that are not being updated and have no update due, so that updates
// get their turn.
void bel_shard_answer_waiting_locked(bel_shard *shard)
{
    for (int t = 0; t < shard->config.layout->table_count; t++) {
        const bel_shard_table *table = &shard->tables[t];
        for (int w = 0; w < shard->config.assignment->worker_count; w++) {
            if (table->updating || table->due || !table->pulls[w].waits) continue;
            read_rows_locked(shard, t, w);
        }
    }
}

static void count_rows(bel_shard_counters *counters, bel_shard_table *table)
{
    int64_t refused = bel_table_refused(table->table);
    bel_table_tally now = bel_table_count_all(table->table);
    counters->refused_rows += refused - table->refused;
    counters->rows += now.rows - table->tally.rows;
    counters->waiting_keys += now.waiting - table->tally.waiting;
    counters->admitted_rows += now.admitted - table->tally.admitted;
    counters->expired_rows += now.expired - table->tally.expired;
    table->refused = refused;
    table->tally = now;
}

void bel_shard_table_updated_locked(bel_shard *shard, int t)
{
    bel_shard_table *table = &shard->tables[t];
    table->updating = false;
    shard->work.tables_done++;
    count_rows(&shard->counters, table);
    bel_shard_answer_waiting_locked(shard);
}

// --- Frames --------------------------------------------------------------------------------------

// The rows stay in pull->rows and are the frame's payload.
static void send_rows_locked(bel_shard *shard, int table, int worker, int32_t number)
{
    const bel_shard_pull *pull = &shard->tables[table].pulls[worker];
    size_t width = (size_t)shard->config.layout->tables[table].width;
    bel_rows_frame rows = {.version = pull->step, .table = table, .number = number};
    bel_shard_send_locked(
        shard, shard->config.worker_lanes[worker],
        bel_rows_frame_write(rows, pull->rows + pull->firsts[number],
                             (size_t)pull->counts[number] * width * sizeof(float)));
}

// The worker's first pull of a step: drops the preceding step's answers.
static void begin_pulls(bel_shard_pull *pull, int64_t step)
{
    pull->step = step;
    pull->number = -1;
    pull->again = pull->limit;
    pull->asked = pull->used = 0;
    for (int32_t n = 0; n < pull->limit; n++)
        pull->counts[n] = -1;
}

// A pull that was answered before: a successor's, or a repeated frame.
static void take_known_pull_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    bel_row_pull_frame asked = bel_row_pull_frame_read(frame);
    bel_shard_pull *pull = &shard->tables[asked.table].pulls[worker];
    int64_t count = (int64_t)(frame->payload_bytes / sizeof(int64_t));
    if (asked.number < pull->again) {
        shard->counters.repeated++;
    } else if (pull->counts[asked.number] != count) {
        bel_shard_fail_locked(shard, frame, "another pull than in the step that it repeats");
    } else {
        pull->again = asked.number + 1;
        send_rows_locked(shard, asked.table, worker, asked.number);
    }
}

// Reserves room for the answer, aligned as lanes need it. The answer is made as soon as the table
// may be read.
static void take_new_pull_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    bel_row_pull_frame asked = bel_row_pull_frame_read(frame);
    bel_shard_pull *pull = &shard->tables[asked.table].pulls[worker];
    int64_t count = (int64_t)(frame->payload_bytes / sizeof(int64_t));
    if (frame->payload_bytes % sizeof(int64_t) != 0 ||
        !bel_row_keys_check(frame->payload, count, shard->config.shard,
                            shard->config.layout->shard_count)) {
        bel_shard_fail_locked(shard, frame, "keys that do not ascend, or of another shard");
        return;
    }
    if (pull->step != asked.version) begin_pulls(pull, asked.version);
    if (asked.number < 0 || asked.number >= pull->limit || pull->asked + count > pull->most) {
        bel_shard_fail_locked(shard, frame, "more rows than there is room for");
        return;
    }
    size_t width = (size_t)shard->config.layout->tables[asked.table].width;
    size_t bytes = (size_t)count * width * sizeof(float);
    pull->busy = pull->waits = true;
    pull->asked += count;
    pull->number = asked.number;
    pull->keys = frame->payload;
    pull->counts[pull->number] = count;
    pull->firsts[pull->number] = pull->used;
    pull->used += (int64_t)(bel_row_aligned(bytes) / sizeof(float));
    if (!shard->work.publishing) bel_shard_answer_waiting_locked(shard); // otherwise soon
}

// Returns false, and fails the shard, if there is no such table.
static bool check_table_locked(bel_shard *shard, const bel_frame *frame, int32_t table)
{
    if (table >= 0 && table < shard->config.layout->table_count) return true;
    bel_shard_fail_locked(shard, frame, "no such table");
    return false;
}

// Handles, in order: a pull that was received before in this step, one that is late or early, a new
// one.
void bel_shard_take_row_pull_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    bel_row_pull_frame asked = bel_row_pull_frame_read(frame);
    if (!check_table_locked(shard, frame, asked.table)) return;
    const bel_shard_pull *pull = &shard->tables[asked.table].pulls[worker];
    if (pull->step == asked.version && asked.number >= 0 && asked.number <= pull->number) {
        take_known_pull_locked(shard, frame, worker);
    } else if (asked.version < pull->step || pull->busy ||
               !shard->policy->rows_fit(shard, asked.table, worker, asked.version)) {
        shard->counters.late++;
    } else {
        take_new_pull_locked(shard, frame, worker);
    }
}

bool bel_shard_keep_rows_locked(bel_shard *shard, const bel_frame *frame,
                                const bel_row_report_frame *report, bel_weight weight)
{
    if (!check_table_locked(shard, frame, report->table)) return false;
    bel_shard_table *table = &shard->tables[report->table];
    const bel_layout *layout = shard->config.layout;
    int width = bel_layout_report_width(&layout->tables[report->table]);
    if (!bel_layout_table_changes(&layout->tables[report->table],
                                  bel_decision_function(report->decision))) {
        bel_shard_fail_locked(shard, frame, "a table that its step function does not update");
        return false;
    }
    if (table->reported[report->node]) {
        shard->counters.repeated++;
        return false;
    }
    if (!bel_row_set_read(frame->payload, frame->payload_bytes, width, shard->config.shard,
                          layout->shard_count, &table->reports[report->node])) {
        bel_shard_fail_locked(shard, frame, "no report of rows of this shard");
        return false;
    }
    table->weights[report->node] = weight;
    table->reported[report->node] = true;
    return true;
}

// A successor may repeat all pulls: the answers stay, the keys were its predecessor's.
void bel_shard_forget_pulls_locked(bel_shard *shard, int worker)
{
    for (int t = 0; t < shard->config.layout->table_count; t++) {
        bel_shard_pull *pull = &shard->tables[t].pulls[worker];
        pull->keys = NULL;
        pull->again = 0;
        pull->busy = pull->waits = false;
    }
}

void bel_shard_end_pulls_locked(bel_shard *shard, int worker)
{
    for (int t = 0; t < shard->config.layout->table_count; t++)
        shard->tables[t].pulls[worker].step = -1;
}

// --- Work ----------------------------------------------------------------------------------------

// The job: no update runs while there are readers, and this pull is this worker's only one.
bel_status *bel_shard_answer_rows(bel_shard *shard, int table, int worker)
{
    const bel_shard_pull *pull = &shard->tables[table].pulls[worker];
    BEL_TRY_CTX(bel_table_pull_places(shard->tables[table].table, pull->keys,
                                      pull->counts[pull->number],
                                      pull->rows + pull->firsts[pull->number], pull->places),
                "shard %d", shard->config.shard);
    return NULL;
}

// The answer is complete; the last reader lets a due update start.
void bel_shard_rows_answered_locked(bel_shard *shard, int table, int worker)
{
    bel_shard_pull *pull = &shard->tables[table].pulls[worker];
    pull->busy = false;
    send_rows_locked(shard, table, worker, pull->number);
    shard->work.copies--;
    shard->tables[table].readers--;
    if (shard->tables[table].due && shard->tables[table].readers == 0)
        bel_shard_table_due_locked(shard, table);
}

#define UNKNOWN (BEL_TABLE_NOWHERE - 1) // no row has this number

// Notes the places that the pull knows. Both lists ascend, so one pass over the two finds all.
static void note_places(const bel_shard_pull *pull, const bel_row_set *rows, uint32_t *places)
{
    int64_t i = 0, k = 0, count = pull->counts[pull->number];
    while (i < rows->count && k < count) {
        if (rows->keys[i] == pull->keys[k]) places[i] = pull->places[k];
        bool next = rows->keys[i] <= pull->keys[k];
        k += pull->keys[k] <= rows->keys[i];
        i += next;
    }
}

// Returns the places of reported rows: those of the workers' pulls for this step. NULL if one is
// unknown, as when a worker plays its replicas in turns and pulls for each.
static const uint32_t *find_places(const bel_shard *shard, bel_shard_table *table,
                                   const bel_row_set *rows)
{
    table->places = bel_xgrow(table->places, &table->place_capacity, (size_t)rows->count + 1,
                              sizeof *table->places);
    for (int64_t i = 0; i < rows->count; i++)
        table->places[i] = UNKNOWN;
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        const bel_shard_pull *pull = &table->pulls[w];
        if (pull->step == shard->step && pull->keys != NULL) note_places(pull, rows, table->places);
    }
    for (int64_t i = 0; i < rows->count; i++)
        if (table->places[i] == UNKNOWN) return NULL;
    return table->places;
}

// Converts sums that end with their number of replicas into means.
static const float *take_means(bel_shard_table *table, const bel_row_set *sums, int width)
{
    table->means = bel_xgrow(table->means, &table->mean_capacity,
                             (size_t)sums->count * (size_t)width + 1, sizeof *table->means);
    const float *sum = sums->rows;
    float *mean = table->means;
    for (int64_t i = 0; i < sums->count; i++, sum += width + 1, mean += width) {
        float factor = 1 / sum[width];
        for (int k = 0; k < width; k++)
            mean[k] = sum[k] * factor;
    }
    return table->means;
}

// Warns at the first key that a table gave no row: once for a table, as `refused` stays above 0.
static void warn_if_full(const bel_shard *shard, const bel_shard_table *table, const char *name)
{
    if (table->refused > 0 || bel_table_refused(table->table) == 0) return;
    if (shard->config.settings.table_admit_after > 1) {
        bel_log_write(BEL_LOG_WARN,
                      "table \"%s\" is full on shard %d at step %lld, its rows or its counts of "
                      "waiting keys, which have a quarter: %lld of %lld bytes (table_memory); its "
                      "rows are trained further, and new keys keep their start values; hint: "
                      "table_expire_after removes old ones",
                      name, shard->config.shard, (long long)shard->step,
                      (long long)bel_table_bytes(table->table),
                      (long long)shard->config.table_memory);
        return;
    }
    bel_log_write(
        BEL_LOG_WARN,
        "table \"%s\" is full on shard %d at step %lld: %lld rows take %lld of %lld bytes "
        "(table_memory); they are trained further, and new keys keep their start values",
        name, shard->config.shard, (long long)shard->step, (long long)bel_table_count(table->table),
        (long long)bel_table_bytes(table->table), (long long)shard->config.table_memory);
}

bool bel_shard_has_many_rows(const bel_shard *shard, int t)
{
    enum { MANY_ROWS = 4096 };
    const bel_shard_table *table = &shard->tables[t];
    int64_t rows = 0;
    for (int k = 0; k < shard->config.assignment->node_count; k++)
        if (table->reported[k]) rows += table->reports[k].count;
    return rows >= MANY_ROWS;
}

static bel_status *update_rows(bel_shard *shard, int t, bel_team *team)
{
    bel_shard_table *table = &shard->tables[t];
    const bel_assignment *assignment = shard->config.assignment;
    const bel_layout_table *layout = &shard->config.layout->tables[t];
    for (int k = 0; k < assignment->node_count; k++) {
        bool counts = bel_shard_counts(shard, k);
        table->sets[k] = counts ? table->reports[k] : (bel_row_set){.count = 0};
        table->set_weights[k] = counts ? table->weights[k] : (bel_weight){0};
    }
    bel_row_set all =
        bel_row_sum_run(&table->sum, shard->node_firsts, table->sets, table->set_weights,
                        assignment->node_count, bel_layout_report_width(layout));
    // Without a replica that has examples there are no rows, and the infinite scale is not used.
    bool sums = shard->config.settings.sums;
    float scale = sums ? 1 : (float)(1.0 / (double)table->set_weights[0].replicas);
    if (layout->counts_replicas) {
        all.rows = take_means(table, &all, layout->width);
        scale = 1;
    }
    // Without lockstep, a row that was absent at its pull may exist by now.
    const uint32_t *places = shard->policy->lockstep ? find_places(shard, table, &all) : NULL;
    int variable = shard->config.layout->variable_count + t;
    const bel_rule_step *numbers = &bel_shard_group_of(shard, variable)->numbers;
    int layer = bel_shard_layer(shard, bel_shard_function(shard), variable);
    BEL_TRY(bel_table_update(table->table, team, numbers, layer, all.keys, places, all.rows, scale,
                             all.count));
    warn_if_full(shard, table, layout->name);
    return NULL;
}

// The job, without the lock: it reads the reports of counting workers, which stay until the step
// ends, and the table has no readers meanwhile. Rows that change after a snapshot's release are not
// copied: it ends first.
bel_status *bel_shard_update_table(bel_shard *shard, int t, bel_team *team)
{
    bool released = (shard->decision.now & BEL_DECIDE_RELEASED) != 0;
    if (released) bel_shard_release_table(&shard->tables[t]);
    if (bel_shard_changes_table(shard, t)) {
        BEL_TRY_CTX(update_rows(shard, t, team), "shard %d, table \"%s\"", shard->config.shard,
                    shard->config.layout->tables[t].name);
    }
    BEL_TRY_CTX(bel_table_end_step(shard->tables[t].table, shard->step + 1),
                "shard %d, table \"%s\"", shard->config.shard,
                shard->config.layout->tables[t].name);
    bool saves = (shard->decision.now & BEL_DECIDE_SAVE) != 0;
    return saves ? bel_shard_mark_table(shard, t, false, shard->step + 1) : NULL;
}
