// Which column of a CSV file goes where: decided once, when the files are opened, by the options
// and by what the model was trained with. Bound by name where names are known, so that columns may
// come in another order, and refused where one is missing: a column in another place would be
// silently wrong. For source_csv.c, which reads the rows.
#ifndef BELFRY_INPUT_CSV_COLUMNS_H
#define BELFRY_INPUT_CSV_COLUMNS_H

#include "base/arena.h"
#include "input/csv_set.h"
#include "input/source.h"

// What becomes of a column.
typedef enum bel_csv_use {
    BEL_CSV_USE_NOTHING,
    BEL_CSV_USE_VECTOR, // an element of the vector field
    BEL_CSV_USE_FIELD,  // a field of its own
    BEL_CSV_USE_ID,     // an element of the ids
    BEL_CSV_USE_LIST,   // a row of the lists of ids
    BEL_CSV_USE_LABEL,
} bel_csv_use;

typedef struct bel_csv_place {
    const char *name;
    bel_csv_use use;
    int field;     // index among the source's fields; VECTOR, ID, LIST: among the elements
    uint64_t seed; // ID, LIST: of its values' hashes
} bel_csv_place;

typedef struct bel_csv_source {
    bel_source base;
    bel_arena *arena;
    const bel_csv_options *options; // `given` with all files
    bel_csv_options given;          // its paths' patterns replaced by files
    const bel_column_names *like;   // what the model was trained with; NULL: nothing is known
    bel_column_names names;
    bel_csv_set set;
    bel_csv_place *columns;
    int column_count;
    int used_count;                                       // columns up to the last one that is used
    int vector_field, id_field, list_field, weight_field; // -1: there is none
    bel_csv_label label;
    bel_bad_records *bad; // NULL: every row was found good when the file was opened
} bel_csv_source;

// Reads the header of a file, or names its columns by place, and leaves its first row next. Headers
// of later files must be that of the first. DATA_LOSS names the file and what differs.
bel_status *bel_csv_columns_read_header(bel_csv_source *source, bel_csv_file *file) BEL_MUST_USE;

// Decides what each column is, and with that the source's fields. INVALID_ARGUMENT names a column
// that is asked for and is not there, or is asked for twice.
bel_status *bel_csv_columns_use(bel_csv_source *source) BEL_MUST_USE;

// What later files of this model are bound to.
void bel_csv_columns_keep_names(bel_csv_source *source);

#endif
