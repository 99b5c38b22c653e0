// Reading ONNX models: bytes → model (checked, nothing computed) → operations of a graph.
//
//   bel_onnx_read    what the file says: inputs, outputs, initializers, nodes
//   bel_onnx_build   its nodes as operations, each as operators.def says
//
// Files are not trusted: every size, index and name is checked before it is used, and what does not
// fit is an error that names the node. docs/formats/onnx.md says what is read and what is refused.
// Thread rule: a model is immutable; building is as belfry/graph.h says.
#ifndef BELFRY_ONNX_ONNX_H
#define BELFRY_ONNX_ONNX_H

#include "belfry/graph.h"

typedef struct bel_onnx_model bel_onnx_model;

// A model of opset 1 … 24. The bytes are not needed afterwards. DATA_LOSS: malformed;
// UNIMPLEMENTED: well formed, but with what Belfry lacks (an element type, a subgraph, external
// data …).
bel_status *bel_onnx_read(const void *bytes, size_t size, bel_onnx_model **out_model) BEL_MUST_USE;

// The same of a file, which is mapped: large initializers are used where they lie. Elements may
// also lie in files beside it (external data), named by paths that stay in its folder. All of them
// must stay as they are while the model lives. Errors as above, with the path; NOT_FOUND and others
// of opening; INVALID_ARGUMENT: one is no regular file.
bel_status *bel_onnx_read_file(const char *path, bel_onnx_model **out_model) BEL_MUST_USE;
void bel_onnx_destroy(bel_onnx_model *model); // accepts NULL

// The program that wrote the model, as it says: "pytorch"; "" where it does not. An export of
// Belfry's says "belfry". Lives as long as the model.
const char *bel_onnx_producer(const bel_onnx_model *model);

// An input or output. Symbolic dimensions are open: the first symbol of the model is -1, the next
// one -2 and so on; a dimension without size and name is a symbol of its own. Lives as long as the
// model.
typedef struct bel_onnx_port {
    const char *name;
    bel_dtype dtype;
    bel_shape shape;
    bool ranked; // else the model does not say the shape
} bel_onnx_port;

// Initializers are not among the inputs, even where the file lists them there too.
int bel_onnx_input_count(const bel_onnx_model *model);
const bel_onnx_port *bel_onnx_input(const bel_onnx_model *model, int input);
int bel_onnx_output_count(const bel_onnx_model *model);
const bel_onnx_port *bel_onnx_output(const bel_onnx_model *model, int output);
int bel_onnx_initializer_count(const bel_onnx_model *model);
const char *bel_onnx_initializer(const bel_onnx_model *model, int initializer,
                                 bel_tensor *out_tensor); // its name

// How many files beside it the model has elements in.
size_t bel_onnx_side_count(const bel_onnx_model *model);

// Whether an initializer's elements lie in a mapped file, whose pages can be read again.
bool bel_onnx_is_mapped(const bel_onnx_model *model, int initializer);

// Which constants of a model are weights that a training changes: by what uses them (weights.c), or
// because their name matches a pattern of train[train_count]. Lives at most as long as both.
typedef struct bel_onnx_weights bel_onnx_weights;
bel_onnx_weights *bel_onnx_weights_find(const bel_onnx_model *model, const char *const *train,
                                        int train_count);
void bel_onnx_weights_destroy(bel_onnx_weights *weights);                    // accepts NULL
bool bel_onnx_weights_matched(const bel_onnx_weights *weights, int pattern); // some constant

// The next float constant that nodes read and that is no weight, from *at on, which begins at 0;
// NULL: there are no more.
const char *bel_onnx_weights_next_fixed(const bel_onnx_weights *weights, int *at);

// What stands for an input of the model. Inputs that are not bound become inputs of the graph under
// their names.
typedef struct bel_onnx_binding {
    const char *name;
    bel_value *value; // of the graph, or NULL: an input of the graph after all
    // What the input holds, or NULL. It is looked at only where an operation has to know an input
    // while it is built (the axes of Squeeze, say); a constant `value` serves as well.
    const bel_tensor *elements;
} bel_onnx_binding;

// A node as it was built, for people.
typedef struct bel_onnx_row {
    const char *name, *op;
    const bel_value *value; // its first output; NULL: it could not be built
    int64_t parameters;     // elements of floating initializers that no node before it takes
    const char *error;      // NULL: none, or that of a node before it
} bel_onnx_row;

typedef struct bel_onnx_options {
    const bel_onnx_binding *bindings;
    int binding_count;
    // F32 initializers that operations compute with become variables, under their names in the
    // graph's scope, which begin with bel_onnx_initializer's elements. Else all are constants.
    bool variables;
    // Instead, for training: what these say becomes variables, under the names of the constants.
    // Those that are not f32 are cast, except to f32. They are trainable but for the mean and
    // variance of BatchNormalization, which are frozen.
    const bel_onnx_weights *weights;
    // Constants of the graph may lie where the model has them, which must outlive the graph then.
    // Those that begin within a line of the cache are copied.
    bool views;
    // For models that are only run: BatchNormalization by known statistics goes into the
    // convolution before it, where nothing else reads that, and transposed constants of Gemm are
    // turned. It rounds otherwise.
    bool merge;
    // Called for each node. A node that cannot be built is no error then: those that need it are
    // passed over, and outputs that do are NULL.
    void (*each)(void *user, const bel_onnx_row *row);
    void *user; // its first argument
} bel_onnx_options;

// Adds the model's nodes to the graph and sets out_outputs[bel_onnx_output_count]. An input may be
// closed in dimension 0 and bound to a value that is open there: the model is then built for any
// batch where its nodes provably keep the examples of a batch apart (batch.h). Where they do not,
// it is UNIMPLEMENTED, with the input and the node. What depends on
// constants alone is computed now and becomes a constant. `options` may be NULL. After an error the
// graph is of no use. Errors name the node and its operator. NOT_FOUND: a binding without its
// input; FAILED_PRECONDITION: an operation must know an input that is fed at run time;
// UNIMPLEMENTED: an operator or something of it that Belfry lacks; INVALID_ARGUMENT, DATA_LOSS: the
// node is wrong.
bel_status *bel_onnx_build(const bel_onnx_model *model, bel_graph *graph,
                           const bel_onnx_options *options, bel_value **out_outputs) BEL_MUST_USE;

// One TensorProto, as in ONNX's test data. out_tensor->data is the caller's: bel_free. Errors as of
// bel_onnx_read.
bel_status *bel_onnx_read_tensor(const void *bytes, size_t size,
                                 bel_tensor *out_tensor) BEL_MUST_USE;

#endif
