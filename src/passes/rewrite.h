// Rewriter: builds a new graph from another one, node by node in order; only for the files of this
// folder. Each pass may replace a node by a value that exists already, or by other nodes.
#ifndef BELFRY_PASSES_REWRITE_H
#define BELFRY_PASSES_REWRITE_H

#include "base/index.h"
#include "passes/passes.h"

typedef struct bel_rewriter {
    bel_graph *to;
    unsigned off;
    bool reference;
    int *counts; // by pass
    int *uses;   // by id of the new values: number of readers of the old ones that it replaces
    size_t value_count, value_capacity;
    bel_index nodes, constants; // new nodes and constants by index, under hashes of their content
} bel_rewriter;

// Grows the arrays by value to the present size of `to`.
void bel_rewriter_keep_up(bel_rewriter *r);
void bel_rewriter_deinit(bel_rewriter *r); // keeps `to`

// Makes the node described by `wanted`: its op, attrs, inputs (in the new graph) and name. Its
// index and outputs are ignored. out_values has room for all outputs.
void bel_rewrite(bel_rewriter *r, const bel_node *wanted, bel_value **out_values);

// The same for a node with one output that a pass makes instead of `origin`.
bel_value *bel_rewrite_more(bel_rewriter *r, const bel_node *origin, bel_op op,
                            const bel_attr_list *attrs, bel_value *const *inputs, int input_count);

// A constant; with `copy` false a view, whose elements must outlive the graph. Small ones are
// shared.
bel_value *bel_rewrite_constant(bel_rewriter *r, const char *name, const bel_tensor *tensor,
                                bool copy);

// Specs of the inputs of a node.
void bel_input_specs(const bel_node *node, bel_spec *out_specs);

// --- Passes: NULL or false when they do not apply ------------------------------------------------

// A value equal to the one output of `wanted`, of spec `result`: an existing one, or a simpler
// operation's.
bel_value *bel_simplify(bel_rewriter *r, const bel_node *wanted, const bel_spec *result);

bool bel_fold(bel_rewriter *r, const bel_node *wanted, const bel_spec *results,
              bel_value **out_values);

bel_value *bel_join(bel_rewriter *r, const bel_node *wanted);

bel_value *bel_hoist_concat(bel_rewriter *r, const bel_node *wanted);

// A new graph from `from` with element-wise operations merged; outputs as in bel_passes_run.
// values: by id of `from`.
bel_graph *bel_fuse(const bel_graph *from, bel_value *const *outputs, int output_count,
                    int *out_count, bel_value **out_values);

// Copies the leaves of `from` to a new graph: inputs and variables with the same indices. Constants
// are copied when they are needed.
void bel_copy_leaves(const bel_graph *from, const bel_shape *input_shapes, bel_graph *to,
                     bel_value **out_values);

// Copies a node of another graph to `to`, under a new name; a constant as a view. `out_values` has
// room for all its outputs.
void bel_copy_node(const bel_node *node, const char *name, bel_value *const *inputs, bel_graph *to,
                   bel_value **out_values);

#endif
