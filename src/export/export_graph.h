// Graph of an exported model: the graph of predictions, with raw values as inputs. If a source
// scales an input, the graph does. Ids become places among the keys of their tables, whose rows are
// variables. If a table has a description, each column is a separate input, and the graph converts
// it to features, as far as operations can express that:
//
//   number            f64 [N], NaN if missing, the value in the file
//   category          i64 [N], index of the value; their count: missing; -1: another value
//   hash, cross       i64 [N], the place of its hash among the keys
//   date              f32 [N, width], its parts as the description computes them
//   lists and texts   i64 [N, lists, ids] in one input, places
//
// For a server the graph has tables instead, and its inputs ids instead of places. A category that
// has rows is then an id, too: rows are looked up before the graph runs. Inputs that no output
// depends on are left out.
#ifndef BELFRY_ESTIMATOR_EXPORT_GRAPH_H
#define BELFRY_ESTIMATOR_EXPORT_GRAPH_H

#include "columns/description.h"
#include "export/export_tables.h"
#include "model/feature_list.h"

// Meaning of an input besides its type and shape.
typedef struct bel_export_input {
    double scale;             // factor of the input; 1: unscaled
    const bel_key_list *keys; // the input holds places in them; NULL: it does not
    const bel_column *column; // column of the input; NULL: a feature
    bool read;                // outputs depend on it; otherwise the model omits it
} bel_export_input;

typedef struct bel_export_graph {
    bel_graph *graph;
    const float **variables;  // by variable: elements, borrowed
    bel_export_input *inputs; // by input, without those for rows, which come last
    int input_count;
    bel_value *outputs[BEL_MAX_OUTPUTS + 1];
    size_t input_capacity;
} bel_export_graph;

enum { BEL_EXPORT_INLINE_KEYS = 1 << 16 };

// Makes the graph. `tables` NULL: the graph looks rows up by ids. `columns` is the description of
// the features, or NULL. With `inline_tables` the graph looks ids up among keys that it holds,
// instead of inputs that hold places. All arguments are borrowed while the
// graph is used. UNIMPLEMENTED: an operation other than a look-up reads ids that become places.
// INVALID_ARGUMENT: more keys than BEL_EXPORT_INLINE_KEYS. Otherwise the errors of operations with
// unsupported types or shapes. Free with bel_export_graph_deinit, also after an error.
bel_status *bel_export_graph_make(const bel_saved *saved, const bel_feature_list *features,
                                  const bel_export_tables *tables, const bel_columns *columns,
                                  const bel_output *outputs, int output_count, bool inline_tables,
                                  bel_export_graph *out) BEL_MUST_USE;
void bel_export_graph_deinit(bel_export_graph *graph);

// Renames an output that has the name of an input, such as a column "predictions". Names are in
// `arena`.
void bel_export_graph_name_outputs(const bel_export_graph *graph, bel_arena *arena,
                                   bel_output *outputs, int output_count);

#endif
