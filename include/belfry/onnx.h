/// ONNX models inside of model functions.
///
/// ```c
/// static bel_status *model_fn(bel_model_context *ctx, bel_estimator_spec *spec)
/// {
///     static const char *const frozen[] = {"backbone.*"};
///     bel_onnx_use use = {.size = sizeof use, .freeze = frozen, .freeze_count = 1};
///     bel_value *outputs[1];
///     bel_onnx_add(ctx, "resnet18.onnx", &use, outputs, 1);
///     …
/// ```
///
/// docs/formats/onnx.md lists the supported and the refused parts of the format. The command has a
/// model function of this kind: `belfry train_and_evaluate --model resnet18.onnx`.
#ifndef BELFRY_ONNX_H
#define BELFRY_ONNX_H

#include "belfry/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Value for an input of the model.
typedef struct bel_onnx_feed {
    const char *name;
    bel_value *value;
} bel_onnx_feed;

/// Options of bel_onnx_add. Zero is the default of every field.
typedef struct bel_onnx_use {
    size_t size;                               ///< sizeof(bel_onnx_use): fields after it count as 0
    int freeze_count, feed_count, train_count; ///< lengths of the lists below
    /// Patterns (`*`, `?`) of variables that are not trained, by their names in the file.
    const char *const *freeze;
    /// Values for inputs. Any other input gets the feature of its name, or the only feature if it
    /// is the only other input.
    const bel_onnx_feed *feeds;
    /// Returns logits, which losses need: an output of a Softmax, LogSoftmax or Sigmoid is replaced
    /// by the input of that operation. A Softmax may be decomposed (Exp, ReduceSum, Div). The log
    /// warns of outputs that are computed from probabilities.
    bool logits;
    /// Patterns of constants to train although their use does not make them weights, by their names
    /// in the file.
    const char *const *train;
} bel_onnx_use;

/// Adds the model in file `path` to the context's graph. Its weights become variables under their
/// names in the file, in the current scope, with the file's elements as initial values. A float
/// constant is a weight by its use: a factor of a product or convolution, a table of a look-up, a
/// scale or a bias (docs/models.md). All are trained except the mean and variance of
/// BatchNormalization, and those that `use` (may be NULL) freezes. In training the log lists
/// trained and frozen variables.
///
/// A feature of another shape is reshaped if only the batch is open and an example has the same
/// number of elements. A feature of another type is cast. If the file closes the batch, the model
/// is rewritten for any batch, provided that each row provably equals the file's result for one
/// example (docs/formats/onnx.md).
///
/// Sets out_outputs for the first `capacity` outputs of the model and returns their number in the
/// file; 0 after an error. Errors: those of reading the file, with its path; a feature that does
/// not fit an input; a closed batch whose examples may be mixed; a feed without an input. A pattern
/// is an error if it matches no variable (`freeze`) or no float constant (`train`).
BEL_API int bel_onnx_add(bel_model_context *context, const char *path, const bel_onnx_use *use,
                         bel_value **out_outputs, int capacity);

#ifdef __cplusplus
}
#endif

#endif
