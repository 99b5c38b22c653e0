// A shard and files: loads its segments from a checkpoint, and writes its part of the next one.
// Loading and the snapshot at the end happen while no step runs. Writing and sending read only the
// snapshot, which does not change until it is released, so they may run during steps and on another
// thread. One number that is not finite refuses the whole part, as no later loss may show it.
// Values are sent as far as the lane has room and continue from there: no thread waits.
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/setting_names.h"
#include "ps/server/shard_inner.h"

// Loads the slots of a function's rule for a segment.
static bel_status *load_slots(bel_shard *shard, const bel_ckpt_reader *reader,
                              const bel_segment *segment, int function)
{
    const bel_layout_variable *variable = &shard->config.layout->variables[segment->variable];
    const bel_rule *rule = bel_shard_group_in(shard, function, segment->variable)->rule;
    int layer = bel_shard_layer(shard, function, segment->variable);
    size_t room = strlen(variable->name) + BEL_RULE_SLOT_TEXT;
    char *name = bel_xmalloc(room);
    bel_status *status = NULL;
    for (int k = 0; k < rule->slot_count && status == NULL; k++) {
        (void)bel_rule_slot_name(name, room, variable->name, rule, layer, k);
        status = bel_ckpt_read(reader, name, BEL_DTYPE_F32, &variable->shape, segment->first,
                               segment->count, shard->memory.slots[layer][k] + segment->offset);
    }
    bel_free(name);
    return status;
}

// Loads into buffer 0, which bel_shard_load makes current; also slots and averages.
static bel_status *load_segment(bel_shard *shard, const bel_ckpt_reader *reader,
                                const bel_segment *segment)
{
    const bel_layout_variable *variable = &shard->config.layout->variables[segment->variable];
    float *values = shard->config.space->buffers[0] + segment->offset;
    if (variable->own_elements > 0)
        return bel_ckpt_read_replicas(reader, variable->name, variable->kind, &variable->shape,
                                      segment->first, segment->count, values);
    BEL_TRY(bel_ckpt_read(reader, variable->name, BEL_DTYPE_F32, &variable->shape, segment->first,
                          segment->count, values));
    if (variable->kind != BEL_VARIABLE_TRAINABLE) return NULL;
    for (int f = 0; f < shard->config.settings.function_count; f++)
        if (bel_shard_updates(shard, f, segment->variable))
            BEL_TRY(load_slots(shard, reader, segment, f));
    if (shard->memory.averages == NULL) return NULL;
    return bel_ckpt_read_average(reader, variable->name, BEL_DTYPE_F32, &variable->shape,
                                 segment->first, segment->count,
                                 shard->memory.averages + segment->offset);
}

// Loads how often each step function has run: a setting of the checkpoint, if there are several.
static bel_status *load_runs(bel_shard *shard, const bel_ckpt_reader *reader)
{
    int functions = shard->config.settings.function_count;
    memset(shard->rules.runs, 0, sizeof shard->rules.runs);
    shard->rules.runs[0] = shard->step;
    if (functions == 1) return NULL;
    const char *text = bel_ckpt_setting(reader, BEL_SETTING_RUNS), *rest = text;
    for (int f = 0; f < functions && rest != NULL; f++) {
        size_t length = strcspn(rest, ",");
        bool last = f == functions - 1;
        bool number =
            bel_parse_i64(rest, length, &shard->rules.runs[f]) && shard->rules.runs[f] >= 0;
        if (!number || (rest[length] == '\0') != last) {
            rest = NULL;
        } else if (!last) {
            rest += length + 1;
        }
    }
    if (rest != NULL) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: %s must be %d numbers, got \"%s\"", bel_ckpt_folder(reader),
                   BEL_SETTING_RUNS, functions, text != NULL ? text : "");
}

// No step runs. A version's buffer then follows from the number of steps since (`loaded`).
bel_status *bel_shard_load(bel_shard *shard, const bel_ckpt_reader *reader)
{
    const bel_layout *layout = shard->config.layout;
    bel_kept *kept = shard->config.kept;
    if (kept != NULL) bel_kept_clear(kept);
    bel_shard_set_snapshot(shard, 0);
    for (int i = 0; i < shard->chunk_count; i++) {
        const bel_chunk *chunk = &layout->chunks[shard->chunks[i].chunk];
        atomic_store(&shard->config.space->current[shard->chunks[i].chunk], 0);
        // The other buffer's pages are allocated now, not in the first step.
        memset(shard->config.space->buffers[1] + chunk->offset, 0,
               (size_t)chunk->count * sizeof(float));
        for (int s = 0; s < chunk->segment_count; s++) {
            BEL_TRY_CTX(load_segment(shard, reader, &layout->segments[chunk->first_segment + s]),
                        "loading %s", bel_ckpt_folder(reader));
        }
    }
    shard->step = shard->loaded = bel_ckpt_reader_info(reader)->step;
    for (int i = 0; i < shard->chunk_count; i++) {
        shard->chunks[i].version = shard->step;
        if (kept != NULL) bel_kept_set_version(kept, i, shard->step);
    }
    if (kept != NULL) bel_kept_begin(kept, shard->config.generation, shard->loaded, shard->step);
    BEL_TRY(load_runs(shard, reader));
    bel_updater *updater = shard->config.updater;
    if (updater != NULL) BEL_TRY(updater->ops->load(updater));
    return bel_shard_load_tables(shard, reader);
}

void bel_shard_begin_at(bel_shard *shard, int64_t version)
{
    shard->step = shard->loaded = version;
    for (int i = 0; i < shard->chunk_count; i++) {
        shard->chunks[i].version = version;
        atomic_store(&shard->config.space->current[shard->chunks[i].chunk], 0);
    }
}

int bel_shard_buffer_of(const bel_shard *shard, int64_t version)
{
    return bel_shard_buffer_at(shard, version);
}

// The buffer of a version follows from the number of steps since the load, as before. A chunk whose
// next version is made shows the old one until its pass, so workers see one version.
bel_status *bel_shard_continue(bel_shard *shard, int64_t version)
{
    bel_kept *kept = shard->config.kept;
    bool ahead = false;
    if (kept != NULL) shard->loaded = bel_kept_loaded(kept);
    for (int i = 0; i < shard->chunk_count; i++) {
        bel_shard_chunk *local = &shard->chunks[i];
        ahead = ahead || local->version == version + 1;
        bool frozen = shard->config.layout->chunks[local->chunk].kind == BEL_VARIABLE_FROZEN;
        if (frozen) local->version = version; // its passes do not wait for reports
        if (local->version != version && local->version != version + 1) {
            return BEL_ERR(BEL_INTERNAL, "shard %d holds version %lld of chunk %d, expected %lld",
                           shard->config.shard, (long long)local->version, local->chunk,
                           (long long)version);
        }
        int buffer = frozen ? 0 : bel_shard_buffer_at(shard, version);
        atomic_store(&shard->config.space->current[local->chunk], (unsigned char)buffer);
    }
    if (ahead) BEL_TRY(bel_shard_separate_sums(shard));
    shard->step = version;
    shard->rules.runs[0] = version; // there is one step function
    if (kept != NULL) bel_kept_begin(kept, shard->config.generation, shard->loaded, version);
    return NULL;
}

// No step runs, so everything is read without the lock. Slots are two thirds of a training's
// memory with Adam, and nothing changes them until the next start: they are not copied.
bel_status *bel_shard_snapshot_now(bel_shard *shard)
{
    const bel_space *space = shard->config.space;
    bool live =
        shard->config.reads_space && shard->memory.averages == NULL && bel_space_is_in_place(space);
    if (bel_shard_on_devices(shard)) return bel_shard_snapshot_copied(shard);
    bel_shard_set_snapshot(shard, 0);
    shard->ledger.leased = shard->ledger.next_block;
    shard->memory.slots_live = true;
    shard->memory.values_live = live;
    for (int i = 0; i < shard->chunk_count && !live; i++) {
        int c = shard->chunks[i].chunk;
        const bel_chunk *chunk = &shard->config.layout->chunks[c];
        bel_shard_snapshot_values(shard, chunk, space->buffers[atomic_load(&space->current[c])]);
    }
    return bel_shard_mark_tables(shard);
}

bel_status *bel_shard_snapshot_copied(bel_shard *shard)
{
    bel_shard_set_snapshot(shard, 0);
    shard->ledger.leased = shard->ledger.next_block;
    const bel_space *space = shard->config.space;
    if (bel_shard_on_devices(shard)) return bel_shard_save_devices(shard);
    shard->memory.slots_live = shard->memory.values_live = false;
    for (int i = 0; i < shard->chunk_count; i++) {
        int c = shard->chunks[i].chunk;
        const bel_chunk *chunk = &shard->config.layout->chunks[c];
        bel_shard_copy_to_snapshot(shard, chunk, space->buffers[atomic_load(&space->current[c])]);
    }
    return bel_shard_mark_tables(shard);
}

void bel_shard_void_snapshot(bel_shard *shard)
{
    shard->memory.slots_live = shard->memory.values_live = false;
}

void bel_shard_forget_slots(bel_shard *shard)
{
    size_t bytes = bel_space_bytes(shard->config.layout);
    for (int l = 0; l < BEL_MAX_STEP_FUNCTIONS; l++)
        for (int k = 0; k < shard->rules.slot_counts[l]; k++)
            if (shard->memory.snapshot_slots[l][k] != shard->memory.slots[l][k])
                bel_pages_forget(shard->memory.snapshot_slots[l][k], bytes);
}

// Frame *sent of chunk_count + 1: the version's frame is last, and shows that all chunks were sent.
bel_status *bel_shard_send_snapshot(bel_shard *shard, bel_lane *lane, int64_t version, int *sent,
                                    bool *out_whole)
{
    const float *values =
        shard->memory.averages != NULL ? shard->config.snapshot_averages : shard->config.snapshot;
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
            bel_status_ignore(status); // it continues from here when some were taken
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

// Pieces of a checkpoint, followed by their names in one allocation.
typedef struct piece_list {
    bel_ckpt_piece *list;
    int count;
    char *names; // the next piece's name
} piece_list;

static void add_piece(piece_list *to, const bel_layout_variable *variable,
                      const bel_segment *segment, int length, const float *array)
{
    to->list[to->count++] = piece_of(variable, segment, to->names, array);
    to->names += length + 1;
}

// Adds a segment's values, the slots of every function that updates it, and its average.
static void add_segment(const bel_shard *shard, const bel_segment *segment, piece_list *to)
{
    const bel_layout_variable *variable = &shard->config.layout->variables[segment->variable];
    size_t room = strlen(variable->name) + BEL_RULE_SLOT_TEXT;
    int length = bel_snprintf(to->names, room, "%s", variable->name);
    const bel_shard_memory *memory = &shard->memory;
    add_piece(to, variable, segment, length,
              memory->values_live ? shard->config.space->buffers[0] : shard->config.snapshot);
    if (variable->kind != BEL_VARIABLE_TRAINABLE) return;
    for (int f = 0; f < shard->config.settings.function_count; f++) {
        if (!bel_shard_updates(shard, f, segment->variable)) continue;
        const bel_rule *rule = bel_shard_group_in(shard, f, segment->variable)->rule;
        int layer = bel_shard_layer(shard, f, segment->variable);
        for (int k = 0; k < rule->slot_count; k++) {
            length = bel_rule_slot_name(to->names, room, variable->name, rule, layer, k);
            add_piece(to, variable, segment, length,
                      memory->slots_live ? memory->slots[layer][k]
                                         : memory->snapshot_slots[layer][k]);
        }
    }
    if (shard->memory.averages == NULL) return;
    length = bel_snprintf(to->names, room, "%s/" BEL_CKPT_AVERAGE, variable->name);
    add_piece(to, variable, segment, length, shard->config.snapshot_averages);
}

// Maximum number of arrays that a variable can have in a checkpoint beside its values.
static size_t most_kept(const bel_shard *shard)
{
    size_t kept = 1; // an average
    for (int f = 0; f < shard->config.settings.function_count; f++)
        kept += (size_t)bel_optimizers_kept(&shard->config.settings.optimizers[f]);
    return kept;
}

// One piece for each array of each segment; the first pass measures them.
static bel_ckpt_piece *make_pieces(const bel_shard *shard, int *out_count)
{
    const bel_layout *layout = shard->config.layout;
    size_t kept = most_kept(shard), most = 0, text = 0;
    for (int i = 0; i < shard->chunk_count; i++) {
        const bel_chunk *chunk = &layout->chunks[shard->chunks[i].chunk];
        for (int s = 0; s < chunk->segment_count; s++) {
            int variable = layout->segments[chunk->first_segment + s].variable;
            most += kept + 1;
            text += (kept + 1) * (strlen(layout->variables[variable].name) + BEL_RULE_SLOT_TEXT);
        }
    }
    piece_list all = {.list = bel_xmalloc(most * sizeof *all.list + text)};
    all.names = (char *)(all.list + most);
    for (int i = 0; i < shard->chunk_count; i++) {
        const bel_chunk *chunk = &layout->chunks[shard->chunks[i].chunk];
        for (int s = 0; s < chunk->segment_count; s++)
            add_segment(shard, &layout->segments[chunk->first_segment + s], &all);
    }
    *out_count = all.count;
    return all.list;
}

// Lists the tables of a checkpoint, or of a delta on a base.
static bel_status *list_tables(const bel_shard *shard, int64_t base, bel_ckpt_rows *out_tables,
                               int *out_count)
{
    *out_count = 0;
    BEL_TRY(bel_shard_check_tables(shard));
    for (int t = 0; t < shard->config.layout->table_count; t++) {
        bel_table *table = shard->tables[t].table;
        int count = 0;
        if (base == 0)
            count = bel_table_rows(table, out_tables + *out_count);
        else
            BEL_TRY(bel_table_changed_rows(table, base, out_tables + *out_count, &count));
        *out_count += count;
    }
    return NULL;
}

// Reads only the snapshot, so training may continue.
bel_status *bel_shard_write(const bel_shard *shard, const char *folder, int64_t step, int64_t base,
                            bel_ckpt_shard **out_shard)
{
    int count, saved = 0;
    const bel_layout *layout = shard->config.layout;
    size_t most = (size_t)layout->table_count * BEL_TABLE_MOST_SAVED;
    bel_ckpt_rows *tables = bel_xcalloc(most, sizeof *tables);
    bel_ckpt_piece *pieces = make_pieces(shard, &count);
    bel_status *status = bel_ckpt_check_finite(pieces, count);
    if (status == NULL) status = list_tables(shard, base, tables, &saved);
    if (status == NULL) {
        status = bel_ckpt_write_shard_tables(folder, shard->config.shard, layout->shard_count,
                                             pieces, count, tables, saved, out_shard);
    }
    for (int t = 0; status == NULL && base == 0 && t < layout->table_count; t++)
        bel_table_set_base(shard->tables[t].table, step, *out_shard);
    bel_free(tables);
    bel_free(pieces);
    return status;
}
