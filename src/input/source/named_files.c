// A missing file, and a record that names none, count as size -1: the map will report the error.
#include "input/source/named_files.h"

#include <sys/stat.h>

#include "base/hash.h"
#include "store/copy.h"

static int64_t size_of(const char *path)
{
    struct stat info;
    if (!bel_store_is_url(path)) return stat(path, &info) == 0 ? (int64_t)info.st_size : -1;
    bel_host_file copy;
    bel_status *status = bel_store_copy_open_known(path, &copy, NULL);
    int64_t size = status == NULL ? (int64_t)copy.size : -1;
    bel_status_ignore(status); // the map reports it
    if (size >= 0) bel_host_file_close(&copy);
    return size;
}

uint64_t bel_named_files_digest(const char *const *paths, size_t count)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < count; i++)
        if (paths[i] != NULL && bel_store_is_url(paths[i])) bel_store_copy_begin(paths[i]);
    for (size_t i = 0; i < count; i++) {
        int64_t size = paths[i] != NULL ? size_of(paths[i]) : -1;
        digest = bel_hash64_more(digest, &size, sizeof size);
    }
    return digest;
}
