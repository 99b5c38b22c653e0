// Reader of ONNX models: bytes → model (checked, nothing computed) → operations of a graph.
//
//   bel_onnx_read    the file's inputs, outputs, initializers, nodes
//   bel_onnx_build   its nodes as operations, according to operators.def
//
// Files are not trusted: every size, index and name is checked before use, and an invalid one is an
// error that names the node. docs/formats/onnx.md lists the supported operators. Thread rule: a
// model is immutable; building is as in belfry/graph.h.
#ifndef BELFRY_ONNX_ONNX_H
#define BELFRY_ONNX_ONNX_H

#include "belfry/graph.h"

typedef struct bel_onnx_model bel_onnx_model;

// Reads a model of opset 1 … 24. The bytes are not needed afterwards. DATA_LOSS: malformed.
// UNIMPLEMENTED: well formed, but with a feature that Belfry lacks (an element type, a subgraph,
// external data …).
bel_status *bel_onnx_read(const void *bytes, size_t size, bel_onnx_model **out_model) BEL_MUST_USE;

// Reads a file by mapping it: large initializers are used in place. Elements may also be in files
// beside it (external data), named by paths inside its folder. No file may change while the model
// lives. Errors as above, with the path; NOT_FOUND and others of opening; INVALID_ARGUMENT: not a
// regular file.
bel_status *bel_onnx_read_file(const char *path, bel_onnx_model **out_model) BEL_MUST_USE;
void bel_onnx_destroy(bel_onnx_model *model); // accepts NULL

// Returns the model's producer, e.g. "pytorch"; "" if absent. Belfry's exports have "belfry". Lives
// as long as the model.
const char *bel_onnx_producer(const bel_onnx_model *model);

// An input or output. Symbolic dimensions are open: the first symbol of the model is -1, the next
// one -2 and so on. A dimension without size and name has a separate symbol. Lives as long as the
// model.
typedef struct bel_onnx_port {
    const char *name;
    bel_dtype dtype;
    bel_shape shape;
    bool ranked; // false: the model lacks the shape
} bel_onnx_port;

// Initializers do not count as inputs, even if the file lists them there too.
int bel_onnx_input_count(const bel_onnx_model *model);
const bel_onnx_port *bel_onnx_input(const bel_onnx_model *model, int input);
int bel_onnx_output_count(const bel_onnx_model *model);
const bel_onnx_port *bel_onnx_output(const bel_onnx_model *model, int output);
int bel_onnx_initializer_count(const bel_onnx_model *model);
const char *bel_onnx_initializer(const bel_onnx_model *model, int initializer,
                                 bel_tensor *out_tensor); // returns its name

// Returns the number of files beside the model with elements of it.
size_t bel_onnx_side_count(const bel_onnx_model *model);

// True if an initializer's elements are in a mapped file, whose pages can be reread.
bool bel_onnx_is_mapped(const bel_onnx_model *model, int initializer);

// The constants of a model that a training changes (weights): determined by their uses (weights.c),
// or by a name that matches a pattern of train[train_count]. Must not outlive model and patterns.
typedef struct bel_onnx_weights bel_onnx_weights;
bel_onnx_weights *bel_onnx_weights_find(const bel_onnx_model *model, const char *const *train,
                                        int train_count);
void bel_onnx_weights_destroy(bel_onnx_weights *weights);                    // accepts NULL
bool bel_onnx_weights_matched(const bel_onnx_weights *weights, int pattern); // a constant

// Returns the next float constant that nodes read and that is not a weight, starting at *at, which
// begins at 0; NULL: no more.
const char *bel_onnx_weights_next_fixed(const bel_onnx_weights *weights, int *at);

// Binding of a model's input. Unbound inputs become inputs of the graph with the same names.
typedef struct bel_onnx_binding {
    const char *name;
    bel_value *value; // in the graph, or NULL: it becomes an input of the graph
    // The input's elements, or NULL. Used only if an operation has to know an input while it is
    // built (e.g. the axes of Squeeze); a constant `value` works as well.
    const bel_tensor *elements;
} bel_onnx_binding;

// A node as built, for people.
typedef struct bel_onnx_row {
    const char *name, *op;
    const bel_value *value; // its first output; NULL: it could not be built
    int64_t parameters;     // elements of floating initializers that no earlier node reads
    const char *error;      // NULL: no error; may be an earlier node's
} bel_onnx_row;

typedef struct bel_onnx_options {
    const bel_onnx_binding *bindings;
    int binding_count;
    // F32 initializers used in computations become variables, with their names in the graph's scope
    // and bel_onnx_initializer's elements as initial values. Otherwise all are constants.
    bool variables;
    // Instead, for training: these constants become variables, with the same names. Those that are
    // not f32 are cast, except to f32. They are trainable, except for mean and variance of
    // BatchNormalization, which are frozen.
    const bel_onnx_weights *weights;
    // Constants of the graph may point into the model, which then must outlive the graph. Constants
    // that are not aligned to a cache line are copied.
    bool views;
    // For models that are only run: BatchNormalization with known statistics is merged into the
    // preceding convolution, if no other node reads that, and constants of Gemm are transposed
    // beforehand. This changes rounding.
    bool merge;
    // Called for each node. A node that cannot be built is no longer an error: nodes that need it
    // are skipped, and outputs that need it are NULL.
    void (*each)(void *user, const bel_onnx_row *row);
    void *user; // its first argument
} bel_onnx_options;

// Adds the model's nodes to the graph and sets out_outputs[bel_onnx_output_count]. `options` may be
// NULL. Values that depend only on constants are computed now and become constants.
//
// An input may be closed in dimension 0 and bound to a value that is open there. The model is then
// built for any batch, if its nodes provably keep the examples of a batch separate (batch.h).
// Otherwise UNIMPLEMENTED names the input and the node.
//
// After an error the graph is unusable. Errors name the node and its operator. NOT_FOUND: a binding
// without its input. FAILED_PRECONDITION: an operation must know an input that is fed at run time.
// UNIMPLEMENTED: an operator or a feature of it that Belfry lacks. INVALID_ARGUMENT, DATA_LOSS: an
// invalid node.
bel_status *bel_onnx_build(const bel_onnx_model *model, bel_graph *graph,
                           const bel_onnx_options *options, bel_value **out_outputs) BEL_MUST_USE;

// Reads one TensorProto, as in ONNX's test data. The caller owns out_tensor->data: bel_free. Errors
// as of bel_onnx_read.
bel_status *bel_onnx_read_tensor(const void *bytes, size_t size,
                                 bel_tensor *out_tensor) BEL_MUST_USE;

#endif
