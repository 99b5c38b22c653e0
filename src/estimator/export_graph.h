// The graph of an exported model: that of predictions, but what it takes is what people have. An
// input that a source multiplies is multiplied in the graph; ids become places among the keys of
// their tables, whose rows are variables; of a table that has a description each column is an input
// of its own, and what makes features of it is in the graph, as far as operations can say it:
//
//   number            f64 [N], NaN where it is missing, as the file has it
//   category          i64 [N], which of the values; their number: it is missing; -1: none of them
//   hash, cross       i64 [N], the place of its hash among the keys
//   date              f32 [N, width], its parts as the description makes them
//   lists and texts   i64 [N, lists, ids] in one input, places
#ifndef BELFRY_ESTIMATOR_EXPORT_GRAPH_H
#define BELFRY_ESTIMATOR_EXPORT_GRAPH_H

#include "columns/description.h"
#include "estimator/export_tables.h"
#include "estimator/feature_list.h"

// What an input means besides its type and shape.
typedef struct bel_export_input {
    double scale;             // it is multiplied by this; 1: by nothing
    const bel_key_list *keys; // it holds places in them; NULL: it does not
    const bel_column *column; // it is this one; NULL: a feature
    bool read;                // outputs depend on it; else no model has it
} bel_export_input;

typedef struct bel_export_graph {
    bel_graph *graph;
    const float **variables;  // by its variables: elements, borrowed
    bel_export_input *inputs; // by its inputs
    bel_value *outputs[BEL_MAX_OUTPUTS + 1];
    size_t input_capacity;
} bel_export_graph;

enum { BEL_EXPORT_INLINE_KEYS = 1 << 16 };

// `columns`: the description of the features, NULL: they have none. `inline_tables`: ids are looked
// up in the graph, in place of the inputs that hold places. All of it is borrowed while the graph
// is used. UNIMPLEMENTED: something else than a look-up reads ids that become places.
// INVALID_ARGUMENT: more keys than BEL_EXPORT_INLINE_KEYS; else the errors of operations
// that get types or shapes which they do not take. Free with bel_export_graph_deinit, also after an
// error.
bel_status *bel_export_graph_make(const bel_saved *saved, const bel_feature_list *features,
                                  const bel_export_tables *tables, const bel_columns *columns,
                                  const bel_output *outputs, int output_count, bool inline_tables,
                                  bel_export_graph *out) BEL_MUST_USE;
void bel_export_graph_deinit(bel_export_graph *graph);

#endif
