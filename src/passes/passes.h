// Graph passes: they rewrite a graph for closed shapes before it is compiled. The program's results
// keep their bits (a NaN may become another NaN). Every pass can be switched off.
//
//   simplify  removes operations without effect: x · 1, Reshape of Reshape, a Transpose undone
//   fold      computes values that depend only on constants; drops the elements of a value if only
//             its shape is read
//   same      computes the same operation on the same inputs once (common subexpressions)
//   concat    Concat of parts that went through the same element-wise operation: Concat first, then
//             one operation
//   fuse      merges chains and trees of element-wise operations into one (ops/fused.h)
//   chunk     computes a wide product, its cross entropy and their gradients by chunks of rows
//   join      makes a Relu after a product or a convolution a part of it
//   hoist     computes values that depend only on constants and variables when variables are bound
//
// `hoist` is for programs with fixed variables, and so is `join` on the CPU. `chunk` is only for
// the CPU.
//
// Values that no output needs are always removed.
#ifndef BELFRY_PASSES_PASSES_H
#define BELFRY_PASSES_PASSES_H

#include "graph/graph.h"

typedef struct bel_str bel_str; // base/str.h

#define BEL_PASSES(X)                                                                              \
    X(SIMPLIFY, simplify)                                                                          \
    X(FOLD, fold)                                                                                  \
    X(SAME, same)                                                                                  \
    X(CONCAT, concat)                                                                              \
    X(FUSE, fuse)                                                                                  \
    X(CHUNK, chunk)                                                                                \
    X(JOIN, join)                                                                                  \
    X(HOIST, hoist)

typedef enum bel_pass {
#define ROW(id, name) BEL_PASS_##id,
    BEL_PASSES(ROW)
#undef ROW
        BEL_PASS_COUNT
} bel_pass;

#define BEL_PASSES_ALL ((1u << BEL_PASS_COUNT) - 1)

const char *bel_pass_name(bel_pass pass);

static inline bool bel_pass_is_on(unsigned off, bel_pass pass)
{
    return (off & (1u << pass)) == 0;
}

// Graph made from another one. Inputs and variables keep their indices. Other nodes keep their
// names if they stand for one node. It views constants of the first graph, which must outlive it.
typedef struct bel_rewritten {
    bel_graph *graph;
    bel_graph *first;           // before fusing: has constants of `graph`; or NULL
    bel_value **values;         // by id of the first graph: the value that replaces it, or NULL
    int counts[BEL_PASS_COUNT]; // nodes that a pass removed, replaced or merged
} bel_rewritten;

// `input_shapes` are closed; `outputs` are the wanted values. `off` has a bit (1 << pass) for each
// pass to skip. `reference` folds with the plain kernels and does not fuse. Errors: those of
// bel_graph_verify and bel_graph_infer.
bel_status *bel_passes_run(const bel_graph *graph, const bel_shape *input_shapes,
                           bel_value *const *outputs, int output_count, unsigned off,
                           bool reference, bel_rewritten *out) BEL_MUST_USE;
void bel_rewritten_deinit(bel_rewritten *rewritten);

// Marks by index the nodes whose results do not depend on an input: constants, variables, and nodes
// that read only these. Random nodes, those of `fresh` (by index), and nodes that depend on them
// are not marked.
void bel_passes_find_fixed(const bel_graph *graph, const bool *fresh, bool *out_fixed);

// The name of a node; that of an input or a variable for its leaf.
const char *bel_node_label(const bel_node *node);

// Appends a line for each node that the values depend on: name, operation, attributes, inputs, and
// type and shape of its results. `specs` by value (NULL: as built). Returns the number of
// operations: nodes that are no leaves.
int bel_graph_dump(const bel_graph *graph, const bel_spec *specs, bel_value *const *values,
                   int count, bel_str *out);

#endif
