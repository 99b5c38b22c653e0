/// Predictor: a trained model inside of a program, without training, processes or a network.
///
/// ```c
/// bel_predictor *model;
/// bel_status *status = bel_predictor_load("export/best/1200", NULL, &model);
/// if (status != NULL) return report(status);
/// float x[64] = {0};
/// bel_tensor in = {.dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(1, 64), .data = x};
/// status = bel_predictor_bind(model, 0, &in);
/// while (status == NULL && next(x)) {
///     status = bel_predictor_run(model);
///     if (status == NULL) use(bel_predictor_output(model, 0));
/// }
/// ```
///
/// What can be done once is done when a model is loaded, or at the first run of a shape: constants
/// are folded, operations fused, weights brought into the order that kernels read, memory planned.
/// A run of shapes that were seen before allocates nothing and takes no lock.
///
/// This header and status.h, tensor.h are all that a program needs of libbelfry-predictor, a static
/// library (`pkg-config --static belfry-predictor`); libbelfry has the same functions.
///
/// **Thread rule.** A predictor is used by one thread at a time. Several predictors do not disturb
/// each other; those of one file share the pages of its weights where these are mapped.
#ifndef BELFRY_PREDICTOR_H
#define BELFRY_PREDICTOR_H

#include "belfry/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A model that is ready to run; opaque.
typedef struct bel_predictor bel_predictor;

/// What may be said when a model is loaded. Zero is the default of every field.
typedef struct bel_predictor_options {
    size_t size; ///< sizeof(bel_predictor_options): what lies behind counts as 0
    int threads; ///< that run it; 0: the calling one alone
    /// Bytes for weights: a model that has more runs in stages, of which the next one's are read
    /// while one computes, in each run again; 0: all are in memory. Of a file (bel_predictor_load).
    size_t stage_memory;
    uint64_t seed; ///< of random operations that are left in a graph; an export has its own
} bel_predictor_options;

/// Loads a model from `path`: a folder that `belfry export` has written, or an ONNX file. Options
/// may be NULL. The predictor is the caller's. Files are mapped as long as it lives: a new model is
/// renamed into their place, as `belfry export` does, and never written over them (which would
/// change weights, or end the process). NOT_FOUND: no such file. DATA_LOSS: malformed.
/// UNIMPLEMENTED: well formed, but with what Belfry lacks (an operator, an element type; its node
/// is named). FAILED_PRECONDITION: the processor lacks what kernels need, or the file does not say
/// the shape of an input. INVALID_ARGUMENT: an option is out of range.
BEL_API bel_status *bel_predictor_load(const char *path, const bel_predictor_options *options,
                                       bel_predictor **out_predictor) BEL_MUST_USE;

/// The same of an ONNX file's bytes, which are not needed afterwards. A file whose elements lie in
/// other files is refused (INVALID_ARGUMENT).
BEL_API bel_status *bel_predictor_load_bytes(const void *bytes, size_t size,
                                             const bel_predictor_options *options,
                                             bel_predictor **out_predictor) BEL_MUST_USE;

BEL_API void bel_predictor_destroy(bel_predictor *predictor); ///< accepts NULL

/// An input or an output: open dimensions of the shape are below 0, and those of one number agree
/// (-1 is the batch of Belfry's own models). Lives as long as the predictor.
typedef struct bel_port {
    const char *name;
    bel_dtype dtype;
    bel_shape shape;
} bel_port;

/// Ports by number, from 0 on.
BEL_API int bel_predictor_input_count(const bel_predictor *predictor);
BEL_API bel_port bel_predictor_input_port(const bel_predictor *predictor, int input);
BEL_API int bel_predictor_output_count(const bel_predictor *predictor);
BEL_API bel_port bel_predictor_output_port(const bel_predictor *predictor, int output);

/// The number of the input or output of this name; -1: there is none.
BEL_API int bel_predictor_find_input(const bel_predictor *predictor, const char *name);
BEL_API int bel_predictor_find_output(const bel_predictor *predictor, const char *name);

/// Where an input's elements lie, in C order, and of which shape they are, from now on. They are
/// read by every run and must stay until another binding; what is in them may change between runs.
/// INVALID_ARGUMENT: the type or a closed dimension is another one (named), or a batch is empty;
/// the binding before stays.
BEL_API bel_status *bel_predictor_bind(bel_predictor *predictor, int input,
                                       const bel_tensor *elements) BEL_MUST_USE;

/// Computes all outputs. The first run of new shapes makes a program for them, of which the 64 used
/// last are kept. FAILED_PRECONDITION: an input is not bound. INVALID_ARGUMENT: shapes of inputs do
/// not go together. OUT_OF_RANGE: an index is (names the operation).
BEL_API bel_status *bel_predictor_run(bel_predictor *predictor) BEL_MUST_USE;

/// The result of the last run, of closed shape. Elements live until the next run. Where there was
/// no run yet, or it failed, data is NULL and the shape is the port's.
BEL_API bel_tensor bel_predictor_output(const bel_predictor *predictor, int output);

/// The step of the checkpoint behind it; -1: it was loaded from a file that says none.
BEL_API int64_t bel_predictor_step(const bel_predictor *predictor);

#ifdef __cplusplus
}
#endif

#endif
