// Rows of tables for an export: all that a checkpoint has, in the order of their keys.
//
// A model that was exported takes the places of keys and not keys, since an ONNX model has rows as
// a matrix. Ids that are looked up in several tables have one place in all of them, so tables that
// share ids share one list of keys, and ids that are looked up in one table share its list.
#ifndef BELFRY_ESTIMATOR_EXPORT_TABLES_H
#define BELFRY_ESTIMATOR_EXPORT_TABLES_H

#include "estimator/saved.h"

typedef struct bel_key_list {
    int64_t *keys; // ascending, none twice
    int64_t count;
    char *name; // "deep#keys": of the first of its tables
} bel_key_list;

typedef struct bel_export_tables {
    float **rows; // by graph table: [count + 1, width], the last one zeros
    bel_key_list *lists;
    int list_count;
    int *list_of; // by graph table
    int table_count;
    const bel_graph *graph; // of the opened model, which must outlive this
} bel_export_tables;

// NOT_FOUND, DATA_LOSS: as bel_rows_load. Free with bel_export_tables_deinit, also after an error.
bel_status *bel_export_tables_load(const bel_saved *saved, bel_export_tables *out) BEL_MUST_USE;
void bel_export_tables_deinit(bel_export_tables *tables);

// The keys of a table.
const bel_key_list *bel_export_tables_list(const bel_export_tables *tables, int table);

// The list of keys of an input of the graph; NULL: it is looked up in no table.
const bel_key_list *bel_export_tables_keys(const bel_export_tables *tables, int input);

// Where a key stands in a list; its count: it does not.
int64_t bel_key_list_place(const bel_key_list *list, int64_t key);

#endif
