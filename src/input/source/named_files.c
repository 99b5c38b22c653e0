// A missing file, and a record that names none, count as size -1: the map will report the error.
#include "input/source/named_files.h"

#include <sys/stat.h>

#include "base/hash.h"

uint64_t bel_named_files_add(const bel_named_files *named, const bel_record *record,
                             uint64_t digest)
{
    struct stat info;
    const char *path = bel_record_path(record, named->field, named->folder);
    int64_t size = path != NULL && stat(path, &info) == 0 ? (int64_t)info.st_size : -1;
    return bel_hash64_more(digest, &size, sizeof size);
}
