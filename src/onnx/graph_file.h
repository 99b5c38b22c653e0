// Graphs as they are, in the container of ONNX, so that Belfry alone can run them: a training step
// above all, most of whose operations ONNX lacks. Nothing is translated: a node of domain
// "belfry.graph" is a node of the graph, under its name (random operations draw by it), with the
// operation's name and attributes. Tools that show ONNX models show these. docs/formats/training.md
// has the form.
//
// Constants stand in the file; values of variables do not: a checkpoint has them by their names.
#ifndef BELFRY_ONNX_GRAPH_FILE_H
#define BELFRY_ONNX_GRAPH_FILE_H

#include "onnx/onnx.h"
#include "onnx/write.h"

#define BEL_GRAPH_FILE_DOMAIN "belfry.graph"

// Borrowed, all of it, during the call.
typedef struct bel_graph_file_source {
    const bel_graph *graph;
    const bel_onnx_result *results; // what is written is what they need, and all leaves but
    int result_count;               // constants
    const bel_variable_kind *kinds; // by variable, in place of the graph's; NULL: those
    const double
        *scales; // by input: whoever feeds the graph has multiplied it by this, and now the
                 // graph does, in double, rounding once; 1: it stays. NULL: all stay
} bel_graph_file_source;

// UNIMPLEMENTED: replicas exchange something (the error says where it was called).
// RESOURCE_EXHAUSTED: more than 2 GiB. Nothing was given to the sink then.
bel_status *bel_graph_file_write(const bel_graph_file_source *source, bel_onnx_sink *sink,
                                 void *context) BEL_MUST_USE;

// Whether a model holds such a graph: its nodes are of that domain.
bool bel_graph_file_is(const bel_onnx_model *model);

// The graph of a model that bel_onnx_read has read, which it does not need afterwards; sets
// out_results[bel_onnx_output_count]. Whatever the file says, the graph is well formed, or there is
// none. DATA_LOSS: it is no such file, or malformed; names the node. UNIMPLEMENTED: a later version
// wrote it, or this library lacks an operation.
bel_status *bel_graph_file_read(const bel_onnx_model *model, bel_graph **out_graph,
                                bel_value **out_results) BEL_MUST_USE;

#endif
