// Shared by the rules of batch_rules.c and the walk of batch.c.
#ifndef BELFRY_ONNX_BATCH_INNER_H
#define BELFRY_ONNX_BATCH_INNER_H

#include "onnx/batch.h"

// Form of a closed graph's value in the graph for any batch. Its closed shape is [d0, d1, …].
typedef enum bel_batch_form {
    BEL_BATCH_NONE,  // depends on no example: [d0, d1, …]
    BEL_BATCH_FLAT,  // d0 is the batch: [n, d1, …]
    BEL_BATCH_APART, // the closed batch is 1, and n examples are stacked: [n, d0, d1, …]
    BEL_BATCH_LOST,  // a node was refused
} bel_batch_form;

typedef struct bel_batch_place {
    bel_value *value; // in the graph for any batch
    bel_batch_form form;
    const bel_node *refused; // LOST: the first such node
} bel_batch_place;

typedef struct bel_batch_walk {
    bel_graph *graph;
    int64_t batch;           // the closed graph's
    bel_value *like;         // a value whose dimension 0 is the open batch
    bel_batch_place *places; // by value of the closed graph
} bel_batch_walk;

// Return a value in the form that a rule needs; NULL: impossible. A value that depends on no
// example is repeated for each.
bel_value *bel_batch_flat(const bel_batch_walk *walk, const bel_value *closed);
bel_value *bel_batch_apart(const bel_batch_walk *walk, const bel_value *closed);

bool bel_batch_depends(const bel_batch_walk *walk, const bel_value *closed); // on examples

// Returns x in another shape, whose open dimensions must be among x's. NULL: Reshape cannot express
// it.
bel_value *bel_batch_reshape(const bel_batch_walk *walk, bel_value *x, const bel_shape *to);

// Returns the shape in a given form of a value with this closed shape.
bel_shape bel_batch_shape(const bel_batch_walk *walk, const bel_shape *closed, bel_batch_form form);

// Adds the operation of a closed node; all its outputs have `form`. False: an input is NULL.
bool bel_batch_emit(bel_batch_walk *walk, const bel_node *node, const bel_attr_list *attrs,
                    bel_value *const *inputs, bel_batch_form form);

// Sets the places of a node with an input that depends on examples. False: the node is refused.
bool bel_batch_rule(bel_batch_walk *walk, const bel_node *node);

#endif
