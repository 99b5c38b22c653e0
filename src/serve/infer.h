// A run of a version for one request: elements for its inputs in, outputs out, in no protocol.
#ifndef BELFRY_SERVE_INFER_H
#define BELFRY_SERVE_INFER_H

#include "base/arena.h"
#include "serve/cells.h"
#include "serve/gate.h"
#include "serve/served.h"

#define BEL_PLATFORM "onnx_belfry" // in metadata

// Names of types.
const char *bel_v2_name(bel_dtype dtype);                 // Open Inference Protocol: "FP32"
const char *bel_v1_name(bel_dtype dtype);                 // TensorFlow: "DT_FLOAT"
bool bel_v2_find(const char *name, bel_dtype *out_dtype); // BYTES is BEL_DTYPE_STRING

// Request in progress. Zero-initialize, and set the fields up to `most_tokens`. `inputs`
// [input_count] have data NULL until they are given.
typedef struct bel_infer {
    const bel_served *version;
    const char *model; // its name, for errors
    bel_gate *gate;
    int max_batch;        // most examples of a run that this request shares with others
    int most_examples;    // in this request
    int64_t deadline_ns;  // bel_clock_ns
    bel_arena *arena;     // the request's
    size_t most_elements; // the bytes of the request limit every input
    int64_t most_tokens;  // the most for its texts
    bel_tensor *inputs;
    bel_tensor *outputs;
    bool *asked; // outputs that bel_infer_ask has found
    // When the request came to the gate, and its run began and ended; 0: it has not run.
    int64_t arrived_ns, taken_ns, computed_ns;
} bel_infer;

void bel_infer_begin(bel_infer *infer);

// Index of an input; -1: no such input. INVALID_ARGUMENT: the name is unknown (the names are
// listed), or was given already.
bel_status *bel_infer_find(const bel_infer *infer, const char *name, int *out_input) BEL_MUST_USE;

// Returns true if a member or input of this name is left out: the model is of a table that does
// not read a column of this name, such as the label or a key. A record may have it, as a row of a
// file may. The log names the first. A model of texts leaves out only columns of its description.
bool bel_infer_leaves_out(const bel_infer *infer, const char *name);

// Allocates the elements of an input. INVALID_ARGUMENT: the port has another type or shape, or
// these are too many examples.
bel_status *bel_infer_place(bel_infer *infer, int input, bel_dtype dtype, const bel_shape *shape,
                            bel_tensor *out_tensor) BEL_MUST_USE;

// The same for `rows` cells of a column.
bel_status *bel_infer_place_cells(bel_infer *infer, int input, int64_t rows,
                                  bel_cell_rows *out_rows) BEL_MUST_USE;

// Waits at the gate and runs, perhaps with other requests, but to the same bits. Outputs are then
// in the request's arena. INVALID_ARGUMENT: an input was not given, the batches differ, or the
// outputs exceed 256 MiB. DEADLINE_EXCEEDED: no slot came in time. UNAVAILABLE: the server stops.
bel_status *bel_infer_run(bel_infer *infer) BEL_MUST_USE;

// Input as metadata describe it: STRING [batch] if it takes the cells of a category or a date, or
// texts. Those stand for the two inputs that they become, so there may be fewer than the model's.
int bel_infer_input_count(const bel_served *version);
bel_port bel_infer_input_port(const bel_served *version, int index);

// Output `index`. After the model's outputs comes the class's name of each example, if the version
// has one: a tensor of type STRING without data, [batch].
int bel_infer_output_count(const bel_served *version);
// Finds an output that the request asks for. INVALID_ARGUMENT: unknown, or asked for before.
bel_status *bel_infer_ask(const bel_infer *infer, const char *name, int *out_output) BEL_MUST_USE;
bel_port bel_infer_output_port(const bel_served *version, int index);
bel_tensor bel_infer_output(const bel_infer *infer, int index);
const char *bel_infer_class(const bel_infer *infer, int64_t example);

#endif
