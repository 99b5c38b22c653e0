// A shard and files: loading its segments from a checkpoint, and its part of the next one.
// Loading and the snapshot of the end are for moments when no step runs. Writing and sending
// read the snapshot alone, which nobody changes until it is released, so they may go on beside
// steps and on another thread. One number that is not finite refuses the whole part, as no later
// loss may show it. Values are sent as far as the lane has room and go on from there: no thread
// waits.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "ps/server/shard_inner.h"

// Into buffer 0, which bel_shard_load makes current; slots and averages beside it.
static bel_status *load_segment(bel_shard *shard, const bel_ckpt_reader *reader,
                                const bel_segment *segment)
{
    const bel_layout_variable *variable = &shard->config.layout->variables[segment->variable];
    float *values = shard->config.space->buffers[0] + segment->offset;
    BEL_TRY(bel_ckpt_read(reader, variable->name, BEL_DTYPE_F32, &variable->shape, segment->first,
                          segment->count, values));
    if (variable->kind != BEL_VARIABLE_TRAINABLE) return NULL;
    const bel_rule *rule = bel_shard_group_of(shard, segment->variable)->rule;
    for (int k = 0; k < rule->slot_count; k++) {
        char *name = bel_strf("%s/%s/%s", variable->name, rule->name, rule->slots[k]);
        bel_status *status =
            bel_ckpt_read(reader, name, BEL_DTYPE_F32, &variable->shape, segment->first,
                          segment->count, shard->slots[k] + segment->offset);
        bel_free(name);
        if (status != NULL) return status;
    }
    if (shard->averages == NULL) return NULL;
    return bel_ckpt_read_average(reader, variable->name, BEL_DTYPE_F32, &variable->shape,
                                 segment->first, segment->count, shard->averages + segment->offset);
}

// No step runs. A version's buffer then follows from how many steps were made since (`loaded`).
bel_status *bel_shard_load(bel_shard *shard, const bel_ckpt_reader *reader)
{
    const bel_layout *layout = shard->config.layout;
    for (int i = 0; i < shard->chunk_count; i++) {
        const bel_chunk *chunk = &layout->chunks[shard->chunks[i].chunk];
        atomic_store(&shard->config.space->current[shard->chunks[i].chunk], 0);
        // The other buffer's pages are taken now, not in the first step.
        memset(shard->config.space->buffers[1] + chunk->offset, 0,
               (size_t)chunk->count * sizeof(float));
        for (int s = 0; s < chunk->segment_count; s++) {
            BEL_TRY_CTX(load_segment(shard, reader, &layout->segments[chunk->first_segment + s]),
                        "loading %s", bel_ckpt_folder(reader));
        }
    }
    shard->step = shard->loaded = bel_ckpt_reader_info(reader)->step;
    return bel_shard_load_tables(shard, reader);
}

// No step runs, so everything is read without the lock.
bel_status *bel_shard_snapshot_now(bel_shard *shard)
{
    shard->ledger.leased = shard->ledger.next_block;
    const bel_space *space = shard->config.space;
    for (int i = 0; i < shard->chunk_count; i++) {
        int c = shard->chunks[i].chunk;
        const bel_chunk *chunk = &shard->config.layout->chunks[c];
        bel_shard_copy_to_snapshot(shard, chunk, space->buffers[atomic_load(&space->current[c])]);
    }
    return bel_shard_mark_tables(shard);
}

// Frame *sent of chunk_count + 1: the version's frame comes last and says that all are there.
bel_status *bel_shard_send_snapshot(bel_shard *shard, bel_lane *lane, int64_t version, int *sent,
                                    bool *out_whole)
{
    const float *values =
        shard->averages != NULL ? shard->config.snapshot_averages : shard->config.snapshot;
    *out_whole = false;
    for (; *sent <= shard->chunk_count; ++*sent) {
        bel_frame frame = bel_version_frame_write(
            (bel_version_frame){.version = version, .chunks = shard->chunk_count}, NULL, 0);
        if (*sent < shard->chunk_count) {
            int c = shard->chunks[*sent].chunk;
            const bel_chunk *chunk = &shard->config.layout->chunks[c];
            frame = bel_params_frame_write((bel_params_frame){.version = version, .chunk = c},
                                           values + chunk->offset,
                                           (size_t)chunk->count * sizeof(float));
        }
        frame.generation = shard->config.generation;
        frame.sender = shard->config.shard;
        bel_status *status = bel_lane_send(lane, &frame);
        if (bel_status_code(status) == BEL_RESOURCE_EXHAUSTED) {
            bel_status_ignore(status); // it goes on from here when some were taken
            return NULL;
        }
        if (status != NULL) return status;
    }
    *out_whole = true;
    return NULL;
}

static bel_ckpt_piece piece_of(const bel_layout_variable *variable, const bel_segment *segment,
                               char *name, const float *array)
{
    return (bel_ckpt_piece){.name = name,
                            .dtype = BEL_DTYPE_F32,
                            .shape = variable->shape,
                            .first = segment->first,
                            .count = segment->count,
                            .data = array + segment->offset};
}

enum { SLOT_TEXT = 32 }; // room for "/adam/m" and the like

// Arrays of a trainable variable in a checkpoint: its values, -1, slots of its rule, and the
// average behind them. Writes the name into `room` bytes; returns its length.
static int name_array(const bel_rule *rule, const char *variable, int k, char *name, size_t room)
{
    if (k < 0) return bel_snprintf(name, room, "%s", variable);
    if (k == rule->slot_count) return bel_snprintf(name, room, "%s/" BEL_CKPT_AVERAGE, variable);
    return bel_snprintf(name, room, "%s/%s/%s", variable, rule->name, rule->slots[k]);
}

// The snapshot's array that name_array names with the same k.
static const float *find_array(const bel_shard *shard, const bel_rule *rule, int k)
{
    if (k < 0) return shard->config.snapshot;
    return k < rule->slot_count ? shard->snapshot_slots[k] : shard->config.snapshot_averages;
}

// One piece for each array of each segment. Names lie behind the pieces in one allocation; the
// first walk measures it.
static bel_ckpt_piece *make_pieces(const bel_shard *shard, int *out_count)
{
    const bel_layout *layout = shard->config.layout;
    int kept = bel_optimizers_kept(&shard->config.settings.optimizers), count = 0;
    size_t most = 0, text = 0;
    for (int i = 0; i < shard->chunk_count; i++) {
        const bel_chunk *chunk = &layout->chunks[shard->chunks[i].chunk];
        for (int s = 0; s < chunk->segment_count; s++) {
            int variable = layout->segments[chunk->first_segment + s].variable;
            most += (size_t)kept + 1;
            text += ((size_t)kept + 1) * (strlen(layout->variables[variable].name) + SLOT_TEXT);
        }
    }
    bel_ckpt_piece *pieces = bel_xmalloc(most * sizeof *pieces + text);
    char *names = (char *)(pieces + most);
    for (int i = 0; i < shard->chunk_count; i++) {
        const bel_chunk *chunk = &layout->chunks[shard->chunks[i].chunk];
        for (int s = 0; s < chunk->segment_count; s++) {
            const bel_segment *segment = &layout->segments[chunk->first_segment + s];
            const bel_layout_variable *variable = &layout->variables[segment->variable];
            const bel_shard_group *group = bel_shard_group_of(shard, segment->variable);
            bool trainable = variable->kind == BEL_VARIABLE_TRAINABLE;
            int own = trainable ? bel_rule_kept(group->optimizer) : 0;
            for (int k = -1; k < own; k++) {
                int length = name_array(group->rule, variable->name, k, names,
                                        strlen(variable->name) + SLOT_TEXT);
                pieces[count++] =
                    piece_of(variable, segment, names, find_array(shard, group->rule, k));
                names += length + 1;
            }
        }
    }
    *out_count = count;
    return pieces;
}

// Values, slots and averages: a slot that has overflowed leaves its parameter as it is from then
// on, and no loss would show it.
static bel_status *check_finite(const bel_ckpt_piece *pieces, int count)
{
    for (int i = 0; i < count; i++) {
        const float *numbers = pieces[i].data;
        bool finite = true;
        for (int64_t k = 0; k < pieces[i].count; k++)
            finite &= isfinite(numbers[k]) != 0; // all of them: a loop without an exit is fast
        if (finite) continue;
        return BEL_ERR(BEL_ABORTED,
                       "\"%s\" is not finite, so nothing was saved; hint: a lower learning_rate or "
                       "clip_global_norm often helps",
                       pieces[i].name);
    }
    return NULL;
}

// Reads the snapshot only, so training may go on.
bel_status *bel_shard_write(const bel_shard *shard, const char *folder, bel_ckpt_shard **out_shard)
{
    int count;
    bel_ckpt_piece *pieces = make_pieces(shard, &count);
    bel_status *status = check_finite(pieces, count);
    if (status != NULL) {
        bel_free(pieces);
        return status;
    }
    const bel_layout *layout = shard->config.layout;
    bel_ckpt_rows *tables = bel_xcalloc((size_t)layout->table_count, sizeof *tables);
    for (int t = 0; t < layout->table_count; t++)
        tables[t] = bel_table_rows(shard->tables[t].table);
    status = bel_ckpt_write_shard_tables(folder, shard->config.shard, layout->shard_count, pieces,
                                         count, tables, layout->table_count, out_shard);
    bel_free(tables);
    bel_free(pieces);
    return status;
}
