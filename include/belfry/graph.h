/// Graphs: what a model function builds. A graph is a list of operations on values; values carry an
/// element type and a shape whose batch dimension may be open. Nothing is computed while building.
///
/// **Sticky errors.** The first call that fails (wrong shape, wrong type …) is kept by the graph
/// with the operation's name and the shapes; it and every later call return NULL, and NULL is
/// accepted wherever a value is. So model code has no checks: the trainer reports the error once.
///
/// Ownership: values belong to their graph. Thread rule: a graph is built by one thread.
#ifndef BELFRY_GRAPH_H
#define BELFRY_GRAPH_H

#include "belfry/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bel_graph bel_graph;
typedef struct bel_value bel_value;

/// An empty graph. Model functions get theirs from the context instead.
BEL_API bel_graph *bel_graph_create(void);
BEL_API void bel_graph_destroy(bel_graph *graph);

/// The error that stuck, as a new status, or NULL.
BEL_API bel_status *bel_graph_check(const bel_graph *graph) BEL_MUST_USE;

/// Makes the graph fail with a message of your own; the first error wins.
BEL_API void bel_graph_fail(bel_graph *graph, bel_code code, const char *format, ...)
    BEL_PRINTF(3, 4);

/// Names of operations built until the matching pop are prefixed "scope/".
BEL_API void bel_graph_push_scope(bel_graph *graph, const char *scope);
BEL_API void bel_graph_pop_scope(bel_graph *graph);

/// An input fed at run time. The leading dimension is usually BEL_DIM_BATCH.
BEL_API bel_value *bel_input_value(bel_graph *graph, const char *name, bel_dtype dtype,
                                   const bel_shape *shape);

/// A constant tensor; the elements are copied.
BEL_API bel_value *bel_constant(bel_graph *graph, const bel_tensor *tensor);

/// A scalar constant of dtype F32 or F64.
BEL_API bel_value *bel_scalar(bel_graph *graph, bel_dtype dtype, double value);

/// --- Variables ----------------------------------------------------------------------------------

/// How a variable changes.
typedef enum bel_variable_kind {
    BEL_VARIABLE_TRAINABLE,  ///< By the optimizer, from its averaged gradient.
    BEL_VARIABLE_FROZEN,     ///< Not at all; saved and restored.
    BEL_VARIABLE_STATE_MEAN, ///< Each step assigns the mean over replicas of what they assigned.
    BEL_VARIABLE_STATE_SUM,  ///< Each step adds the sum over replicas of what they assigned.
} bel_variable_kind;

/// How values begin. Fans are those of kernels [in, out] or, with more dimensions, of weights of a
/// convolution, [out, in, window…].
typedef enum bel_init_kind {
    BEL_INIT_ZEROS,
    BEL_INIT_CONSTANT,       ///< `value`.
    BEL_INIT_UNIFORM,        ///< In [-value, value).
    BEL_INIT_NORMAL,         ///< Mean 0, standard deviation `value`.
    BEL_INIT_GLOROT_UNIFORM, ///< In ±sqrt(6 / (fan_in + fan_out)). Glorot & Bengio 2010, eq. 16.
    BEL_INIT_HE_NORMAL,      ///< Deviation sqrt(2 / fan_in). He et al. 2015, eq. 10.
    BEL_INIT_ONES,
    BEL_INIT_TRUNCATED_NORMAL, ///< As NORMAL, but what lies over 2 · `value` out is drawn again.
    BEL_INIT_GLOROT_NORMAL,    ///< Deviation sqrt(2 / (fan_in + fan_out)). Glorot & Bengio 2010.
    BEL_INIT_HE_UNIFORM,       ///< In ±sqrt(6 / fan_in). He et al. 2015.
    /// `value` (0: 1) times a random matrix, first dimension × all others, whose columns, or rows
    /// if these are fewer, are orthonormal. Saxe et al. 2013. Takes time with the cube of its size.
    BEL_INIT_ORTHOGONAL,
} bel_init_kind;

typedef struct bel_initializer {
    bel_init_kind kind;
    double value;
} bel_initializer;

/// A variable, F32, of closed shape, named "scope/name"; a second call with the same name returns
/// the same variable (the shape must agree). Initial values are a function of (seed, name).
BEL_API bel_value *bel_variable(bel_graph *graph, const char *name, const bel_shape *shape,
                                bel_initializer initializer, bel_variable_kind kind);

/// What this replica assigns to a state variable in this step; see bel_variable_kind. Same shape.
/// A state variable that is not assigned in a step keeps its value.
BEL_API void bel_assign_state(bel_graph *graph, bel_value *variable, bel_value *value);

/// --- Tables -------------------------------------------------------------------------------------

/// The rows of table "scope/name" that `ids` name: F32, the shape of `ids` with `width` behind it.
/// A table is a trainable variable without a size: any int64 is a key, and a row exists from its
/// first update on; before, its values are a function of (seed, name, key). Optimizers change only
/// rows that a batch names: docs/tables.md. `ids` is an input, I64; several calls with one name
/// look up in the same table, whose width and initializer must agree. Initializers: ZEROS, UNIFORM,
/// NORMAL.
BEL_API bel_value *bel_embedding(bel_graph *graph, const char *name, bel_value *ids, int64_t width,
                                 bel_initializer initializer);

/// --- Reading a value ----------------------------------------------------------------------------

/// Shape and type; rank 0 and F32 for NULL.
BEL_API bel_shape bel_value_shape(const bel_value *value);
BEL_API bel_dtype bel_value_dtype(const bel_value *value);

/// --- Gradients ----------------------------------------------------------------------------------

/// Adds to the graph the gradients of the scalar `loss` with respect to `count` values (variables
/// or any others): out_gradients[i] has the shape of values[i], or is NULL when loss does not
/// depend on it. Sticky errors: loss not scalar; an operation on the way has no gradient.
BEL_API void bel_gradients(bel_graph *graph, bel_value *loss, bel_value *const *values, int count,
                           bel_value **out_gradients);

#ifdef __cplusplus
}
#endif

#endif
