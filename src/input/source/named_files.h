// Digest of the sizes of files that records name. The result of a map depends on such a file, and
// the hash of the CSV file that names it does not cover it.
#ifndef BELFRY_INPUT_SOURCE_NAMED_FILES_H
#define BELFRY_INPUT_SOURCE_NAMED_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// Maximum number of records to look at: each costs a file system call.
enum { BEL_NAMED_FILES_MOST = 65536 };

// Digest of the files of some records; NULL: a record names none. Objects of stores are copied to
// this host for that, all at once. Errors of stores, other than a missing object.
bel_status *bel_named_files_digest(const char *const *paths, size_t count,
                                   uint64_t *out_digest) BEL_MUST_USE;

#endif
