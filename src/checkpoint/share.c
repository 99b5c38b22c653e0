// Hard links, or copies if the file system refuses a link. File systems refuse with many error
// codes (EPERM, EXDEV, ENOSYS, EACCES …), so the copy's error is the one that counts. Sharing is
// safe: writers replace the files of a checkpoint and never write into them.
#define _XOPEN_SOURCE 700 // link
#include "checkpoint/share.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"

static bel_status *copy_bytes(const char *from, const char *to)
{
    char *bytes;
    size_t size;
    BEL_TRY(bel_file_read(from, &bytes, &size));
    bel_status *status = bel_file_replace(to, bytes, size);
    bel_free(bytes);
    return status;
}

bel_status *bel_ckpt_share_file(const char *from, const char *to)
{
    return link(from, to) == 0 ? NULL : copy_bytes(from, to);
}

static bel_status *share_files(const char *from, const char *to)
{
    char **names;
    size_t count;
    BEL_TRY(bel_dir_list(from, &names, &count));
    bel_status *status = bel_dir_create(to);
    for (size_t i = 0; i < count && status == NULL; i++) {
        char *source = bel_path_join(from, names[i]), *target = bel_path_join(to, names[i]);
        if (!bel_dir_exists(source)) status = bel_ckpt_share_file(source, target);
        bel_free(source);
        bel_free(target);
    }
    bel_dir_names_free(names, count);
    return status;
}

bel_status *bel_ckpt_share_folder(const char *from, const char *to)
{
    bel_ckpt_base base;
    BEL_TRY(bel_ckpt_read_base(from, &base));
    BEL_TRY(share_files(from, to));
    if (base.step == 0) return NULL;
    char *source = bel_ckpt_base_path(from, base.step);
    char *target = bel_path_join(to, BEL_CKPT_SHARED_BASE);
    bel_status *status = share_files(source, target);
    bel_free(source);
    bel_free(target);
    return status;
}
