// Fetched files get the checks of any reader: a manifest must match its checksum, and a file that
// is already present must match size and CRC-32C to count as complete. Folders hold the files of at
// most two checkpoints and their bases. A file's name proves nothing: another run may have had the
// same steps.
#include "checkpoint/files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "checkpoint/folder.h"
#include "checkpoint/reader.h"
#include "checkpoint/shard.h"

static bool is_whole(const char *folder, const bel_manifest_file *expected)
{
    char *path = bel_path_join(folder, expected->name);
    bel_disk_file file = {0};
    uint32_t crc = 0;
    bel_status *status = bel_disk_file_open(path, &file);
    bool same = status == NULL && file.size_bytes == expected->size_bytes;
    if (same) status = bel_disk_file_crc32c(&file, &crc);
    bool whole = same && status == NULL && crc == expected->crc32c;
    bel_status_ignore(status); // then the file is not complete
    bel_disk_file_close(&file);
    bel_free(path);
    return whole;
}

// Wanted files of a checkpoint and its base.
typedef struct needed {
    const char *folder;
    const int *only; // shards whose files to list; NULL: all
    int only_count;
    bel_ckpt_file *files;
    int count;
} needed;

static bool is_needed(const needed *n, int file_count, const char *name)
{
    bool same = n->only == NULL;
    for (int i = 0; i < n->only_count && !same; i++) {
        char *own = bel_ckpt_shard_file_name(n->only[i], file_count);
        same = strcmp(name, own) == 0;
        bel_free(own);
    }
    return same;
}

static void add_file(needed *n, bel_ckpt_file file)
{
    n->files = bel_xrealloc(n->files, ((size_t)n->count + 1) * sizeof *n->files);
    n->files[n->count++] = file;
}

static void add_files(needed *n, int64_t step, const bel_ckpt_reader *reader)
{
    const bel_manifest *manifest = &reader->manifest;
    for (int i = 0; i < manifest->file_count; i++) {
        const bel_manifest_file *file = &manifest->files[i];
        if (!is_needed(n, manifest->file_count, file->name)) continue;
        add_file(n, (bel_ckpt_file){.step = step,
                                    .name = bel_xstrdup(file->name),
                                    .size = (int64_t)file->size_bytes,
                                    .crc32c = file->crc32c,
                                    .whole = is_whole(reader->folder, file)});
    }
}

// Adds the files of a delta's base, or only its manifest if that is not here, or is another run's.
static void add_base(needed *n, const bel_ckpt_reader *delta)
{
    int64_t step = delta->manifest.info.base.step;
    bel_ckpt_reader base = {.arena = bel_arena_create(),
                            .folder = bel_ckpt_folder_path(n->folder, step)};
    bel_status *status = bel_ckpt_load_manifest(&base);
    if (status == NULL) status = bel_ckpt_check_base(delta, &base);
    if (status == NULL) {
        add_files(n, step, &base);
    } else {
        n->count = 0;
        add_file(n,
                 (bel_ckpt_file){.step = step, .name = bel_xstrdup(BEL_CKPT_MANIFEST), .size = -1});
    }
    bel_status_ignore(status); // it is fetched
    bel_free(base.folder);
    bel_arena_destroy(base.arena);
}

bel_status *bel_ckpt_files_needed(const char *folder, int64_t step, const int *only, int only_count,
                                  int shard_count, bel_ckpt_file **out_files, int *out_count,
                                  int64_t *out_base)
{
    bel_ckpt_reader reader = {.arena = bel_arena_create(),
                              .folder = bel_ckpt_folder_path(folder, step)};
    bel_status *status = bel_ckpt_load_manifest(&reader);
    needed n = {.folder = folder, .files = bel_xcalloc(1, sizeof *n.files)};
    if (status == NULL) {
        if (reader.manifest.file_count == shard_count) n.only = only;
        n.only_count = n.only != NULL ? only_count : 0;
        *out_base = reader.manifest.info.base.step;
        if (*out_base > 0) add_base(&n, &reader);
        bool manifest = n.count == 1 && n.files[0].size < 0;
        if (!manifest) add_files(&n, step, &reader);
        *out_files = n.files;
        *out_count = n.count;
    } else {
        bel_free(n.files);
    }
    bel_free(reader.folder);
    bel_arena_destroy(reader.arena);
    return status;
}

void bel_ckpt_files_free(bel_ckpt_file *files, int count)
{
    for (int i = 0; i < count; i++)
        bel_free(files[i].name);
    bel_free(files);
}

bel_status *bel_ckpt_read_file(const char *folder, int64_t step, const char *name, int64_t offset,
                               size_t most, void *out, size_t *out_bytes, int64_t *out_size)
{
    char *checkpoint = bel_ckpt_find_folder(folder, step), *path = bel_path_join(checkpoint, name);
    bel_disk_file file = {0};
    bel_status *status = bel_disk_file_open(path, &file);
    int64_t size = (int64_t)file.size_bytes, left = size - offset;
    if (status == NULL && (offset < 0 || left < 0)) {
        status = BEL_ERR(BEL_OUT_OF_RANGE, "%s has %lld bytes, asked for some from %lld", path,
                         (long long)size, (long long)offset);
    }
    if (status == NULL) {
        *out_size = size;
        *out_bytes = left < (int64_t)most ? (size_t)left : most;
        status = bel_disk_file_read(&file, (uint64_t)offset, out, *out_bytes);
    }
    bel_disk_file_close(&file);
    bel_free(path);
    bel_free(checkpoint);
    return status;
}

void bel_ckpt_shard_file(const bel_ckpt_shard *shard, int64_t *out_size, uint32_t *out_crc32c)
{
    *out_size = (int64_t)shard->file_size_bytes;
    *out_crc32c = shard->file_crc32c;
}

// Step of the base that the checkpoint's manifest names; 0: none, or the manifest is not here.
static int64_t base_of(const char *folder, int64_t step)
{
    bel_ckpt_base base = {0};
    char *path = bel_ckpt_folder_path(folder, step);
    bel_status_ignore(bel_ckpt_read_base(path, &base)); // such a folder is no use to a reader
    bel_free(path);
    return base.step;
}

// A folder that cannot be removed takes space and does no harm: files are checked by content.
void bel_ckpt_remove_others(const char *folder, int64_t step, int64_t base)
{
    int64_t *steps = NULL;
    size_t count = 0;
    bel_status *status = bel_ckpt_list(folder, &steps, &count);
    int64_t before = -1;
    for (size_t i = 0; i < count; i++)
        if (steps[i] < step) before = steps[i];
    const int64_t kept[] = {step, before, base, before >= 0 ? base_of(folder, before) : 0};
    for (size_t i = 0; i < count && status == NULL; i++) {
        bool stays = steps[i] == kept[0] || steps[i] == kept[1];
        for (size_t k = 2; k < sizeof kept / sizeof *kept; k++)
            stays = stays || (kept[k] > 0 && steps[i] == kept[k]);
        if (stays) continue;
        char *path = bel_ckpt_folder_path(folder, steps[i]);
        status = bel_dir_remove(path);
        bel_free(path);
    }
    if (status != NULL) bel_log_write(BEL_LOG_WARN, "%s", bel_status_message(status));
    bel_status_ignore(status); // reported
    bel_free(steps);
}

bel_status *bel_ckpt_make_folder(const char *folder, int64_t step, char **out_path)
{
    BEL_TRY(bel_dir_create(folder));
    *out_path = bel_ckpt_folder_path(folder, step);
    bel_status *status = bel_dir_create(*out_path);
    if (status == NULL) return NULL;
    bel_free(*out_path);
    return status;
}

static bel_status *check_sizes(const bel_ckpt_reader *base)
{
    for (int i = 0; i < base->manifest.file_count; i++) {
        const bel_manifest_file *file = &base->manifest.files[i];
        struct stat info;
        char *path = bel_path_join(base->folder, file->name);
        bel_status *status = NULL;
        if (stat(path, &info) != 0) {
            status = bel_file_error(errno, "look at", path);
        } else if ((uint64_t)info.st_size != file->size_bytes) {
            status = BEL_ERR(BEL_DATA_LOSS, "%s: expected %llu bytes, got %lld", path,
                             (unsigned long long)file->size_bytes, (long long)info.st_size);
        }
        bel_free(path);
        BEL_TRY(status);
    }
    return NULL;
}

bel_status *bel_ckpt_check_full(const char *model_dir, const bel_ckpt_base *base)
{
    bel_ckpt_reader reader = {.arena = bel_arena_create(),
                              .folder = bel_ckpt_find_folder(model_dir, base->step)};
    bel_status *status = bel_ckpt_load_manifest(&reader);
    if (status == NULL) status = bel_ckpt_check_is(base, &reader);
    if (status == NULL) status = check_sizes(&reader);
    bel_free(reader.folder);
    bel_arena_destroy(reader.arena);
    return status;
}
