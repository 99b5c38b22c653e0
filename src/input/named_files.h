// The sizes of files that records name, as one number: what maps make of a record depends on its
// file, and no hash of the CSV file that names it knows that.
#ifndef BELFRY_INPUT_NAMED_FILES_H
#define BELFRY_INPUT_NAMED_FILES_H

#include "input/description.h"
#include "input/record.h"

// So many records are looked at, at most: looking is a call of the file system each.
enum { BEL_NAMED_FILES_MOST = 65536 };

// The digest so far, and with the file of a further record; begin with 0.
uint64_t bel_named_files_add(const bel_named_files *named, const bel_record *record,
                             uint64_t digest);

#endif
