// Whole numbers that are computed from shapes while a graph is built, where some of them are sizes
// of open dimensions: what `Shape` of such a value gives, and what becomes of it on its way into a
// shape. They are never values of the graph.
#ifndef BELFRY_ONNX_SIZES_H
#define BELFRY_ONNX_SIZES_H

#include "onnx/build.h"

// `number`, or `number` times the size of an open dimension (`symbol`: such a dimension, without a
// factor of its own; tensor/open.h).
struct bel_onnx_extent {
    int64_t number, symbol;
};

// As symbol: nothing is known of it.
enum { BEL_ONNX_UNKNOWN = 1 };

// A tensor of them. Lives as long as the builder.
struct bel_onnx_sizes {
    bel_dtype dtype; // I64, I32
    bel_shape shape;
    const bel_onnx_extent *items;
};

// At most BEL_MAX_RANK of them, all known: a shape.
typedef struct bel_onnx_size_list {
    int32_t count;
    bel_onnx_extent items[BEL_MAX_RANK];
} bel_onnx_size_list;

bel_onnx_extent bel_onnx_size_of(int64_t dim);                // of a dimension of a shape
bool bel_onnx_dim_of(bel_onnx_extent size, int64_t *out_dim); // false: below 0, or too large

// The product where it is again a number or a multiple of one size, else unknown.
bel_onnx_extent bel_onnx_size_product(bel_onnx_extent a, bel_onnx_extent b);

// An input of whole numbers that must be known but for sizes of open dimensions.
bel_status *bel_onnx_known_sizes(bel_onnx_call *call, int input,
                                 bel_onnx_size_list *out_list) BEL_MUST_USE;

// Makes the output of sizes: a constant where all are numbers.
void bel_onnx_out_sizes(bel_onnx_call *call, int output, const bel_onnx_sizes *sizes);

// Follows sizes through the node, of which they are an input. *out_done is false where the operator
// is none of those that move or count them.
bel_status *bel_onnx_follow(bel_onnx_call *call, bool *out_done) BEL_MUST_USE;

#endif
