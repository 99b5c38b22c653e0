// Digest of the sizes of files that records name. The result of a map depends on such a file, and
// the hash of the CSV file that names it does not cover it.
#ifndef BELFRY_INPUT_SOURCE_NAMED_FILES_H
#define BELFRY_INPUT_SOURCE_NAMED_FILES_H

#include "input/dataset/description.h"
#include "input/source/record.h"

// Maximum number of records to look at: each costs a file system call.
enum { BEL_NAMED_FILES_MOST = 65536 };

// Adds the file of a further record to the digest; begin with 0.
uint64_t bel_named_files_add(const bel_named_files *named, const bel_record *record,
                             uint64_t digest);

#endif
