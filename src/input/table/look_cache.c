// Format: one line with the title, whether all rows were good, and the hash of the text; then the
// text. A file is replaced atomically, and one that does not match its hash is ignored. The lock of
// a key is a file beside it, and ends with the process that holds it. A process that has waited ten
// minutes looks without the cache. At most MOST_KEPT files are kept: the oldest are removed.
#include "input/table/look_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_lock.h"
#include "base/log.h"
#include "base/str.h"

enum { MOST_KEPT = 64, PATIENCE_SECS = 600 };

static const char title[] = "belfry columns 1";

// --- Reading and writing -------------------------------------------------------------------------

static char *first_line(const char *text, bool seen)
{
    return bel_strf("%s %s %016llx\n", title, seen ? "seen" : "part",
                    (unsigned long long)bel_hash64(text, strlen(text)));
}

static char *read_kept(const char *path, bool *out_seen)
{
    char *data;
    size_t size;
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return NULL;
    bel_status *status = bel_file_read(path, &data, &size);
    if (status != NULL) {
        bel_status_ignore(status); // then it is not there
        return NULL;
    }
    const char *end = memchr(data, '\n', size);
    char *text = NULL;
    for (int seen = 0; seen < 2 && end != NULL && text == NULL; seen++) {
        char *line = first_line(end + 1, seen == 1);
        size_t length = (size_t)(end + 1 - data);
        if (strlen(line) == length && memcmp(line, data, length) == 0) {
            text = bel_xstrdup(end + 1);
            *out_seen = seen == 1;
        }
        bel_free(line);
    }
    bel_free(data);
    return text;
}

static int64_t changed_ns(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || S_ISDIR(info.st_mode)) return INT64_MAX; // not ours, or gone
    return (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
}

// Removes the oldest files of the folder until MOST_KEPT are left. If a file's lock is held, only
// its stored text is lost; a process that has it open can still read it.
static void remove_old(const char *folder)
{
    char **names;
    size_t count;
    bel_status *status = bel_dir_list(folder, &names, &count);
    if (status != NULL) {
        bel_status_ignore(status); // they stay
        return;
    }
    for (size_t left = count; left > MOST_KEPT; left--) {
        char *oldest = NULL;
        int64_t oldest_ns = INT64_MAX;
        for (size_t i = 0; i < count; i++) {
            char *path = bel_path_join(folder, names[i]);
            int64_t ns = changed_ns(path);
            char *loser = ns < oldest_ns ? oldest : path;
            if (ns < oldest_ns) {
                oldest = path;
                oldest_ns = ns;
            }
            bel_free(loser);
        }
        if (oldest != NULL) (void)unlink(oldest);
        bel_free(oldest);
    }
    bel_dir_names_free(names, count);
}

// --- A look --------------------------------------------------------------------------------------

void bel_look_begin(bel_hash128 key, bel_look *look, char **out_text, bool *out_seen)
{
    char hex[33];
    char *cache = bel_cache_folder();
    *look = (bel_look){.lock = -1};
    *out_text = NULL;
    *out_seen = false;
    if (cache == NULL) return;
    char *folder = bel_path_join(cache, "columns");
    bel_status *status = bel_dir_create(folder);
    if (status == NULL) {
        look->path = bel_strf("%s/%s", folder, bel_hash128_text(key, hex));
        *out_text = read_kept(look->path, out_seen);
    }
    if (status == NULL && *out_text == NULL) {
        char *lock = bel_strf("%s.lock", look->path);
        status = bel_linux_lock(lock, PATIENCE_SECS, &look->lock);
        bel_free(lock);
        *out_text = read_kept(look->path, out_seen); // stored by the previous holder of the lock
    }
    if (status != NULL)
        bel_log_write(BEL_LOG_DEBUG, "%s is not used: %s", folder, bel_status_message(status));
    bel_status_ignore(status); // then every process looks
    bel_free(folder);
    bel_free(cache);
}

void bel_look_end(bel_look *look, const char *text, bool seen)
{
    if (look->path != NULL && text != NULL) {
        char *line = first_line(text, seen), *all = bel_strf("%s%s", line, text);
        bel_status_ignore(bel_file_replace(look->path, all, strlen(all))); // then it is not kept
        char *folder = bel_xstrndup(look->path, (size_t)(strrchr(look->path, '/') - look->path));
        remove_old(folder);
        bel_free(folder);
        bel_free(line);
        bel_free(all);
    }
    if (look->lock >= 0) {
        char *lock = bel_strf("%s.lock", look->path);
        (void)unlink(lock); // waiting processes have it open
        bel_free(lock);
    }
    bel_linux_unlock(look->lock);
    bel_free(look->path);
    *look = (bel_look){.lock = -1};
}
