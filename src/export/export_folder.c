// A folder of an export is filled under a temporary name and renamed, so that readers see only
// complete exports. One process at a time fills it: it holds a lock on the folder, which a rename
// carries along.
#define _XOPEN_SOURCE 700 // realpath
#include "export/export_folder.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/linux_lock.h"
#include "base/str.h"
#include "checkpoint/share.h"
#include "estimator/estimator_inner.h"
#include "export/export.h"
#include "learner/training_file.h"

// Whether it is a signature of an exported model, and not another file of that name.
static bool is_signature(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    bel_json *json = NULL;
    const char *format = "";
    bel_status *status = bel_file_read(path, &text, &size);
    if (status == NULL) status = bel_json_parse(text, size, path, &json);
    bool is = status == NULL && bel_json_string(bel_json_root(json), "format", &format) &&
              strcmp(format, "belfry-export") == 0;
    bel_status_ignore(status); // then it is no signature
    bel_json_destroy(json);
    bel_free(text);
    return is;
}

static bool is_of_model(const char *name)
{
    return strcmp(name, BEL_EXPORT_MODEL) == 0 || strcmp(name, BEL_EXPORT_WEIGHTS) == 0 ||
           strcmp(name, BEL_EXPORT_SIGNATURE) == 0 || strcmp(name, BEL_EXPORT_TOKENIZER) == 0;
}

// Whether a name is a possible leftover of a killed export: a signature that was being written, a
// file of a folder of Hugging Face, or a part of a training, whose graph comes first.
static bool is_leftover(const char *name, bool training)
{
    static const char *const starts[] = {BEL_TRAINING_GRAPH, BEL_TRAINING_PREDICTION, "ckpt-",
                                         "source-"};
    static const char *const of_huggingface[] = {"config.json", "model.safetensors",
                                                 BEL_EXPORT_TOKENIZER};
    static const char signature[] = BEL_EXPORT_SIGNATURE ".tmp-";
    bool left = strncmp(name, signature, sizeof signature - 1) == 0;
    for (size_t i = 0; i < sizeof of_huggingface / sizeof of_huggingface[0]; i++)
        left = left || strncmp(name, of_huggingface[i], strlen(of_huggingface[i])) == 0;
    for (size_t i = 0; training && i < sizeof starts / sizeof starts[0]; i++)
        left = left || strncmp(name, starts[i], strlen(starts[i])) == 0;
    return left;
}

typedef enum folder_kind {
    FOLDER_WHOLE,   // an exported model with its signature
    FOLDER_ASIDE,   // an export that stepped aside, or its remains
    FOLDER_WRITING, // an incomplete model or training
} folder_kind;

// Whether a folder may be removed: it contains only files of such an export.
static bool may_go(const char *folder, folder_kind kind)
{
    char **names = NULL;
    size_t count = 0;
    bel_status *status = bel_dir_list(folder, &names, &count);
    char *signature = bel_path_join(folder, BEL_EXPORT_SIGNATURE);
    char *graph = bel_path_join(folder, BEL_TRAINING_GRAPH);
    bool training = kind == FOLDER_WRITING && bel_file_exists(graph);
    bool may = status == NULL;
    for (size_t i = 0; i < count && may; i++)
        may = is_of_model(names[i]) || (kind != FOLDER_WHOLE && is_leftover(names[i], training));
    if (may && kind == FOLDER_WHOLE && count > 0) may = is_signature(signature);
    bel_free(signature);
    bel_free(graph);
    if (status == NULL) bel_dir_names_free(names, count);
    bel_status_ignore(status); // an unreadable folder stays
    return may;
}

static bel_status *refuse_folder(const char *folder)
{
    return BEL_ERR(BEL_ALREADY_EXISTS,
                   "%s is there and is no exported model; hint: name a new folder", folder);
}

static bel_status *check_place(const char *folder, bool replaces)
{
    if (!bel_file_exists(folder)) return NULL;
    if (!replaces)
        return BEL_ERR(BEL_ALREADY_EXISTS, "%s is there; this export needs a new folder", folder);
    return may_go(folder, FOLDER_WHOLE) ? NULL : refuse_folder(folder);
}

// Lets the earlier export step aside, and removes it when the new one is in place. Checks once more
// what appeared there meanwhile.
static bel_status *put_in_place(const char *temporary, const char *folder, const char *aside,
                                bool replaces)
{
    BEL_TRY(check_place(folder, replaces));
    bool is_there = bel_file_exists(folder);
    BEL_TRY(bel_dir_sync(temporary));
    if (is_there) BEL_TRY(bel_file_rename(folder, aside));
    BEL_TRY(bel_file_rename(temporary, folder));
    return is_there ? bel_dir_remove(aside) : NULL;
}

// Makes the folder that is renamed in the end, and locks it. A rename carries the lock along, so a
// process that locks after it has a folder that is no longer at the path.
static bel_status *begin_folder(const char *folder, const char *temporary, int *out_lock)
{
    bool is_it = true;
    if (bel_file_exists(temporary) && !bel_dir_exists(temporary)) return refuse_folder(temporary);
    BEL_TRY(bel_dir_create(temporary));
    bel_status *status = bel_linux_lock_folder(temporary, out_lock);
    if (status == NULL && *out_lock >= 0)
        status = bel_linux_is_open_on(*out_lock, temporary, &is_it);
    bel_code code = bel_status_code(status);
    if (is_it && code != BEL_FAILED_PRECONDITION && code != BEL_NOT_FOUND) return status;
    bel_status_ignore(status); // the other process has it, or has just renamed it
    return BEL_ERR(BEL_FAILED_PRECONDITION, "another process exports to %s", folder);
}

// Removes the leftovers of a killed export.
static bel_status *clear(const char *temporary, const char *aside)
{
    if (!may_go(temporary, FOLDER_WRITING)) return refuse_folder(temporary);
    char **names;
    size_t count;
    BEL_TRY(bel_dir_list(temporary, &names, &count));
    bel_status *status = NULL;
    for (size_t i = 0; i < count && status == NULL; i++) {
        char *path = bel_path_join(temporary, names[i]);
        status = bel_dir_remove(path);
        bel_free(path);
    }
    bel_dir_names_free(names, count);
    BEL_TRY(status);
    if (!bel_file_exists(aside) || may_go(aside, FOLDER_ASIDE)) return bel_dir_remove(aside);
    bool stays = bel_file_exists(aside); // or an export that is ending has just removed it
    return stays ? refuse_folder(aside) : NULL;
}

static bel_status *export_locked(const char *folder, bool replaces, const char *temporary,
                                 const char *aside,
                                 bel_status *(*fill)(void *context, const char *folder),
                                 void *context)
{
    bel_status *status = check_place(folder, replaces);
    if (status == NULL) status = clear(temporary, aside);
    if (status != NULL) {
        (void)rmdir(temporary); // fails if it is not empty
        return status;
    }
    status = fill(context, temporary);
    if (status == NULL) status = put_in_place(temporary, folder, aside, replaces);
    if (status == NULL) return NULL;
    bel_status_ignore(bel_dir_remove(temporary)); // the first error counts
    return status;
}

bel_status *bel_export_to_folder(const char *folder, bool replaces,
                                 bel_status *(*fill)(void *context, const char *folder),
                                 void *context)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    char resolved[PATH_MAX]; // resolves ".", links
    bool is_there = realpath(folder, resolved) != NULL;
    char *place = is_there ? bel_xstrdup(resolved) : bel_xstrndup(folder, length);
    char *temporary = bel_strf("%s.writing", place), *aside = bel_strf("%s.replaced", place);
    int lock = -1;
    bel_status *status = begin_folder(place, temporary, &lock);
    if (status == NULL) status = export_locked(place, replaces, temporary, aside, fill, context);
    bel_linux_unlock(lock);
    bel_free(place);
    bel_free(temporary);
    bel_free(aside);
    return status;
}

bel_status *bel_export_share_source(const bel_estimator *estimator, const char *folder)
{
    const char *digest = bel_estimator_param(estimator, "onnx_digest", NULL);
    if (estimator->config.model_file == NULL || digest == NULL) return NULL;
    char *name = bel_strf("source-%s.onnx", digest);
    char *source = bel_path_join(estimator->config.model_dir, name);
    char *target = bel_path_join(folder, name);
    bel_status *status = bel_ckpt_share_file(source, target);
    bel_free(name);
    bel_free(source);
    bel_free(target);
    return status;
}

bel_status *bel_export_share_tokenizer(const bel_estimator *estimator, const char *folder)
{
    if (bel_estimator_param(estimator, "tokenizer", NULL) == NULL) return NULL;
    char *kept = bel_path_join(estimator->config.model_dir, BEL_EXPORT_TOKENIZER);
    char *target = bel_path_join(folder, BEL_EXPORT_TOKENIZER);
    bel_status *status = bel_file_exists(kept) ? bel_ckpt_share_file(kept, target) : NULL;
    bel_free(kept);
    bel_free(target);
    return status;
}
