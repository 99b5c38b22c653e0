// Files that are no CSV, known by how they begin.
#ifndef BELFRY_INPUT_CSV_KIND_H
#define BELFRY_INPUT_CSV_KIND_H

#include <stddef.h>

#include "belfry/status.h"

// DATA_LOSS names what the text is instead of CSV, and what makes CSV of it; `path` names the file.
bel_status *bel_csv_kind_check(const char *path, const char *text, size_t size) BEL_MUST_USE;

#endif
