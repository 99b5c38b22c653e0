// Readiness of a step's work: a chunk or a table is ready once the counting workers are known and
// all of them have reported it. This is checked whenever a report has arrived or the ledger's page
// has become known. A chunk is queued once in a step, whatever arrives later.
#include "ps/server/shard_inner.h"

void bel_shard_look_at_chunk_locked(bel_shard *shard, int local)
{
    bel_shard_chunk *chunk = &shard->chunks[local];
    int nodes = shard->config.assignment->node_count;
    if (!bel_shard_changes(shard, local) || bel_shard_on_devices(shard)) return;
    if (chunk->queued || !shard->policy->is_known(shard)) return;
    if (shard->policy->lockstep && chunk->reported < nodes)
        return;                    // saves a search for each report
    if (chunk->merges > 0) return; // it is looked at again after the last
    for (int k = 0; k < nodes; k++)
        if (chunk->nodes[k] == NULL && bel_shard_counts(shard, k)) return;
    chunk->queued = true;
    bel_shard_push_chunk_locked(shard, local);
}

void bel_shard_look_at_table_locked(bel_shard *shard, int t)
{
    bel_shard_table *table = &shard->tables[t];
    if (!bel_shard_changes_table(shard, t)) return;
    if (table->queued || !shard->policy->is_known(shard)) return;
    for (int k = 0; k < shard->config.assignment->node_count; k++)
        if (!table->reported[k] && bel_shard_counts(shard, k)) return;
    table->queued = true;
    bel_shard_table_due_locked(shard, t);
}

void bel_shard_look_at_all_locked(bel_shard *shard)
{
    for (int i = 0; i < shard->chunk_count; i++)
        bel_shard_look_at_chunk_locked(shard, i);
    for (int t = 0; t < shard->config.layout->table_count; t++)
        bel_shard_look_at_table_locked(shard, t);
}

// Copies the values of other step functions into the next version's buffer, which must have no
// readers: with a ledger it has none, as workers have copies.
void bel_shard_push_kept_locked(bel_shard *shard)
{
    if (bel_shard_relays(shard)) return; // their values come as all others do
    for (int i = 0; i < shard->chunk_count; i++) {
        const bel_chunk *chunk = &shard->config.layout->chunks[shard->chunks[i].chunk];
        bool changes = chunk->kind == BEL_VARIABLE_FROZEN || bel_shard_changes(shard, i);
        if (changes || shard->chunks[i].queued) continue; // a worker may repeat its reports
        shard->chunks[i].queued = true;
        bel_shard_push_chunk_locked(shard, i);
    }
    for (int t = 0; t < shard->config.layout->table_count; t++) {
        if (bel_shard_changes_table(shard, t) || shard->tables[t].queued) continue;
        shard->tables[t].queued = true;
        bel_shard_table_due_locked(shard, t); // a snapshot may be made of it
    }
}
