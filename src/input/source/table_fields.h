// Fields of a record of a table, in a file or in memory: which of them a description of columns
// has, and where a block of rows finds them.
#ifndef BELFRY_INPUT_SOURCE_TABLE_FIELDS_H
#define BELFRY_INPUT_SOURCE_TABLE_FIELDS_H

#include "columns/transform.h"
#include "input/source/source.h"

enum { BEL_TABLE_MOST_FIELDS = 7 };

typedef struct bel_table_fields {
    int x, ids, lists, tokens, lengths, label, weight; // numbers of the source's fields; -1: absent
} bel_table_fields;

// Adds the fields of a table's rows, with `labeled` those of labels and weights, to a source
// without fields; their memory is the arena's.
bel_table_fields bel_table_fields_make(const bel_columns *columns, bool labeled, bel_source *source,
                                       bel_arena *arena);

// Logs how many texts are cut to the tokens that the model reads, and how many have none. `seen`:
// counts by column; `source` names the rows.
void bel_table_fields_tell_cut(const bel_columns *columns, const bel_category_cells *seen,
                               const char *source);

// Returns where rows go, from the place of each field.
bel_columns_block bel_table_fields_block(const bel_table_fields *fields, void *const *places);

#endif
