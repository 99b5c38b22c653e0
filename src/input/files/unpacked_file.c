// Training reads records repeatedly in a shuffled order, which a packed stream does not allow: even
// with an index into it, each record costs the unpacking of a stretch. So data that does not fit
// memory is unpacked to disk once, in the order of the stream, and mapped from there like any plain
// file: the system caches the pages that are read, for all processes.
//
// Two names exist for each state of a packed file: KEY.part while one process writes, and KEY from
// then on. Locks (flock) tell which processes use a file, and end with their processes in every
// case:
//
// - The writer has an exclusive lock on .part, and renames it when it is complete; the others check
//   every 50 ms whether it grows.
// - A reader has a shared lock on KEY. A reader that closes it and then gets an exclusive lock is
//   the last, and removes the file. The next writer removes the leftovers of killed processes.
// - A file may lose its name while a process waits for its lock. So after each lock the process
//   checks that the name still refers to that file; if not, it starts again. Only a process with an
//   exclusive lock removes or changes a file's name, so a process with a lock and the name keeps
//   both.
//
// The key contains the machine's boot id: after a power failure the content of earlier files on
// disk is unknown, and in a folder that several machines share each has separate files.
#include "input/files/unpacked_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/linux_lock.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/str.h"
#include "base/unpack.h"

// --- Names ---------------------------------------------------------------------------------------

// Finds the folder, which only this user may use: its content is trusted like the packed file.
static bel_status *find_folder(char **out_folder)
{
    const char *base = getenv("TMPDIR");
    char *name = bel_strf("belfry-unpacked-%lld", (long long)geteuid());
    char *folder = bel_path_join(base != NULL && base[0] != '\0' ? base : "/var/tmp", name);
    bel_free(name);
    struct stat info;
    bel_status *status = NULL;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
        status = bel_file_error(errno, "create", folder);
    } else if (lstat(folder, &info) != 0) {
        status = bel_file_error(errno, "look at", folder);
    } else if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
        status = BEL_ERR(BEL_FAILED_PRECONDITION,
                         "%s: expected a folder that only this user may use (mode 0700)", folder);
    }
    if (status == NULL)
        *out_folder = folder;
    else
        bel_free(folder);
    return status;
}

static char *key_of(const bel_file_version *version)
{
    char boot_id[64];
    uint64_t key = bel_hash64_more(0, version, sizeof *version);
    (void)bel_linux_boot_id(boot_id);
    return bel_strf("%016llx", (unsigned long long)bel_hash64_more(key, boot_id, strlen(boot_id)));
}

// --- Locks ---------------------------------------------------------------------------------------

// Tries to lock the file `path`. *out_descriptor is -1 if there is no such file (any more), or if
// another process holds it; then *out_held is set.
static bel_status *try_lock(const char *path, int flags, int operation, int *out_descriptor,
                            bool *out_held)
{
    *out_descriptor = -1;
    *out_held = false;
    int descriptor = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor < 0) return errno == ENOENT ? NULL : bel_file_error(errno, "open", path);
    bool mine = false;
    bel_status *status = NULL;
    if (flock(descriptor, operation | LOCK_NB) == 0) {
        status = bel_linux_is_open_on(descriptor, path, &mine);
    } else {
        *out_held = errno == EWOULDBLOCK || errno == EINTR;
        if (!*out_held) status = bel_file_error(errno, "lock", path);
    }
    if (status == NULL && mine)
        *out_descriptor = descriptor;
    else
        close(descriptor);
    return status;
}

// Removes files without a lock: their processes were killed.
static void remove_leftovers(const char *folder)
{
    char **names = NULL;
    size_t count = 0;
    bel_status_ignore(bel_dir_list(folder, &names, &count)); // leftovers only take room
    for (size_t i = 0; i < count; i++) {
        int descriptor;
        bool held;
        char *path = bel_path_join(folder, names[i]);
        bel_status_ignore(try_lock(path, O_RDONLY, LOCK_EX, &descriptor, &held)); // as above
        if (descriptor >= 0) {
            (void)unlink(path);
            close(descriptor);
        }
        bel_free(path);
    }
    bel_dir_names_free(names, count);
}

// --- Opening -------------------------------------------------------------------------------------

typedef struct opening {
    const char *path; // path of the packed file
    const void *packed;
    size_t packed_size;
    char *folder, *part, *whole;
    double patience_secs;
    int64_t seen_size, seen_ns; // last size of .part, and the time of that change
} opening;

static bel_status *take_whole(const opening *o, bel_unpacked_file *file)
{
    bool held; // by a process that is removing it
    struct stat info;
    BEL_TRY(try_lock(o->whole, O_RDONLY, LOCK_SH, &file->descriptor, &held));
    if (file->descriptor < 0) return NULL;
    if (fstat(file->descriptor, &info) != 0) {
        bel_status *status = bel_file_error(errno, "look at", o->whole);
        close(file->descriptor);
        return status;
    }
    file->size = (size_t)info.st_size;
    file->path = bel_xstrdup(o->whole);
    return NULL;
}

typedef struct part_file {
    const char *path;
    int descriptor;
    size_t size;
} part_file;

static bel_status *unpacked_file_append(void *user, const void *data, size_t size)
{
    part_file *part = user;
    const char *bytes = data;
    if (bel_fault_write_fails()) return bel_file_error(ENOSPC, "write", part->path);
    while (size > 0) {
        ssize_t wrote = write(part->descriptor, bytes, size);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return bel_file_error(errno, "write", part->path);
        bytes += wrote;
        size -= (size_t)wrote;
        part->size += (size_t)wrote;
    }
    return NULL;
}

// Writes .part, whose exclusive lock is held, and renames it.
static bel_status *write_part(const opening *o, int descriptor)
{
    char text[32];
    part_file part = {.path = o->part, .descriptor = descriptor};
    remove_leftovers(o->folder); // before room is needed
    bel_log_write(BEL_LOG_INFO, "%s: being unpacked into %s, as it is too large for memory",
                  o->path, o->folder);
    if (ftruncate(descriptor, 0) != 0) return bel_file_error(errno, "empty", o->part);
    BEL_TRY(bel_unpack_to(o->path, o->packed, o->packed_size, unpacked_file_append, &part));
    BEL_TRY(bel_file_rename(o->part, o->whole));
    bel_log_write(BEL_LOG_INFO, "%s: unpacked (%s)", o->path, bel_bytes_text(part.size, text));
    return NULL;
}

// Checks whether .part, which another process has, has grown, and waits a little.
static bel_status *wait_for_writer(opening *o)
{
    enum { NAP_MS = 50 };
    struct stat info;
    if (stat(o->part, &info) != 0) return NULL; // it was renamed, or removed
    int64_t now = bel_clock_ns();
    if (o->seen_ns == 0) {
        bel_log_write(BEL_LOG_INFO, "%s: waits for another process that unpacks it into %s",
                      o->path, o->folder);
    }
    if (o->seen_ns == 0 || info.st_size != o->seen_size) {
        o->seen_ns = now;
        o->seen_size = info.st_size;
    }
    if ((double)(now - o->seen_ns) > o->patience_secs * 1e9) {
        return BEL_ERR(BEL_DEADLINE_EXCEEDED,
                       "%s: another process unpacks it into %s, and has made no progress for %g s",
                       o->path, o->part, o->patience_secs);
    }
    (void)poll(NULL, 0, NAP_MS);
    return NULL;
}

// Makes one attempt: does something or waits, and may set file->path.
static bel_status *go_on(opening *o, bel_unpacked_file *file)
{
    int part;
    bool held;
    BEL_TRY(take_whole(o, file));
    if (file->path != NULL) return NULL;
    BEL_TRY(try_lock(o->part, O_RDWR | O_CREAT, LOCK_EX, &part, &held));
    if (held) return wait_for_writer(o);
    if (part < 0) return NULL;
    bel_status *status = NULL;
    bool done = bel_file_exists(o->whole); // by another process before this lock
    if (!done) status = write_part(o, part);
    if (done || status != NULL) (void)unlink(o->part);
    close(part);
    return status;
}

bel_status *bel_unpacked_file_open(const char *path, const bel_file_version *version,
                                   const void *packed, size_t size, double patience_secs,
                                   bel_unpacked_file *out_file)
{
    opening o = {
        .path = path, .packed = packed, .packed_size = size, .patience_secs = patience_secs};
    bel_unpacked_file file = {0};
    bel_status *status = find_folder(&o.folder);
    if (status == NULL) {
        char *key = key_of(version);
        o.whole = bel_path_join(o.folder, key);
        o.part = bel_strf("%s.part", o.whole);
        bel_free(key);
        while (status == NULL && file.path == NULL)
            status = go_on(&o, &file);
        bel_free(o.part);
        bel_free(o.whole);
        bel_free(o.folder);
    }
    if (status != NULL && bel_status_code(status) != BEL_DATA_LOSS) {
        status =
            bel_status_wrap(status, __FILE__, __LINE__,
                            "unpacking %s into a folder below $TMPDIR, or else /var/tmp", path);
    }
    *out_file = file;
    return status;
}

void bel_unpacked_file_close(bel_unpacked_file *file)
{
    if (file->path == NULL) return;
    bool mine = false;
    if (flock(file->descriptor, LOCK_EX | LOCK_NB) == 0)
        bel_status_ignore(
            bel_linux_is_open_on(file->descriptor, file->path, &mine)); // on error the file stays
    if (mine) (void)unlink(file->path);
    close(file->descriptor);
    bel_free(file->path);
    *file = (bel_unpacked_file){0};
}
