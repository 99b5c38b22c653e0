// A file beside the checkpoints, never removed.
#include "launch/folder_lock.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_lock.h"

bel_status *bel_folder_lock(const char *model_dir, int *out_lock)
{
    *out_lock = -1;
    BEL_TRY(bel_dir_create(model_dir));
    char *path = bel_path_join(model_dir, BEL_LOCK_FILE);
    bel_status *status = bel_linux_lock(path, 0, out_lock);
    bel_free(path);
    BEL_TRY_CTX(status, "another run trains in %s", model_dir);
    return NULL;
}
