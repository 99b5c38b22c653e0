// A folder of sockets is in use while it is locked. The lock is on the folder itself, so there is
// no lock file in it that would have to be removed last. A folder is removed under that lock, and
// only when it is this user's own, no link, and unchanged for ten minutes: its job may have been
// started a moment ago and not have locked it yet. Errors are not reported, since the next job
// looks again.
#include "launch/old_sockets.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_lock.h"

// This user's own folder, no link to one, untouched for ten minutes.
static bool is_old(const char *folder)
{
    enum { AGE_SECS = 600 };
    struct stat about;
    return lstat(folder, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
           time(NULL) - about.st_mtime > AGE_SECS;
}

// Removes it only while holding its lock.
static void look_at(const char *folder)
{
    int lock = -1;
    if (!is_old(folder)) return;
    bel_status_ignore(bel_linux_lock_folder(folder, &lock));  // no locks here, or in use: it stays
    if (lock >= 0) bel_status_ignore(bel_dir_remove(folder)); // what stays is tried again
    bel_linux_unlock(lock);
}

void bel_old_sockets_remove(const char *base)
{
    char **names = NULL;
    size_t count = 0;
    // Nothing is removed then; making this job's own folder says what is wrong.
    bel_status_ignore(bel_dir_list(base, &names, &count));
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], BEL_SOCKETS_PREFIX, strlen(BEL_SOCKETS_PREFIX)) != 0) continue;
        char *folder = bel_path_join(base, names[i]);
        look_at(folder);
        bel_free(folder);
    }
    bel_dir_names_free(names, count);
}
