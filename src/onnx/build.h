// Conversion of a node to operations: rules, and the helpers of the functions that they call.
#ifndef BELFRY_ONNX_BUILD_H
#define BELFRY_ONNX_BUILD_H

#include "belfry/ops.h"
#include "graph/graph.h"
#include "onnx/model.h"

enum { BEL_ONNX_ATTRS = 10, BEL_ONNX_ANY = 1 << 30 };

// An attribute of an operator: its type and default. Lists, texts and tensors have no default: they
// are NULL or empty.
typedef struct bel_onnx_attr_rule {
    const char *name;
    bel_onnx_kind kind;
    double otherwise;
} bel_onnx_attr_rule;

typedef struct bel_onnx_call bel_onnx_call;

// Makes the node's outputs. Errors may stay in the graph, where the caller checks for them.
typedef bel_status *bel_onnx_make_fn(bel_onnx_call *call);

// A row of operators.def: an operator from one version of its opset until the next row's version.
typedef struct bel_onnx_rule {
    const char *name;
    int since;
    int min_inputs, max_inputs;
    bel_onnx_make_fn *make; // NULL: `op` with the same attributes
    bel_op op;
    bel_onnx_attr_rule attrs[BEL_ONNX_ATTRS]; // until the first without a name
    bool own;                                 // domain BEL_ONNX_OWN_DOMAIN, not ONNX's
} bel_onnx_rule;

// Domain of operations that ONNX lacks (write.h).
#define BEL_ONNX_OWN_DOMAIN "belfry"

// Like bel_onnx_build, with each input in the shape of its binding. `out_ends` (NULL: not wanted)
// gets, by node of the model, the number of nodes of the graph after it.
bel_status *bel_onnx_build_as_bound(const bel_onnx_model *model, bel_graph *graph,
                                    const bel_onnx_options *options, size_t *out_ends,
                                    bel_value **out_outputs) BEL_MUST_USE;

// Returns the row for an operator of a domain ("": ONNX's) in a version of its opset; NULL: no such
// row.
const bel_onnx_rule *bel_onnx_rule_of(const char *domain, const char *op, int version);

// Finds the rule for a node and checks the node's inputs and attributes against it. UNIMPLEMENTED:
// unknown operator, version or attribute. DATA_LOSS: an attribute of the wrong type, too many
// inputs.
bel_status *bel_onnx_find_rule(const bel_onnx_node *node,
                               const bel_onnx_rule **out_rule) BEL_MUST_USE;

typedef struct bel_onnx_builder bel_onnx_builder;
typedef struct bel_onnx_extent bel_onnx_extent; // sizes.h
typedef struct bel_onnx_sizes bel_onnx_sizes;

// One node during its conversion.
struct bel_onnx_call {
    bel_onnx_builder *builder;
    bel_graph *graph; // the builder's, or one for computing a constant
    const bel_onnx_node *node;
    const bel_onnx_rule *rule;
    bel_value **inputs;  // node->input_count; NULL: not requested yet
    bel_value **outputs; // node->output_count
    // In a separate graph for constants: elements that replace an input's, by input; without data:
    // the input's. NULL: no replacements.
    const bel_tensor *stand_ins;
};

// Calls the row's function and checks that every output is made.
bel_status *bel_onnx_make_outputs(bel_onnx_call *call) BEL_MUST_USE;

// --- Inputs --------------------------------------------------------------------------------------

bool bel_onnx_has(const bel_onnx_call *call, int input); // false if omitted
bel_value *bel_onnx_in(bel_onnx_call *call, int input);  // NULL: omitted, or the graph failed
bel_shape bel_onnx_in_shape(bel_onnx_call *call, int input);

// Returns the first `count` inputs in order. The graph's variables are in the order of their
// creation, and C does not define the order of arguments. So make at most one value in an argument
// list.
void bel_onnx_ins(bel_onnx_call *call, int count, bel_value **out_inputs);

// Returns the elements of an input that must be known now. FAILED_PRECONDITION: it is fed at run
// time.
bel_status *bel_onnx_known(bel_onnx_call *call, int input, bel_tensor *out_elements) BEL_MUST_USE;
bool bel_onnx_is_known(bel_onnx_call *call, int input);
bool bel_onnx_is_constant(const bel_onnx_call *call, int input);

// Returns an input that has sizes of open dimensions, or NULL; it is not a value of the graph.
const bel_onnx_sizes *bel_onnx_sizes_in(const bel_onnx_call *call, int input);

// True if nodes may be replaced by others that round differently (bel_onnx_options.merge).
bool bel_onnx_merges(const bel_onnx_call *call);

// True if an input's operation may be replaced together with this one: bel_onnx_options.merge is
// set and no other node reads its result.
bool bel_onnx_may_merge(const bel_onnx_call *call, int input);

// Merges the node into the convolution that makes its input 0; NULL: impossible.
bel_value *bel_onnx_merge_norm(bel_onnx_call *call);

// Returns the transpose of input `input`, a constant matrix, as a constant; NULL: not such a
// matrix, or merging is off.
bel_value *bel_onnx_turned(bel_onnx_call *call, int input);

// Like bel_onnx_known: integers (I64 or I32, rank 0 or 1, at most BEL_MAX_RANK of them), one such
// integer, and one number of any type.
bel_status *bel_onnx_known_ints(bel_onnx_call *call, int input, bel_shape *out_ints) BEL_MUST_USE;
bel_status *bel_onnx_known_int(bel_onnx_call *call, int input, int64_t *out_int) BEL_MUST_USE;
bel_status *bel_onnx_known_number(bel_onnx_call *call, int input, double *out) BEL_MUST_USE;

// Like bel_onnx_known_ints, for any number of I64.
bel_status *bel_onnx_known_i64(bel_onnx_call *call, int input,
                               bel_tensor *out_elements) BEL_MUST_USE;

// --- Attributes, of the types in the rule -------------------------------------------------------

const bel_onnx_attr *bel_onnx_find_attr(const bel_onnx_call *call, const char *name); // or NULL
double bel_onnx_number(const bel_onnx_call *call, const char *name); // or the rule's default
int64_t bel_onnx_int(const bel_onnx_call *call, const char *name);
const char *bel_onnx_text(const bel_onnx_call *call, const char *name, const char *otherwise);

// Returns a list of at most BEL_MAX_RANK integers; rank 0 if it is absent.
bel_status *bel_onnx_ints(const bel_onnx_call *call, const char *name,
                          bel_shape *out_ints) BEL_MUST_USE;

// Returns the index of a text among `count` names; UNIMPLEMENTED if it is not among them.
bel_status *bel_onnx_choice(const bel_onnx_call *call, const char *name, const char *const *names,
                            int count, int *out_choice) BEL_MUST_USE;

// --- Subgraphs -----------------------------------------------------------------------------------

// Builds a subgraph without inputs instead of the node: its outputs become the node's.
bel_status *bel_onnx_build_subgraph(bel_onnx_call *call,
                                    const bel_onnx_subgraph *graph) BEL_MUST_USE;

// --- Outputs and errors -------------------------------------------------------------------------

void bel_onnx_out(bel_onnx_call *call, int output, bel_value *value); // ignored if not wanted
bool bel_onnx_wants(const bel_onnx_call *call, int output);
void bel_onnx_keep_sizes(bel_onnx_call *call, int output, const bel_onnx_sizes *sizes); // copied

// Returns dimension `axis` of the node's output as the model declares it, if that is an output of
// the model and no input is bound to another value; 0: not declared.
int64_t bel_onnx_declared_dim(const bel_onnx_call *call, int output, int32_t axis);

// Converts axis -rank … rank - 1 to 0 … rank - 1.
bel_status *bel_onnx_axis(int64_t axis, int32_t rank, int32_t *out_axis) BEL_MUST_USE;

// Returns a value of the graph that has an open dimension of this symbol or multiple, and the index
// of that dimension; NULL: no such value.
bel_value *bel_onnx_find_dim(const bel_graph *graph, int64_t dim, int32_t *out_axis);

// Returns 0, 1, 2 … up to the size of an open dimension; NULL: no value of the graph has it, or the
// graph failed.
bel_value *bel_onnx_count_to(bel_graph *graph, int64_t dim, bel_dtype dtype);

// INVALID_ARGUMENT unless every dimension from `first` on is closed.
bel_status *bel_onnx_closed(const bel_shape *shape, int32_t first, const char *why) BEL_MUST_USE;

// Limits of the elements of one constant that a node makes (a range, a mask), and of all such
// constants of a model together.
enum { BEL_ONNX_CONSTANT_ELEMENTS = 1 << 24, BEL_ONNX_ALL_ELEMENTS = 1 << 26 };

// Reserves the elements of such a constant before a node makes it. UNIMPLEMENTED: a limit is
// exceeded.
bel_status *bel_onnx_spend(bel_onnx_call *call, double elements) BEL_MUST_USE;

// --- Values that several functions need ---------------------------------------------------------

bel_value *bel_onnx_scalar(bel_graph *graph, bel_dtype dtype, double value); // any type
bel_value *bel_onnx_whole(bel_graph *graph, int64_t value);                  // I64
bel_value *bel_onnx_to(bel_graph *graph, bel_value *x, bel_dtype dtype);     // a cast if needed

// Return x with dimension `axis` moved to the end, and back.
bel_value *bel_onnx_axis_last(bel_graph *graph, bel_value *x, int32_t axis);
bel_value *bel_onnx_axis_back(bel_graph *graph, bel_value *x, int32_t axis);

// Returns indices as I64 in [0, size): negative ones count from the end. With an open size they
// stay unchanged.
bel_value *bel_onnx_indices(bel_graph *graph, bel_value *indices, int64_t size);

#endif
