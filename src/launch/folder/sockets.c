// A folder of sockets is in use while it is locked, or while a socket in it is open, because
// processes may outlive the supervisor that held the lock. The lock is on the folder itself, so no
// lock file has to be removed last. A folder is removed under that lock, and only if it belongs to
// this user, is not a link, and has not changed for ten minutes. A newer one may belong to a job
// that has just started and has not locked it yet. Errors of the removal are not reported, since
// the next job tries again.
//
// A new job checks /tmp as well as its base, because the killed job may have had no
// XDG_RUNTIME_DIR. Another user's folders stay until a job of that user checks.
//
// A folder with a predictable name, as for ranks, is checked before use: in /tmp another user could
// have created it.
#include "launch/folder/sockets.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/linux_lock.h"
#include "base/linux_shared.h"
#include "base/str.h"

#define ELSEWHERE "/tmp" // the base without XDG_RUNTIME_DIR

enum { LONGEST_ADDRESS = sizeof((struct sockaddr_un *)0)->sun_path - 1 };

// Leaves room for the names of a folder, of either kind, and of a socket in it.
static char *sockets_base(void)
{
    static const char longest[] = "/" BEL_SOCKETS_PREFIX "XXXXXX/evaluator-1023.shm";
    const char *base = getenv("XDG_RUNTIME_DIR");
    bool fits = base != NULL && base[0] == '/' && access(base, W_OK | X_OK) == 0 &&
                strlen(base) + strlen(longest) <= LONGEST_ADDRESS;
    return bel_xstrdup(fits ? base : ELSEWHERE);
}

static void remove_old(const char *base)
{
    bel_old_sockets_remove(base);
    if (strcmp(base, ELSEWHERE) != 0) bel_old_sockets_remove(ELSEWHERE);
}

bel_status *bel_sockets_create(char **out_folder, int *out_lock)
{
    char *base = sockets_base();
    remove_old(base);
    char *folder = bel_path_join(base, BEL_SOCKETS_PREFIX "XXXXXX");
    bel_free(base);
    if (mkdtemp(folder) == NULL) { // creates it with mode 0700
        bel_status *status = bel_file_error(errno, "create folder", folder);
        bel_free(folder);
        return status;
    }
    *out_folder = folder;
    return bel_linux_lock_folder(folder, out_lock);
}

// Six letters, like mkdtemp. Among a thousand simultaneous jobs, two have the same letters in one
// of two thousand cases; then creating the second one's sockets fails.
char *bel_sockets_of(const char *job)
{
    enum { LETTERS = 6, BITS = 5 };
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    char *words = bel_strf("%u\n%s", (unsigned)geteuid(), job), *base = sockets_base();
    uint64_t hash = bel_hash64(words, strlen(words));
    char name[LETTERS + 1] = "";
    for (int i = 0; i < LETTERS; i++, hash >>= BITS)
        name[i] = alphabet[hash % (sizeof alphabet - 1)];
    char *folder = bel_strf("%s/" BEL_SOCKETS_PREFIX "%s", base, name);
    bel_free(base);
    bel_free(words);
    return folder;
}

bel_status *bel_sockets_share(const char *folder)
{
    struct stat about;
    if (mkdir(folder, S_IRWXU) != 0 && errno != EEXIST) {
        return bel_file_error(errno, "create folder", folder);
    }
    if (lstat(folder, &about) != 0) return bel_file_error(errno, "look at", folder);
    bool own = S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
               (about.st_mode & (S_IRWXG | S_IRWXO)) == 0;
    if (own) return NULL;
    return BEL_ERR(BEL_PERMISSION_DENIED,
                   "%s, the folder of this job's sockets, is not private to this user (mode "
                   "%04o): remove it",
                   folder, (unsigned)(about.st_mode & 07777));
}

// Locks the folder that has this name at that time: the last process of the job, or another's
// cleanup, may remove one before the lock. *out_is: it is that folder.
static bel_status *enter(const char *folder, int *out_lock, bool *out_is)
{
    *out_is = false;
    bel_status *status = bel_sockets_share(folder);
    if (status == NULL) status = bel_linux_share_folder(folder, out_lock);
    if (status != NULL && bel_status_code(status) == BEL_NOT_FOUND) {
        bel_status_ignore(status); // removed meanwhile
        return NULL;
    }
    BEL_TRY(status);
    *out_is = *out_lock < 0; // no locks here
    if (*out_lock >= 0) status = bel_linux_is_open_on(*out_lock, folder, out_is);
    if (status == NULL && *out_is) return NULL;
    bel_linux_unlock(*out_lock);
    *out_lock = -1;
    return status;
}

// Cleans up only after it has the lock of its folder, which may be old.
bel_status *bel_sockets_meet(const char *job, char **out_folder, int *out_lock)
{
    enum { TRIES = 20 };
    char *folder = bel_sockets_of(job);
    bool is = false;
    bel_status *status = NULL;
    for (int i = 0; i < TRIES && !is && status == NULL; i++)
        status = enter(folder, out_lock, &is);
    if (status == NULL && !is)
        status = BEL_ERR(BEL_UNAVAILABLE, "%s was removed again and again", folder);
    char *base = sockets_base();
    remove_old(base);
    bel_free(base);
    if (status != NULL) {
        bel_free(folder);
        return status;
    }
    *out_folder = folder;
    return NULL;
}

bel_status *bel_sockets_check(const char *folder)
{
    char **names = NULL;
    size_t count = 0;
    BEL_TRY(bel_dir_list(folder, &names, &count));
    bel_status *status = NULL;
    for (size_t i = 0; i < count && status == NULL; i++) {
        char *path = bel_path_join(folder, names[i]);
        status = bel_linux_socket_try(path);
        bel_free(path);
    }
    bel_dir_names_free(names, count);
    return status;
}

// Locks the folder against all others. -1: it is in use or gone, there are no locks here, or
// another process has removed it and a third one has made a new folder of this name since it was
// opened: that one is not locked.
static int lock_to_remove(const char *folder)
{
    int lock = -1;
    bool is = false;
    bel_status_ignore(bel_linux_lock_folder(folder, &lock));                   // it stays
    if (lock >= 0) bel_status_ignore(bel_linux_is_open_on(lock, folder, &is)); // then it is not
    if (is) return lock;
    bel_linux_unlock(lock);
    return -1;
}

// Removes the folder and the sockets that killed processes left in it, unless it is in use.
static void remove_unused(const char *folder)
{
    int lock = lock_to_remove(folder);
    if (lock >= 0 && !bel_linux_has_socket_below(folder))
        bel_status_ignore(bel_dir_remove(folder)); // a later job tries again
    bel_linux_unlock(lock);
}

void bel_sockets_part(const char *folder, int lock)
{
    bel_linux_unlock(lock);
    if (lock >= 0) {
        remove_unused(folder);
    } else {
        (void)rmdir(folder); // it stays while it contains others' sockets
    }
}

static bool is_of_sockets(const char *name)
{
    return strncmp(name, BEL_SOCKETS_PREFIX, sizeof BEL_SOCKETS_PREFIX - 1) == 0;
}

void bel_sockets_abandon(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    if (slash != NULL && is_of_sockets(slash + 1)) remove_unused(folder);
    (void)rmdir(folder); // another launcher's, or one without locks: if it is empty
}

// True for this user's folder, not a link, unchanged for ten minutes.
static bool is_old(const char *folder)
{
    enum { AGE_SECS = 600 };
    struct stat about;
    return lstat(folder, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
           time(NULL) - about.st_mtime > AGE_SECS;
}

// Removes a folder only while it holds its lock. One that another job has made since the first look
// is not old.
static void look_at(const char *folder)
{
    if (!is_old(folder)) return;
    int lock = lock_to_remove(folder);
    if (lock >= 0 && is_old(folder) && !bel_linux_has_socket_below(folder))
        bel_status_ignore(bel_dir_remove(folder)); // a later job tries again
    bel_linux_unlock(lock);
}

void bel_old_sockets_remove(const char *base)
{
    char **names = NULL;
    size_t count = 0;
    bel_status_ignore(bel_dir_list(base, &names, &count)); // creating this job's folder reports why
    for (size_t i = 0; i < count; i++) {
        if (!is_of_sockets(names[i])) continue;
        char *folder = bel_path_join(base, names[i]);
        look_at(folder);
        bel_free(folder);
    }
    bel_dir_names_free(names, count);
}
