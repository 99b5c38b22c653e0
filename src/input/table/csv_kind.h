// Detection of files that are not CSV, by their first bytes.
#ifndef BELFRY_INPUT_TABLE_CSV_KIND_H
#define BELFRY_INPUT_TABLE_CSV_KIND_H

#include <stddef.h>

#include "belfry/status.h"

// Checks the beginning of a file. DATA_LOSS names the format that it has instead of CSV, and a way
// to convert it; `path` names the file.
bel_status *bel_csv_kind_check(const char *path, const char *text, size_t size) BEL_MUST_USE;

#endif
