// Records one behind the other, each followed by a hash of its bytes; then the offset of each and
// of the end; then a trailer: count, key, hash of the offsets, magic. The trailer comes last, and
// the file gets its name when it is whole, so what has the name and the magic is complete. Numbers
// are 8 bytes as they lie in memory: a cache is read by the kind of machine that wrote it.
//
// It is written under a lock beside it. Who cannot have the lock waits for the one who has it,
// whose death ends the lock; after ten minutes he makes a cache of his own, which does no harm:
// both hold the same, and the later one takes the earlier one's name.
#include "input/cache_file.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/linux_lock.h"
#include "base/log.h"

static const char magic[8] = {'B', 'E', 'L', 'C', 'A', 'C', 'H', '1'};
enum { NUMBER = 8, TRAILER = 3 * NUMBER + (int)sizeof magic };

static uint64_t number_at(const char *at)
{
    uint64_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

// --- Opening -------------------------------------------------------------------------------------

// Whether the opened view holds a whole cache of `key`.
static bool is_of(bel_cache_file *file, uint64_t key, uint64_t count)
{
    const bel_file_view *view = &file->view;
    const char *trailer = view->data + view->size - TRAILER;
    if (number_at(trailer) != count || number_at(trailer + NUMBER) != key) return false;
    if (count >= view->size / NUMBER) return false;
    uint64_t index_bytes = (count + 1) * NUMBER;
    if (index_bytes > view->size - TRAILER) return false;
    file->index = trailer - index_bytes;
    file->count = count;
    return bel_hash64(file->index, index_bytes) == number_at(trailer + 2 * NUMBER);
}

// *out_found: the file is there and of this key. One of another key is closed again.
static bel_status *look(bel_cache_file *file, uint64_t key, int64_t count, bool *out_found)
{
    *out_found = false;
    if (!bel_file_exists(file->path)) return NULL;
    BEL_TRY(bel_file_view_open(file->path, &file->view));
    const bel_file_view *view = &file->view;
    if (view->size < TRAILER ||
        memcmp(view->data + view->size - sizeof magic, magic, sizeof magic) != 0) {
        return BEL_ERR(BEL_ALREADY_EXISTS,
                       "%s is no cache of a dataset and is not overwritten; remove it, or choose "
                       "another name",
                       file->path);
    }
    *out_found = is_of(file, key, (uint64_t)count);
    if (*out_found) return NULL;
    bel_log_write(BEL_LOG_INFO, "cache %s: it was made of other data or stages, and is made anew",
                  file->path);
    bel_file_view_close(&file->view);
    return NULL;
}

static void write_number(bel_file_writer *writer, uint64_t number)
{
    bel_file_writer_write(writer, &number, sizeof number);
}

static bel_status *write_records(bel_file_writer *writer, int64_t count, bel_cache_make *make,
                                 void *context, bel_number_list *offsets)
{
    bel_str bytes = {0};
    bel_status *status = NULL;
    int64_t offset = 0;
    for (int64_t i = 0; i < count && status == NULL; i++) {
        bytes.length = 0;
        status = make(context, i, &bytes);
        if (status == NULL) status = bel_number_list_append(offsets, offset);
        if (status != NULL) break;
        bel_file_writer_write(writer, bytes.text, bytes.length);
        write_number(writer, bel_hash64(bytes.text, bytes.length));
        offset += (int64_t)bytes.length + NUMBER;
    }
    if (status == NULL) status = bel_number_list_append(offsets, offset);
    bel_str_deinit(&bytes);
    return status;
}

static bel_status *write_cache(const char *path, uint64_t key, int64_t count, bel_cache_make *make,
                               void *context)
{
    bel_file_writer *writer;
    bel_number_list offsets = {0};
    BEL_TRY(bel_file_writer_open_beside(path, &writer));
    bel_log_write(BEL_LOG_INFO, "cache %s: writing %lld records", path, (long long)count);
    bel_status *status = write_records(writer, count, make, context, &offsets);
    if (status == NULL) {
        size_t bytes = offsets.count * sizeof *offsets.items;
        bel_file_writer_write(writer, offsets.items, bytes);
        write_number(writer, (uint64_t)count);
        write_number(writer, key);
        write_number(writer, bel_hash64(offsets.items, bytes));
        bel_file_writer_write(writer, magic, sizeof magic);
        status = bel_file_writer_finish(writer, NULL, NULL);
    } else {
        bel_file_writer_abandon(writer);
    }
    bel_number_list_deinit(&offsets);
    return status;
}

// The lock, or -1 when it could not be had in time or the file system has none.
static bel_status *wait_for_lock(const char *path, int *out_lock)
{
    enum { TELL_AFTER_SECS = 30, MOST_TURNS = 20 };
    char *name = bel_strf("%s.lock", path);
    bel_status *status = NULL;
    *out_lock = -1;
    for (int turn = 0; turn < MOST_TURNS; turn++) {
        status = bel_linux_lock(name, TELL_AFTER_SECS, out_lock);
        if (status == NULL || bel_status_code(status) != BEL_FAILED_PRECONDITION) break;
        bel_status_ignore(status); // somebody is at it
        status = NULL;
        bel_log_write(BEL_LOG_INFO, "cache %s: another process makes it; waiting since %d s", path,
                      (turn + 1) * TELL_AFTER_SECS);
    }
    bel_free(name);
    return status;
}

static bel_status *make_and_open(bel_cache_file *file, uint64_t key, int64_t count,
                                 bel_cache_make *make, void *context)
{
    bool found;
    BEL_TRY(look(file, key, count, &found)); // another one may have made it meanwhile
    if (found) return NULL;
    BEL_TRY(write_cache(file->path, key, count, make, context));
    BEL_TRY(look(file, key, count, &found));
    if (found) return NULL;
    return BEL_ERR(BEL_ABORTED, "%s: another process made a cache of other data meanwhile",
                   file->path);
}

bel_status *bel_cache_file_open(bel_cache_file *file, const char *path, uint64_t key, int64_t count,
                                bel_cache_make *make, void *context)
{
    bool found;
    file->path = path;
    BEL_TRY(look(file, key, count, &found));
    if (found) return NULL;
    int lock;
    BEL_TRY(wait_for_lock(path, &lock));
    bel_status *status = make_and_open(file, key, count, make, context);
    bel_linux_unlock(lock);
    return status;
}

void bel_cache_file_close(bel_cache_file *file)
{
    bel_file_view_close(&file->view);
}

bel_status *bel_cache_file_get(const bel_cache_file *file, int64_t number, const char **out_data,
                               size_t *out_size)
{
    uint64_t start = number_at(file->index + (size_t)number * NUMBER);
    uint64_t end = number_at(file->index + ((size_t)number + 1) * NUMBER);
    uint64_t most = (uint64_t)(file->index - file->view.data);
    bool fits = start <= end && end <= most && end - start >= NUMBER;
    const char *data = file->view.data + (fits ? start : 0);
    size_t size = fits ? (size_t)(end - start) - NUMBER : 0;
    if (!fits || bel_hash64(data, size) != number_at(data + size)) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "cache %s: record %lld does not fit its checksum; remove the file and it is "
                       "made anew",
                       file->path, (long long)number);
    }
    *out_data = data;
    *out_size = size;
    return NULL;
}
