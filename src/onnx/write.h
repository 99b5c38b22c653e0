// Writer of graphs as ONNX models, for other runtimes and for Belfry's predictor.
//
// Operations that ONNX has are written as ONNX's. An operation that it lacks becomes a call of a
// function in the domain "belfry", with a body of ONNX's operators in the same file. Other runtimes
// compute the body. Belfry's reader knows the operation by its name, so that an exported model
// gives the same bits in Belfry. docs/formats/onnx.md has both lists.
#ifndef BELFRY_ONNX_WRITE_H
#define BELFRY_ONNX_WRITE_H

#include "graph/graph.h"

enum { BEL_ONNX_OPSET_LOWEST = 13, BEL_ONNX_OPSET_HIGHEST = 17 };

typedef struct bel_onnx_result {
    const char *name;
    const bel_value *value;
} bel_onnx_result;

// Elements in another file beside the model: their offsets in it, in bytes.
typedef struct bel_onnx_beside {
    const char *file;
    const int64_t *variables; // by graph variable
} bel_onnx_beside;

typedef struct bel_onnx_note {
    const char *key, *value;
} bel_onnx_note;

// Everything in it must outlive the call. Names of variables, inputs and results are kept; an open
// dimension is "N" for BEL_DIM_BATCH, otherwise "d2" for -2 and so on.
typedef struct bel_onnx_source {
    const bel_graph *graph; // for predictions, without tables
    const bel_onnx_result *results;
    int result_count;
    const float *const *variables; // elements by graph variable
    const bel_onnx_beside *beside; // NULL: elements are in the model
    int64_t step;                  // value of GlobalStep
    int opset;                     // BEL_ONNX_OPSET_LOWEST … HIGHEST
    const bel_onnx_note *notes;    // the model's metadata
    int note_count;
} bel_onnx_source;

// Receives the next bytes of the model.
typedef void bel_onnx_sink(void *context, const void *bytes, size_t count);

// UNIMPLEMENTED: an operation that cannot be exported: one that communicates (named with the file
// and line of its call), draws random numbers, or is made for training. RESOURCE_EXHAUSTED: the
// file would exceed 2 GiB, which ONNX does not allow. The sink has received nothing then.
bel_status *bel_onnx_write(const bel_onnx_source *source, bel_onnx_sink *sink,
                           void *context) BEL_MUST_USE;

#endif
