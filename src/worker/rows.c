// A worker's rows of tables: the ids of its replicas' batches, their rows, and the sums of their
// gradients. There is room for a batch's maximum number of ids, so steps allocate almost nothing.
//
// Replicas that run in parallel pull together, each distinct row once; a single replica uses its
// list directly. Answers are in the client's memory only until the table is pulled again, so they
// are copied into the tower's inputs before the program runs. Gradients are summed in order of
// positions, then over replicas by the tree, so their bits do not depend on the assignment.
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "ps/frames/frames.h"
#include "worker/worker_inner.h"

static const bel_graph *graph_of(const bel_worker *worker)
{
    return worker->config.models->graph;
}

// --- Life ----------------------------------------------------------------------------------------

// Gradients of a replica's ids, and the sums that are reported.
static size_t gradient_bytes(const bel_worker_table *table)
{
    size_t width = (size_t)table->width + (size_t)table->report_width;
    return (size_t)table->capacity * width * sizeof(float);
}

// `all` has room for the ids of a round's replicas, which are pulled together.
static bel_status *create_table(bel_worker *worker, bel_worker_table *table, int index)
{
    size_t replicas = (size_t)worker->replica_count;
    const bel_layout_table *from = &worker->config.layout->tables[index];
    table->width = from->width;
    table->report_width = bel_layout_report_width(from);
    table->capacity = from->ids;
    int64_t most = table->capacity * worker->round_size;
    table->replicas = bel_xcalloc(replicas, sizeof *table->replicas);
    table->sets = bel_xcalloc(replicas, sizeof *table->sets);
    table->weights = bel_xcalloc(replicas, sizeof *table->weights);
    table->firsts = bel_xcalloc(replicas, sizeof *table->firsts);
    table->keys = bel_xcalloc((size_t)most, sizeof *table->keys);
    BEL_TRY(bel_row_batch_create(most, &table->all));
    for (size_t r = 0; r < replicas; r++) {
        bel_replica_rows *rows = &table->replicas[r];
        rows->ids = bel_xcalloc((size_t)table->capacity, sizeof *rows->ids);
        BEL_TRY(bel_row_batch_create(table->capacity, &rows->batch));
        void *memory;
        BEL_TRY(bel_pages_create(gradient_bytes(table), true, "gradients of rows", &memory));
        rows->gradients = memory;
        rows->sums = rows->gradients + table->capacity * table->width;
    }
    return NULL;
}

// Rows of a batch, one for each id.
static size_t lookup_bytes(const bel_worker *worker, const bel_graph_lookup *lookup)
{
    const bel_graph *graph = graph_of(worker);
    int64_t ids = bel_graph_lookup_ids(graph, lookup) * bel_input_batch_size(worker->config.input);
    return (size_t)ids * (size_t)graph->tables[lookup->table].width * sizeof(float);
}

static bel_status *create_run_rows(const bel_worker *worker, bel_replica_run *run)
{
    const bel_graph *graph = graph_of(worker);
    run->rows = bel_xcalloc(graph->lookup_count, sizeof *run->rows);
    for (size_t l = 0; l < graph->lookup_count; l++) {
        const bel_graph_lookup *lookup = &graph->lookups[l];
        size_t bytes = lookup_bytes(worker, lookup);
        void *memory;
        BEL_TRY(bel_pages_create(bytes, true, "rows of a batch", &memory));
        run->rows[l] = memory;
    }
    return NULL;
}

bel_status *bel_worker_create_rows(bel_worker *worker)
{
    int count = worker->config.layout->table_count;
    worker->tables = bel_xcalloc((size_t)count, sizeof *worker->tables);
    for (int t = 0; t < count; t++)
        BEL_TRY(create_table(worker, &worker->tables[t], t));
    for (int t = 0; count > 0 && t < worker->config.tower_count; t++)
        for (int r = 0; r < bel_tower_runs(worker); r++)
            BEL_TRY(create_run_rows(worker, &worker->towers[t].runs[r]));
    return NULL;
}

void bel_worker_pin_rows(const bel_worker *worker, bel_device *card, bool pins)
{
    const bel_graph *graph = graph_of(worker);
    for (int t = 0; worker->tables != NULL && t < worker->config.layout->table_count; t++) {
        const bel_worker_table *table = &worker->tables[t];
        for (int r = 0; table->replicas != NULL && r < worker->replica_count; r++)
            bel_device_pin(card, table->replicas[r].gradients, gradient_bytes(table), pins);
    }
    for (int i = 0; i < worker->config.tower_count * bel_tower_runs(worker); i++) {
        const bel_tower *tower = &worker->towers[i / bel_tower_runs(worker)];
        float *const *rows = tower->runs[i % bel_tower_runs(worker)].rows;
        for (size_t l = 0; rows != NULL && l < graph->lookup_count; l++)
            bel_device_pin(card, rows[l], lookup_bytes(worker, &graph->lookups[l]), pins);
    }
}

static void destroy_table(const bel_worker *worker, bel_worker_table *table)
{
    for (int r = 0; table->replicas != NULL && r < worker->replica_count; r++) {
        bel_free(table->replicas[r].ids);
        bel_row_batch_destroy(table->replicas[r].batch);
        bel_pages_destroy(table->replicas[r].gradients, gradient_bytes(table));
    }
    bel_row_batch_destroy(table->all);
    bel_row_sum_deinit(&table->sum);
    bel_free(table->replicas);
    bel_free(table->sets);
    bel_free(table->weights);
    bel_free(table->firsts);
    bel_free(table->keys);
}

void bel_worker_destroy_rows(bel_worker *worker)
{
    const bel_graph *graph = graph_of(worker);
    for (int t = 0; worker->tables != NULL && t < worker->config.layout->table_count; t++)
        destroy_table(worker, &worker->tables[t]);
    bel_free(worker->tables);
    for (int i = 0; i < worker->config.tower_count * bel_tower_runs(worker); i++) {
        const bel_tower *tower = &worker->towers[i / bel_tower_runs(worker)];
        float **rows = tower->runs[i % bel_tower_runs(worker)].rows;
        for (size_t l = 0; rows != NULL && l < graph->lookup_count; l++)
            bel_pages_destroy(rows[l], lookup_bytes(worker, &graph->lookups[l]));
        bel_free(rows);
    }
}

// --- Pulling -------------------------------------------------------------------------------------

static int64_t ids_of(const bel_tower *tower, const bel_graph_lookup *lookup)
{
    return bel_shape_elements(&tower->run->input_shapes[lookup->ids]);
}

// Collects the ids of all lookups of a table in one list, in the order of lookups; it is empty
// without a batch.
void bel_tower_gather_ids(bel_tower *tower)
{
    const bel_worker *worker = tower->worker;
    const bel_graph *graph = graph_of(worker);
    for (int t = 0; t < worker->config.layout->table_count; t++) {
        bel_replica_rows *rows = &worker->tables[t].replicas[tower->replica];
        int64_t count = 0;
        int first = tower->run->batch != NULL ? graph->tables[t].first_lookup : -1;
        for (int l = first; l >= 0; l = graph->lookups[l].next) {
            const bel_graph_lookup *lookup = &graph->lookups[l];
            int field = worker->config.models->fields[lookup->ids];
            int64_t n = ids_of(tower, lookup);
            memcpy(rows->ids + count, tower->run->batch->fields[field].data,
                   (size_t)n * sizeof *rows->ids);
            count += n;
        }
        bel_row_batch_set(rows->batch, rows->ids, count);
    }
}

// Runs on the worker's thread. `first` of a replica's rows is the index of its distinct ids in the
// round's list.
bel_status *bel_worker_pull_rows(bel_worker *worker)
{
    int first = worker->round;
    bel_client *client = worker->config.client;
    int64_t begun = bel_clock_ns();
    int end = bel_worker_round_end(worker);
    for (int t = 0; t < worker->config.layout->table_count; t++) {
        bel_worker_table *table = &worker->tables[t];
        int64_t count = 0;
        for (int r = first; r < end && end - first > 1; r++) { // a single replica uses its list
            bel_replica_rows *rows = &table->replicas[r];
            int64_t distinct = bel_row_batch_count(rows->batch);
            memcpy(table->keys + count, bel_row_batch_keys(rows->batch),
                   (size_t)distinct * sizeof *table->keys);
            rows->first = count;
            count += distinct;
        }
        if (end - first > 1) bel_row_batch_set(table->all, table->keys, count);
        const bel_row_batch *all = end - first > 1 ? table->all : table->replicas[first].batch;
        BEL_TRY(bel_client_pull_rows(client, worker->step, t, bel_row_batch_keys(all),
                                     bel_row_batch_count(all)));
    }
    BEL_TRY(bel_client_wait_rows(client, worker->step));
    int64_t now = bel_clock_ns();
    worker->times.exchange_ns += now - begun;
    bel_trace_add(bel_worker_event(worker, BEL_TRACE_WAIT_ROWS, 0), begun, now);
    return NULL;
}

// --- Running -------------------------------------------------------------------------------------

// True if the step updates rows of the table.
static bool changes(const bel_worker *worker, int table)
{
    return bel_layout_table_changes(&worker->config.layout->tables[table],
                                    bel_decision_function(worker->decision));
}

// True when the round has one replica.
static bool runs_alone(const bel_worker *worker)
{
    return worker->round + 1 == bel_worker_round_end(worker);
}

// Maps an id's position to its distinct id in the replica, to the one in the round, and to the
// client's row.
void bel_tower_bind_rows(bel_tower *tower, bel_instance *instance)
{
    const bel_worker *worker = tower->worker;
    const bel_graph *graph = graph_of(worker);
    for (int t = 0; t < worker->config.layout->table_count; t++) {
        const bel_worker_table *table = &worker->tables[t];
        const bel_replica_rows *rows = &table->replicas[tower->replica];
        const int32_t *own = bel_row_batch_index(rows->batch);
        bool alone = runs_alone(worker);
        const int32_t *all = bel_row_batch_index(table->all) + rows->first;
        size_t width = (size_t)table->width;
        int64_t position = 0;
        for (int l = graph->tables[t].first_lookup; l >= 0; l = graph->lookups[l].next) {
            const bel_graph_lookup *lookup = &graph->lookups[l];
            float *to = tower->run->rows[l];
            int64_t n = ids_of(tower, lookup);
            bel_instance_bind_input(instance, lookup->rows, to);
            float *gradients = rows->gradients + (size_t)position * width;
            if (worker->function->lookup_outputs[l] >= 0) {
                bel_instance_bind_output(instance, worker->function->lookup_outputs[l], gradients);
                // other lookups of a preceding batch may have left values there
            } else if (changes(worker, t)) {
                memset(gradients, 0, (size_t)n * width * sizeof *gradients);
            }
            for (int64_t i = 0; i < n; i++, to += width) {
                int32_t key = own[position + i];
                if (key < 0) { // BEL_NO_ID
                    memset(to, 0, width * sizeof *to);
                    continue;
                }
                const float *row = bel_client_row(worker->config.client, t, alone ? key : all[key]);
                memcpy(to, row, width * sizeof *to);
            }
            position += n;
        }
    }
}

// Makes room after each of the rows, from the last one on, and writes a 1 there.
static void count_replica(float *rows, int64_t count, int width)
{
    for (int64_t i = count - 1; i >= 0; i--) {
        float *to = rows + i * (width + 1);
        memmove(to, rows + i * width, (size_t)width * sizeof *to);
        to[width] = 1;
    }
}

void bel_tower_sum_rows(bel_tower *tower)
{
    const bel_worker *worker = tower->worker;
    for (int t = 0; t < worker->config.layout->table_count; t++) {
        if (!changes(worker, t)) continue;
        const bel_worker_table *table = &worker->tables[t];
        const bel_replica_rows *rows = &table->replicas[tower->replica];
        bel_row_batch_sum(rows->batch, rows->gradients, table->width, rows->sums);
        if (table->report_width > table->width)
            count_replica(rows->sums, bel_row_batch_count(rows->batch), table->width);
    }
}

// --- Reporting -----------------------------------------------------------------------------------

// Sums one node's replicas by the tree: each replica's set is at its id.
static bel_status *report_node(bel_worker *worker, int t, int k)
{
    bel_worker_table *table = &worker->tables[t];
    const bel_assignment_node *node = &worker->config.assignment->nodes[k];
    for (int i = 0; i < node->count; i++) {
        int replica = node->first - worker->first_replica + i;
        const bel_replica_rows *rows = &table->replicas[replica];
        table->firsts[i] = node->first + i;
        table->weights[i] = worker->weights[replica];
        table->sets[i] = (bel_row_set){bel_row_batch_count(rows->batch),
                                       bel_row_batch_keys(rows->batch), rows->sums};
    }
    bel_row_set sum = bel_row_sum_run(&table->sum, table->firsts, table->sets, table->weights,
                                      node->count, table->report_width);
    return bel_client_report_rows(worker->config.client, worker->step, worker->decision, t, k,
                                  table->weights[0], &sum);
}

bel_status *bel_worker_report_rows(bel_worker *worker)
{
    const bel_assignment *assignment = worker->config.assignment;
    int w = worker->config.worker;
    for (int t = 0; t < worker->config.layout->table_count; t++) {
        if (!changes(worker, t)) continue;
        int64_t begun = bel_clock_ns();
        for (int k = assignment->first_node[w]; k < assignment->first_node[w + 1]; k++)
            BEL_TRY(report_node(worker, t, k));
        int64_t done = bel_clock_ns();
        worker->times.push_ns += done - begun;
        bel_trace_add(bel_worker_event(worker, BEL_TRACE_REPORT_ROWS, t), begun, done);
    }
    return NULL;
}
