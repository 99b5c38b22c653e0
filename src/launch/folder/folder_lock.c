// File beside the checkpoints, locked with flock and never removed. Removing it could leave two
// runs with a lock each, on two files of one name. So a run also checks from time to time that its
// lock is still that of the path (bel_folder_lock_check).
//
// Half-written files of killed processes are removed only under the lock. Then no other run writes
// there, and a name with a pid of another host does no harm. If you add a file that only a run
// replaces, add it to is_leftover's list.
#include "launch/folder/folder_lock.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_lock.h"
#include "base/log.h"
#include "launch/folder/stored.h"

// True for NAME.tmp-PID-N (base/file.c) of a file that only a run writes: its process was killed
// before the replacement.
static bool is_leftover(const char *name)
{
    static const char *const files[] = {"best.json.tmp-", "board.json.tmp-", "job.token.tmp-",
                                        "job.yaml.tmp-", "report.html.tmp-"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t length = strlen(files[i]);
        if (strncmp(name, files[i], length) != 0) continue;
        char *rest;
        long long process = strtoll(name + length, &rest, 10);
        bool fits = process > 0 && process <= INT_MAX && rest[0] == '-' &&
                    rest[1 + strspn(rest + 1, "0123456789")] == '\0';
        return fits && kill((pid_t)process, 0) != 0 && errno == ESRCH;
    }
    return false;
}

// Call it only under the lock: a process of another host is invisible here, and does not write
// then.
static void remove_leftovers(const char *model_dir)
{
    char **names = NULL;
    size_t count = 0;
    bel_status_ignore(bel_dir_list(model_dir, &names, &count)); // they do no harm
    for (size_t i = 0; i < count; i++) {
        if (!is_leftover(names[i])) continue;
        char *path = bel_path_join(model_dir, names[i]);
        (void)unlink(path);
        bel_free(path);
    }
    bel_dir_names_free(names, count);
}

bel_status *bel_folder_lock(const char *model_dir, int *out_lock)
{
    *out_lock = -1;
    BEL_TRY(bel_dir_create(model_dir));
    char *path = bel_path_join(model_dir, BEL_LOCK_FILE);
    bel_status *status = bel_linux_lock(path, 0, out_lock);
    bel_free(path);
    if (bel_status_code(status) == BEL_FAILED_PRECONDITION)
        return bel_status_wrap(status, __FILE__, __LINE__, "another run trains in %s", model_dir);
    BEL_TRY(status); // it cannot be opened
    if (*out_lock >= 0) remove_leftovers(model_dir);
    status = bel_stored_own(model_dir);
    if (status == NULL) return NULL;
    bel_linux_unlock(*out_lock);
    *out_lock = -1;
    return status;
}

bel_status *bel_folder_unlock(const char *model_dir, int lock)
{
    bel_status *status = bel_stored_release(model_dir);
    bel_linux_unlock(lock);
    return status;
}

// A given descriptor is checked against the path, because the number may by now be another file's.
bel_status *bel_folder_lock_of_master(const char *model_dir, int given, double patience_secs,
                                      bool (*stop)(void), int *out_lock)
{
    enum { NAP_NS = 50000000, STORE_NAP_SECS = 1 };
    char *path = bel_path_join(model_dir, BEL_LOCK_FILE);
    bool is_given = false;
    if (given > 2) bel_status_ignore(bel_linux_is_open_on(given, path, &is_given)); // then not
    bel_free(path);
    if (is_given) {
        bel_linux_keep_lock(given);
        *out_lock = given;
        return NULL;
    }
    int64_t deadline = bel_clock_awake_ns() + (int64_t)(patience_secs * 1e9);
    bel_status *status = bel_folder_lock(model_dir, out_lock);
    for (bool told = false; bel_status_code(status) == BEL_FAILED_PRECONDITION && !stop() &&
                            bel_clock_awake_ns() < deadline;
         told = true) {
        if (!told) {
            bel_log_write(BEL_LOG_INFO, "another run trains in %s: waiting up to %g s for its end",
                          model_dir, patience_secs);
        }
        bel_status_ignore(status); // tried again
        bool asks_store = bel_stored_is(model_dir);
        struct timespec nap = {.tv_sec = asks_store ? STORE_NAP_SECS : 0,
                               .tv_nsec = asks_store ? 0 : NAP_NS};
        (void)nanosleep(&nap, NULL);
        status = bel_folder_lock(model_dir, out_lock);
    }
    return status;
}

// False only if the lock is known to be another file's. A temporary file system failure must not
// end a job.
static bool may_be_same(const char *model_dir, int lock, bool *told)
{
    bool same = false;
    char *path = bel_path_join(model_dir, BEL_LOCK_FILE);
    bel_status *status = bel_linux_is_open_on(lock, path, &same);
    bel_free(path);
    if (status == NULL) return same;
    if (!*told) {
        bel_log_write(BEL_LOG_WARN, "%s: whether this is still the folder of this run is not known",
                      bel_status_message(status));
    }
    *told = true;
    bel_status_destroy(status);
    return true;
}

bel_status *bel_folder_lock_check(const char *model_dir, int lock, bool *told)
{
    if (lock < 0 || may_be_same(model_dir, lock, told)) return NULL;
    (void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    if (may_be_same(model_dir, lock, told)) return NULL;
    return BEL_ERR(BEL_ABORTED,
                   "%s is not the folder any more in which this run began: it, or %s in it, was "
                   "renamed or removed; hint: put it back and run the same command again",
                   model_dir, BEL_LOCK_FILE);
}
