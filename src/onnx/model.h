// Contents of a file as plain structs. decode.c fills them and has checked every number in them:
// ids are in range, a value is made once and before its use, element counts match the data.
#ifndef BELFRY_ONNX_MODEL_H
#define BELFRY_ONNX_MODEL_H

#include "base/arena.h"
#include "onnx/files.h"
#include "onnx/onnx.h"

// ONNX's numbers of the supported attribute types.
typedef enum bel_onnx_kind {
    BEL_ONNX_FLOAT = 1,
    BEL_ONNX_INT = 2,
    BEL_ONNX_STRING = 3,
    BEL_ONNX_TENSOR = 4,
    BEL_ONNX_GRAPH = 5,
    BEL_ONNX_FLOATS = 6,
    BEL_ONNX_INTS = 7,
    BEL_ONNX_STRINGS = 8,
} bel_onnx_kind;

typedef struct bel_onnx_subgraph bel_onnx_subgraph;

typedef struct bel_onnx_attr {
    const char *name;
    bel_onnx_kind kind; // determines which of the fields below is set
    float number;
    int64_t integer;
    const char *text;
    bel_tensor tensor;
    const bel_onnx_subgraph *graph;
    const float *numbers;    // list_count
    const int64_t *integers; // list_count
    const char **texts;      // list_count
    size_t list_count;
} bel_onnx_attr;

typedef struct bel_onnx_node {
    const char *name, *op, *domain; // domain "" for ONNX's
    int index, version;             // index: place in the file; version: opset of its domain
    const int *inputs, *outputs;    // value ids; -1: omitted
    int input_count, output_count;
    const bel_onnx_attr *attrs;
    int attr_count;
} bel_onnx_node;

// A graph in an attribute. Its values have ids beside all others. Their names are valid only in it
// and in nested graphs. An error in it is reported only if the graph is needed, because few are.
struct bel_onnx_subgraph {
    bel_status *refused; // or NULL, and then the rest is valid
    bel_onnx_node *nodes;
    int node_count;
    const int *output_ids;
    int input_count, output_count;
};

// A named value: an input (has index), an initializer (has index), a subgraph's initializer (has
// elements), or a node's output (has neither).
typedef struct bel_onnx_name {
    const char *text;
    int input, initializer;
    const bel_tensor *local;
    bool inner; // belongs to a subgraph
} bel_onnx_name;

typedef struct bel_onnx_initializer_entry {
    const char *name;
    bel_tensor tensor;
    bel_status *refused; // why Belfry cannot read it, and then no node reads it; or NULL
} bel_onnx_initializer_entry;

struct bel_onnx_model {
    bel_arena *arena;
    void *message;         // protobuf-c's; elements of tensors may be in it
    bel_onnx_files *files; // may also have elements; NULL: no files
    void **parts;          // messages of subgraphs
    bel_onnx_subgraph **subgraphs;
    size_t part_count, subgraph_count, part_capacity, subgraph_capacity;
    bel_onnx_name *names; // by value id
    int name_count;
    bel_onnx_port *inputs, *outputs;
    int *input_ids, *output_ids;
    int input_count, output_count;
    bel_onnx_initializer_entry *initializers;
    int initializer_count;
    bel_onnx_node *nodes;
    int node_count;
};

// `node 3 "conv1" (Conv)`, for errors.
enum { BEL_ONNX_LABEL = 160 };
const char *bel_onnx_node_label(const bel_onnx_node *node, char label[BEL_ONNX_LABEL]);

// Converts ONNX's type number; UNIMPLEMENTED with the type's name for types that Belfry lacks.
bel_status *bel_onnx_dtype(int64_t number, bel_dtype *out_dtype) BEL_MUST_USE;

#endif
