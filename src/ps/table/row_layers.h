// Rows of a checkpoint without training: all rows of a full checkpoint, and over them the rows of a
// delta. Checkpoints on one base share its rows, so another delta costs only its rows. They are
// loaded into memory. If the training keeps rows on a disk (table_disk), they are read in place
// instead, from the mapped files of the checkpoint (checkpoint/row_map.h).
//
// Thread rule: one thread loads and destroys. Any thread pulls from loaded layers.
#ifndef BELFRY_PS_TABLE_ROW_LAYERS_H
#define BELFRY_PS_TABLE_ROW_LAYERS_H

#include "graph/graph.h"
#include "ps/table/table.h"

// All rows of a full checkpoint.
typedef struct bel_row_base bel_row_base;

typedef struct bel_row_layers {
    bel_row_base *base;
    bel_table **changed; // by table of the graph: the rows of a delta; NULL: the checkpoint is full
    bel_table **removed; // keys that have no row now, in rows of one float; NULL: no key
    struct bel_ckpt_row_map **maps; // instead of both, if the base is mapped
    int table_count;
    int64_t base_step;
    int64_t changed_count, removed_count; // rows and keys of the delta
    bool shares;                          // the base was loaded before
    bool quiet;                           // set before: no line says that rows are read in place
} bel_row_layers;

// Loads the rows of an open checkpoint. If one of `others` has its base, only the files of the
// delta are read. `layers` is zero before, except for `quiet`. Free with
// bel_row_layers_deinit, also after an error.
// NOT_FOUND: a table is absent. DATA_LOSS: a table has another width, or the delta does not fit its
// base. RESOURCE_EXHAUSTED.
bel_status *bel_row_layers_load(bel_row_layers *layers, const bel_graph *graph,
                                const bel_ckpt_reader *reader, const bel_row_layers *const *others,
                                int other_count) BEL_MUST_USE;
void bel_row_layers_deinit(bel_row_layers *layers);

// Copies the rows of `keys`; a callback for bel_forward_config and bel_evaluation_config. Takes no
// lock.
void bel_row_layers_pull(const void *layers, int table, const int64_t *keys, int64_t count,
                         float *out_rows);

int64_t bel_row_layers_bytes(const bel_row_layers *layers); // memory, with the base; no mapped file

#endif
