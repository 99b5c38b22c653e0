// Tables of JSONL, an object a line, as CSV in memory, which the readers of tables take from there.
#ifndef BELFRY_INPUT_TABLE_CSV_JSONL_H
#define BELFRY_INPUT_TABLE_CSV_JSONL_H

#include "input/files/file_view.h"

// True for names that end with .jsonl or .ndjson, also before .gz.
bool bel_csv_is_jsonl(const char *path);

// Replaces the bytes of a view of JSONL by CSV with a header. The columns are the members of all
// objects, in the order in which they first occur. Row i is line i + 1. A text is a cell as it is,
// and a number, true or false as bel_cell_of_json writes it. null and a missing member are empty
// cells. Blank lines at the end are left out. DATA_LOSS with file and line: no object, a member
// that is a list or an object, a blank line between others, an integer above 64 bits, more than
// 65,536 members; or the file changed meanwhile. RESOURCE_EXHAUSTED: the CSV has more than
// BEL_CSV_JSONL_MOST bytes.
enum { BEL_CSV_JSONL_MOST = 1 << 30 };
bel_status *bel_csv_from_jsonl(const char *path, bel_file_view *view) BEL_MUST_USE;

#endif
