// Rows of a table of a checkpoint, for `belfry inspect --rows`: embeddings for other programs.
#ifndef BELFRY_TOOLS_INSPECT_ROWS_H
#define BELFRY_TOOLS_INSPECT_ROWS_H

#include "checkpoint/checkpoint.h"

// Writes the values of a table's rows to stdout, a row a line: its key or name, a tab, and the
// values with tabs between. With `json` each line is an object with key, values and, if there is
// one, name. Without `names` all rows are written, in ascending order of keys. A text of `names` is
// COLUMN=FILE: a file with a name a line, which are cells of an id column, without quotes. Their
// rows are written in the order of the files; the log has the number of names that have no row.
//
// NOT_FOUND: there is no such table (the message lists the tables) or file, or no name of a file
// has a row. INVALID_ARGUMENT: a text of `names` has no file, a file has no line, or a name has a
// tab and `json` is false.
bel_status *bel_inspect_rows(const bel_ckpt_reader *reader, const char *table,
                             const char *const *names, size_t name_count, bool json) BEL_MUST_USE;

#endif
