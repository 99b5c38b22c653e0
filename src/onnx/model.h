// What a file says, as plain structs. decode.c fills them and has checked every number in them:
// ids are in range, a value is made before it is used and made once, element counts fit the data.
#ifndef BELFRY_ONNX_MODEL_H
#define BELFRY_ONNX_MODEL_H

#include "base/arena.h"
#include "onnx/files.h"
#include "onnx/onnx.h"

// ONNX's numbers of attribute types, those that are read.
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
    bel_onnx_kind kind; // says which of the following counts
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
    const char *name, *op, *domain; // domain "" for ONNX's own
    int index, version;             // place in the file; opset of its domain
    const int *inputs, *outputs;    // value ids; -1: left out
    int input_count, output_count;
    const bel_onnx_attr *attrs;
    int attr_count;
} bel_onnx_node;

// A graph in an attribute. Its values have ids beside all others, under names that hold in it and
// in graphs inside alone. What is wrong with it is told where somebody needs it, as few do.
struct bel_onnx_subgraph {
    bel_status *refused; // or NULL, and then all that follows counts
    bel_onnx_node *nodes;
    int node_count;
    const int *output_ids;
    int input_count, output_count;
};

// A named value: an input (index), an initializer (index), one of a subgraph (its elements), or
// made by a node (none of them).
typedef struct bel_onnx_name {
    const char *text;
    int input, initializer;
    const bel_tensor *local;
    bool inner; // of a subgraph
} bel_onnx_name;

typedef struct bel_onnx_initializer_entry {
    const char *name;
    bel_tensor tensor;
    bel_status *refused; // why Belfry cannot read it; no node takes it then; or NULL
} bel_onnx_initializer_entry;

struct bel_onnx_model {
    bel_arena *arena;
    void *message;         // of protobuf-c: elements of tensors may lie in it
    bel_onnx_files *files; // in which they may lie, too; NULL: none
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

// Belfry's type for ONNX's number, UNIMPLEMENTED with the type's name otherwise.
bel_status *bel_onnx_dtype(int64_t number, bel_dtype *out_dtype) BEL_MUST_USE;

#endif
