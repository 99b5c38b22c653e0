// Graph files: untranslated graphs in ONNX's container, which only Belfry can run. The main use is
// a training step, because ONNX lacks most of its operations. A node of domain "belfry.graph" is a
// node of the graph. It has the node's name (random operations draw by it), the operation's name
// and the attributes. Tools that show ONNX models show these. docs/formats/training.md has the
// format.
//
// Constants are in the file; variables' values are not: a checkpoint has them by name.
#ifndef BELFRY_ONNX_GRAPH_FILE_H
#define BELFRY_ONNX_GRAPH_FILE_H

#include "onnx/onnx.h"
#include "onnx/write.h"

#define BEL_GRAPH_FILE_DOMAIN "belfry.graph"

// Everything in it must outlive the call.
typedef struct bel_graph_file_source {
    const bel_graph *graph;
    const bel_onnx_result *results; // the file has the nodes that these need,
    int result_count;               // and all leaves except constants
    const bel_variable_kind *kinds; // by variable, instead of the graph's; NULL: the graph's
    const double
        *scales; // by input: a factor that the feeder applied before and that the graph now
                 // applies, in double, rounding once; 1: no factor. NULL: all 1
} bel_graph_file_source;

// UNIMPLEMENTED: replicas exchange something (the error has the position of the call).
// RESOURCE_EXHAUSTED: more than 2 GiB. The sink has received nothing then.
bel_status *bel_graph_file_write(const bel_graph_file_source *source, bel_onnx_sink *sink,
                                 void *context) BEL_MUST_USE;

// True if a model is a graph file: its nodes are of that domain.
bool bel_graph_file_is(const bel_onnx_model *model);

// Returns the graph of a model from bel_onnx_read, and no longer needs the model; sets
// out_results[bel_onnx_output_count]. Whatever the file contains, a returned graph is well formed.
// DATA_LOSS: not such a file, or malformed; names the node. UNIMPLEMENTED: a later version wrote
// it, or this library lacks an operation.
bel_status *bel_graph_file_read(const bel_onnx_model *model, bel_graph **out_graph,
                                bel_value **out_results) BEL_MUST_USE;

#endif
