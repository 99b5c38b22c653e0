/// Graphs: what a model function builds. A graph is a list of operations on values; values carry an
/// element type and a shape whose batch dimension may be open. Nothing is computed while building.
///
/// **Sticky errors.** The first call that fails (wrong shape, wrong type …) is kept by the graph
/// with the operation's name and the shapes; it and every later call return NULL, and NULL is
/// accepted wherever a value is. So model code has no checks: the trainer reports the error once.
/// "Error" in the comments here and in ops.h means such a sticky one. Its code is INVALID_ARGUMENT
/// unless another is named. A NULL that goes into an operation while nothing has failed is
/// itself the error, "input 0 is missing".
///
/// **Ownership.** The graph owns its values, which live as long as it does; nobody frees one.
/// Whatever a call is given besides values (names, shapes, lists, elements) is copied before the
/// call returns. A value may be used in its own graph alone.
///
/// **Thread rule.** A graph and its values belong to one thread at a time, the model function's
/// while that runs. Nothing here is global: different graphs do not disturb each other.
#ifndef BELFRY_GRAPH_H
#define BELFRY_GRAPH_H

#include "belfry/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Both opaque. A value is one result of one operation.
typedef struct bel_graph bel_graph;
typedef struct bel_value bel_value;

/// An empty graph, owned by the caller. Model functions get theirs from the context instead, and
/// neither create nor destroy one.
BEL_API bel_graph *bel_graph_create(void);

/// Frees a graph with all of its values; accepts NULL.
BEL_API void bel_graph_destroy(bel_graph *graph);

/// The error that stuck, with its code, as a new status of the caller's; NULL while there is none.
BEL_API bel_status *bel_graph_check(const bel_graph *graph) BEL_MUST_USE;

/// Makes the graph fail with a message of your own, of at most 1,023 bytes. Does nothing where the
/// graph has failed before: the first error counts. A code of BEL_OK becomes UNKNOWN.
BEL_API void bel_graph_fail(bel_graph *graph, bel_code code, const char *format, ...)
    BEL_PRINTF(3, 4);

/// Names of variables, tables and operations built until the matching pop begin with "scope/",
/// inside of the scopes around it. Names of variables name the tensors of checkpoints, and their
/// initial values and the draws of random operations depend on names: another scope is another
/// model. Error: more than 64 scopes in each other, or of more than 255 bytes together.
BEL_API void bel_graph_push_scope(bel_graph *graph, const char *scope);

/// Leaves the innermost scope; does nothing outside of all.
BEL_API void bel_graph_pop_scope(bel_graph *graph);

/// An input fed at run time, of the whole graph: scopes do not enter its name. The leading
/// dimension is usually BEL_DIM_BATCH. In a model function the fields of the batch are already
/// inputs (bel_context_feature); one that the function adds is refused when it has returned, as
/// nothing would feed it. Errors: ALREADY_EXISTS, an input has this name; more than 2^48 elements,
/// open dimensions counted as 1.
BEL_API bel_value *bel_input_value(bel_graph *graph, const char *name, bel_dtype dtype,
                                   const bel_shape *shape);

/// A constant tensor; the elements are copied. Errors: the type is STRING; an open dimension; more
/// than 2^48 elements.
BEL_API bel_value *bel_constant(bel_graph *graph, const bel_tensor *tensor);

/// A scalar constant, F64 or rounded to F32. Error: another dtype.
BEL_API bel_value *bel_scalar(bel_graph *graph, bel_dtype dtype, double value);

/// --- Variables ----------------------------------------------------------------------------------

/// How a variable changes.
typedef enum bel_variable_kind {
    BEL_VARIABLE_TRAINABLE,  ///< By the optimizer, from its averaged gradient.
    BEL_VARIABLE_FROZEN,     ///< Not at all; saved and restored.
    BEL_VARIABLE_STATE_MEAN, ///< Each step assigns the mean over replicas of what they assigned.
    BEL_VARIABLE_STATE_SUM,  ///< Each step adds the sum over replicas of what they assigned.
    /// Each step assigns what the replica of lowest number assigned, of those that have examples.
    BEL_VARIABLE_STATE_FIRST,
    /// Each replica has a value of its own, reads that, and assigns that. See below.
    BEL_VARIABLE_REPLICA,
    BEL_VARIABLE_REPLICA_MEAN, ///< The same; all of them together are read as their mean,
    BEL_VARIABLE_REPLICA_SUM,  ///< as their sum,
    BEL_VARIABLE_REPLICA_FIRST ///< or as that of replica 0.
} bel_variable_kind;

/// **Values of replicas.** A variable of a kind BEL_VARIABLE_REPLICA… has a value of the asked
/// shape for each replica of a step, all beginning alike. In training each replica reads and
/// assigns its own, and keeps it in a step in which it has no examples. Evaluation, prediction and
/// export read what all of them come to, by kind; BEL_VARIABLE_REPLICA they cannot read. Parameter
/// servers and checkpoints hold the values as one tensor with a leading axis of replicas. A job
/// with another number of replicas (--allow_changes), or a warm start, begins each with what all
/// came to there; of a sum with an equal part of it. There are none in modes in which a step has no
/// fixed replicas (async, bounded, --elastic_rescale).

/// How the copies of a variable follow each other, in the terms of tf.VariableSynchronization.
typedef enum bel_variable_synchronization {
    BEL_SYNCHRONIZATION_AUTO,     ///< ON_WRITE.
    BEL_SYNCHRONIZATION_NONE,     ///< Each replica has its own, and nobody reads them together.
    BEL_SYNCHRONIZATION_ON_WRITE, ///< Replicas' assignments are aggregated, and all get the result.
    BEL_SYNCHRONIZATION_ON_READ,  ///< Each replica has its own; they are aggregated when read.
} bel_variable_synchronization;

/// How replicas' values become one, in the terms of tf.VariableAggregation.
typedef enum bel_variable_aggregation {
    BEL_AGGREGATION_NONE,
    BEL_AGGREGATION_SUM,
    BEL_AGGREGATION_MEAN,
    BEL_AGGREGATION_ONLY_FIRST_REPLICA,
} bel_variable_aggregation;

/// The kind that these terms mean: for those who come from TensorFlow. *out_kind is set on success.
/// ON_WRITE with SUM is BEL_VARIABLE_STATE_SUM, which adds to the value. INVALID_ARGUMENT: there is
/// no such variable (a trainable one that is not ON_WRITE, or is not averaged; NONE with an
/// aggregation).
BEL_API bel_status *bel_variable_kind_of(bool trainable,
                                         bel_variable_synchronization synchronization,
                                         bel_variable_aggregation aggregation,
                                         bel_variable_kind *out_kind) BEL_MUST_USE;

/// How values begin, as a function of seed, name and shape alone. Fans are those of kernels [in,
/// out] or, with more dimensions, of weights of a convolution, [out, in, window…]; of a vector [n]
/// both are n.
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

/// A variable, F32, of closed shape, named "scope/name". A second call with the same name returns
/// the same variable; the shape must agree, and initializer and kind are those of the first call.
/// Errors: an open or empty shape; another shape than before; a name above 319 bytes;
/// ALREADY_EXISTS, a table has this name; FAILED_PRECONDITION, a BEL_VARIABLE_REPLICA where it
/// cannot be read.
BEL_API bel_value *bel_variable(bel_graph *graph, const char *name, const bel_shape *shape,
                                bel_initializer initializer, bel_variable_kind kind);

/// What this replica assigns to a state variable in each step of training; see bel_variable_kind.
/// At most once for a variable, with a value F32 of its shape. A state variable that is never
/// assigned keeps its value; evaluation and prediction assign nothing. Errors: the variable is of
/// another kind, or assigned before; the value does not fit.
BEL_API void bel_assign_state(bel_graph *graph, bel_value *variable, bel_value *value);

/// What the values of all replicas come to: the mean, the sum or the first, as of the last step; no
/// values are exchanged for it. Of a variable that all replicas share that is the variable itself.
/// Errors: a BEL_VARIABLE_REPLICA of several replicas; no variable.
BEL_API bel_value *bel_variable_aggregate(bel_graph *graph, bel_value *variable);

/// --- Tables -------------------------------------------------------------------------------------

enum { BEL_NO_ID = -1 }; ///< An id that is none.

/// The rows of table "scope/name" that `ids` name: F32, the shape of `ids` with `width` behind it.
/// A table is a trainable variable without a size: any int64 is a key, and a row exists from its
/// first update on; before, its values are a function of (seed, name, key). Optimizers change only
/// rows that a batch names: docs/tables.md. `ids` is a feature of the batch as it comes, I64 of
/// rank 1 to 7; several calls with one name look up in the same table, whose width and initializer
/// must agree. Initializers: ZEROS, UNIFORM, NORMAL, with a finite value from 0 on. width: 1 to
/// 2^20. An id of BEL_NO_ID is none: its row is zeros, and what is done with it changes nothing, so
/// examples that have fewer ids than others are filled up with it (bel_embedding_bag, in ops.h,
/// adds up what an example has). Errors: any of that; ALREADY_EXISTS, a variable has this name.
/// Training itself refuses `ids` with an open dimension behind the batch (UNIMPLEMENTED), and
/// optimizers other than SGD, ADAGRAD, ADAM and FTRL, or with clip_norm or clip_global_norm
/// (INVALID_ARGUMENT).
BEL_API bel_value *bel_embedding(bel_graph *graph, const char *name, bel_value *ids, int64_t width,
                                 bel_initializer initializer);

/// --- Reading a value ----------------------------------------------------------------------------

/// Shape (open dimensions as negative symbols) and type. For NULL, rank 0 and F32, so code that
/// computes with dimensions looks for NULL first.
BEL_API bel_shape bel_value_shape(const bel_value *value);
BEL_API bel_dtype bel_value_dtype(const bel_value *value);

/// --- Gradients ----------------------------------------------------------------------------------

/// Adds to the graph the gradients of the scalar `loss`, F32 or F64, with respect to `count` values
/// (variables or any others; NULL: none wanted): out_gradients[i] has the shape and type of
/// values[i], or is NULL when loss does not depend on it. After an error all are NULL. Training
/// adds the gradients of variables itself; a model calls this for gradients inside of a loss only.
/// Gradients have gradients themselves where they are made of element-wise functions, products,
/// convolutions, softmax, cross-entropy, sums and means, and of what moves elements; not those of
/// largest elements of windows, products of elements, normalisations, attention, recurrent layers
/// and CTC. Errors: loss is no
/// scalar of floats; UNIMPLEMENTED, an operation between loss and a value has no gradient (it is
/// named).
BEL_API void bel_gradients(bel_graph *graph, bel_value *loss, bel_value *const *values, int count,
                           bel_value **out_gradients);

#ifdef __cplusplus
}
#endif

#endif
