// What the rules of batch_rules.c and the walk of batch.c share.
#ifndef BELFRY_ONNX_BATCH_INNER_H
#define BELFRY_ONNX_BATCH_INNER_H

#include "onnx/batch.h"

// How a value of the closed graph is there for any batch. Let its closed shape be [d0, d1, …].
typedef enum bel_batch_form {
    BEL_BATCH_NONE,  // depends on no example: [d0, d1, …]
    BEL_BATCH_FLAT,  // d0 is the batch: [n, d1, …]
    BEL_BATCH_APART, // the batch is 1, and n examples are side by side: [n, d0, d1, …]
    BEL_BATCH_LOST,  // a node was refused
} bel_batch_form;

typedef struct bel_batch_place {
    bel_value *value; // of the graph for any batch
    bel_batch_form form;
    const bel_node *refused; // LOST: the first such node
} bel_batch_place;

typedef struct bel_batch_walk {
    bel_graph *graph;
    int64_t batch;           // of the closed graph
    bel_value *like;         // some value whose dimension 0 is the open batch
    bel_batch_place *places; // by value of the closed graph
} bel_batch_walk;

// A value in the form that a rule needs; NULL: it has none such. One that depends on no example is
// repeated for each.
bel_value *bel_batch_flat(const bel_batch_walk *walk, const bel_value *closed);
bel_value *bel_batch_apart(const bel_batch_walk *walk, const bel_value *closed);

bool bel_batch_depends(const bel_batch_walk *walk, const bel_value *closed); // on examples

// x in another shape; open dimensions of `to` are those of x. NULL: Reshape cannot say it.
bel_value *bel_batch_reshape(const bel_batch_walk *walk, bel_value *x, const bel_shape *to);

// The shape that a value of closed shape has in a form.
bel_shape bel_batch_shape(const bel_batch_walk *walk, const bel_shape *closed, bel_batch_form form);

// Adds the operation of a closed node; all its outputs have `form`. False: an input is NULL.
bool bel_batch_emit(bel_batch_walk *walk, const bel_node *node, const bel_attr_list *attrs,
                    bel_value *const *inputs, bel_batch_form form);

// Makes the places of a node of which an input depends on examples. False: it is refused.
bool bel_batch_rule(bel_batch_walk *walk, const bel_node *node);

#endif
