// Names of a table's columns as a model is bound to them: which one is the label, and which is each
// element of the vector of numbers. They are kept with the checkpoint, so that later files are read
// by name and not by place.
#ifndef BELFRY_INPUT_COLUMN_NAMES_H
#define BELFRY_INPUT_COLUMN_NAMES_H

#include "base/arena.h"
#include "base/str.h"
#include "belfry/status.h"

typedef struct bel_column_names {
    const char *label;          // NULL: there is none
    const char *const *columns; // of the vector's elements, in order
    int column_count;
} bel_column_names;

// As text, UTF-8: {"label":"digit","columns":["p0","p1"]}.
void bel_column_names_write(const bel_column_names *names, bel_str *out_text);

// The same back; everything lives in `arena`. DATA_LOSS: malformed; `source` names the text.
bel_status *bel_column_names_read(const char *text, const char *source, bel_arena *arena,
                                  bel_column_names *out_names) BEL_MUST_USE;

// A name as UTF-8 in `arena`: bytes that are none are read as ISO 8859-1, so that a name can be
// kept and compared whatever the file was written in.
// It serves cells that are passed through, too.
const char *bel_column_name_utf8(const char *name, bel_arena *arena);

#endif
