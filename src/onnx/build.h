// How a node becomes operations: rules, and what the functions behind them work with.
#ifndef BELFRY_ONNX_BUILD_H
#define BELFRY_ONNX_BUILD_H

#include "belfry/ops.h"
#include "graph/graph.h"
#include "onnx/model.h"

enum { BEL_ONNX_ATTRS = 10, BEL_ONNX_ANY = 1 << 30 };

// An attribute that an operator has: its type and what it is when the node does not say. Lists,
// texts and tensors have no such value: they are NULL or empty.
typedef struct bel_onnx_attr_rule {
    const char *name;
    bel_onnx_kind kind;
    double otherwise;
} bel_onnx_attr_rule;

typedef struct bel_onnx_call bel_onnx_call;

// Makes the node's outputs. Mistakes that the graph finds may stay there: the caller looks.
typedef bel_status *bel_onnx_make_fn(bel_onnx_call *call);

// A row of operators.def: the operator from one version of its opset on, up to the next row's.
typedef struct bel_onnx_rule {
    const char *name;
    int since;
    int min_inputs, max_inputs;
    bel_onnx_make_fn *make; // NULL: `op` under the same attributes
    bel_op op;
    bel_onnx_attr_rule attrs[BEL_ONNX_ATTRS]; // up to the first without a name
    bool own;                                 // of domain BEL_ONNX_OWN_DOMAIN, else of ONNX's
} bel_onnx_rule;

// The domain of operations that ONNX lacks (write.h).
#define BEL_ONNX_OWN_DOMAIN "belfry"

// bel_onnx_build with each input in the shape of what it is bound to. `out_ends` (NULL: not wanted)
// is set by node of the model: the number of nodes of the graph after it.
bel_status *bel_onnx_build_as_bound(const bel_onnx_model *model, bel_graph *graph,
                                    const bel_onnx_options *options, size_t *out_ends,
                                    bel_value **out_outputs) BEL_MUST_USE;

// The row that holds for an operator of a domain ("": ONNX's) in a version of its opset; NULL:
// there is none.
const bel_onnx_rule *bel_onnx_rule_of(const char *domain, const char *op, int version);

// The rule for a node, its inputs and attributes checked against it. UNIMPLEMENTED: no such
// operator, version or attribute; DATA_LOSS: an attribute of the wrong type, too many inputs.
bel_status *bel_onnx_find_rule(const bel_onnx_node *node,
                               const bel_onnx_rule **out_rule) BEL_MUST_USE;

typedef struct bel_onnx_builder bel_onnx_builder;
typedef struct bel_onnx_extent bel_onnx_extent; // sizes.h
typedef struct bel_onnx_sizes bel_onnx_sizes;

// One node on its way into a graph.
struct bel_onnx_call {
    bel_onnx_builder *builder;
    bel_graph *graph; // the builder's, or one in which a constant is computed
    const bel_onnx_node *node;
    const bel_onnx_rule *rule;
    bel_value **inputs;  // node->input_count; NULL: not asked for yet
    bel_value **outputs; // node->output_count
    // In a graph beside the builder's: elements instead of an input's own, by input; without data:
    // the input's. NULL: none.
    const bel_tensor *stand_ins;
};

// Calls the row's function and checks that every output is made.
bel_status *bel_onnx_make_outputs(bel_onnx_call *call) BEL_MUST_USE;

// --- Inputs --------------------------------------------------------------------------------------

bool bel_onnx_has(const bel_onnx_call *call, int input); // not left out
bel_value *bel_onnx_in(bel_onnx_call *call, int input);  // NULL: left out, or the graph failed
bel_shape bel_onnx_in_shape(bel_onnx_call *call, int input);

// The first `count` inputs in their order. Variables lie in the order in which they are made, and C
// leaves the order of arguments open: so an argument list makes at most one value.
void bel_onnx_ins(bel_onnx_call *call, int count, bel_value **out_inputs);

// The elements of an input that must be known now. FAILED_PRECONDITION: it is fed at run time.
bel_status *bel_onnx_known(bel_onnx_call *call, int input, bel_tensor *out_elements) BEL_MUST_USE;
bool bel_onnx_is_known(bel_onnx_call *call, int input);
bool bel_onnx_is_constant(const bel_onnx_call *call, int input);

// What an input is that holds sizes of open dimensions, or NULL; a value of the graph it is not.
const bel_onnx_sizes *bel_onnx_sizes_in(const bel_onnx_call *call, int input);

// Whether nodes may become others that round otherwise (bel_onnx_options.merge).
bool bel_onnx_merges(const bel_onnx_call *call);

// Whether an input's operation may be replaced together with this one: nothing else reads what it
// makes, and it was asked for.
bool bel_onnx_may_merge(const bel_onnx_call *call, int input);

// The node as a part of the convolution that makes its input 0; NULL: it cannot be.
bel_value *bel_onnx_merge_norm(bel_onnx_call *call);

// Input `input`, a constant matrix, with rows and columns exchanged, as a constant; NULL: it is
// none, or nothing was asked for.
bel_value *bel_onnx_turned(bel_onnx_call *call, int input);

// The same as whole numbers (I64 or I32, rank 0 or 1, at most BEL_MAX_RANK of them), as one such
// number, and as one number of any type.
bel_status *bel_onnx_known_ints(bel_onnx_call *call, int input, bel_shape *out_ints) BEL_MUST_USE;
bel_status *bel_onnx_known_int(bel_onnx_call *call, int input, int64_t *out_int) BEL_MUST_USE;
bel_status *bel_onnx_known_number(bel_onnx_call *call, int input, double *out) BEL_MUST_USE;

// Any number of I64.
bel_status *bel_onnx_known_i64(bel_onnx_call *call, int input,
                               bel_tensor *out_elements) BEL_MUST_USE;

// --- Attributes, of the types that the rule says ------------------------------------------------

const bel_onnx_attr *bel_onnx_find_attr(const bel_onnx_call *call, const char *name); // NULL: none
double bel_onnx_number(const bel_onnx_call *call, const char *name); // or what the rule says
int64_t bel_onnx_int(const bel_onnx_call *call, const char *name);
const char *bel_onnx_text(const bel_onnx_call *call, const char *name, const char *otherwise);

// A list of at most BEL_MAX_RANK whole numbers; rank 0 where it is missing.
bel_status *bel_onnx_ints(const bel_onnx_call *call, const char *name,
                          bel_shape *out_ints) BEL_MUST_USE;

// The index of a text among `count` names; UNIMPLEMENTED when it is none of them.
bel_status *bel_onnx_choice(const bel_onnx_call *call, const char *name, const char *const *names,
                            int count, int *out_choice) BEL_MUST_USE;

// --- Subgraphs -----------------------------------------------------------------------------------

// Builds a subgraph without inputs in place of the node: its outputs are the node's.
bel_status *bel_onnx_build_subgraph(bel_onnx_call *call,
                                    const bel_onnx_subgraph *graph) BEL_MUST_USE;

// --- Outputs and errors -------------------------------------------------------------------------

void bel_onnx_out(bel_onnx_call *call, int output, bel_value *value); // ignored if not wanted
bool bel_onnx_wants(const bel_onnx_call *call, int output);
void bel_onnx_keep_sizes(bel_onnx_call *call, int output, const bel_onnx_sizes *sizes); // copied

// Axis -rank … rank - 1 as 0 … rank - 1.
bel_status *bel_onnx_axis(int64_t axis, int32_t rank, int32_t *out_axis) BEL_MUST_USE;

// A value of the graph that has an open dimension of this symbol or multiple, and which of its
// dimensions; NULL: there is none.
bel_value *bel_onnx_find_dim(const bel_graph *graph, int64_t dim, int32_t *out_axis);

// 0, 1, 2 … up to the size of an open dimension; NULL: no value of the graph has it, or the graph
// failed.
bel_value *bel_onnx_count_to(bel_graph *graph, int64_t dim, bel_dtype dtype);

// INVALID_ARGUMENT unless every dimension from `first` on is closed.
bel_status *bel_onnx_closed(const bel_shape *shape, int32_t first, const char *why) BEL_MUST_USE;

// The most elements of a constant that a node makes by itself (a range, a mask), and of all such
// constants of a model together.
enum { BEL_ONNX_CONSTANT_ELEMENTS = 1 << 24, BEL_ONNX_ALL_ELEMENTS = 1 << 26 };

// Before a node makes such a constant. UNIMPLEMENTED: it has too many elements, or there are too
// many in all.
bel_status *bel_onnx_spend(bel_onnx_call *call, double elements) BEL_MUST_USE;

// --- Values that several functions need ---------------------------------------------------------

bel_value *bel_onnx_scalar(bel_graph *graph, bel_dtype dtype, double value); // of any type
bel_value *bel_onnx_whole(bel_graph *graph, int64_t value);                  // I64
// I64 [count], at most BEL_MAX_RANK of them.
bel_value *bel_onnx_int_list(bel_graph *graph, const int64_t *elements, int64_t count);
bel_value *bel_onnx_to(bel_graph *graph, bel_value *x, bel_dtype dtype); // a cast where needed

// x with dimension `axis` moved to the end, and back.
bel_value *bel_onnx_axis_last(bel_graph *graph, bel_value *x, int32_t axis);
bel_value *bel_onnx_axis_back(bel_graph *graph, bel_value *x, int32_t axis);

// Indices as I64 in [0, size): negative ones count from the end. An open size leaves them as they
// are.
bel_value *bel_onnx_indices(bel_graph *graph, bel_value *indices, int64_t size);

#endif
