// Writing graphs as ONNX models, for other runtimes and for Belfry's own predictor.
//
// Operations that ONNX has are written as ONNX has them. One that it lacks becomes a call of a
// function in the domain "belfry", whose body, in the same file, is made of ONNX's operators: other
// runtimes compute the body, and Belfry's reader knows the operation by its name, so that an
// exported model gives the same bits here. docs/formats/onnx.md has both lists.
#ifndef BELFRY_ONNX_WRITE_H
#define BELFRY_ONNX_WRITE_H

#include "graph/graph.h"

enum { BEL_ONNX_OPSET_LOWEST = 13, BEL_ONNX_OPSET_HIGHEST = 17 };

typedef struct bel_onnx_result {
    const char *name;
    const bel_value *value;
} bel_onnx_result;

// Elements that lie in another file beside the model: where in it, in bytes.
typedef struct bel_onnx_beside {
    const char *file;
    const int64_t *variables; // by graph variable
} bel_onnx_beside;

typedef struct bel_onnx_note {
    const char *key, *value;
} bel_onnx_note;

// Borrowed, all of it, during the call. Names of variables, inputs and results are kept; an open
// dimension is "N" for BEL_DIM_BATCH, else "d2" for -2 and so on.
typedef struct bel_onnx_source {
    const bel_graph *graph; // of predictions, without tables
    const bel_onnx_result *results;
    int result_count;
    const float *const *variables; // elements by graph variable
    const bel_onnx_beside *beside; // NULL: elements stand in the model
    int64_t step;                  // what GlobalStep gives
    int opset;                     // BEL_ONNX_OPSET_LOWEST … HIGHEST
    const bel_onnx_note *notes;    // the model's metadata
    int note_count;
} bel_onnx_source;

// Takes the next bytes of the model.
typedef void bel_onnx_sink(void *context, const void *bytes, size_t count);

// UNIMPLEMENTED: an operation that cannot be exported is reached, and is named: one that
// communicates (with the file and line of its call), draws random numbers, or is made for training.
// RESOURCE_EXHAUSTED: more than 2 GiB would stand in the file, which ONNX does not allow. Nothing
// was given to the sink then.
bel_status *bel_onnx_write(const bel_onnx_source *source, bel_onnx_sink *sink,
                           void *context) BEL_MUST_USE;

#endif
