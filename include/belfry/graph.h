/// Graphs, which model functions build. A graph is a list of operations on values. Values have an
/// element type and a shape whose batch dimension may be open. Building computes nothing.
///
/// **Sticky errors.** The graph keeps the first error (wrong shape, wrong type …), with the
/// operation's name and the shapes. The failing call and every later call return NULL, and NULL is
/// accepted wherever a value is. Model code therefore needs no checks: the trainer reports the
/// error once. "Error" in the comments here and in ops.h means a sticky error. Its code is
/// INVALID_ARGUMENT unless another is named. A NULL argument while nothing has failed is itself an
/// error, "input 0 is missing".
///
/// **Ownership.** The graph owns its values, which live as long as it does; the caller never frees
/// one. All other arguments (names, shapes, lists, elements) are copied before the call returns. A
/// value may be used only in its graph.
///
/// **Thread rule.** A graph and its values belong to one thread at a time, the model function's
/// while that runs. Nothing here is global: different graphs are independent.
#ifndef BELFRY_GRAPH_H
#define BELFRY_GRAPH_H

#include "belfry/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Graph; opaque.
typedef struct bel_graph bel_graph;
/// One result of one operation; opaque.
typedef struct bel_value bel_value;

/// Makes an empty graph, owned by the caller. Model functions get theirs from the context instead,
/// and neither create nor destroy one.
BEL_API bel_graph *bel_graph_create(void);

/// Frees a graph with all of its values; accepts NULL.
BEL_API void bel_graph_destroy(bel_graph *graph);

/// Returns the sticky error as a new status, which the caller owns; NULL if there is no error.
BEL_API bel_status *bel_graph_check(const bel_graph *graph) BEL_MUST_USE;

/// Makes the graph fail with a message of at most 1,023 bytes. Does nothing if the graph has
/// already failed: the first error counts. A code of BEL_OK becomes UNKNOWN.
BEL_API void bel_graph_fail(bel_graph *graph, bel_code code, const char *format, ...)
    BEL_PRINTF(3, 4);

/// Begins a scope. Until the matching pop, names of new variables, tables and operations begin with
/// "scope/", inside the outer scopes. Names of variables name the tensors of checkpoints, and
/// initial values and random draws depend on names: another scope is another model. Error: more
/// than 64 nested scopes, or of more than 255 bytes together.
BEL_API void bel_graph_push_scope(bel_graph *graph, const char *scope);

/// Leaves the innermost scope; does nothing outside all scopes.
BEL_API void bel_graph_pop_scope(bel_graph *graph);

/// Adds an input that is fed at run time. Scopes do not apply to its name. The leading dimension is
/// usually BEL_DIM_BATCH. In a model function the fields of the batch are already inputs
/// (bel_context_feature). An input that the function adds is refused after it returns, as nothing
/// would feed it. Errors: ALREADY_EXISTS: an input has this name; more than 2^48 elements, with
/// open dimensions counted as 1.
BEL_API bel_value *bel_input_value(bel_graph *graph, const char *name, bel_dtype dtype,
                                   const bel_shape *shape);

/// Adds a constant tensor; the elements are copied. Errors: the type is STRING; an open dimension;
/// more than 2^48 elements.
BEL_API bel_value *bel_constant(bel_graph *graph, const bel_tensor *tensor);

/// Adds a scalar constant, F64 or rounded to F32. Error: another dtype.
BEL_API bel_value *bel_scalar(bel_graph *graph, bel_dtype dtype, double value);

/// --- Variables ----------------------------------------------------------------------------------

/// How a variable changes.
typedef enum bel_variable_kind {
    BEL_VARIABLE_TRAINABLE,  ///< Updated by the optimizer, from its averaged gradient.
    BEL_VARIABLE_FROZEN,     ///< Never changed; saved and restored.
    BEL_VARIABLE_STATE_MEAN, ///< Each step assigns the mean over replicas of assigned values.
    BEL_VARIABLE_STATE_SUM,  ///< Each step adds the sum over replicas of assigned values.
    /// Each step assigns the value from the lowest replica that has examples.
    BEL_VARIABLE_STATE_FIRST,
    /// Each replica reads and assigns a separate value. See below.
    BEL_VARIABLE_REPLICA,
    BEL_VARIABLE_REPLICA_MEAN, ///< The same; read together as their mean,
    BEL_VARIABLE_REPLICA_SUM,  ///< as their sum,
    BEL_VARIABLE_REPLICA_FIRST ///< or as that of replica 0.
} bel_variable_kind;

/// **Values of replicas.** A variable of a kind BEL_VARIABLE_REPLICA… has a value of its shape for
/// each replica of a step, with the same initial value. In training each replica reads and assigns
/// its value, and keeps it in a step in which it has no examples. Evaluation, prediction and export
/// read the aggregate of all values, by kind; they cannot read a BEL_VARIABLE_REPLICA. Parameter
/// servers and checkpoints store the values as one tensor with a leading axis of replicas. A job
/// with another number of replicas (--allow_changes), or a warm start, initializes each value with
/// the old aggregate, or with an equal part of it for a sum. Modes in which a step has no fixed
/// replicas (async, bounded, --elastic_rescale) do not support these kinds.

/// When copies of a variable are synchronized, in the terms of tf.VariableSynchronization.
typedef enum bel_variable_synchronization {
    BEL_SYNCHRONIZATION_AUTO,     ///< ON_WRITE.
    BEL_SYNCHRONIZATION_NONE,     ///< Each replica has a value, and they are never read together.
    BEL_SYNCHRONIZATION_ON_WRITE, ///< Replicas' assignments are aggregated, and all get the result.
    BEL_SYNCHRONIZATION_ON_READ,  ///< Each replica has a value; they are aggregated when read.
} bel_variable_synchronization;

/// How replicas' values are aggregated, in the terms of tf.VariableAggregation.
typedef enum bel_variable_aggregation {
    BEL_AGGREGATION_NONE,
    BEL_AGGREGATION_SUM,
    BEL_AGGREGATION_MEAN,
    BEL_AGGREGATION_ONLY_FIRST_REPLICA,
} bel_variable_aggregation;

/// Converts these TensorFlow terms to a kind. *out_kind is set on success. ON_WRITE with SUM is
/// BEL_VARIABLE_STATE_SUM, which adds to the value. INVALID_ARGUMENT: no such kind (a trainable
/// variable that is not ON_WRITE, or is not averaged; NONE with an aggregation).
BEL_API bel_status *bel_variable_kind_of(bool trainable,
                                         bel_variable_synchronization synchronization,
                                         bel_variable_aggregation aggregation,
                                         bel_variable_kind *out_kind) BEL_MUST_USE;

/// Initial values, as a function of only seed, name and shape. Fans are those of kernels [in, out]
/// or, with more dimensions, of weights of a convolution, [out, in, window…]; for a vector [n] both
/// are n.
typedef enum bel_init_kind {
    BEL_INIT_ZEROS,
    BEL_INIT_CONSTANT,       ///< `value`.
    BEL_INIT_UNIFORM,        ///< In [-value, value).
    BEL_INIT_NORMAL,         ///< Mean 0, standard deviation `value`.
    BEL_INIT_GLOROT_UNIFORM, ///< In ±sqrt(6 / (fan_in + fan_out)). Glorot & Bengio 2010, eq. 16.
    BEL_INIT_HE_NORMAL,      ///< Deviation sqrt(2 / fan_in). He et al. 2015, eq. 10.
    BEL_INIT_ONES,
    BEL_INIT_TRUNCATED_NORMAL, ///< As NORMAL; values beyond 2 · `value` are redrawn.
    BEL_INIT_GLOROT_NORMAL,    ///< Deviation sqrt(2 / (fan_in + fan_out)). Glorot & Bengio 2010.
    BEL_INIT_HE_UNIFORM,       ///< In ±sqrt(6 / fan_in). He et al. 2015.
    /// `value` (0: 1) times a random matrix, first dimension × all others, whose columns, or rows
    /// if these are fewer, are orthonormal. Saxe et al. 2013. Takes time cubic in its size.
    BEL_INIT_ORTHOGONAL,
} bel_init_kind;

typedef struct bel_initializer {
    bel_init_kind kind;
    double value;
} bel_initializer;

/// Makes a variable, F32, of closed shape, named "scope/name". A second call with the same name
/// returns the same variable; the shape must be equal, and initializer and kind are those of the
/// first call. Errors: an open or empty shape; another shape than before; a name above 319 bytes;
/// ALREADY_EXISTS: a table has this name; FAILED_PRECONDITION: a BEL_VARIABLE_REPLICA in a mode
/// that cannot read it.
BEL_API bel_value *bel_variable(bel_graph *graph, const char *name, const bel_shape *shape,
                                bel_initializer initializer, bel_variable_kind kind);

/// Sets the value that this replica assigns to a state variable in each step of training; see
/// bel_variable_kind. At most once for a variable, with a value F32 of its shape. A state variable
/// without an assignment keeps its value; evaluation and prediction assign nothing. Errors: the
/// variable is of another kind, or already assigned; the value has another type or shape.
BEL_API void bel_assign_state(bel_graph *graph, bel_value *variable, bel_value *value);

/// Returns the aggregate of all replicas' values: the mean, the sum or the first, as of the last
/// step, without an exchange. For a variable that all replicas share, this is the variable itself.
/// Errors: a BEL_VARIABLE_REPLICA of several replicas; the value is no variable.
BEL_API bel_value *bel_variable_aggregate(bel_graph *graph, bel_value *variable);

/// --- Tables -------------------------------------------------------------------------------------

enum { BEL_NO_ID = -1 }; ///< Padding in lists of ids.

/// Looks up the rows of table "scope/name" for `ids`: F32, the shape of `ids` followed by `width`.
/// A table is a trainable variable without a size: any int64 is a key. A row exists from its first
/// update on; before that, its values are a function of (seed, name, key). Optimizers change only
/// rows that a batch names: docs/tables.md.
///
/// `ids` is an unmodified feature of the batch, I64 of rank 1 to 7. Several calls with one name use
/// the same table, whose width and initializer must be equal. Initializers: ZEROS, UNIFORM, NORMAL,
/// with a finite value from 0 on. width: 1 to 2^20. The row of BEL_NO_ID is zeros, without an
/// update, so it pads examples that have fewer ids than others (bel_embedding_bag, in ops.h, sums
/// the rows of an example). Errors: any violation of this; ALREADY_EXISTS: a variable has this
/// name. Training itself refuses `ids` with an open dimension after the batch (UNIMPLEMENTED), and
/// optimizers other than SGD, ADAGRAD, ADAM, ADAMW and FTRL, or with clip_norm or clip_global_norm
/// (INVALID_ARGUMENT).
BEL_API bel_value *bel_embedding(bel_graph *graph, const char *name, bel_value *ids, int64_t width,
                                 bel_initializer initializer);

/// --- Reading a value ----------------------------------------------------------------------------

/// Returns the shape (open dimensions are negative symbols). For NULL, rank 0; check for NULL
/// before computing with dimensions.
BEL_API bel_shape bel_value_shape(const bel_value *value);
/// Returns the type. For NULL, F32.
BEL_API bel_dtype bel_value_dtype(const bel_value *value);

/// --- Gradients ----------------------------------------------------------------------------------

/// Adds to the graph the gradients of the scalar `loss`, F32 or F64, with respect to `count` values
/// (variables or any others; NULL to skip). out_gradients[i] has the shape and type of values[i],
/// or is NULL when loss does not depend on it. After an error all are NULL. Training adds the
/// gradients of variables itself; a model needs this call only for gradients inside of a loss.
///
/// Second gradients exist for element-wise functions, products, convolutions, softmax,
/// cross-entropy, sums, means, and operations that move elements. They do not exist for largest
/// elements of windows, products of elements, normalizations, attention, recurrent layers and CTC.
/// Errors: loss is no float scalar; UNIMPLEMENTED: an operation between loss and a value has no
/// gradient (it is named).
BEL_API void bel_gradients(bel_graph *graph, bel_value *loss, bel_value *const *values, int count,
                           bel_value **out_gradients);

#ifdef __cplusplus
}
#endif

#endif
