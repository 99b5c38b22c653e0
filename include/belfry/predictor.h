/// Predictor: a trained model inside a program, without training, processes or a network.
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
/// Loading a model, and the first run of a shape, do all one-time work: they fold constants, fuse
/// operations, arrange weights in the order of the kernels, and plan memory. A later run of the
/// same shapes allocates nothing and takes no lock.
///
/// A program needs only this header and status.h, tensor.h with libbelfry-predictor, a static
/// library (`pkg-config --static belfry-predictor`). libbelfry has the same functions.
///
/// **Thread rule.** One thread at a time uses a predictor. Several predictors are independent.
/// Those of one file share the pages of its weights if these are mapped.
#ifndef BELFRY_PREDICTOR_H
#define BELFRY_PREDICTOR_H

#include "belfry/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Model that is ready to run; opaque.
typedef struct bel_predictor bel_predictor;

/// Options of bel_predictor_load. Zero is the default of every field.
typedef struct bel_predictor_options {
    size_t size; ///< sizeof(bel_predictor_options): fields after it count as 0
    int threads; ///< threads that run it; 0: only the calling one
    /// Maximal bytes of weights in memory; 0: all of them. A larger model runs in stages, in each
    /// run: while one stage computes, the next one's weights are read. Only for files
    /// (bel_predictor_load).
    size_t stage_memory;
    uint64_t seed; ///< for random operations in a graph; an export contains it
    /// Requests whose examples are one batch: all of equal shapes, one after another; 0: one. Each
    /// example has the bits that it has in a run of its request only, if the model computes the
    /// examples of a batch independently.
    int64_t joined;
} bel_predictor_options;

/// Loads a model from `path`: a folder that `belfry export` wrote, or an ONNX file. Options may be
/// NULL. The caller owns the predictor. Files stay mapped as long as it lives. To replace a model,
/// rename a new one over it, as `belfry export` does. Never overwrite its files: that would change
/// weights, or end the process. NOT_FOUND: no such file. DATA_LOSS: malformed. UNIMPLEMENTED: well
/// formed, but with an operator or element type that Belfry lacks (the node is named).
/// FAILED_PRECONDITION: the processor lacks a feature that the kernels need, or the file lacks the
/// shape of an input. INVALID_ARGUMENT: an option is out of range.
BEL_API bel_status *bel_predictor_load(const char *path, const bel_predictor_options *options,
                                       bel_predictor **out_predictor) BEL_MUST_USE;

/// Loads an ONNX file from memory; the bytes are not needed afterwards. A file whose elements are
/// in other files is refused (INVALID_ARGUMENT). Other errors as with bel_predictor_load.
BEL_API bel_status *bel_predictor_load_bytes(const void *bytes, size_t size,
                                             const bel_predictor_options *options,
                                             bel_predictor **out_predictor) BEL_MUST_USE;

BEL_API void bel_predictor_destroy(bel_predictor *predictor); ///< accepts NULL

/// Input or output. Open dimensions of the shape are below 0, and dimensions with the same number
/// are equal (-1 is the batch in Belfry's models). Lives as long as the predictor.
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

/// Returns the number of the input or output of this name; -1: no such name.
BEL_API int bel_predictor_find_input(const bel_predictor *predictor, const char *name);
BEL_API int bel_predictor_find_output(const bel_predictor *predictor, const char *name);

/// Binds the elements, in C order, and shape of an input for all later runs. Every run reads the
/// elements, which must stay valid until the next binding; their values may change between runs.
/// INVALID_ARGUMENT: the type or a closed dimension is another one (named), or a batch is empty;
/// the previous binding stays.
BEL_API bel_status *bel_predictor_bind(bel_predictor *predictor, int input,
                                       const bel_tensor *elements) BEL_MUST_USE;

/// Computes all outputs. The first run of new shapes builds a program for them; the 64 most
/// recently used programs are kept. FAILED_PRECONDITION: an input is not bound. INVALID_ARGUMENT:
/// shapes of inputs are incompatible. OUT_OF_RANGE: an index (names the operation).
BEL_API bel_status *bel_predictor_run(bel_predictor *predictor) BEL_MUST_USE;

/// Returns the result of the last run, of closed shape. Elements live until the next run. If there
/// was no run yet, or it failed, data is NULL and the shape is the port's.
BEL_API bel_tensor bel_predictor_output(const bel_predictor *predictor, int output);

/// Returns the step of the loaded checkpoint; -1: the file does not record it.
BEL_API int64_t bel_predictor_step(const bel_predictor *predictor);

#ifdef __cplusplus
}
#endif

#endif
