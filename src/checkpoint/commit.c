// Commit: the master merges the shards' reports into a manifest and makes the checkpoint visible.
//
// Invariant: everything in the folder is on disk before the rename, and a kill at any moment leaves
// the checkpoints that were visible before.
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "checkpoint/shard.h"

// --- From shards to a manifest ------------------------------------------------------------------

// Fills file i of the manifest from shard i; shards may be in any order.
static bel_status *describe_files(bel_ckpt_shard *const *shards, int shard_count, bel_arena *arena,
                                  bel_manifest *manifest)
{
    manifest->file_count = shard_count;
    manifest->files = bel_arena_alloc(arena, (size_t)shard_count * sizeof *manifest->files);
    for (int i = 0; i < shard_count; i++) {
        const bel_ckpt_shard *shard = shards[i];
        bool fits = shard->has_file && shard->shard_count == shard_count &&
                    shard->shard_index >= 0 && shard->shard_index < shard_count &&
                    manifest->files[shard->shard_index].name == NULL;
        if (!fits) {
            return BEL_ERR(BEL_INTERNAL,
                           "expected %d shards with a file each, got shard %d of %d %s",
                           shard_count, shard->shard_index, shard->shard_count,
                           shard->has_file ? "out of place" : "without a file");
        }
        char *name = bel_ckpt_shard_file_name(shard->shard_index, shard->shard_count);
        manifest->files[shard->shard_index] = (bel_manifest_file){
            .name = bel_arena_strdup(arena, name),
            .size_bytes = shard->file_size_bytes,
            .crc32c = shard->file_crc32c,
        };
        bel_free(name);
    }
    return NULL;
}

// `runs` are one tensor's runs, by first element.
static bel_status *describe_tensor(const bel_ckpt_run *const *runs, size_t run_count,
                                   bel_arena *arena, bel_manifest_tensor *tensor)
{
    const bel_ckpt_run *head = runs[0];
    char text[BEL_SHAPE_TEXT], other_text[BEL_SHAPE_TEXT];
    int64_t next = 0;
    tensor->name = head->name;
    tensor->dtype = head->dtype;
    tensor->shape = head->shape;
    tensor->pieces = bel_arena_alloc(arena, run_count * sizeof *tensor->pieces);
    tensor->piece_count = (int)run_count;
    for (size_t i = 0; i < run_count; i++) {
        const bel_ckpt_run *run = runs[i];
        if (run->dtype != head->dtype || !bel_shape_equal(&run->shape, &head->shape)) {
            return BEL_ERR(BEL_INTERNAL, "tensor \"%s\": shard %d has %s %s, shard %d has %s %s",
                           head->name, head->shard_index, bel_dtype_name(head->dtype),
                           bel_shape_text(&head->shape, text), run->shard_index,
                           bel_dtype_name(run->dtype), bel_shape_text(&run->shape, other_text));
        }
        if (run->first != next || (i > 0 && run->count == 0)) {
            return BEL_ERR(BEL_INTERNAL,
                           "tensor \"%s\": expected a piece from element %lld on, shard "
                           "%d has one from %lld",
                           head->name, (long long)next, run->shard_index, (long long)run->first);
        }
        tensor->pieces[i] = (bel_manifest_piece){run->first, run->count, run->shard_index};
        next += run->count;
    }
    int64_t elements = bel_shape_elements(&head->shape);
    if (next != elements) {
        return BEL_ERR(BEL_INTERNAL,
                       "tensor \"%s\" %s: expected %lld elements, the shards have %lld", head->name,
                       bel_shape_text(&head->shape, text), (long long)elements, (long long)next);
    }
    return NULL;
}

// Runs are sorted by name, so one tensor's runs are neighbors.
static bel_status *describe_tensors(const bel_ckpt_run *const *runs, size_t run_count,
                                    bel_arena *arena, bel_manifest *manifest)
{
    manifest->tensors = bel_arena_alloc(arena, run_count * sizeof *manifest->tensors);
    for (size_t i = 0; i < run_count;) {
        size_t end = i + 1;
        while (end < run_count && strcmp(runs[end]->name, runs[i]->name) == 0)
            end++;
        bel_manifest_tensor *tensor = &manifest->tensors[manifest->tensor_count++];
        BEL_TRY(describe_tensor(runs + i, end - i, arena, tensor));
        i = end;
    }
    return NULL;
}

static bool same_columns(const bel_ckpt_table_run *a, const bel_ckpt_table_run *b)
{
    if (a->width != b->width || a->column_count != b->column_count) return false;
    for (int c = 0; c < a->column_count; c++)
        if (strcmp(a->columns[c], b->columns[c]) != 0) return false;
    return true;
}

// `parts` are one table's parts, by shard.
static bel_status *describe_table(const bel_ckpt_table_run *const *parts, size_t part_count,
                                  int shard_count, bool is_delta, bel_arena *arena,
                                  bel_manifest_table *table)
{
    const bel_ckpt_table_run *head = parts[0];
    size_t bytes = (size_t)shard_count * sizeof *table->rows;
    table->table = (bel_ckpt_table){head->name, head->width, head->column_count, head->columns};
    table->rows = bel_arena_alloc(arena, bytes);
    table->removed = is_delta ? bel_arena_alloc(arena, bytes) : NULL;
    for (int i = 0; i < shard_count; i++) {
        if ((size_t)i >= part_count || parts[i]->shard_index != i) {
            return BEL_ERR(BEL_INTERNAL,
                           "table \"%s\": expected a part of each of the %d shards, there is not "
                           "one of shard %d",
                           head->name, shard_count, i);
        }
        if (!same_columns(head, parts[i])) {
            return BEL_ERR(BEL_INTERNAL,
                           "table \"%s\": shard %d has rows of %d times %d floats, shard %d of %d "
                           "times %d, or their columns have other names",
                           head->name, head->shard_index, head->column_count, head->width, i,
                           parts[i]->column_count, parts[i]->width);
        }
        if ((parts[i]->removed >= 0) != is_delta) {
            return BEL_ERR(BEL_INTERNAL, "table \"%s\": shard %d has written %s, expected %s",
                           head->name, i, is_delta ? "all rows" : "a delta",
                           is_delta ? "a delta" : "all rows");
        }
        table->rows[i] = parts[i]->file_rows;
        if (is_delta) table->removed[i] = parts[i]->removed;
        table->all += parts[i]->row_count;
    }
    if (part_count == (size_t)shard_count) return NULL;
    return BEL_ERR(BEL_INTERNAL, "table \"%s\": expected %d parts, one of each shard, got %zu",
                   head->name, shard_count, part_count);
}

// Parts are sorted like runs: one table's parts are neighbors.
static bel_status *describe_tables(const bel_ckpt_table_run *const *parts, size_t part_count,
                                   int shard_count, bel_arena *arena, bel_manifest *manifest)
{
    manifest->tables = bel_arena_alloc(arena, part_count * sizeof *manifest->tables);
    for (size_t i = 0, end; i < part_count; i = end) {
        for (end = i + 1; end < part_count && strcmp(parts[end]->name, parts[i]->name) == 0;)
            end++;
        bel_manifest_table *table = &manifest->tables[manifest->table_count++];
        bool is_delta = manifest->info.base.step > 0;
        BEL_TRY(describe_table(parts + i, end - i, shard_count, is_delta, arena, table));
    }
    return NULL;
}

// Fills the manifest, with the digest, from the shards' reports; texts stay the shards'.
static bel_status *commit_describe(const bel_ckpt_info *info, bel_ckpt_shard *const *shards,
                                   int shard_count, bel_arena *arena, bel_manifest *manifest)
{
    size_t run_count, part_count;
    const bel_ckpt_run **runs = bel_ckpt_gather_runs(shards, shard_count, &run_count);
    const bel_ckpt_table_run **parts = bel_ckpt_gather_tables(shards, shard_count, &part_count);
    *manifest = (bel_manifest){.info = *info,
                               .digest = bel_ckpt_digest_runs(runs, run_count, parts, part_count)};
    bel_status *status = describe_files(shards, shard_count, arena, manifest);
    if (status == NULL) status = describe_tensors(runs, run_count, arena, manifest);
    if (status == NULL) status = describe_tables(parts, part_count, shard_count, arena, manifest);
    bel_free(runs);
    bel_free(parts);
    return status;
}

// --- To disk ------------------------------------------------------------------------------------

static bel_status *write_manifest(const char *folder, const bel_manifest *manifest,
                                  bel_arena *arena)
{
    bel_str text = {0};
    char *path = bel_path_join(folder, BEL_MANIFEST_NAME);
    bel_manifest_write(manifest, &text);
    // Finds unreadable contents (a setting that is not UTF-8 or is set twice) now and not at the
    // next start.
    bel_manifest parsed;
    bel_status *status = NULL;
    if (text.length > BEL_MANIFEST_MAX_BYTES) {
        status = BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                         "%s: would have %zu bytes, at most %d can be read back; hint: fewer "
                         "variables or shorter settings",
                         path, text.length, BEL_MANIFEST_MAX_BYTES);
    }
    if (status == NULL) status = bel_manifest_parse(text.text, text.length, path, arena, &parsed);
    bel_file_writer *writer;
    if (status == NULL) status = bel_file_writer_open(path, &writer);
    if (status == NULL) {
        bel_file_writer_write(writer, text.text, text.length);
        status = bel_file_writer_finish(writer, NULL, NULL);
    }
    bel_free(path);
    bel_str_deinit(&text);
    return status;
}

// Renames the folder to its final name. A rename does not replace a non-empty folder, so a
// checkpoint of the same step steps aside first. It comes back if the rename fails. If the process
// is killed between the two renames, readers use the one that stepped aside.
static bel_status *commit_publish(const char *model_dir, const char *folder,
                                  const char *final_folder)
{
    BEL_TRY(bel_dir_sync(folder));
    BEL_TRY(bel_ckpt_step_aside(final_folder));
    bel_fault_point("checkpoint_before_rename");
    bel_status *status = bel_file_rename(folder, final_folder);
    if (status != NULL) {
        bel_status_ignore(bel_ckpt_step_back(final_folder)); // readers find it stepped aside
        return status;
    }
    bel_fault_point("checkpoint_after_rename");
    BEL_TRY(bel_dir_sync(model_dir));
    bel_status_ignore(bel_ckpt_remove_replaced(final_folder)); // bel_ckpt_begin removes it later
    return NULL;
}

bel_status *bel_ckpt_commit(const char *model_dir, const char *folder, const bel_ckpt_info *info,
                            bel_ckpt_shard *const *shards, int shard_count, bel_hash128 *out_digest)
{
    bel_arena *arena = bel_arena_create();
    char *final_folder = bel_ckpt_folder_path(model_dir, info->step);
    bel_manifest manifest;
    bel_status *status = commit_describe(info, shards, shard_count, arena, &manifest);
    if (status == NULL) status = write_manifest(folder, &manifest, arena);
    if (status == NULL) status = commit_publish(model_dir, folder, final_folder);
    if (status == NULL) {
        *out_digest = manifest.digest;
    } else {
        status = bel_status_wrap(status, __FILE__, __LINE__, "checkpoint %s", final_folder);
        bel_status_ignore(bel_dir_remove(folder)); // frees its space
    }
    bel_free(final_folder);
    bel_arena_destroy(arena);
    return status;
}
