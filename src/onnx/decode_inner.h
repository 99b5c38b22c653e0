// Shared by the files that decode a model.
#ifndef BELFRY_ONNX_DECODE_INNER_H
#define BELFRY_ONNX_DECODE_INNER_H

#include "base/budget.h"
#include "onnx/decode.h"
#include "onnx/names.h"

enum { BEL_DECODE_MOST_DEPTH = 8 }; // nesting of subgraphs and function calls

// A call of a local function whose body is being decoded.
typedef struct bel_decode_call {
    const Onnx__FunctionProto *function;
    const bel_onnx_attr *attrs; // the call's
    int attr_count;
} bel_decode_call;

// The subgraph or function body being decoded, and its surroundings.
typedef struct bel_decode_scope {
    int number, depth;
    const struct bel_decode_scope *outer; // NULL: the model's graph
    const bel_decode_call *call;          // NULL: a subgraph, which sees its surroundings
    const char *label;                    // a call's, for names of values in it
} bel_decode_scope;

// Elements of a subgraph's initializer, by the number of its name.
typedef struct bel_decode_local {
    int id;
    const bel_tensor *tensor;
} bel_decode_local;

// The value of a name's number. A parameter of a function stands for the call's argument.
typedef struct bel_decode_value {
    int id; // mostly the same number; -1: the call omits it
    bool made;
} bel_decode_value;

typedef struct bel_decoder {
    const Onnx__ModelProto *message;
    bel_onnx_model *model;
    bel_names *values, *symbols; // values by name; symbols of open dimensions
    bel_names *functions;        // by domain, name and overload; indices in the message
    bel_names *labels;           // calls' labels
    bel_decode_value *states;    // by number of a value's name
    size_t state_capacity;
    int64_t nameless; // number of open dimensions without a name
    bel_budget *budget;
    const bel_onnx_bytes *raw; // initializers' elements outside the message; NULL: no such
    size_t raw_count;
    const bel_decode_scope *scope; // NULL: the model's graph
    int scope_count;
    int inlined; // nodes of functions' bodies so far
    bel_decode_local *locals;
    size_t local_count, local_capacity;
} bel_decoder;

// --- Names: decode_names.c -----------------------------------------------------------------------

static inline const char *bel_decode_text(const char *text)
{
    return text == NULL ? "" : text;
}

bel_status *bel_decode_count(size_t count, const char *what) BEL_MUST_USE; // error: too many

// Finds the value of a name made before, in this graph or an outer one; *out_id is -1 for an
// omitted parameter of a function. False: no such value.
bool bel_decode_find(bel_decoder *d, const char *text, int *out_id);

// Returns the value of a name in this graph, made or not.
int bel_decode_id(bel_decoder *d, const char *text);

// Marks a value as made; false if it was made before.
bool bel_decode_make(bel_decoder *d, int id);

// In the current scope: makes a parameter of a function stand for this value (-1: omitted).
void bel_decode_alias(bel_decoder *d, const char *text, int id, bool made);

// UNIMPLEMENTED: the value is an initializer that Belfry cannot read.
bel_status *bel_decode_usable(const bel_decoder *d, int id) BEL_MUST_USE;

// Returns a value's name for people, and whether the value belongs to a subgraph.
const char *bel_decode_plain_name(const char *text, bool *out_inner);

const char *bel_decode_domain(const char *domain);                    // "" for ONNX's
int64_t bel_decode_version(const bel_decoder *d, const char *domain); // 0: it is not imported

// --- Nodes: decode_nodes.c -----------------------------------------------------------------------

bel_onnx_source bel_decode_source(const bel_decoder *d);

// Decodes the nodes of a graph in topological order; calls of functions are replaced by their
// bodies. The model owns the list.
bel_status *bel_decode_nodes(bel_decoder *d, Onnx__NodeProto *const *nodes, size_t count,
                             bel_onnx_node **out_nodes, int *out_count) BEL_MUST_USE;

// --- Order: decode_order.c -----------------------------------------------------------------------

// Sets *out_order to a topological order of the nodes; NULL: they are in such an order already.
// Free with bel_free. DATA_LOSS: a cycle.
bel_status *bel_decode_order(bel_decoder *d, Onnx__NodeProto *const *nodes, size_t count,
                             int **out_order) BEL_MUST_USE;

#endif
