// Tensors as JSON: nested or flat lists of numbers and booleans.
//
//     [[1, 2], [3, 4]]  shape [2,2]        7  shape []
//
// An F32 is written with the fewest of nine digits that restore its bits, an integer exactly. JSON
// has no NaN and no infinity; both become null.
#ifndef BELFRY_SERVE_JSON_TENSOR_H
#define BELFRY_SERVE_JSON_TENSOR_H

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "belfry/tensor.h"

// Reads the shape of nested lists from the first element of each, without a look at the others.
// INVALID_ARGUMENT: more than BEL_MAX_RANK dimensions; `name` is the tensor's.
bel_status *bel_json_tensor_shape(const bel_json_value *value, const char *name,
                                  bel_shape *out_shape) BEL_MUST_USE;

// Reads the elements for a tensor of closed shape, whose memory is the caller's. The lists may be
// nested as the shape is, or flat. INVALID_ARGUMENT names the element: there are more or fewer, it
// is no number, or the type does not have the value.
bel_status *bel_json_tensor_read(const bel_json_value *value, const char *name,
                                 const bel_tensor *out_tensor) BEL_MUST_USE;

// Calls `visit` for each element of nested or flat lists, in C order.
typedef bel_status *bel_json_visit(void *context, int64_t i, const bel_json_value *element);
bel_status *bel_json_tensor_each(const bel_json_value *value, const char *name,
                                 const bel_shape *shape, bel_json_visit *visit,
                                 void *context) BEL_MUST_USE;

// Writes a tensor of closed shape as nested lists, or as one flat list.
void bel_json_tensor_write(bel_str *out, const bel_tensor *tensor, bool flat);

#endif
