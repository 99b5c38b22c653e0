// Names of a table's columns to which a model is bound: the label's, and one for each element of
// the vector of numbers. They are kept with the checkpoint, so that later files are read by name
// and not by position.
#ifndef BELFRY_INPUT_TABLE_COLUMN_NAMES_H
#define BELFRY_INPUT_TABLE_COLUMN_NAMES_H

#include "base/arena.h"
#include "belfry/status.h"

typedef struct bel_str bel_str; // base/str.h

typedef struct bel_column_names {
    const char *label;          // NULL: no label
    const char *const *columns; // names of the vector's elements, in order
    int column_count;
} bel_column_names;

// Writes the names as UTF-8 text: {"label":"digit","columns":["p0","p1"]}.
void bel_column_names_write(const bel_column_names *names, bel_str *out_text);

// Reads that text; everything lives in `arena`. DATA_LOSS: malformed; `source` names the text.
bel_status *bel_column_names_read(const char *text, const char *source, bel_arena *arena,
                                  bel_column_names *out_names) BEL_MUST_USE;

// Converts a name to UTF-8 in `arena`: bytes that are not UTF-8 are read as ISO 8859-1, so that a
// name can be kept and compared whatever the file's encoding. Cells that are passed through are
// converted in the same way.
const char *bel_column_name_utf8(const char *name, bel_arena *arena);

#endif
