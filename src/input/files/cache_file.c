// Format: records one after the other, each followed by a hash of its bytes; the offset of each and
// of the end; a trailer with count, key, hash of the offsets and magic. The trailer is written
// last, and the file gets its name when it is complete, so a file with the name and the magic is
// complete. Numbers have 8 bytes in the machine's byte order: a cache is read by the kind of
// machine that wrote it.
//
// The writer holds a lock on a file beside the cache. Other processes wait for the lock, which ends
// with its holder. Writing may take hours, so the holder writes its progress into the lock file
// once a second, and the others wait as long as that changes. The next holder removes the leftovers
// of a killed one. On a file system without locks each process makes a cache, which does no harm:
// all have the same content, and the last one keeps the name.
#include "input/files/cache_file.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/linux_lock.h"
#include "base/log.h"
#include "base/str.h"

static const char magic[8] = {'B', 'E', 'L', 'C', 'A', 'C', 'H', '1'};
enum { NUMBER = 8, TRAILER = 3 * NUMBER + (int)sizeof magic };

static uint64_t number_at(const char *at)
{
    uint64_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

// Input of making a cache.
typedef struct making {
    uint64_t key;
    int64_t count;
    bel_cache_make *make;
    void *context;
} making;

// --- Opening -------------------------------------------------------------------------------------

// Whether the opened view holds a complete cache of `key`.
static bool is_of(bel_cache_file *file, uint64_t key, uint64_t count)
{
    const bel_file_view *view = &file->view;
    const char *trailer = view->data + view->size - TRAILER;
    if (number_at(trailer) != count || number_at(trailer + NUMBER) != key) return false;
    if (count >= view->size / NUMBER) return false;
    uint64_t index_bytes = (count + 1) * NUMBER;
    if (index_bytes > view->size - TRAILER) return false;
    file->index = trailer - index_bytes;
    return bel_hash64(file->index, index_bytes) == number_at(trailer + 2 * NUMBER);
}

// Opens the cache. *out_found: it exists and has this key; one of another key is closed again.
static bel_status *cache_file_look(bel_cache_file *file, uint64_t key, int64_t count,
                                   bool *out_found)
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

// --- Writing -------------------------------------------------------------------------------------

static void write_number(bel_file_writer *writer, uint64_t number)
{
    bel_file_writer_write(writer, &number, sizeof number);
}

// Writes the lock holder's progress, for the waiting processes.
static void tell_progress(int lock, int64_t done, int64_t count)
{
    if (lock < 0) return;
    char *text = bel_strf("%lld of %lld records by process %lld\n", (long long)done,
                          (long long)count, (long long)getpid());
    bool told = ftruncate(lock, 0) == 0 && pwrite(lock, text, strlen(text), 0) > 0;
    (void)told; // the cache does not depend on it
    bel_free(text);
}

static bel_status *write_records(bel_file_writer *writer, int lock, const making *m,
                                 bel_number_list *offsets)
{
    enum { TELL_EACH_NS = 1000000000 };
    bel_str bytes = {0};
    bel_status *status = NULL;
    int64_t offset = 0, tell_at = 0;
    for (int64_t i = 0; i < m->count && status == NULL; i++) {
        if (bel_clock_ns() >= tell_at) {
            tell_progress(lock, i, m->count);
            tell_at = bel_clock_ns() + TELL_EACH_NS;
        }
        bytes.length = 0;
        status = m->make(m->context, i, &bytes);
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

static bel_status *write_cache(const char *path, int lock, const making *m)
{
    bel_file_writer *writer;
    bel_number_list offsets = {0};
    BEL_TRY(bel_file_writer_open_beside(path, &writer));
    bel_log_write(BEL_LOG_INFO, "cache %s: writing %lld records", path, (long long)m->count);
    bel_status *status = write_records(writer, lock, m, &offsets);
    if (status == NULL) {
        size_t bytes = offsets.count * sizeof *offsets.items;
        bel_file_writer_write(writer, offsets.items, bytes);
        write_number(writer, (uint64_t)m->count);
        write_number(writer, m->key);
        write_number(writer, bel_hash64(offsets.items, bytes));
        bel_file_writer_write(writer, magic, sizeof magic);
        status = bel_file_writer_finish(writer, NULL, NULL);
    } else {
        bel_file_writer_abandon(writer);
    }
    bel_number_list_deinit(&offsets);
    return status;
}

// --- One at a time -------------------------------------------------------------------------------

// Removes the leftovers of writers that were killed; the lock's holder is the only writer. A file
// that cannot be removed does no harm.
static void remove_leftovers(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? bel_xstrdup(".") : bel_xstrndup(path, (size_t)(slash - path));
    char *begins = bel_strf("%s.tmp-", slash == NULL ? path : slash + 1), **names = NULL;
    size_t count = 0;
    // A folder that cannot be listed keeps its leftovers.
    bel_status_ignore(bel_dir_list(folder[0] == '\0' ? "/" : folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], begins, strlen(begins)) != 0) continue;
        const char *rest = names[i] + strlen(begins); // PID-N, as file.c makes it
        if (strspn(rest, "0123456789-") != strlen(rest)) continue;
        char *left = bel_path_join(folder, names[i]);
        if (unlink(left) == 0)
            bel_log_write(BEL_LOG_INFO, "cache: removed %s, which was not finished", left);
        bel_free(left);
    }
    bel_dir_names_free(names, count);
    bel_free(begins);
    bel_free(folder);
}

// Reads the progress from the lock file, or an empty text. Free with bel_free.
static char *read_progress(const char *lock_path)
{
    char *text = NULL;
    size_t size;
    bel_status *status = bel_file_read(lock_path, &text, &size);
    if (status == NULL) return text;
    bel_status_ignore(status); // the same as an empty one
    return bel_xstrdup("");
}

// Waits for the lock; -1: the file system has no locks.
static bel_status *wait_for_lock(const char *path, bel_cache_patience patience, int *out_lock)
{
    char *lock_path = bel_strf("%s.lock", path), *before = bel_xstrdup("");
    bel_status *status = NULL;
    int still = 0; // looks since the progress last changed
    for (;;) {
        status = bel_linux_lock(lock_path, patience.turn_secs, out_lock);
        if (status == NULL || bel_status_code(status) != BEL_FAILED_PRECONDITION) break;
        char *now = read_progress(lock_path);
        still = strcmp(now, before) == 0 ? still + 1 : 0;
        bel_free(before);
        before = now;
        if (still >= patience.turns) {
            status = bel_status_wrap(status, __FILE__, __LINE__,
                                     "cache %s: waited for it while no record was added for %.0f s",
                                     path, patience.turn_secs * patience.turns);
            break;
        }
        bel_status_ignore(status); // another process has the lock
        bel_log_write(BEL_LOG_INFO, "cache %s: another process makes it: %.*s", path,
                      (int)strcspn(now, "\n"), now);
    }
    bel_free(before);
    bel_free(lock_path);
    return status;
}

static bel_status *make_and_open(bel_cache_file *file, int lock, const making *m)
{
    bool found;
    BEL_TRY(cache_file_look(file, m->key, m->count,
                            &found)); // another process may have made it meanwhile
    if (found) return NULL;
    if (lock >= 0) remove_leftovers(file->path);
    BEL_TRY(write_cache(file->path, lock, m));
    BEL_TRY(cache_file_look(file, m->key, m->count, &found));
    if (found) return NULL;
    return BEL_ERR(BEL_ABORTED, "%s: another process made a cache of other data meanwhile",
                   file->path);
}

bel_status *bel_cache_file_open(bel_cache_file *file, const char *path, uint64_t key, int64_t count,
                                bel_cache_make *make, void *context)
{
    const making m = {.key = key, .count = count, .make = make, .context = context};
    bool found;
    file->path = path;
    if (file->patience.turns == 0) file->patience = bel_cache_usual_patience;
    BEL_TRY(cache_file_look(file, key, count, &found));
    if (found) return NULL;
    int lock;
    BEL_TRY(wait_for_lock(path, file->patience, &lock));
    bel_status *status = make_and_open(file, lock, &m);
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
