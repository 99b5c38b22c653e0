// Symbolic sizes: integers that are computed from shapes while a graph is built, if some of them
// are sizes of open dimensions. They are the output of `Shape` and values derived from it on their
// way into a shape. They are never values of the graph.
#ifndef BELFRY_ONNX_SIZES_H
#define BELFRY_ONNX_SIZES_H

#include "onnx/build.h"

// `number`, or `number` times the size of an open dimension (`symbol`: such a dimension without a
// factor; tensor/open.h).
struct bel_onnx_extent {
    int64_t number, symbol;
};

// Value of symbol: unknown size.
enum { BEL_ONNX_UNKNOWN = 1 };

// A tensor of sizes. Lives as long as the builder.
struct bel_onnx_sizes {
    bel_dtype dtype; // I64, I32
    bel_shape shape;
    const bel_onnx_extent *items;
};

// A shape: at most BEL_MAX_RANK sizes, all known.
typedef struct bel_onnx_size_list {
    int32_t count;
    bel_onnx_extent items[BEL_MAX_RANK];
} bel_onnx_size_list;

bel_onnx_extent bel_onnx_size_of(int64_t dim);                // from a dimension of a shape
bool bel_onnx_dim_of(bel_onnx_extent size, int64_t *out_dim); // false: below 0, or too large

// Returns the product if it is a number or a multiple of one size, otherwise unknown.
bel_onnx_extent bel_onnx_size_product(bel_onnx_extent a, bel_onnx_extent b);

// Returns an input of integers that must be known except for sizes of open dimensions.
bel_status *bel_onnx_known_sizes(bel_onnx_call *call, int input,
                                 bel_onnx_size_list *out_list) BEL_MUST_USE;

// Makes an output of sizes: a constant if all are numbers.
void bel_onnx_out_sizes(bel_onnx_call *call, int output, const bel_onnx_sizes *sizes);

// Computes the sizes through a node that has them as input. *out_done is false if the operator
// neither moves nor computes elements.
bel_status *bel_onnx_follow(bel_onnx_call *call, bool *out_done) BEL_MUST_USE;

#endif
