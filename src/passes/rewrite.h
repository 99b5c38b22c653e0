// A graph under way from another one; for the files of this room only. Nodes are asked for one by
// one in their order. Each pass may answer with a value that is there already, or with other nodes.
#ifndef BELFRY_PASSES_REWRITE_H
#define BELFRY_PASSES_REWRITE_H

#include "base/index.h"
#include "passes/passes.h"

typedef struct bel_rewriter {
    bel_graph *to;
    unsigned off;
    bool reference;
    int *counts; // by pass
    int *uses;   // by id of the new values: how many readers the old ones had that it stands for
    size_t value_count, value_capacity;
    bel_index nodes, constants; // new nodes by index, under hashes of what makes them equal
} bel_rewriter;

// Makes room for what `to` has by now.
void bel_rewriter_keep_up(bel_rewriter *r);
void bel_rewriter_deinit(bel_rewriter *r); // `to` stays

// Makes what `wanted` asks for: its op, attrs, inputs (of the new graph) and name; its place and
// outputs do not matter. out_values has room for all outputs.
void bel_rewrite(bel_rewriter *r, const bel_node *wanted, bel_value **out_values);

// The same for a node that a pass makes in place of `origin`: one output.
bel_value *bel_rewrite_more(bel_rewriter *r, const bel_node *origin, bel_op op,
                            const bel_attr_list *attrs, bel_value *const *inputs, int input_count);

// A constant, as a view (`copy` false: its elements outlive the graph). Small ones are shared.
bel_value *bel_rewrite_constant(bel_rewriter *r, const char *name, const bel_tensor *tensor,
                                bool copy);

// Specs of the inputs of a node.
void bel_input_specs(const bel_node *node, bel_spec *out_specs);

// --- Passes: NULL or false when they do not apply ------------------------------------------------

// What the one output of `wanted`, of spec `result`, is without an operation or with a simpler one.
bel_value *bel_simplify(bel_rewriter *r, const bel_node *wanted, const bel_spec *result);

bool bel_fold(bel_rewriter *r, const bel_node *wanted, const bel_spec *results,
              bel_value **out_values);

bel_value *bel_join(bel_rewriter *r, const bel_node *wanted);

bel_value *bel_hoist_concat(bel_rewriter *r, const bel_node *wanted);

// `from` as a new graph in which element-wise operations are put together; outputs as in
// bel_passes_run. values: by id of `from`.
bel_graph *bel_fuse(const bel_graph *from, bel_value *const *outputs, int output_count,
                    int *out_count, bel_value **out_values);

// Leaves of `from` in a new graph: inputs and variables with the same indices. Constants come as
// they are needed.
void bel_copy_leaves(const bel_graph *from, const bel_shape *input_shapes, bel_graph *to,
                     bel_value **out_values);

// A node of another graph in `to`, under a name of its own; a constant as a view. `out_values` has
// room for all its outputs.
void bel_copy_node(const bel_node *node, const char *name, bel_value *const *inputs, bel_graph *to,
                   bel_value **out_values);

#endif
