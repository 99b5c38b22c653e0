/// Element types, shapes and tensor views, used by all other headers.
///
/// All of these are plain values, which own nothing. Thread rule: functions here access only their
/// arguments, so any thread may call them. Arguments must be valid (a listed type, a rank from 0 to
/// BEL_MAX_RANK). If a function says so, invalid ones end the process.
#ifndef BELFRY_TENSOR_H
#define BELFRY_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Element types. The numbers are stable, as files contain them.
typedef enum bel_dtype {
    BEL_DTYPE_F32 = 0,
    BEL_DTYPE_F64 = 1,
    BEL_DTYPE_I32 = 2,
    BEL_DTYPE_I64 = 3,
    BEL_DTYPE_U8 = 4,
    BEL_DTYPE_BOOL = 5, ///< One byte, 0 or 1.
    BEL_DTYPE_STRING =
        6, ///< Only in raw records before `map`; `data` is the text, dims[0] its length.
    BEL_DTYPE_F16 = 7,  ///< IEEE 754 binary16, stored as uint16_t.
    BEL_DTYPE_BF16 = 8, ///< bfloat16, the upper half of an F32, stored as uint16_t.
} bel_dtype;

/// Returns the bytes of one element; 1 for strings, whose elements are bytes. An invalid type ends
/// the process.
BEL_API size_t bel_dtype_size(bel_dtype dtype);

/// Returns the lower-case name, e.g. "f32"; "unknown" for an invalid type. Static.
BEL_API const char *bel_dtype_name(bel_dtype dtype);

/// Maximal rank of a tensor. Records have one dimension fewer (dataset.h): a batch adds one.
enum { BEL_MAX_RANK = 8 };

/// Symbol of a dimension that is open until data arrives. Numbers from -1 down to -2^20 are
/// symbols, and two open dimensions are equal if and only if their symbols are. Numbers below are
/// products of a number and one or two symbols' sizes, which a Reshape may make.
enum { BEL_DIM_BATCH = -1, BEL_DIM_TIME = -2 };

/// Dimensions, outermost first; rank 0 is a scalar. dims beyond the rank are undefined. A dimension
/// is a size from 0 on, or negative if it is open.
typedef struct bel_shape {
    int32_t rank;
    int64_t dims[BEL_MAX_RANK];
} bel_shape;

/// Makes a shape: `BEL_SHAPE(32, 10)` is [32, 10], and `&BEL_SHAPE(32, 10)` points to one that
/// lives as long as the block around it. Accepts 1 to BEL_MAX_RANK numbers; for a scalar use
/// `bel_shape_scalar()`.
#define BEL_SHAPE(...)                                                                             \
    ((bel_shape){(int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})

/// Returns the shape of `rank` dimensions, which are copied. A rank outside 0 … BEL_MAX_RANK ends
/// the process.
BEL_API bel_shape bel_shape_make(int32_t rank, const int64_t *dims);

/// Returns the shape [] of one element.
BEL_API bel_shape bel_shape_scalar(void);

/// Returns true if ranks and all dimensions are equal; open dimensions must be the same symbol.
BEL_API bool bel_shape_equal(const bel_shape *a, const bel_shape *b);

/// Returns the number of elements: 1 for a scalar; -1 when a dimension is open; INT64_MAX on
/// overflow.
BEL_API int64_t bel_shape_elements(const bel_shape *shape);

/// Size of the buffer for a shape's text.
enum { BEL_SHAPE_TEXT = 128 };

/// Writes "[32, 10]", or "[?, 10]" with an open dimension, to `text` and returns `text`. Truncates
/// the last of many large dimensions.
BEL_API const char *bel_shape_text(const bel_shape *shape, char text[BEL_SHAPE_TEXT]);

/// View of row-major elements in memory that it does not own. Copying the struct copies only the
/// view. Ownership: the code that allocated the buffer owns it. Each function that returns a view
/// documents its lifetime; each that accepts one documents whether it copies the elements.
typedef struct bel_tensor {
    bel_dtype dtype;
    bel_shape shape;
    void *data; ///< First element; aligned to the type's size. May be NULL without elements.
} bel_tensor;

/// Returns the size of the elements in bytes, SIZE_MAX on overflow. A shape with an open dimension
/// ends the process.
BEL_API size_t bel_tensor_bytes(const bel_tensor *tensor);

#ifdef __cplusplus
}
#endif

#endif
