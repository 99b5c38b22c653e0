/// Element types, shapes and tensor views: the vocabulary of every other header.
///
/// All of these are plain values, which own nothing. Thread rule: functions here touch nothing but
/// their arguments, so any thread may call them. What they are given must be sound (a type of the
/// list, a rank from 0 to BEL_MAX_RANK); where a function says so, anything else ends the process.
#ifndef BELFRY_TENSOR_H
#define BELFRY_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Element types. The numbers are stable: they stand in files.
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

/// Bytes of one element; 1 for strings, of whose text an element is one byte. A number that is no
/// type ends the process.
BEL_API size_t bel_dtype_size(bel_dtype dtype);

/// Lower-case name, e.g. "f32"; "unknown" for a number that is no type. Static.
BEL_API const char *bel_dtype_name(bel_dtype dtype);

/// Most dimensions of a tensor. Records have one fewer (dataset.h): a batch adds one.
enum { BEL_MAX_RANK = 8 };

/// A dimension that is open until data arrives. Numbers from -1 down to -2^20 are symbols, and two
/// open dimensions are equal exactly when their symbols are. Numbers below are products of a number
/// and one or two symbols' sizes, which a Reshape may make.
enum { BEL_DIM_BATCH = -1, BEL_DIM_TIME = -2 };

/// Dimensions, outermost first; rank 0 is a scalar. dims behind the rank mean nothing. A dimension
/// is a size from 0 on, or negative where it is open.
typedef struct bel_shape {
    int32_t rank;
    int64_t dims[BEL_MAX_RANK];
} bel_shape;

/// `BEL_SHAPE(32, 10)` is the shape [32, 10], and `&BEL_SHAPE(32, 10)` points to one that lives as
/// long as the block around it. 1 to BEL_MAX_RANK numbers; for a scalar use `bel_shape_scalar()`.
#define BEL_SHAPE(...)                                                                             \
    ((bel_shape){(int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})

/// The shape of `rank` dimensions, which are copied. A rank outside 0 … BEL_MAX_RANK ends the
/// process.
BEL_API bel_shape bel_shape_make(int32_t rank, const int64_t *dims);

/// The shape [] of one element.
BEL_API bel_shape bel_shape_scalar(void);

/// Whether ranks and all dimensions agree; of open dimensions, whether they are the same symbol.
BEL_API bool bel_shape_equal(const bel_shape *a, const bel_shape *b);

/// Number of elements: 1 for a scalar; -1 when a dimension is open; INT64_MAX when the product does
/// not fit.
BEL_API int64_t bel_shape_elements(const bel_shape *shape);

/// Room for the text of a shape.
enum { BEL_SHAPE_TEXT = 128 };

/// Writes "[32, 10]", or "[?, 10]" where a dimension is open, into `text` and returns `text`. Of
/// many large dimensions the last ones are left out where the room ends.
BEL_API const char *bel_shape_text(const bel_shape *shape, char text[BEL_SHAPE_TEXT]);

/// A view of row-major elements that lie somewhere else. Copying the struct copies the view only.
/// Ownership: the buffer is its maker's; each function that hands out a view says how long it
/// lives, each that takes one whether it copies the elements.
typedef struct bel_tensor {
    bel_dtype dtype;
    bel_shape shape;
    void *data; ///< The first element; aligned to the type's size. May be NULL without elements.
} bel_tensor;

/// Bytes that the elements take, SIZE_MAX where that is not enough. A shape with an open dimension
/// ends the process.
BEL_API size_t bel_tensor_bytes(const bel_tensor *tensor);

#ifdef __cplusplus
}
#endif

#endif
