// An opened checkpoint: the manifest and the shard files, held open, so that a reader can continue
// when retention removes the folder. All files are opened before the first is read. A file is read
// once for its CRC-32C, and its pieces are found, when the checkpoint is opened, or with
// bel_ckpt_open_lazily before the first read from it. Later reads are plain preads.
//
// While a job saves and removes, a listed checkpoint may disappear. The folder is then listed
// again, at most LOOKS times. Only a checkpoint that is still listed and incomplete counts as bad.
// Bad ones are skipped. A system error (no permission, too many open files) is returned, since a
// return to an older state must not happen silently.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/damage.h"
#include "checkpoint/disk_file.h"
#include "checkpoint/files.h"
#include "checkpoint/folder.h"
#include "checkpoint/reader.h"
#include "checkpoint/shard.h"

enum { VERIFY_BLOCK_GRAINS = 16, LOOKS = 100, NONE = -1 };

// --- Opening ------------------------------------------------------------------------------------

// A folder that was copied or renamed would count as the newest, and each resume would return to
// its step. It is an error instead of being skipped: the user made it, and must remove it.
static bel_status *check_name(const bel_ckpt_reader *reader)
{
    int64_t named, step = reader->manifest.info.step;
    if (!bel_ckpt_step_of_folder(reader->folder, &named) || named == step) return NULL;
    return BEL_ERR(
        BEL_FAILED_PRECONDITION,
        "%s: expected the checkpoint of step %lld, got that of step %lld; hint: a folder "
        "that was copied or renamed: move it out of the model folder",
        reader->folder, (long long)named, (long long)step);
}

// Parsed texts and lists are in the reader's arena; the manifest's text is freed at the end.
bel_status *bel_ckpt_load_manifest(bel_ckpt_reader *reader)
{
    char *path = bel_path_join(reader->folder, BEL_MANIFEST_NAME);
    char *text = NULL;
    bel_disk_file file = {0};
    bel_status *status = bel_disk_file_open(path, &file);
    if (status == NULL && file.size_bytes > BEL_MANIFEST_MAX_BYTES) {
        status = BEL_ERR(BEL_DATA_LOSS, "%s: expected at most %d bytes, got %llu", path,
                         BEL_MANIFEST_MAX_BYTES, (unsigned long long)file.size_bytes);
    }
    if (status == NULL) {
        text = bel_xmalloc((size_t)file.size_bytes);
        status = bel_disk_file_read(&file, 0, text, (size_t)file.size_bytes);
    }
    if (status == NULL) {
        status = bel_manifest_parse(text, (size_t)file.size_bytes, path, reader->arena,
                                    &reader->manifest);
    }
    if (status == NULL) status = check_name(reader);
    bel_free(text);
    bel_disk_file_close(&file);
    bel_free(path);
    return status;
}

static bel_status *open_file(const bel_ckpt_reader *reader, const bel_manifest_file *expected,
                             bel_reader_file *file)
{
    char *path = bel_path_join(reader->folder, expected->name);
    bel_status *status = bel_disk_file_open(path, &file->disk);
    bel_free(path);
    file->missing = reader->partial && bel_status_code(status) == BEL_NOT_FOUND;
    if (!file->missing) return status;
    bel_status_destroy(status); // the caller may not need this file
    return NULL;
}

// Opens all files before the first read, which takes long: they then stay readable even when the
// folder is removed.
static bel_status *open_files(bel_ckpt_reader *reader)
{
    const bel_manifest *manifest = &reader->manifest;
    bel_arena *arena = reader->arena;
    size_t tensors = (size_t)manifest->tensor_count;
    reader->files = bel_arena_alloc(arena, (size_t)manifest->file_count * sizeof *reader->files);
    for (int i = 0; i < manifest->file_count; i++)
        BEL_TRY(open_file(reader, &manifest->files[i], &reader->files[i]));
    reader->piece_offset = bel_arena_alloc(arena, tensors * sizeof *reader->piece_offset);
    for (size_t i = 0; i < tensors; i++) {
        size_t pieces = (size_t)manifest->tensors[i].piece_count;
        reader->piece_offset[i] = bel_arena_alloc(arena, pieces * sizeof(uint64_t));
    }
    bel_ckpt_make_table_offsets(reader);
    return NULL;
}

// Opens one folder's manifest and files.
static bel_status *open_folder(const char *folder, bool partial, bel_ckpt_reader **out_reader)
{
    bel_ckpt_reader *reader = bel_xcalloc(1, sizeof *reader);
    reader->arena = bel_arena_create();
    reader->folder = bel_xstrdup(folder);
    reader->partial = partial;
    bel_status *status = bel_ckpt_load_manifest(reader);
    if (status == NULL) status = open_files(reader);
    if (status != NULL) {
        bel_ckpt_close(reader);
        return status;
    }
    *out_reader = reader;
    return NULL;
}

static bel_status *open_base(bel_ckpt_reader *reader)
{
    int64_t step = reader->manifest.info.base.step;
    if (step == 0) return NULL;
    char *path = bel_ckpt_base_path(reader->folder, step);
    bel_status *status = open_folder(path, reader->partial, &reader->base);
    bel_free(path);
    if (bel_status_code(status) == BEL_NOT_FOUND) {
        return bel_status_wrap(status, __FILE__, __LINE__,
                               "%s is a delta on the checkpoint of step %lld, which is not whole "
                               "there; hint: keep, copy and move a delta with its base",
                               reader->folder, (long long)step);
    }
    if (status == NULL) status = bel_ckpt_check_base(reader, reader->base);
    BEL_TRY_CTX(status, "%s is a delta on the checkpoint of step %lld", reader->folder,
                (long long)step);
    return NULL;
}

static bel_status *open_reader(const char *folder, bool partial, bel_ckpt_reader **out_reader)
{
    bel_ckpt_reader *reader;
    BEL_TRY(open_folder(folder, partial, &reader));
    bel_ckpt_damage_warn(folder);
    bel_status *status = open_base(reader);
    if (status != NULL) {
        bel_ckpt_close(reader);
        return status;
    }
    *out_reader = reader;
    return NULL;
}

bel_status *bel_ckpt_read_base(const char *folder, bel_ckpt_base *out_base)
{
    bel_ckpt_reader reader = {.arena = bel_arena_create(), .folder = bel_xstrdup(folder)};
    bel_status *status = bel_ckpt_load_manifest(&reader);
    if (status == NULL) *out_base = reader.manifest.info.base;
    bel_free(reader.folder);
    bel_arena_destroy(reader.arena);
    return status;
}

bel_status *bel_ckpt_open_lazily(const char *folder, bel_ckpt_reader **out_reader)
{
    return open_reader(folder, false, out_reader);
}

bel_status *bel_ckpt_open_part(const char *folder, int64_t step, bel_ckpt_reader **out_reader)
{
    char *path = bel_ckpt_folder_path(folder, step);
    bel_status *status = open_reader(path, true, out_reader);
    bel_free(path);
    return status;
}

static bel_status *use_files(const bel_ckpt_reader *reader)
{
    for (int i = 0; i < reader->manifest.file_count; i++)
        BEL_TRY(bel_ckpt_use_file(reader, i));
    return NULL;
}

bel_status *bel_ckpt_open(const char *folder, bel_ckpt_reader **out_reader)
{
    bel_ckpt_reader *reader;
    BEL_TRY(bel_ckpt_open_lazily(folder, &reader));
    bel_status *status = use_files(reader);
    if (status == NULL && reader->base != NULL) status = use_files(reader->base);
    if (status != NULL) {
        bel_ckpt_close(reader);
        return status;
    }
    *out_reader = reader;
    return NULL;
}

void bel_ckpt_close(bel_ckpt_reader *reader)
{
    if (reader == NULL) return;
    bel_ckpt_close(reader->base);
    for (int i = 0; reader->files != NULL && i < reader->manifest.file_count; i++)
        bel_disk_file_close(&reader->files[i].disk);
    bel_free(reader->folder);
    bel_arena_destroy(reader->arena);
    bel_free(reader);
}

// Whether an error makes a checkpoint bad, to be skipped. A system error (no permission, too many
// files) does not, as skipping would silently return to an older state.
static bool is_bad(const bel_status *status)
{
    bel_code code = bel_status_code(status);
    return code == BEL_DATA_LOSS || code == BEL_NOT_FOUND;
}

// Checks that the folder's owner has not removed the checkpoint meanwhile.
static bel_status *is_listed(const char *model_dir, int64_t step, bool *out_listed)
{
    int64_t *steps;
    size_t count;
    BEL_TRY(bel_ckpt_list(model_dir, &steps, &count));
    *out_listed = false;
    for (size_t i = 0; i < count; i++)
        *out_listed = *out_listed || steps[i] == step;
    bel_free(steps);
    return NULL;
}

// Action on a listed checkpoint: opening it, or reading a setting. NOT_FOUND: a part of it is
// missing.
typedef bel_status *look(const char *folder, void *context);

// Acts on the checkpoint of a listed step while the folder's owner keeps working. A missing part
// may have been removed since the listing (*out_gone), or have stepped aside for a new checkpoint
// of the same step, which the second look then finds.
static bel_status *look_into_listed(const char *model_dir, int64_t step, look *look_into,
                                    void *context, bool *out_gone)
{
    bel_status *status = NULL;
    bool listed = true;
    for (int tries = 0; tries < 2 && listed; tries++) {
        bel_status_destroy(status);
        char *folder = bel_ckpt_find_folder(model_dir, step);
        status = look_into(folder, context);
        bel_free(folder);
        if (bel_status_code(status) != BEL_NOT_FOUND) return status;
        bel_status *listing = is_listed(model_dir, step, &listed);
        if (listing == NULL) continue;
        bel_status_destroy(status);
        return listing;
    }
    *out_gone = !listed;
    return status;
}

static bel_status *open_into(const char *folder, void *out_reader)
{
    return bel_ckpt_open(folder, out_reader);
}

static bel_status *open_lazily_into(const char *folder, void *out_reader)
{
    return bel_ckpt_open_lazily(folder, out_reader);
}

bel_status *bel_ckpt_open_listed(const char *model_dir, int64_t step, bel_ckpt_reader **out_reader)
{
    bool gone;
    return look_into_listed(model_dir, step, open_lazily_into, out_reader, &gone);
}

// Looks once at the folder. *out_gone is the step of a listed checkpoint that was removed before it
// was open, or NONE.
static bel_status *open_newest(const char *model_dir, bel_ckpt_reader **out_reader,
                               int64_t *out_gone)
{
    int64_t *steps;
    size_t count;
    *out_gone = NONE;
    BEL_TRY(bel_ckpt_list(model_dir, &steps, &count));
    bel_status *newest_reason = NULL, *status = NULL;
    bel_ckpt_reader *reader = NULL;
    bool gone = false;
    for (size_t i = count; i-- > 0 && reader == NULL && status == NULL && !gone;) {
        status = look_into_listed(model_dir, steps[i], open_into, &reader, &gone);
        if (gone) *out_gone = steps[i];
        if (!is_bad(status)) continue;
        if (!gone) {
            bel_log_write(BEL_LOG_WARN, "checkpoint ckpt-%08lld in %s is skipped: %s",
                          (long long)steps[i], model_dir, bel_status_message(status));
        }
        if (!gone && newest_reason == NULL) {
            newest_reason =
                BEL_ERR(BEL_DATA_LOSS, "no good checkpoint among the %zu in %s; newest: %s", count,
                        model_dir, bel_status_message(status));
        }
        bel_status_destroy(status);
        status = NULL;
    }
    bel_free(steps);
    if (status == NULL && reader == NULL && !gone) {
        status = newest_reason;
        newest_reason = NULL;
    }
    bel_status_destroy(newest_reason);
    if (status == NULL) *out_reader = reader;
    return status;
}

static bel_status *gone_each_time(const char *model_dir, int64_t step)
{
    return BEL_ERR(
        BEL_ABORTED,
        "%d looks at %s found a checkpoint that was gone before it was open, ckpt-%08lld "
        "at last; hint: does something else remove files there?",
        LOOKS, model_dir, (long long)step);
}

bel_status *bel_ckpt_open_latest(const char *model_dir, bel_ckpt_reader **out_reader)
{
    int64_t gone = NONE;
    for (int tries = 0; tries < LOOKS; tries++) {
        BEL_TRY(open_newest(model_dir, out_reader, &gone));
        if (gone == NONE) return NULL;
    }
    return gone_each_time(model_dir, gone);
}

typedef struct setting {
    const char *name;
    char *value; // NULL: absent
} setting;

static bel_status *read_setting(const char *folder, void *context)
{
    setting *wanted = context;
    bel_ckpt_reader reader = {.arena = bel_arena_create(), .folder = bel_xstrdup(folder)};
    bel_status *status = bel_ckpt_load_manifest(&reader);
    const char *text = status == NULL ? bel_ckpt_setting(&reader, wanted->name) : NULL;
    wanted->value = text != NULL ? bel_xstrdup(text) : NULL;
    bel_free(reader.folder);
    bel_arena_destroy(reader.arena);
    return status;
}

// Looks once at the folder, like open_newest.
static bel_status *look_for_setting(const char *model_dir, setting *wanted, int64_t *out_gone)
{
    int64_t *steps;
    size_t count;
    bool found = false, gone = false;
    *out_gone = NONE;
    BEL_TRY(bel_ckpt_list(model_dir, &steps, &count));
    bel_status *status = NULL;
    for (size_t i = count; i-- > 0 && steps[i] > 0 && !found && !gone && status == NULL;) {
        status = look_into_listed(model_dir, steps[i], read_setting, wanted, &gone);
        found = status == NULL;
        if (gone) *out_gone = steps[i];
        if (!is_bad(status)) continue;
        bel_status_ignore(status); // opening it reports the error; another one may be good
        status = NULL;
    }
    bel_free(steps);
    return status;
}

bel_status *bel_ckpt_latest_setting(const char *model_dir, const char *name, char **out_value)
{
    int64_t gone = NONE;
    setting wanted = {.name = name};
    *out_value = NULL;
    for (int tries = 0; tries < LOOKS; tries++) {
        BEL_TRY(look_for_setting(model_dir, &wanted, &gone));
        if (gone != NONE) continue;
        *out_value = wanted.value;
        return NULL;
    }
    return gone_each_time(model_dir, gone);
}

// --- Contents -------------------------------------------------------------------------------

const bel_ckpt_reader *bel_ckpt_base_reader(const bel_ckpt_reader *reader)
{
    return reader->base;
}

const char *bel_ckpt_folder(const bel_ckpt_reader *reader)
{
    return reader->folder;
}

const bel_ckpt_info *bel_ckpt_reader_info(const bel_ckpt_reader *reader)
{
    return &reader->manifest.info;
}

bel_hash128 bel_ckpt_reader_digest(const bel_ckpt_reader *reader)
{
    return reader->manifest.digest;
}

int bel_ckpt_tensor_count(const bel_ckpt_reader *reader)
{
    return reader->manifest.tensor_count;
}

void bel_ckpt_tensor(const bel_ckpt_reader *reader, int index, const char **out_name,
                     bel_dtype *out_dtype, bel_shape *out_shape)
{
    const bel_manifest_tensor *tensor = &reader->manifest.tensors[index];
    *out_name = tensor->name;
    *out_dtype = tensor->dtype;
    *out_shape = tensor->shape;
}

static int compare_tensor_names(const void *a, const void *b)
{
    const bel_manifest_tensor *left = a, *right = b;
    return strcmp(left->name, right->name);
}

int bel_ckpt_find(const bel_ckpt_reader *reader, const char *name)
{
    const bel_manifest *manifest = &reader->manifest;
    if (manifest->tensor_count == 0) return -1;
    bel_manifest_tensor key = {.name = name};
    const bel_manifest_tensor *found = bsearch(
        &key, manifest->tensors, (size_t)manifest->tensor_count, sizeof key, compare_tensor_names);
    return found == NULL ? -1 : (int)(found - manifest->tensors);
}

// --- Elements -----------------------------------------------------------------------------------

// Finds the piece that holds element `first`, by bisection: pieces cover the tensor without a gap.
static int find_piece(const bel_manifest_tensor *tensor, int64_t first)
{
    int low = 0, high = tensor->piece_count - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (tensor->pieces[middle].first <= first) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

// Reads elements of tensor `index`; the range must be inside it.
static bel_status *read_elements(const bel_ckpt_reader *reader, int index, int64_t first,
                                 int64_t count, void *out_data)
{
    const bel_manifest_tensor *tensor = &reader->manifest.tensors[index];
    size_t element_bytes = bel_dtype_size(tensor->dtype);
    unsigned char *bytes = out_data;
    for (int i = find_piece(tensor, first); count > 0; i++) {
        const bel_manifest_piece *piece = &tensor->pieces[i];
        int64_t skip = first - piece->first;
        int64_t take = piece->count - skip < count ? piece->count - skip : count;
        BEL_TRY(bel_ckpt_use_file(reader, piece->file_index));
        uint64_t offset = reader->piece_offset[index][i] + (uint64_t)skip * element_bytes;
        size_t take_bytes = (size_t)take * element_bytes;
        BEL_TRY(
            bel_disk_file_read(&reader->files[piece->file_index].disk, offset, bytes, take_bytes));
        bytes += take_bytes;
        first += take;
        count -= take;
    }
    return NULL;
}

bel_status *bel_ckpt_read(const bel_ckpt_reader *reader, const char *name, bel_dtype dtype,
                          const bel_shape *shape, int64_t first, int64_t count, void *out_data)
{
    int index = bel_ckpt_find(reader, name);
    if (index < 0) {
        return BEL_ERR(BEL_NOT_FOUND, "checkpoint %s has no tensor \"%s\"", reader->folder, name);
    }
    const bel_manifest_tensor *tensor = &reader->manifest.tensors[index];
    if (tensor->dtype != dtype || !bel_shape_equal(&tensor->shape, shape)) {
        char expected_text[BEL_SHAPE_TEXT], got_text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_DATA_LOSS, "checkpoint %s: tensor \"%s\": expected %s %s, got %s %s",
                       reader->folder, name, bel_dtype_name(dtype),
                       bel_shape_text(shape, expected_text), bel_dtype_name(tensor->dtype),
                       bel_shape_text(&tensor->shape, got_text));
    }
    int64_t elements = bel_shape_elements(shape);
    if (first < 0 || count < 0 || first > elements || count > elements - first) {
        return BEL_ERR(BEL_OUT_OF_RANGE,
                       "checkpoint %s: tensor \"%s\" has %lld elements, asked for %lld from %lld",
                       reader->folder, name, (long long)elements, (long long)count,
                       (long long)first);
    }
    return read_elements(reader, index, first, count, out_data);
}

bel_status *bel_ckpt_read_average(const bel_ckpt_reader *reader, const char *variable,
                                  bel_dtype dtype, const bel_shape *shape, int64_t first,
                                  int64_t count, void *out_data)
{
    char *name = bel_strf("%s/" BEL_CKPT_AVERAGE, variable);
    const char *there = bel_ckpt_find(reader, name) >= 0 ? name : variable;
    bel_status *status = bel_ckpt_read(reader, there, dtype, shape, first, count, out_data);
    bel_free(name);
    return status;
}

// --- Verification -------------------------------------------------------------------------------

// Hashes the grains of a whole tensor from the files; the run is in `arena`.
static bel_status *hash_tensor(const bel_ckpt_reader *reader, int index, void *block,
                               bel_arena *arena, const bel_ckpt_run **out_run)
{
    const bel_manifest_tensor *tensor = &reader->manifest.tensors[index];
    int64_t elements = bel_shape_elements(&tensor->shape);
    int64_t block_elements = (int64_t)VERIFY_BLOCK_GRAINS * BEL_GRAIN;
    uint64_t *hashes = bel_arena_alloc(arena, bel_ckpt_grain_count(elements) * sizeof *hashes);
    for (int64_t first = 0; first < elements; first += block_elements) {
        int64_t count = elements - first < block_elements ? elements - first : block_elements;
        BEL_TRY(read_elements(reader, index, first, count, block));
        bel_ckpt_hash_grains(tensor->dtype, block, count, hashes + first / BEL_GRAIN);
    }
    bel_ckpt_run run = {
        .name = tensor->name,
        .dtype = tensor->dtype,
        .shape = tensor->shape,
        .count = elements,
        .grain_hashes = hashes,
    };
    *out_run = bel_arena_copy(arena, &run, sizeof run);
    return NULL;
}

static bel_status *hash_all(const bel_ckpt_reader *reader, bel_arena *arena,
                            bel_hash128 *out_digest)
{
    size_t table_count = (size_t)reader->manifest.table_count;
    const bel_ckpt_table_run **tables = bel_arena_alloc(arena, table_count * sizeof *tables);
    for (size_t i = 0; i < table_count; i++)
        BEL_TRY(bel_ckpt_hash_table(reader, (int)i, arena, &tables[i]));
    size_t count = (size_t)reader->manifest.tensor_count;
    const bel_ckpt_run **runs = bel_arena_alloc(arena, count * sizeof *runs);
    void *block = // large enough for every dtype
        bel_arena_alloc(arena, (size_t)VERIFY_BLOCK_GRAINS * BEL_GRAIN * sizeof(uint64_t));
    for (size_t i = 0; i < count; i++)
        BEL_TRY(hash_tensor(reader, (int)i, block, arena, &runs[i]));
    // The manifest's tensors and tables are sorted.
    *out_digest = bel_ckpt_digest_runs(runs, count, tables, table_count);
    return NULL;
}

bel_status *bel_ckpt_verify(bel_ckpt_reader *reader)
{
    bel_hash128 got, expected = reader->manifest.digest;
    bel_arena *arena = bel_arena_create();
    bel_status *status = hash_all(reader, arena, &got);
    bel_arena_destroy(arena);
    BEL_TRY(status);
    if (got.low == expected.low && got.high == expected.high) return NULL;
    char got_text[33], expected_text[33];
    return BEL_ERR(BEL_DATA_LOSS, "checkpoint %s: expected the digest %s, the tensors have %s",
                   reader->folder, bel_hash128_text(expected, expected_text),
                   bel_hash128_text(got, got_text));
}
