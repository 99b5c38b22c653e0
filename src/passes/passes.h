// Passes: a graph is rewritten for closed shapes before it is compiled. What the program computes
// keeps its bits (a NaN may become another NaN); every pass can be switched off.
//
//   simplify  what changes nothing is left out: x · 1, Reshape of Reshape, Transpose back and forth
//   fold      what depends on constants alone is computed now; what matters by its shape alone is
//             not kept
//   same      the same operation on the same inputs is computed once
//   concat    Concat of parts that went through the same element-wise operation: Concat first, then
//             one operation
//   fuse      chains and trees of element-wise operations become one (ops/fused.h)
//   join      Relu behind a product or a convolution becomes a part of it
//   hoist     what depends on constants and variables alone is computed when variables are bound
//
// The last one is for programs whose variables are fixed, and so is join on the CPU.
//
// Values that no output needs are left out in any case.
#ifndef BELFRY_PASSES_PASSES_H
#define BELFRY_PASSES_PASSES_H

#include "base/str.h"
#include "graph/graph.h"

#define BEL_PASSES(X)                                                                              \
    X(SIMPLIFY, simplify)                                                                          \
    X(FOLD, fold)                                                                                  \
    X(SAME, same)                                                                                  \
    X(CONCAT, concat)                                                                              \
    X(FUSE, fuse)                                                                                  \
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

// A graph made of another one. Its inputs and variables have the same indices, its other nodes the
// same names, where they stand for one node. It looks at constants of the first graph, which must
// outlive it.
typedef struct bel_rewritten {
    bel_graph *graph;
    bel_graph *first;           // before fusing: has constants of `graph`; or NULL
    bel_value **values;         // by id of the first graph: what stands for it, or NULL
    int counts[BEL_PASS_COUNT]; // nodes that a pass took away, replaced or put into others
} bel_rewritten;

// `input_shapes` are closed; `outputs` are the values that are wanted. `off` has a bit (1 << pass)
// for each pass that is left out; `reference` folds with the plain kernels and does not fuse.
// Errors: those of bel_graph_verify and bel_graph_infer.
bel_status *bel_passes_run(const bel_graph *graph, const bel_shape *input_shapes,
                           bel_value *const *outputs, int output_count, unsigned off,
                           bool reference, bel_rewritten *out) BEL_MUST_USE;
void bel_rewritten_deinit(bel_rewritten *rewritten);

// Marks by index the nodes whose results change with no input: constants, variables, and what reads
// these alone. Random nodes are not, nor those of `fresh` (by index), nor what reads one of them.
void bel_passes_find_fixed(const bel_graph *graph, const bool *fresh, bool *out_fixed);

// The name of a node; that of an input or a variable for its leaf.
const char *bel_node_label(const bel_node *node);

// Appends a line for each node that the values depend on: name, operation, attributes, inputs, and
// type and shape of its results. `specs` by value (NULL: as built). Gives the number of operations:
// of nodes that are no leaves.
int bel_graph_dump(const bel_graph *graph, const bel_spec *specs, bel_value *const *values,
                   int count, bel_str *out);

#endif
