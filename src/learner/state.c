// Checkpoints of a learner: those of a job with one shard and one replica
// (src/ps/server/shard_state.c, src/master/job/save.c). Settings come from the initial checkpoint,
// so that a training can continue where the learner ends. Exceptions are the number of replicas,
// which is one from then on, and the settings that depend on it. Every step counts as one block of
// the input, as if the job had read it.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/best.h"
#include "checkpoint/setting_names.h"
#include "learner/learner_inner.h"
#include "tensor/grain.h"

enum { KEPT = 5 }; // checkpoints

// --- In ------------------------------------------------------------------------------------------

static bel_status *check_model(const bel_learner *l, const bel_ckpt_reader *reader)
{
    char own[32];
    const char *there = bel_ckpt_setting(reader, BEL_SETTING_VARIABLES);
    bel_snprintf(own, sizeof own, "%016llx", (unsigned long long)bel_layout_fingerprint(l->layout));
    if (there != NULL && strcmp(there, own) == 0) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "%s is of another model: its variables are not those of the training graph",
                   bel_ckpt_folder(reader));
}

// Settings that affect a step are already in the graph and the optimizer.
static bel_status *check_settings(const bel_learner *l, const bel_ckpt_reader *reader)
{
    bel_str list = {0};
    bel_settings_differences(reader, l->file.setting_names, l->file.setting_values,
                             l->file.setting_count, bel_setting_is_of_step, &list);
    if (list.length == 0) return NULL;
    bel_status *status = BEL_ERR(BEL_FAILED_PRECONDITION,
                                 "%s is of another training than was exported: %s; hint: export "
                                 "that one",
                                 bel_ckpt_folder(reader), list.text);
    bel_str_deinit(&list);
    return status;
}

static bel_status *restore_slots(bel_learner *l, const bel_ckpt_reader *reader, int v)
{
    const bel_layout_variable *variable = bel_learner_variable(l, v);
    const bel_rule *rule = bel_space_update_group(&l->update, v)->rule;
    size_t room = strlen(variable->name) + BEL_RULE_SLOT_TEXT;
    char *name = bel_xmalloc(room);
    bel_status *status = NULL;
    for (int k = 0; k < rule->slot_count && status == NULL; k++) {
        (void)bel_rule_slot_name(name, room, variable->name, rule, 0, k);
        status = bel_ckpt_read(reader, name, BEL_DTYPE_F32, &variable->shape, 0, variable->elements,
                               l->slots[k] + variable->offset);
    }
    bel_free(name);
    return status;
}

static bel_status *restore_variable(bel_learner *l, const bel_ckpt_reader *reader, int v)
{
    const bel_layout_variable *variable = bel_learner_variable(l, v);
    float *values = l->values + variable->offset;
    if (variable->own_elements > 0)
        return bel_ckpt_read_replicas(reader, variable->name, variable->kind, &variable->shape, 0,
                                      variable->elements, values);
    BEL_TRY(bel_ckpt_read(reader, variable->name, BEL_DTYPE_F32, &variable->shape, 0,
                          variable->elements, values));
    if (variable->kind != BEL_VARIABLE_TRAINABLE) return NULL;
    BEL_TRY(restore_slots(l, reader, v));
    if (l->averages == NULL) return NULL;
    return bel_ckpt_read_average(reader, variable->name, BEL_DTYPE_F32, &variable->shape, 0,
                                 variable->elements, l->averages + variable->offset);
}

// Later checkpoints are made by one replica and by Belfry's own products.
static void take_settings(bel_learner *l, const bel_ckpt_info *info)
{
    size_t count = (size_t)info->setting_count;
    l->setting_names = bel_xcalloc(count + 1, sizeof *l->setting_names);
    l->setting_values = bel_xcalloc(count + 1, sizeof *l->setting_values);
    for (size_t s = 0; s < count; s++) {
        if (bel_setting_is_of_job(info->setting_names[s])) continue;
        bool replicas = strcmp(info->setting_names[s], BEL_SETTING_REPLICAS) == 0;
        l->setting_names[l->setting_count] = bel_xstrdup(info->setting_names[s]);
        l->setting_values[l->setting_count++] =
            bel_xstrdup(replicas ? "1" : info->setting_values[s]);
    }
}

// Steps of one replica read one block each, after all blocks read before.
static bel_status *take_segments(bel_learner *l, const bel_ckpt_reader *reader)
{
    const bel_ckpt_info *info = bel_ckpt_reader_info(reader);
    if (info->segment_count < 1)
        return BEL_ERR(BEL_DATA_LOSS, "%s has no input segments", bel_ckpt_folder(reader));
    size_t count = (size_t)info->segment_count;
    l->segments = bel_xcalloc(count + 1, sizeof *l->segments);
    memcpy(l->segments, info->segments, count * sizeof *l->segments);
    l->segment_count = info->segment_count;
    const bel_input_segment *last = &l->segments[count - 1];
    if (last->replica_count != 1)
        l->segments[l->segment_count++] = bel_input_segment_next(last, info->step, 1);
    return NULL;
}

bel_status *bel_learner_restore(bel_learner *l, const bel_ckpt_reader *reader)
{
    const bel_ckpt_info *info = bel_ckpt_reader_info(reader);
    BEL_TRY(check_model(l, reader));
    BEL_TRY(check_settings(l, reader));
    l->step = info->step;
    l->generation = info->generation;
    BEL_TRY(take_segments(l, reader));
    take_settings(l, info);
    for (int v = 0; v < l->layout->variable_count; v++)
        BEL_TRY_CTX(restore_variable(l, reader, v), "loading %s", bel_ckpt_folder(reader));
    for (int t = 0; t < l->layout->table_count; t++)
        BEL_TRY_CTX(bel_table_restore(l->tables[t].table, reader, 0, 1), "loading %s",
                    bel_ckpt_folder(reader));
    return NULL;
}

// --- Out -----------------------------------------------------------------------------------------

// Pieces of a checkpoint; the names of slots and averages are in an arena.
typedef struct piece_list {
    bel_ckpt_piece *items;
    int count;
    bel_arena *arena;
} piece_list;

static void add_piece(piece_list *to, const bel_layout_variable *variable, const char *name,
                      const float *array)
{
    to->items[to->count++] = (bel_ckpt_piece){.name = bel_arena_strdup(to->arena, name),
                                              .dtype = BEL_DTYPE_F32,
                                              .shape = variable->shape,
                                              .count = variable->elements,
                                              .data = array + variable->offset};
}

static void add_variable(const bel_learner *l, int v, piece_list *to)
{
    const bel_layout_variable *variable = bel_learner_variable(l, v);
    const bel_rule *rule = bel_space_update_group(&l->update, v)->rule;
    size_t room = strlen(variable->name) + BEL_RULE_SLOT_TEXT;
    add_piece(to, variable, variable->name, l->values);
    if (variable->kind != BEL_VARIABLE_TRAINABLE) return;
    char *name = bel_xmalloc(room);
    for (int k = 0; k < rule->slot_count; k++) {
        (void)bel_rule_slot_name(name, room, variable->name, rule, 0, k);
        add_piece(to, variable, name, l->slots[k]);
    }
    bel_snprintf(name, room, "%s/" BEL_CKPT_AVERAGE, variable->name);
    if (l->averages != NULL) add_piece(to, variable, name, l->averages);
    bel_free(name);
}

static bel_status *write_pieces(const bel_learner *l, const piece_list *pieces, const char *folder,
                                bel_ckpt_shard **out_shard)
{
    int count = l->layout->table_count;
    BEL_TRY(bel_ckpt_check_finite(pieces->items, pieces->count));
    if (count == 0)
        return bel_ckpt_write_shard(folder, 0, 1, pieces->items, pieces->count, out_shard);
    bel_ckpt_rows *rows = bel_xcalloc((size_t)count * BEL_TABLE_MOST_SAVED, sizeof *rows);
    bel_status *status = NULL;
    int marked = 0, saved = 0;
    for (; marked < count && status == NULL; marked++) {
        status = bel_table_snapshot(l->tables[marked].table);
        if (status != NULL) break;
        saved += bel_table_rows(l->tables[marked].table, rows + saved);
    }
    if (status == NULL)
        status = bel_ckpt_write_shard_tables(folder, 0, 1, pieces->items, pieces->count, rows,
                                             saved, out_shard);
    for (int t = 0; t < marked; t++)
        bel_table_snapshot_end(l->tables[t].table);
    bel_free(rows);
    return status;
}

static bel_status *write_shard(const bel_learner *l, const char *folder, bel_ckpt_shard **out_shard)
{
    size_t most = (size_t)l->layout->variable_count * (2 + BEL_RULE_MAX_SLOTS) + 1;
    piece_list pieces = {.items = bel_xcalloc(most, sizeof *pieces.items),
                         .arena = bel_arena_create()};
    for (int v = 0; v < l->layout->variable_count; v++)
        add_variable(l, v, &pieces);
    bel_status *status = write_pieces(l, &pieces, folder, out_shard);
    bel_arena_destroy(pieces.arena);
    bel_free(pieces.items);
    return status;
}

static bel_status *state_commit(const bel_learner *l, const char *model_dir, const char *folder,
                                bel_ckpt_shard *shard, bel_hash128 *out_digest)
{
    const bel_ckpt_info info = {.step = l->step,
                                .generation = l->generation,
                                .seed = l->seed,
                                .segments = l->segments,
                                .segment_count = l->segment_count,
                                .setting_names = (const char *const *)l->setting_names,
                                .setting_values = (const char *const *)l->setting_values,
                                .setting_count = l->setting_count};
    return bel_ckpt_commit(model_dir, folder, &info, &shard, 1, out_digest);
}

static bel_status *state_save(const bel_learner *l, const char *model_dir, bel_hash128 *out_digest)
{
    char *folder;
    bel_ckpt_shard *shard = NULL;
    BEL_TRY(bel_ckpt_begin(model_dir, l->step, l->generation, 0, &folder));
    bel_status *status = write_shard(l, folder, &shard);
    if (status == NULL) status = state_commit(l, model_dir, folder, shard, out_digest);
    if (status != NULL) bel_status_ignore(bel_dir_remove(folder)); // the first error is reported
    bel_ckpt_shard_destroy(shard);
    bel_free(folder);
    return status;
}

// Removes old checkpoints, except the one just saved, even if newer ones exist.
static void state_retain(const bel_learner *l, const char *model_dir)
{
    int most = l->keep_checkpoint_max > 0 ? l->keep_checkpoint_max : KEPT;
    if (l->keep_checkpoint_max < 0) return;
    bel_ckpt_retain_but(model_dir, most, 0, &l->step, 1, NULL);
}

bel_status *bel_learner_save(bel_learner *l, const char *model_dir, char out_digest[33])
{
    bel_hash128 digest;
    if (l->torn) return bel_learner_refuse_torn();
    BEL_TRY_CTX(state_save(l, model_dir, &digest), "saving a checkpoint at step %lld",
                (long long)l->step);
    if (out_digest != NULL) bel_hash128_text(digest, out_digest);
    state_retain(l, model_dir);
    return NULL;
}
