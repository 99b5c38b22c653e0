// Assignment of a CSV file's columns to fields. It is decided once, when the files are opened, by
// the options and by the names that the model was trained with. Columns are bound by name where
// names are known, so their order may differ; a missing one is an error, as a column in another
// position would be silently wrong. For source_csv.c, which reads the rows.
#ifndef BELFRY_INPUT_SOURCE_CSV_COLUMNS_H
#define BELFRY_INPUT_SOURCE_CSV_COLUMNS_H

#include "base/arena.h"
#include "input/source/source.h"
#include "input/table/csv_set.h"

// Use of a column.
typedef enum bel_csv_use {
    BEL_CSV_USE_NOTHING,
    BEL_CSV_USE_VECTOR, // an element of the vector field
    BEL_CSV_USE_FIELD,  // a separate field
    BEL_CSV_USE_ID,     // an element of the ids
    BEL_CSV_USE_LIST,   // a row of the lists of ids
    BEL_CSV_USE_LABEL,
} bel_csv_use;

typedef struct bel_csv_place {
    const char *name;
    bel_csv_use use;
    int field;     // index among the source's fields, or for VECTOR, ID, LIST among the elements
    uint64_t seed; // ID, LIST: seed of its values' hashes
} bel_csv_place;

typedef struct bel_csv_source {
    bel_source base;
    bel_arena *arena;
    const bel_csv_options *options; // `given` with all its files
    bel_csv_options given;          // its paths' patterns replaced by files
    const bel_column_names *like;   // names the model was trained with; NULL: unknown
    bel_column_names names;
    bel_csv_set set;
    bel_csv_place *columns;
    int column_count;
    int used_count; // number of columns up to the last used one
    int vector_field, id_field, list_field, weight_field; // -1: absent
    bel_csv_label label;
    bel_bad_records *bad; // NULL: all rows were found good when the file was opened
} bel_csv_source;

// Reads the header of a file, or names its columns by position; the first row is then next. Headers
// of later files must equal that of the first. DATA_LOSS names the file and the difference.
bel_status *bel_csv_columns_read_header(bel_csv_source *source, bel_csv_file *file) BEL_MUST_USE;

// Decides the use of each column, and thereby the source's fields. INVALID_ARGUMENT names a
// requested column that is absent, or is requested twice.
bel_status *bel_csv_columns_use(bel_csv_source *source) BEL_MUST_USE;

// Keeps the names to which later files of this model are bound.
void bel_csv_columns_keep_names(bel_csv_source *source);

#endif
