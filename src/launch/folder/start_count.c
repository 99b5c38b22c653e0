// Counts by one append and the resulting size. The byte is synced before it is counted, so that no
// incarnation is assigned twice after a machine crash. A start that fails afterwards has used up
// its number, which is harmless, since incarnations only have to rise. The file is locked from the
// append until its size is read, so two simultaneous starts get separate numbers. (Without file
// locks, starts must not be simultaneous.)
#include "launch/folder/start_count.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_lock.h"
#include "base/str.h"

enum { LOCK_SECS = 60 };

// Appends one byte and syncs it before reading the size.
static bel_status *start_count_append(const char *path, uint32_t *out_count)
{
    struct stat about;
    int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor < 0) return bel_file_error(errno, "create", path);
    bool good =
        write(descriptor, "+", 1) == 1 && fsync(descriptor) == 0 && fstat(descriptor, &about) == 0;
    int error = errno;
    close(descriptor);
    if (!good) return bel_file_error(error, "write", path);
    *out_count = (uint32_t)about.st_size;
    return NULL;
}

// Locks the file over append and read, so that two starts never see the same size.
static bel_status *count_in(const char *path, uint32_t *out_count)
{
    int lock;
    BEL_TRY(bel_linux_lock(path, LOCK_SECS, &lock));
    bel_status *status = start_count_append(path, out_count);
    bel_linux_unlock(lock);
    return status;
}

bel_status *bel_start_count(const char *model_dir, bel_role role, int index, uint32_t *out_count)
{
    char *folder = bel_path_join(model_dir, BEL_STARTS_FOLDER);
    char *path = bel_strf("%s/%s-%d", folder, bel_role_name(role), index);
    bel_status *status = bel_dir_create(folder);
    if (status == NULL) status = count_in(path, out_count);
    bel_free(path);
    bel_free(folder);
    BEL_TRY_CTX(status, "counting the starts of a role");
    return NULL;
}
