// Tensors as bytes, which REST and gRPC have in common: little-endian elements in C order. An
// element of BYTES is its length as a u32, then its bytes. The machine is little-endian, as all
// that Belfry runs on.
#ifndef BELFRY_SERVE_RAW_H
#define BELFRY_SERVE_RAW_H

#include "serve/infer.h"

// Returns true if the input takes cells of a table in this type, and not its elements.
bool bel_raw_is_cells(const bel_infer *infer, int input, bel_dtype dtype);

// Allocates the cells of an input. INVALID_ARGUMENT: the shape has another rank than 1.
bel_status *bel_raw_place_cells(bel_infer *infer, int input, const bel_shape *shape,
                                bel_cell_rows *out_rows) BEL_MUST_USE;

// Call it for elements that a request sends to a column. Some numbers mean a missing value. A
// checkpoint takes the id of a category's value that has rows, and the request has its index.
// INVALID_ARGUMENT: a value is missing where it must not be, or there is no value of this index.
bel_status *bel_raw_take_elements(const bel_infer *infer, int input,
                                  const bel_tensor *tensor) BEL_MUST_USE;

// Reads an input. INVALID_ARGUMENT: the bytes do not fit the shape.
bel_status *bel_raw_read(bel_infer *infer, int input, bel_dtype dtype, const bel_shape *shape,
                         const char *data, size_t size) BEL_MUST_USE;

// Appends an output.
void bel_raw_write(const bel_infer *infer, int output, bel_str *out);

#endif
