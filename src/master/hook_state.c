// Memory of hooks that checkpoints keep: a file "hook-<name>" in the checkpoint's folder, its bytes
// and their CRC-32C behind them.
//
// The reports of versions come to the hooks while training goes on, so when the snapshot of a
// version arrives they may have been told of later ones. A copy of the memory is therefore taken
// behind each report, and a checkpoint gets the newest that is not behind its version; older ones
// are then forgotten. Shards do not begin a step before all of them have made the one before, so a
// snapshot is late by the way of a message; MOST_COPIES is far above that.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "master/job.h"

enum { MOST_COPIES = 4096 };

struct bel_hook_copy {
    int64_t step;
    uint8_t *bytes; // of all hooks, one behind the other
};

static size_t bytes_of_all(const bel_hooks *hooks)
{
    size_t bytes = 0;
    for (int i = 0; i < hooks->count; i++)
        bytes += hooks->items[i].state_bytes;
    return bytes;
}

static void drop_first(bel_job *job, int count)
{
    if (count == 0) return; // there may be no list
    for (int i = 0; i < count; i++)
        bel_free(job->hook_copies[i].bytes);
    job->hook_copy_count -= count;
    memmove(job->hook_copies, job->hook_copies + count,
            (size_t)job->hook_copy_count * sizeof *job->hook_copies);
}

void bel_job_note_hooks(bel_job *job, int64_t step)
{
    const bel_hooks *hooks = &job->trainable.hooks;
    size_t bytes = bytes_of_all(hooks), at = 0;
    if (bytes == 0) return;
    if (job->hook_copy_count == MOST_COPIES) drop_first(job, 1);
    job->hook_copies = bel_xgrow(job->hook_copies, &job->hook_copy_capacity,
                                 (size_t)job->hook_copy_count + 1, sizeof *job->hook_copies);
    bel_hook_copy *copy = &job->hook_copies[job->hook_copy_count++];
    *copy = (bel_hook_copy){.step = step, .bytes = bel_xmalloc(bytes)};
    for (int i = 0; i < hooks->count; i++) {
        const bel_hook *hook = &hooks->items[i];
        if (hook->state_bytes > 0) memcpy(copy->bytes + at, hook->state, hook->state_bytes);
        at += hook->state_bytes;
    }
}

void bel_job_forget_hooks(bel_job *job)
{
    drop_first(job, job->hook_copy_count);
    bel_free(job->hook_copies);
    job->hook_copies = NULL;
    job->hook_copy_capacity = 0;
}

static char *path_of(const char *folder, const bel_hook *hook)
{
    char *name = bel_strf("hook-%s", hook->name), *path = bel_path_join(folder, name);
    bel_free(name);
    return path;
}

static bel_status *write_one(const char *folder, const bel_hook *hook, const uint8_t *bytes)
{
    bel_file_writer *writer;
    uint32_t crc = bel_crc32c(0, bytes, hook->state_bytes);
    char *path = path_of(folder, hook);
    bel_status *status = bel_file_writer_open(path, &writer);
    if (status == NULL) {
        bel_file_writer_write(writer, bytes, hook->state_bytes);
        bel_file_writer_write(writer, &crc, sizeof crc);
        status = bel_file_writer_finish(writer, NULL, NULL);
    }
    bel_free(path);
    return status;
}

// Copies that are too old are dropped; the one that is written stays for a checkpoint without news.
bel_status *bel_job_write_hooks(bel_job *job, int64_t step, const char *folder)
{
    const bel_hooks *hooks = &job->trainable.hooks;
    int newest = -1;
    size_t at = 0;
    for (int i = 0; i < job->hook_copy_count && job->hook_copies[i].step <= step; i++)
        newest = i;
    if (newest < 0) return NULL; // no hook has memory to keep
    for (int i = 0; i < hooks->count; i++) {
        const bel_hook *hook = &hooks->items[i];
        if (hook->state_bytes > 0) {
            BEL_TRY_CTX(write_one(folder, hook, job->hook_copies[newest].bytes + at), "hook %s",
                        hook->name);
        }
        at += hook->state_bytes;
    }
    drop_first(job, newest);
    return NULL;
}

static bel_status *read_one(const char *folder, const bel_hook *hook)
{
    char *path = path_of(folder, hook), *data = NULL;
    size_t size = 0;
    uint32_t crc = 0;
    bel_status *status = bel_file_read(path, &data, &size);
    bel_free(path);
    if (bel_status_code(status) == BEL_NOT_FOUND) { // saved without the hook
        bel_status_ignore(status);                  // its memory stays as the program has begun it
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

bel_status *bel_job_read_hooks(bel_job *job, const char *folder, int64_t step)
{
    const bel_hooks *hooks = &job->trainable.hooks;
    for (int i = 0; i < hooks->count; i++)
        if (hooks->items[i].state_bytes > 0) BEL_TRY(read_one(folder, &hooks->items[i]));
    bel_job_forget_hooks(job);
    bel_job_note_hooks(job, step);
    return NULL;
}
