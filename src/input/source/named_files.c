// Sizes stand for the contents: reading all files would take as long as an epoch. A missing file,
// and a record without a name, count as size -1, as the map reports the error. A store that does
// not answer is an error at once: otherwise a passing fault would look like other data.
#include "input/source/named_files.h"

#include <sys/stat.h>

#include "base/hash.h"
#include "store/copy.h"

// Size of a file; -1: it is missing.
static bel_status *find_size(const char *path, int64_t *out_size)
{
    struct stat info;
    bel_host_file copy;
    *out_size = -1;
    if (path == NULL) return NULL;
    if (!bel_store_is_url(path)) {
        if (stat(path, &info) == 0) *out_size = (int64_t)info.st_size;
        return NULL;
    }
    bel_status *status = bel_store_copy_open_known(path, &copy, NULL);
    if (bel_status_code(status) == BEL_NOT_FOUND) {
        bel_status_ignore(status); // the map reports it
        return NULL;
    }
    BEL_TRY(status);
    *out_size = (int64_t)copy.size;
    bel_host_file_close(&copy);
    return NULL;
}

bel_status *bel_named_files_digest(const char *const *paths, size_t count, uint64_t *out_digest)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < count; i++)
        if (paths[i] != NULL && bel_store_is_url(paths[i])) bel_store_copy_begin(paths[i]);
    for (size_t i = 0; i < count; i++) {
        int64_t size;
        BEL_TRY(find_size(paths[i], &size));
        digest = bel_hash64_more(digest, &size, sizeof size);
    }
    *out_digest = digest;
    return NULL;
}
