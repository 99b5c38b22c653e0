// What the files that decode a model share.
#ifndef BELFRY_ONNX_DECODE_INNER_H
#define BELFRY_ONNX_DECODE_INNER_H

#include "base/budget.h"
#include "onnx/decode.h"
#include "onnx/names.h"

enum { BEL_DECODE_MOST_DEPTH = 8 }; // of subgraphs and calls of functions inside each other

// A call of a local function, whose body is decoded.
typedef struct bel_decode_call {
    const Onnx__FunctionProto *function;
    const bel_onnx_attr *attrs; // of the call
    int attr_count;
} bel_decode_call;

// The subgraph or function body that is being read, and what is around it.
typedef struct bel_decode_scope {
    int number, depth;
    const struct bel_decode_scope *outer; // NULL: the model's graph
    const bel_decode_call *call;          // NULL: it is a subgraph, which sees what is around it
    const char *label;                    // of a call, for names of values in it
} bel_decode_scope;

// Elements of an initializer of a subgraph, by the number of its name.
typedef struct bel_decode_local {
    int id;
    const bel_tensor *tensor;
} bel_decode_local;

// Of a name's number: which value it is. A parameter of a function is what the call gives for it.
typedef struct bel_decode_value {
    int id; // its own number, mostly; -1: the call leaves it out
    bool made;
} bel_decode_value;

typedef struct bel_decoder {
    const Onnx__ModelProto *message;
    bel_onnx_model *model;
    bel_names *values, *symbols; // values by name; symbols of open dimensions
    bel_names *functions;        // by domain, name and overload; a number is that in the message
    bel_names *labels;           // of calls
    bel_decode_value *states;    // by number of a value's name
    size_t state_capacity;
    int64_t nameless; // open dimensions without a name
    bel_budget *budget;
    const bel_onnx_bytes *raw; // of initializers, left out of the message; NULL: none is
    size_t raw_count;
    const bel_decode_scope *scope; // NULL: the model's graph
    int scope_count;
    int inlined; // nodes of bodies of functions
    bel_decode_local *locals;
    size_t local_count, local_capacity;
} bel_decoder;

// --- Names: decode_names.c -----------------------------------------------------------------------

static inline const char *bel_decode_text(const char *text)
{
    return text == NULL ? "" : text;
}

bel_status *bel_decode_count(size_t count, const char *what) BEL_MUST_USE; // not too many

// The value of a name that was made before, in this graph or one around it; *out_id is -1 where a
// parameter of a function is left out. False: there is none.
bool bel_decode_find(bel_decoder *d, const char *text, int *out_id);

// The value of a name in this graph, made or not.
int bel_decode_id(bel_decoder *d, const char *text);

// Marks a value as made; false when it was before.
bool bel_decode_make(bel_decoder *d, int id);

// In the scope that is open: a parameter of a function is this value (-1: left out).
void bel_decode_alias(bel_decoder *d, const char *text, int id, bool made);

// UNIMPLEMENTED: the value is an initializer that Belfry cannot read.
bel_status *bel_decode_usable(const bel_decoder *d, int id) BEL_MUST_USE;

// A value's name for people, and whether it belongs to a subgraph.
const char *bel_decode_plain_name(const char *text, bool *out_inner);

const char *bel_decode_domain(const char *domain);                    // "" for ONNX's own
int64_t bel_decode_version(const bel_decoder *d, const char *domain); // 0: it is not imported

// --- Nodes: decode_nodes.c -----------------------------------------------------------------------

bel_onnx_source bel_decode_source(const bel_decoder *d);

// Nodes of a graph in an order in which each value is made before it is used; calls of functions
// are replaced by their bodies. The list is the model's.
bel_status *bel_decode_nodes(bel_decoder *d, Onnx__NodeProto *const *nodes, size_t count,
                             bel_onnx_node **out_nodes, int *out_count) BEL_MUST_USE;

// --- Order: decode_order.c -----------------------------------------------------------------------

// Sets *out_order to an order of the nodes in which each comes after those whose outputs it takes;
// NULL: theirs is one. Free with bel_free. DATA_LOSS: there is a circle.
bel_status *bel_decode_order(bel_decoder *d, Onnx__NodeProto *const *nodes, size_t count,
                             int **out_order) BEL_MUST_USE;

#endif
