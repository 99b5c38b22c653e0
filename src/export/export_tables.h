// Rows of tables for an export: all rows of a checkpoint, in the order of their keys.
//
// An exported model takes places of keys instead of keys, since an ONNX model has rows as a matrix.
// Ids that are looked up in several tables have one place in all of them. Tables that share ids
// therefore share one list of keys, and ids that are looked up in one table share its list.
#ifndef BELFRY_ESTIMATOR_EXPORT_TABLES_H
#define BELFRY_ESTIMATOR_EXPORT_TABLES_H

#include "evaluate/saved.h"

typedef struct bel_key_list {
    int64_t *keys; // ascending, no duplicates
    int64_t count;
    char *name; // "deep#keys", from the first of its tables
} bel_key_list;

typedef struct bel_export_tables {
    float **rows; // by graph table: [count + 1, width], the last row zeros
    bel_key_list *lists;
    int list_count;
    int *list_of; // by graph table
    int table_count;
    const bel_graph *graph; // graph of the opened model, which must outlive this struct
} bel_export_tables;

// NOT_FOUND, DATA_LOSS: as for bel_row_layers_load. Free with bel_export_tables_deinit, also
// after an error.
bel_status *bel_export_tables_load(const bel_saved *saved, bel_export_tables *out) BEL_MUST_USE;
void bel_export_tables_deinit(bel_export_tables *tables);

// The keys of a table.
const bel_key_list *bel_export_tables_list(const bel_export_tables *tables, int table);

// The list of keys of an input of the graph; NULL: it is looked up in no table.
const bel_key_list *bel_export_tables_keys(const bel_export_tables *tables, int input);

// The place of a key in a list; the list's count if absent.
int64_t bel_key_list_place(const bel_key_list *list, int64_t key);

#endif
