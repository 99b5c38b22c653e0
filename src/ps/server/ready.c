// When the work of a step is ready: a chunk, or a table, once it is known who counts and all of
// them have reported it. This is looked at whenever a report has come or the ledger's page has
// become known; a chunk is queued once in a step, whatever comes later.
#include "ps/server/shard_inner.h"

void bel_shard_look_at_chunk_locked(bel_shard *shard, int local)
{
    bel_shard_chunk *chunk = &shard->chunks[local];
    int nodes = shard->config.assignment->node_count;
    if (!bel_shard_changes(shard, local) || bel_shard_on_devices(shard)) return;
    if (chunk->queued || !shard->policy->is_known(shard)) return;
    if (shard->policy->lockstep && chunk->reported < nodes)
        return; // spares a search for each report
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

// What other step functions update is brought into the next version's buffer, which must not be
// read by anybody any more: with a ledger nobody does, as workers have copies.
void bel_shard_push_kept_locked(bel_shard *shard)
{
    for (int i = 0; i < shard->chunk_count; i++) {
        const bel_chunk *chunk = &shard->config.layout->chunks[shard->chunks[i].chunk];
        bool changes = chunk->kind == BEL_VARIABLE_FROZEN || bel_shard_changes(shard, i);
        if (changes || shard->chunks[i].queued) continue; // a worker may say all of it again
        shard->chunks[i].queued = true;
        bel_shard_push_chunk_locked(shard, i);
    }
    for (int t = 0; t < shard->config.layout->table_count; t++) {
        if (bel_shard_changes_table(shard, t) || shard->tables[t].queued) continue;
        shard->tables[t].queued = true;
        bel_shard_table_due_locked(shard, t); // a snapshot may be made of it
    }
}
