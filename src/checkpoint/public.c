// Implementation of belfry/checkpoint.h: a reader (checkpoint.h) as programs see it. It is the same
// struct under another name, so the two cannot differ. Programs see whole tensors, and no pieces,
// generations or segments.
#include "belfry/checkpoint.h"

#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint/best.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"

static bool has_manifest(const char *folder)
{
    char *path = bel_path_join(folder, BEL_MANIFEST_NAME);
    bool found = bel_file_exists(path);
    bel_free(path);
    return found;
}

// Opens a checkpoint's folder. DATA_LOSS: it lacks one of its files, or its base. NOT_FOUND: it has
// no manifest.
static bel_status *open_folder(const char *folder, bel_ckpt_reader **out_reader)
{
    bel_status *status = bel_ckpt_open(folder, out_reader);
    if (bel_status_code(status) != BEL_NOT_FOUND || !has_manifest(folder)) return status;
    bel_status *damaged = BEL_ERR(BEL_DATA_LOSS, "%s", bel_status_message(status));
    bel_status_destroy(status);
    return damaged;
}

bel_status *bel_ckpt_open_any(const char *folder, bel_ckpt_reader **out_reader)
{
    bel_status *status = open_folder(folder, out_reader);
    if (bel_status_code(status) != BEL_NOT_FOUND) return status;
    bel_status_ignore(status); // it may be a model's folder
    BEL_TRY(bel_ckpt_open_latest(folder, out_reader));
    if (*out_reader != NULL) return NULL;
    return BEL_ERR(BEL_NOT_FOUND, "%s is no checkpoint, and contains none", folder);
}

static bel_status *open_step(const char *model_dir, int64_t step, bel_ckpt_reader **out_reader)
{
    char *folder = bel_ckpt_find_folder(model_dir, step);
    bel_status *status = open_folder(folder, out_reader);
    bel_free(folder);
    return status;
}

// A running job may record a better one between the two looks, and remove the former best.
bel_status *bel_ckpt_open_best(const char *model_dir, bel_ckpt_reader **out_reader)
{
    bel_ckpt_best best;
    int64_t before = -1;
    for (;;) {
        bool found;
        BEL_TRY(bel_ckpt_best_read(model_dir, &best, &found));
        if (!found) {
            return BEL_ERR(BEL_NOT_FOUND,
                           "%s has no checkpoint that is kept as the best; hint: train with "
                           "--keep_best METRIC",
                           model_dir);
        }
        bel_status *status = open_step(model_dir, best.step, out_reader);
        if (bel_status_code(status) != BEL_NOT_FOUND) return status;
        bel_status_ignore(status); // reported below, or another one is the best now
        if (best.step == before) break;
        before = best.step;
    }
    return BEL_ERR(BEL_NOT_FOUND, "%s: the best checkpoint, that of step %lld, is not there",
                   model_dir, (long long)best.step);
}

bel_status *bel_checkpoint_open(const char *folder, bel_checkpoint **out_checkpoint)
{
    return bel_ckpt_open_any(folder, out_checkpoint);
}

bel_status *bel_checkpoint_open_best(const char *model_dir, bel_checkpoint **out_checkpoint)
{
    return bel_ckpt_open_best(model_dir, out_checkpoint);
}

void bel_checkpoint_close(bel_checkpoint *checkpoint)
{
    if (checkpoint != NULL) bel_ckpt_close(checkpoint);
}

const char *bel_checkpoint_folder(const bel_checkpoint *checkpoint)
{
    return bel_ckpt_folder(checkpoint);
}

int64_t bel_checkpoint_step(const bel_checkpoint *checkpoint)
{
    return bel_ckpt_reader_info(checkpoint)->step;
}

const char *bel_checkpoint_setting_name(const bel_checkpoint *checkpoint, int index)
{
    const bel_ckpt_info *info = bel_ckpt_reader_info(checkpoint);
    return index >= 0 && index < info->setting_count ? info->setting_names[index] : NULL;
}

const char *bel_checkpoint_setting(const bel_checkpoint *checkpoint, const char *name)
{
    return bel_ckpt_setting(checkpoint, name);
}

int bel_checkpoint_count(const bel_checkpoint *checkpoint)
{
    return bel_ckpt_tensor_count(checkpoint);
}

void bel_checkpoint_tensor(const bel_checkpoint *checkpoint, int index, const char **out_name,
                           bel_dtype *out_dtype, bel_shape *out_shape)
{
    const char *name;
    bel_dtype dtype;
    bel_shape shape;
    bel_ckpt_tensor(checkpoint, index, &name, &dtype, &shape);
    if (out_name != NULL) *out_name = name;
    if (out_dtype != NULL) *out_dtype = dtype;
    if (out_shape != NULL) *out_shape = shape;
}

int bel_checkpoint_find(const bel_checkpoint *checkpoint, const char *name)
{
    return bel_ckpt_find(checkpoint, name);
}

bel_status *bel_checkpoint_read(const bel_checkpoint *checkpoint, const char *name,
                                void *out_elements, size_t bytes)
{
    int index = bel_ckpt_find(checkpoint, name);
    bel_tensor tensor = {.data = NULL};
    if (index < 0) {
        return BEL_ERR(BEL_NOT_FOUND, "%s has no tensor \"%s\"", bel_ckpt_folder(checkpoint), name);
    }
    bel_checkpoint_tensor(checkpoint, index, NULL, &tensor.dtype, &tensor.shape);
    if (bel_tensor_bytes(&tensor) != bytes) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "tensor \"%s\" has %zu bytes, there is room for %zu",
                       name, bel_tensor_bytes(&tensor), bytes);
    }
    return bel_ckpt_read(checkpoint, name, tensor.dtype, &tensor.shape, 0,
                         bel_shape_elements(&tensor.shape), out_elements);
}
