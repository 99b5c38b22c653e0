// Rows of tables. Keys are grouped by shard in their order, sent from the place that the lanes
// need, and found again in the answers, which are in the shard's memory or in the room for answers.
// At most one pull of a table is under way. Pulls of a step are numbered, since a worker may play
// its replicas in turns. An answer to another pull is skipped, or refused by a lane that would have
// to place it. Every shard gets a report, even an empty one: it counts nodes, not rows.
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "ps/client/client_inner.h"

// Address of a place in a room; NULL without a room.
static char *client_rows_at(void *room, size_t offset)
{
    return room != NULL ? (char *)room + offset : NULL;
}

void bel_client_create_tables(bel_client *client)
{
    const bel_client_config *config = &client->config;
    const bel_layout *layout = config->layout;
    size_t shards = (size_t)layout->shard_count;
    client->tables = bel_xcalloc((size_t)layout->table_count, sizeof *client->tables);
    for (int t = 0; t < layout->table_count; t++) {
        table_view *table = &client->tables[t];
        int64_t ids = bel_row_buffer_ids(layout, config->assignment, config->worker, t);
        size_t keys = bel_row_buffer_keys(layout, config->assignment, config->worker, t);
        size_t answers = bel_row_buffer_answers(layout, config->assignment, config->worker, t);
        table->keys = (int64_t *)(void *)client_rows_at(config->row_buffer, keys);
        table->room = (float *)(void *)client_rows_at(config->answer_room, answers);
        table->places = bel_xcalloc((size_t)ids + 1, sizeof *table->places);
        table->first = bel_xcalloc(shards + 1, sizeof *table->first);
        table->answers = bel_xcalloc(shards, sizeof *table->answers);
        table->payloads = bel_xcalloc(shards, sizeof *table->payloads);
        table->counts = bel_xcalloc(shards, sizeof *table->counts);
        table->filled = bel_xcalloc(shards, sizeof *table->filled);
        table->step = -1;
    }
}

void bel_client_destroy_tables(bel_client *client)
{
    for (int t = 0; t < client->config.layout->table_count; t++) {
        table_view *table = &client->tables[t];
        bel_free(table->places);
        bel_free(table->first);
        bel_free(table->answers);
        bel_free(table->payloads);
        bel_free(table->counts);
        bel_free(table->filled);
    }
    bel_free(client->tables);
}

// --- Pulling -------------------------------------------------------------------------------------

// Counting sort of keys by shard; a shard's keys keep their order. first[k + 1] counts shard k's
// keys. Then first[k] becomes the sum before shard k, advances while keys are placed, and is moved
// back.
static void group_keys(table_view *table, const int64_t *keys, int64_t count, int shard_count)
{
    if (shard_count == 1) { // they are already grouped
        if (count > 0) memcpy(table->keys, keys, (size_t)count * sizeof *keys);
        table->first[1] = count;
        return;
    }
    memset(table->first, 0, ((size_t)shard_count + 1) * sizeof *table->first);
    for (int64_t i = 0; i < count; i++)
        table->first[bel_table_shard(keys[i], shard_count) + 1]++;
    for (int k = 0; k < shard_count; k++)
        table->first[k + 1] += table->first[k];
    for (int64_t i = 0; i < count; i++) {
        int shard = bel_table_shard(keys[i], shard_count);
        table->places[i] = table->first[shard]++; // moved back below
        table->keys[table->places[i]] = keys[i];
    }
    for (int k = shard_count; k > 0; k--)
        table->first[k] = table->first[k - 1];
    table->first[0] = 0;
}

bel_status *bel_client_pull_rows(bel_client *client, int64_t step, int table, const int64_t *keys,
                                 int64_t count)
{
    int shards = client->config.layout->shard_count;
    table_view *view = &client->tables[table];
    group_keys(view, keys, count, shards);
    view->pull = view->step == step ? view->pull + 1 : 0;
    view->step = step;
    for (int k = 0; k < shards; k++) {
        int64_t wanted = view->first[k + 1] - view->first[k];
        view->answers[k] = NULL;
        if (wanted == 0) continue;
        bel_row_pull_frame pull = {.version = step, .table = table, .number = view->pull};
        BEL_TRY(bel_client_send(client, k,
                                bel_row_pull_frame_write(pull, view->keys + view->first[k],
                                                         (size_t)wanted * sizeof(int64_t))));
    }
    return NULL;
}

// Returns the table for which the newest pull asked that shard for the frame's rows, or
// NULL.
static table_view *awaited_table(const bel_client *client, int shard, const bel_frame *frame)
{
    const bel_layout *layout = client->config.layout;
    bel_rows_frame rows = bel_rows_frame_read(frame);
    if (rows.table < 0 || rows.table >= layout->table_count) return NULL;
    table_view *view = &client->tables[rows.table];
    size_t count = (size_t)(view->first[shard + 1] - view->first[shard]);
    size_t width = (size_t)layout->tables[rows.table].width;
    bool awaited = rows.version == view->step && rows.number == view->pull;
    return awaited && frame->payload_bytes == count * width * sizeof(float) ? view : NULL;
}

// The payload is the rows, in the shard's memory or where bel_client_place_rows had them put.
void bel_client_take_rows(bel_client *client, int shard, const bel_frame *frame)
{
    table_view *view = awaited_table(client, shard, frame);
    if (view != NULL) view->answers[shard] = frame->payload;
}

// The answer's size is known since the keys were sent, and a pull is answered once.
void *bel_client_place_rows(bel_client *client, int shard, const bel_frame *frame)
{
    const table_view *view = awaited_table(client, shard, frame);
    if (view == NULL || view->room == NULL) return NULL;
    size_t width = (size_t)client->config.layout->tables[bel_rows_frame_read(frame).table].width;
    return view->room + (size_t)view->first[shard] * width;
}

// True if that shard was asked for rows of a table and has not answered.
static bool lacks_rows(const bel_client *client, int64_t step, int shard)
{
    (void)step;
    for (int t = 0; t < client->config.layout->table_count; t++) {
        const table_view *view = &client->tables[t];
        bool asked = view->first[shard + 1] > view->first[shard];
        if (asked && view->answers[shard] == NULL) return true;
    }
    return false;
}

static bel_status *rows_are_there(bel_client *client, int64_t step, bool *out_there)
{
    bel_client_drain(client);
    *out_there = true;
    for (int k = 0; k < client->config.layout->shard_count; k++)
        if (lacks_rows(client, step, k)) *out_there = false;
    return NULL;
}

bel_status *bel_client_wait_rows(bel_client *client, int64_t step)
{
    static const bel_client_awaited rows = {"rows at step", rows_are_there, lacks_rows};
    return bel_client_wait_until(client, step, &rows);
}

// Finds the key among the grouped keys, then among its shard's. With one shard, keys were not
// grouped.
const float *bel_client_row(const bel_client *client, int table, int64_t index)
{
    const bel_layout *layout = client->config.layout;
    const table_view *view = &client->tables[table];
    int width = layout->tables[table].width;
    if (layout->shard_count == 1) return view->answers[0] + index * width;
    int64_t place = view->places[index];
    int shard = bel_table_shard(view->keys[place], layout->shard_count);
    return view->answers[shard] + (place - view->first[shard]) * width;
}

// --- Reporting -----------------------------------------------------------------------------------

// Copies the parts of all shards into payloads; counts[k] rows are shard k's.
static void copy_parts(const bel_row_set *set, int width, int shard_count, char **payloads,
                       const int64_t *counts, int64_t *filled)
{
    if (shard_count == 1 && set->count > 0) {
        size_t keys = (size_t)set->count * sizeof *set->keys;
        memcpy(payloads[0], set->keys, keys);
        memcpy(payloads[0] + keys, set->rows, bel_row_set_bytes(set->count, width) - keys);
        return;
    }
    memset(filled, 0, (size_t)shard_count * sizeof *filled);
    for (int64_t i = 0; i < set->count; i++) {
        int shard = bel_table_shard(set->keys[i], shard_count);
        int64_t *keys = (int64_t *)(void *)payloads[shard], at = filled[shard]++;
        float *rows = (float *)(void *)(keys + counts[shard]);
        keys[at] = set->keys[i];
        memcpy(rows + at * width, set->rows + i * width, (size_t)width * sizeof *rows);
    }
}

// Lays out the parts of a report, and counts the rows of each.
static void lay_out_report(bel_client *client, int table, int node, const bel_row_set *set)
{
    const bel_client_config *config = &client->config;
    const bel_layout *layout = config->layout;
    table_view *view = &client->tables[table];
    memset(view->counts, 0, (size_t)layout->shard_count * sizeof *view->counts);
    for (int64_t i = 0; i < set->count && layout->shard_count > 1; i++)
        view->counts[bel_table_shard(set->keys[i], layout->shard_count)]++;
    if (layout->shard_count == 1) view->counts[0] = set->count;
    size_t offset = bel_row_buffer_report(layout, config->assignment, table, node);
    for (int k = 0; k < layout->shard_count; k++) {
        view->payloads[k] = client_rows_at(config->row_buffer, offset);
        int width = bel_layout_report_width(&layout->tables[table]);
        offset += bel_row_aligned(bel_row_set_bytes(view->counts[k], width));
    }
}

bel_status *bel_client_report_rows(bel_client *client, int64_t step, uint32_t decision, int table,
                                   int node, bel_weight weight, const bel_row_set *set)
{
    const bel_layout *layout = client->config.layout;
    table_view *view = &client->tables[table];
    int shards = layout->shard_count, width = bel_layout_report_width(&layout->tables[table]);
    lay_out_report(client, table, node, set);
    copy_parts(set, width, shards, view->payloads, view->counts, view->filled);
    for (int k = 0; k < shards; k++) {
        bel_row_report_frame report = {.version = step,
                                       .decision = decision,
                                       .table = table,
                                       .node = node,
                                       .replicas = (int32_t)weight.replicas,
                                       .examples = weight.examples};
        size_t bytes = bel_row_set_bytes(view->counts[k], width);
        BEL_TRY(bel_client_send(client, k,
                                bel_row_report_frame_write(report, view->payloads[k], bytes)));
        bel_fault_point("worker_rows_reported");
    }
    return NULL;
}
