// Writer of notes. A note is one write of all its bytes, so that after a kill the file ends with a
// complete one, except for bytes that the system lost. Each start of a worker writes a separate
// file, and no file is ever opened again.
#include "input/batch/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "input/batch/audit_format.h"

struct bel_audit {
    char *path;
    int descriptor;
    pthread_mutex_t mutex; // guards the fields below
    bel_str note;
};

// Creates a file with the first unused name: worker-3.0, worker-3.1 …
static bel_status *create_file(bel_audit *audit, const char *folder, int worker)
{
    for (int64_t start = 0; audit->descriptor < 0; start++) {
        char *name = bel_strf("worker-%d.%lld", worker, (long long)start);
        bel_free(audit->path);
        audit->path = bel_path_join(folder, name);
        bel_free(name);
        audit->descriptor = open(audit->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (audit->descriptor < 0 && errno != EEXIST)
            return bel_file_error(errno, "create", audit->path);
    }
    return NULL;
}

static bel_status *write_all(const bel_audit *audit, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t wrote = write(audit->descriptor, data, size);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return bel_file_error(errno, "write", audit->path);
        data += wrote;
        size -= (size_t)wrote;
    }
    return NULL;
}

bel_status *bel_audit_open(const char *folder, int worker, const bel_input *input,
                           int64_t block_end, bel_audit **out_audit)
{
    BEL_TRY(bel_dir_create(folder));
    bel_audit *audit = bel_xcalloc(1, sizeof *audit);
    audit->descriptor = -1;
    pthread_mutex_init(&audit->mutex, NULL);
    bel_audit_header header = {.fingerprint = bel_input_fingerprint(input),
                               .epoch_records = bel_input_epoch_records(input),
                               .block_end = block_end};
    memcpy(header.magic, BEL_AUDIT_MAGIC, sizeof header.magic);
    bel_status *status = create_file(audit, folder, worker);
    if (status == NULL) status = write_all(audit, (const char *)&header, sizeof header);
    if (status != NULL) {
        bel_audit_close(audit);
        return status;
    }
    *out_audit = audit;
    return NULL;
}

void bel_audit_close(bel_audit *audit)
{
    if (audit == NULL) return;
    if (audit->descriptor >= 0) close(audit->descriptor);
    pthread_mutex_destroy(&audit->mutex);
    bel_str_deinit(&audit->note);
    bel_free(audit->path);
    bel_free(audit);
}

bel_status *bel_audit_note(bel_audit *audit, int64_t step, int64_t replica, const bel_batch *batch)
{
    const bel_audit_note_header header = {.step = step,
                                          .replica = replica,
                                          .block = batch->block,
                                          .position_count = batch->position_count};
    pthread_mutex_lock(&audit->mutex);
    bel_str *note = &audit->note;
    note->length = 0;
    bel_str_append(note, (const char *)&header, sizeof header);
    for (int64_t i = 0; i < batch->position_count; i++) {
        const int64_t pair[] = {batch->positions[i].epoch, batch->positions[i].number};
        bel_str_append(note, (const char *)pair, sizeof pair);
    }
    uint64_t hash = bel_hash64(note->text, note->length);
    bel_str_append(note, (const char *)&hash, sizeof hash);
    bel_status *status = write_all(audit, note->text, note->length);
    pthread_mutex_unlock(&audit->mutex);
    return status;
}
