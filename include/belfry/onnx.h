/// Models of other tools inside of model functions.
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
/// What is read of the format, and what is refused: docs/formats/onnx.md. The command has a model
/// function of this kind: `belfry train_and_evaluate --model resnet18.onnx`.
#ifndef BELFRY_ONNX_H
#define BELFRY_ONNX_H

#include "belfry/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A value for an input of the model.
typedef struct bel_onnx_feed {
    const char *name;
    bel_value *value;
} bel_onnx_feed;

/// How a model is used. Zero is the default of every field.
typedef struct bel_onnx_use {
    size_t size; ///< sizeof(bel_onnx_use): what lies behind counts as 0
    /// Patterns (`*`, `?`) of variables that are not trained, by their names in the file.
    const char *const *freeze;
    int freeze_count;
    /// Values for inputs. One that is not named gets the feature of its name, or the only feature
    /// where it is the only input that is not named.
    const bel_onnx_feed *feeds;
    int feed_count;
    /// An output that a Softmax, LogSoftmax or Sigmoid gives is what went into that, as losses take
    /// it; a Softmax may be written out (Exp, ReduceSum, Div). The log warns of outputs that are
    /// computed from probabilities.
    bool logits;
    /// Patterns of constants that are trained although their use does not make them weights, by
    /// their names in the file.
    const char *const *train;
    int train_count;
} bel_onnx_use;

/// Adds the model in file `path` to the context's graph. Its weights become variables under their
/// names in the file, in the scope that is open, and begin with the elements there. A float
/// constant is a weight by its use: a factor of a product or convolution, a table of a look-up, a
/// scale or a bias (docs/models.md). All are trained but the mean and variance of
/// BatchNormalization, and those that `use` (may be NULL) freezes. In training the log says what is
/// trained and what is not.
///
/// A feature of another shape is reshaped where only the batch is open and the elements of an
/// example are as many, and cast where its type is another one. Where the file closes the batch,
/// the model is rewritten for any batch if each row provably stays what the file computes of one
/// example (docs/formats/onnx.md).
///
/// Sets out_outputs for the first `capacity` outputs of the model and gives their number in the
/// file; 0 after an error. Errors: those of reading the file, with its path; a feature that does
/// not fit an input; a closed batch whose examples are not known to stay apart; a pattern of
/// `freeze` that matches no variable, or one of `train` that matches no float constant; no such
/// feed.
BEL_API int bel_onnx_add(bel_model_context *context, const char *path, const bel_onnx_use *use,
                         bel_value **out_outputs, int capacity);

#ifdef __cplusplus
}
#endif

#endif
