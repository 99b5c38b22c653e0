// Two names exist for each content: NAME.part while one process writes, and NAME from then on.
// Locks (flock) tell which processes use a file, and end with their processes in every case:
//
// - The writer has an exclusive lock on .part, and renames it when it is complete; the others check
//   at short intervals whether it changes.
// - A reader has a shared lock on NAME. If files do not stay, a reader that closes it and then gets
//   an exclusive lock is the last, and removes the file. The next writer removes the leftovers
//   of killed processes.
// - A file may lose its name while a process waits for its lock. So after each lock the process
//   checks that the name still refers to that file; if not, it starts again. Only a process with an
//   exclusive lock removes or changes a file's name, so a process with a lock and the name keeps
//   both.
//
// The name on disk contains the machine's boot id: after a power failure the content of earlier
// files is unknown, and in a folder that several machines share each has separate files.
#include "base/host_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/linux_lock.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/str.h"

// --- Names ---------------------------------------------------------------------------------------

bel_status *bel_host_folder(const char *base, const char *prefix, char **out_folder)
{
    const char *temporary = getenv("TMPDIR");
    bool named = base != NULL && base[0] != '\0';
    if (named) BEL_TRY(bel_dir_create(base));
    if (!named) base = temporary != NULL && temporary[0] != '\0' ? temporary : "/var/tmp";
    char *name = bel_strf("%s-%lld", prefix, (long long)geteuid());
    char *folder = bel_path_join(base, name);
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

// Path of the file: a hash of the name and the boot id; free with bel_free.
static char *path_of(const bel_host_file_request *request)
{
    char boot_id[64];
    uint64_t key = bel_hash64(request->name, strlen(request->name));
    (void)bel_linux_boot_id(boot_id);
    key = bel_hash64_more(key, boot_id, strlen(boot_id));
    return bel_strf("%s/%016llx", request->folder, (unsigned long long)key);
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

// --- Room ----------------------------------------------------------------------------------------

typedef struct room_file {
    char *path;
    int64_t bytes, used_ns;
} room_file;

static int compare_use(const void *a, const void *b)
{
    const room_file *x = a, *y = b;
    return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

// Lists the files of a folder with the bytes that they take on disk. Returns their number.
static size_t list_files(const char *folder, room_file **out_files)
{
    char **names = NULL;
    size_t count = 0, found = 0;
    bel_status_ignore(bel_dir_list(folder, &names, &count)); // leftovers only take room
    room_file *files = bel_xcalloc(count + 1, sizeof *files);
    for (size_t i = 0; i < count; i++) {
        enum { BLOCK_BYTES = 512 };
        struct stat info;
        char *path = bel_path_join(folder, names[i]);
        if (lstat(path, &info) != 0 || !S_ISREG(info.st_mode)) {
            bel_free(path);
            continue;
        }
        files[found++] = (room_file){
            .path = path,
            .bytes = (int64_t)info.st_blocks * BLOCK_BYTES,
            .used_ns = info.st_mtim.tv_sec * INT64_C(1000000000) + info.st_mtim.tv_nsec,
        };
    }
    bel_dir_names_free(names, count);
    *out_files = files;
    return found;
}

int64_t bel_host_file_make_room(const char *folder, int64_t most)
{
    room_file *files;
    size_t count = list_files(folder, &files);
    int64_t left = 0;
    for (size_t i = 0; i < count; i++)
        left += files[i].bytes;
    qsort(files, count, sizeof *files, compare_use);
    for (size_t i = 0; i < count; i++) {
        int descriptor = -1;
        bool held;
        bel_status *status = NULL;
        if (most == 0 || (most > 0 && left > most)) // 0: empty files, too
            status = try_lock(files[i].path, O_RDONLY, LOCK_EX, &descriptor, &held);
        bel_status_ignore(status); // a file that cannot be removed only takes room
        if (descriptor >= 0) {
            if (unlink(files[i].path) == 0) left -= files[i].bytes;
            close(descriptor);
        }
        bel_free(files[i].path);
    }
    bel_free(files);
    return left;
}

// --- Opening -------------------------------------------------------------------------------------

typedef struct opening {
    const bel_host_file_request *request;
    char *part, *whole;
    bool seen;                   // .part of another process
    int64_t changed_ns, seen_ns; // last change of that .part, and when this process saw it
    int waits;
} opening;

static bel_status *take_whole(const opening *o, bel_host_file *file)
{
    bool held; // by a process that is removing it
    struct stat info;
    int flags = o->request->writable ? O_RDWR : O_RDONLY;
    BEL_TRY(try_lock(o->whole, flags, LOCK_SH, &file->descriptor, &held));
    if (file->descriptor < 0) return NULL;
    if (fstat(file->descriptor, &info) != 0) {
        bel_status *status = bel_file_error(errno, "look at", o->whole);
        close(file->descriptor);
        return status;
    }
    file->size = (size_t)info.st_size;
    file->path = bel_xstrdup(o->whole);
    file->stays = o->request->stays;
    if (file->stays) (void)futimens(file->descriptor, NULL); // its last use
    return NULL;
}

// Writes .part, whose exclusive lock is held, and renames it.
static bel_status *write_part(const opening *o, int descriptor)
{
    const bel_host_file_request *request = o->request;
    if (!request->stays)
        (void)bel_host_file_make_room(request->folder, 0); // left by killed processes
    BEL_TRY(bel_file_cut(o->part, descriptor, 0));
    BEL_TRY(request->make(request->user, o->part, descriptor));
    return bel_file_rename(o->part, o->whole);
}

// Checks whether .part, which another process has, has changed, and waits a little.
static bel_status *wait_for_writer(opening *o)
{
    enum { FIRST_NAPS_MS = 2, NAP_MS = 50, FIRST_NAPS = 25 };
    const bel_host_file_request *request = o->request;
    struct stat info;
    if (stat(o->part, &info) != 0) return NULL; // it was renamed, or removed
    int64_t now = bel_clock_awake_ns();
    int64_t changed_ns = info.st_mtim.tv_sec * INT64_C(1000000000) + info.st_mtim.tv_nsec;
    if (o->waits == FIRST_NAPS) {
        bel_log_write(BEL_LOG_INFO, "%s: waits for another process: it is %s into %s",
                      request->source, request->doing, request->folder);
    }
    if (!o->seen || changed_ns != o->changed_ns) {
        o->seen = true;
        o->seen_ns = now;
        o->changed_ns = changed_ns;
    }
    if ((double)(now - o->seen_ns) > request->patience_secs * 1e9) {
        return BEL_ERR(BEL_DEADLINE_EXCEEDED,
                       "%s: it is %s into %s by another process, which has made no progress for "
                       "%g s",
                       request->source, request->doing, o->part, request->patience_secs);
    }
    (void)poll(NULL, 0, o->waits++ < FIRST_NAPS ? FIRST_NAPS_MS : NAP_MS);
    return NULL;
}

// Makes one attempt: does something or waits, and may set file->path.
static bel_status *go_on(opening *o, bel_host_file *file)
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

bel_status *bel_host_file_open(const bel_host_file_request *request, bel_host_file *out_file)
{
    opening o = {.request = request, .whole = path_of(request)};
    o.part = bel_strf("%s.part", o.whole);
    bel_host_file file = {0};
    bel_status *status = NULL;
    while (status == NULL && file.path == NULL)
        status = go_on(&o, &file);
    bel_free(o.part);
    bel_free(o.whole);
    *out_file = file;
    return status;
}

bel_status *bel_host_file_find(const bel_host_file_request *request, bel_host_file *out_file)
{
    opening o = {.request = request, .whole = path_of(request)};
    bel_host_file file = {0};
    bel_status *status = take_whole(&o, &file);
    bel_free(o.whole);
    *out_file = file;
    return status;
}

void bel_host_file_close(bel_host_file *file)
{
    if (file->path == NULL) return;
    bool mine = false;
    if (!file->stays && flock(file->descriptor, LOCK_EX | LOCK_NB) == 0)
        bel_status_ignore(
            bel_linux_is_open_on(file->descriptor, file->path, &mine)); // on error the file stays
    if (mine) (void)unlink(file->path);
    close(file->descriptor);
    bel_free(file->path);
    *file = (bel_host_file){0};
}
