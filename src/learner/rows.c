// Rows of tables in a step. The rows of the batch's distinct ids are pulled, laid out by position
// for the program, and updated from the sums of their gradients, added in order of positions.
// src/worker/rows.c and src/ps/server/shard_rows.c do the same for many replicas. Memory grows to
// the largest batch so far.
#include <string.h>

#include "base/alloc.h"
#include "checkpoint/setting_names.h"
#include "learner/learner_inner.h"

// --- Life ----------------------------------------------------------------------------------------

bel_status *bel_learner_make_tables(bel_learner *l)
{
    const bel_graph *graph = l->file.graph;
    l->tables = bel_xcalloc(graph->table_count + 1, sizeof *l->tables);
    for (size_t t = 0; t < graph->table_count; t++) {
        const bel_graph_table *from = &graph->tables[t];
        bel_learner_table *table = &l->tables[t];
        table->width = from->width;
        table->group = bel_rule_groups_find(&l->update.groups, &l->file.optimizers, 0, from->name);
        bel_table_config config =
            bel_table_describe(from->name, from->width, from->initializer, l->seed,
                               l->update.groups.items[table->group].optimizer);
        BEL_TRY(bel_training_file_number(&l->file, BEL_SETTING_ADMIT, &config.admit_after));
        BEL_TRY(bel_training_file_number(&l->file, BEL_SETTING_EXPIRE, &config.expire_after));
        BEL_TRY(bel_training_file_real(&l->file, BEL_SETTING_EXPIRE_BELOW, &config.expire_below));
        BEL_TRY(bel_table_create(&config, &table->table));
    }
    return NULL;
}

static void free_room(bel_learner_table *table)
{
    bel_row_batch_destroy(table->batch);
    bel_free(table->ids);
    bel_free(table->places);
    bel_pages_destroy(table->distinct, table->memory_bytes);
    table->batch = NULL;
    table->ids = NULL;
    table->places = NULL;
    table->distinct = NULL;
    table->capacity = 0;
}

void bel_learner_destroy_tables(bel_learner *l)
{
    for (size_t t = 0; l->tables != NULL && t < l->file.graph->table_count; t++) {
        free_room(&l->tables[t]);
        bel_table_destroy(l->tables[t].table);
    }
    bel_free(l->tables);
}

static bel_status *make_room(bel_learner_table *table, int64_t ids)
{
    if (table->batch != NULL && ids <= table->capacity) return NULL;
    free_room(table);
    size_t count = (size_t)ids, floats = count * (size_t)table->width;
    void *memory;
    table->ids = bel_xcalloc(count, sizeof *table->ids);
    table->places = bel_xcalloc(count, sizeof *table->places);
    BEL_TRY(bel_row_batch_create(ids, &table->batch));
    table->memory_bytes = 4 * floats * sizeof(float);
    BEL_TRY(bel_pages_create(table->memory_bytes, false, "rows of a batch", &memory));
    table->distinct = memory;
    table->gradients = table->distinct + floats;
    table->sums = table->gradients + floats;
    table->rows = table->sums + floats;
    table->capacity = ids;
    return NULL;
}

// --- A batch -------------------------------------------------------------------------------------

static int64_t ids_of(const bel_learner *l, const bel_graph_lookup *lookup)
{
    return bel_shape_elements(&l->shapes[lookup->ids]);
}

// Gathers all lookups of a table in one list, in the order of lookups.
static bel_status *gather_ids(bel_learner *l, int t)
{
    const bel_graph *graph = l->file.graph;
    bel_learner_table *table = &l->tables[t];
    int64_t count = 0;
    for (int k = graph->tables[t].first_lookup; k >= 0; k = graph->lookups[k].next)
        count += ids_of(l, &graph->lookups[k]);
    BEL_TRY(make_room(table, count));
    int64_t *to = table->ids;
    for (int k = graph->tables[t].first_lookup; k >= 0; k = graph->lookups[k].next) {
        int64_t n = ids_of(l, &graph->lookups[k]);
        memcpy(to, l->data[graph->lookups[k].ids], (size_t)n * sizeof *to);
        to += n;
    }
    bel_row_batch_set(table->batch, table->ids, count);
    return NULL;
}

// Lays out rows by position; a position with BEL_NO_ID gets a row of zeros.
static void lay_out(const bel_learner_table *table, int64_t first, int64_t n)
{
    size_t width = (size_t)table->width;
    const int32_t *index = bel_row_batch_index(table->batch) + first;
    float *to = table->rows + (size_t)first * width;
    for (int64_t i = 0; i < n; i++, to += width) {
        if (index[i] < 0) {
            memset(to, 0, width * sizeof *to);
        } else {
            memcpy(to, table->distinct + (size_t)index[i] * width, width * sizeof *to);
        }
    }
}

// In the file, rows and their gradient have the same symbolic shape. Their sizes can still differ
// if a batch's inputs use several sizes for one symbol.
static bel_status *check_gradient(const bel_learner *l, const bel_instance *instance, int lookup)
{
    const bel_graph *graph = l->file.graph;
    bel_tensor gradient = bel_instance_output(instance, l->lookup_outputs[lookup]);
    const bel_shape *want = &l->shapes[graph->lookups[lookup].rows];
    if (bel_shape_equal(&gradient.shape, want)) return NULL;
    char wt[BEL_SHAPE_TEXT], gt[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "table \"%s\": rows of shape %s would have a gradient of %s",
                   graph->tables[graph->lookups[lookup].table].name, bel_shape_text(want, wt),
                   bel_shape_text(&gradient.shape, gt));
}

bel_status *bel_learner_bind_rows(bel_learner *l, bel_instance *instance)
{
    const bel_graph *graph = l->file.graph;
    for (size_t t = 0; t < graph->table_count; t++) {
        const bel_learner_table *table = &l->tables[t];
        size_t width = (size_t)table->width;
        int64_t position = 0;
        BEL_TRY(gather_ids(l, (int)t));
        BEL_TRY(bel_table_pull_places(table->table, bel_row_batch_keys(table->batch),
                                      bel_row_batch_count(table->batch), table->distinct,
                                      table->places));
        for (int k = graph->tables[t].first_lookup; k >= 0; k = graph->lookups[k].next) {
            const bel_graph_lookup *lookup = &graph->lookups[k];
            int64_t n = ids_of(l, lookup);
            float *gradients = table->gradients + (size_t)position * width;
            lay_out(table, position, n);
            bel_instance_bind_input(instance, lookup->rows, table->rows + (size_t)position * width);
            if (l->lookup_outputs[k] >= 0) {
                BEL_TRY(check_gradient(l, instance, k));
                bel_instance_bind_output(instance, l->lookup_outputs[k], gradients);
            } else { // an earlier batch may have left other lookups' values there
                memset(gradients, 0, (size_t)n * width * sizeof *gradients);
            }
            position += n;
        }
    }
    return NULL;
}

bel_status *bel_learner_update_rows(bel_learner *l)
{
    for (size_t t = 0; t < l->file.graph->table_count; t++) {
        const bel_learner_table *table = &l->tables[t];
        int64_t count = bel_row_batch_count(table->batch);
        bel_row_batch_sum(table->batch, table->gradients, table->width, table->sums);
        BEL_TRY(bel_table_update(
            table->table, l->team, &l->update.groups.items[table->group].numbers, 0,
            bel_row_batch_keys(table->batch), table->places, table->sums, 1, count));
        BEL_TRY(bel_table_end_step(table->table, l->step + 1));
    }
    return NULL;
}
