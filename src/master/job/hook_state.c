// Memory of hooks in checkpoints: a file "hook-<name>" in the checkpoint's folder, with its bytes
// followed by their CRC-32C.
//
// Hooks are called in the order of the versions: for no step after a snapshot before that is saved
// and evaluated (train.c). So the memory is that of the checkpoint's version when it is written. It
// is written again after each evaluation, which a hook may have stored. After a kill between the
// two, or before the evaluation's values are on disk, the evaluation is repeated.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "checkpoint/folder.h"
#include "master/job/job.h"

static size_t bytes_of_all(const bel_hooks *hooks)
{
    size_t bytes = 0;
    for (int i = 0; i < hooks->count; i++)
        bytes += hooks->items[i].state_bytes;
    return bytes;
}

static void note_beginning(bel_job_hooks *own, const bel_hooks *hooks)
{
    size_t bytes = bytes_of_all(hooks), at = 0;
    if (bytes == 0) return;
    own->beginning = bel_xmalloc(bytes);
    for (int i = 0; i < hooks->count; i++) {
        const bel_hook *hook = &hooks->items[i];
        if (hook->state_bytes > 0) memcpy(own->beginning + at, hook->state, hook->state_bytes);
        at += hook->state_bytes;
    }
}

void bel_job_forget_hooks(bel_job_hooks *hooks)
{
    bel_free(hooks->beginning);
    hooks->beginning = NULL;
}

static char *path_of(const char *folder, const bel_hook *hook)
{
    char *name = bel_strf("hook-%s", hook->name), *path = bel_path_join(folder, name);
    bel_free(name);
    return path;
}

// Replaces the file atomically: readers, and a kill, see the old bytes or the new ones.
static bel_status *write_one(const char *folder, const bel_hook *hook)
{
    bel_file_writer *writer;
    uint32_t crc = bel_crc32c(0, hook->state, hook->state_bytes);
    char *path = path_of(folder, hook);
    bel_status *status = bel_file_writer_open_beside(path, &writer);
    if (status == NULL) {
        bel_file_writer_write(writer, hook->state, hook->state_bytes);
        bel_file_writer_write(writer, &crc, sizeof crc);
        status = bel_file_writer_finish(writer, NULL, NULL);
    }
    bel_free(path);
    return status;
}

bel_status *bel_job_write_hooks(const bel_job *job, const char *folder)
{
    const bel_hooks *hooks = &job->trainable.hooks;
    for (int i = 0; i < hooks->count; i++) {
        const bel_hook *hook = &hooks->items[i];
        if (hook->state_bytes > 0) BEL_TRY_CTX(write_one(folder, hook), "hook %s", hook->name);
    }
    return NULL;
}

bel_status *bel_job_rewrite_hooks(const bel_job *job, int64_t step)
{
    if (bytes_of_all(&job->trainable.hooks) == 0) return NULL;
    char *folder = bel_ckpt_find_folder(job->estimator->config.model_dir, step);
    bool saved = bel_file_exists(folder); // otherwise it was only evaluated
    bel_status *status = saved ? bel_job_write_hooks(job, folder) : NULL;
    bel_free(folder);
    return status;
}

static bel_status *read_one(const char *folder, const bel_hook *hook, const uint8_t *beginning)
{
    char *path = path_of(folder, hook), *data = NULL;
    size_t size = 0;
    uint32_t crc = 0;
    bel_status *status = bel_file_read(path, &data, &size);
    bel_free(path);
    if (bel_status_code(status) == BEL_NOT_FOUND) { // saved without the hook
        bel_status_ignore(status);
        memcpy(hook->state, beginning, hook->state_bytes);
        return NULL;
    }
    BEL_TRY(status);
    if (size != hook->state_bytes + sizeof crc) {
        status = BEL_ERR(BEL_FAILED_PRECONDITION,
                         "hook %s: its state in %s has %zu bytes, here it has %zu", hook->name,
                         folder, size > sizeof crc ? size - sizeof crc : 0, hook->state_bytes);
    } else {
        memcpy(&crc, data + hook->state_bytes, sizeof crc);
        if (crc == bel_crc32c(0, data, hook->state_bytes)) {
            memcpy(hook->state, data, hook->state_bytes);
        } else {
            status =
                BEL_ERR(BEL_DATA_LOSS, "hook %s: its state in %s is damaged", hook->name, folder);
        }
    }
    bel_free(data);
    return status;
}

bel_status *bel_job_read_hooks(bel_job *job, const char *folder)
{
    const bel_hooks *hooks = &job->trainable.hooks;
    size_t at = 0;
    if (job->hooks.beginning == NULL) note_beginning(&job->hooks, hooks); // first read
    for (int i = 0; i < hooks->count; i++) {
        const bel_hook *hook = &hooks->items[i];
        if (hook->state_bytes > 0) BEL_TRY(read_one(folder, hook, job->hooks.beginning + at));
        at += hook->state_bytes;
    }
    return NULL;
}
