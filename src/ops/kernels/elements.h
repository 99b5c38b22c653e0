// Element access for reference kernels: any type is read as double and written from double, so that
// one plain loop serves every type. The reference kernels are the oracle of the fast ones.
#ifndef BELFRY_OPS_KERNELS_ELEMENTS_H
#define BELFRY_OPS_KERNELS_ELEMENTS_H

#include "ops/kernels/plain.h"
#include "ops/op.h"

double bel_element_get(const bel_tensor *tensor, int64_t index);
void bel_element_set(const bel_tensor *tensor, int64_t index, double value);

// Access to integers and BOOL without a conversion to double, which is inexact above 2^53. Setting
// keeps the low bits; BOOL becomes "not zero".
bool bel_element_is_whole(bel_dtype dtype);
int64_t bel_element_get_whole(const bel_tensor *tensor, int64_t index);
void bel_element_set_whole(const bel_tensor *tensor, int64_t index, int64_t value);

// Returns the index of the largest of a row of probabilities. With two it is the second one if that
// is above the threshold (compared in F32, as an evaluation does), unless the threshold is 0.5.
int64_t bel_element_class(const bel_tensor *row, double threshold);

// Returns the index in an input of the element that corresponds to element `index` of an output,
// when the input is broadcast to the output's shape.
int64_t bel_broadcast_index(const bel_shape *output, const bel_shape *input, int64_t index);

// Number of elements in a tile of an element-wise kernel.
enum { BEL_TILE_ELEMENTS = 32768 };

static inline int64_t bel_tiles_of(int64_t elements)
{
    return (elements + BEL_TILE_ELEMENTS - 1) / BEL_TILE_ELEMENTS;
}

// Run of elements of tile `tile` in n elements.
static inline int64_t bel_tile_begin(int64_t tile)
{
    return tile * BEL_TILE_ELEMENTS;
}

static inline int64_t bel_tile_end(int64_t tile, int64_t elements)
{
    int64_t end = (tile + 1) * BEL_TILE_ELEMENTS;
    return end < elements ? end : elements;
}

// Returns the rows in a tile of a kernel on rows of `row_elements`; at least one.
static inline int64_t bel_tile_rows(int64_t row_elements)
{
    int64_t rows = row_elements > 0 ? BEL_TILE_ELEMENTS / row_elements : 1;
    return rows > 0 ? rows : 1;
}

#endif
