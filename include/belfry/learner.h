/// Learner: training inside of a program, without processes, files of data or a network, for
/// programs that learn where they run.
///
/// ```c
/// bel_learner *learner;
/// bel_status *status = bel_learner_load("digits.learner", NULL, &learner);
/// if (status != NULL) return report(status);
/// float x[32 * 64], loss;
/// int64_t label[32];
/// bel_tensor in = {BEL_DTYPE_F32, BEL_SHAPE(32, 64), x};
/// bel_tensor out = {BEL_DTYPE_I64, BEL_SHAPE(32), label};
/// while (status == NULL && next(x, label))
///     status = bel_learner_step(learner, &in, &out, &loss);
/// if (status == NULL) status = bel_learner_save(learner, "digits.learner", NULL);
/// ```
///
/// A step is one of `belfry train` with one replica: the same batches give the same bits. It goes
/// on from a checkpoint and saves checkpoints, which `belfry train`, `evaluate` and `export` read,
/// too.
///
/// This header and predictor.h, status.h, tensor.h are all that a program needs of
/// libbelfry-learner, a static library which has predictors as well
/// (`pkg-config --static belfry-learner`); libbelfry has the same functions.
///
/// **Thread rule.** A learner is used by one thread at a time. Several do not disturb each other.
/// While one saves into a folder nobody else may save there: no other learner, no training.
#ifndef BELFRY_LEARNER_H
#define BELFRY_LEARNER_H

#include "belfry/predictor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A model that learns; opaque.
typedef struct bel_learner bel_learner;

/// What may be said when a learner is loaded. Zero is the default of every field.
typedef struct bel_learner_options {
    size_t size; ///< sizeof(bel_learner_options): what lies behind counts as 0
    int threads; ///< that run a step; 0: the calling one alone
    const char
        *checkpoint; ///< where it begins: a folder with a manifest, or one with such folders,
                     ///< of which the newest good one counts; NULL: the newest one in `path`
    /// For all variables, in place of the training's rate and schedule, which may have come to its
    /// end; what is saved does not say so. 0: the training's. [0]
    double learning_rate;
    int keep_checkpoint_max; ///< checkpoints that bel_learner_save leaves; 0: 5, below 0: all
} bel_learner_options;

/// Loads what `belfry export --training` has written: a folder with training.onnx, signature.json,
/// prediction.onnx and checkpoints. Options may be NULL. The learner is the caller's; everything is
/// read before this returns. NOT_FOUND: no such folder, or no checkpoint. DATA_LOSS: a file is
/// damaged. UNIMPLEMENTED: it was written by a later version. FAILED_PRECONDITION: the checkpoint
/// is of another model or training than was exported (each difference is named), or of a version
/// that computes other bits; the processor lacks what kernels need. INVALID_ARGUMENT: an option is
/// out of range. RESOURCE_EXHAUSTED.
BEL_API bel_status *bel_learner_load(const char *path, const bel_learner_options *options,
                                     bel_learner **out_learner) BEL_MUST_USE;

BEL_API void bel_learner_destroy(bel_learner *learner); ///< accepts NULL

/// What a step takes, by number from 0 on, as the model function named it. Open dimensions are
/// below 0; -1 is the batch, and those of one number agree. A port lives as long as the learner.
BEL_API int bel_learner_input_count(const bel_learner *learner);
BEL_API bel_port bel_learner_input_port(const bel_learner *learner, int input);
BEL_API int bel_learner_find_input(const bel_learner *learner, const char *name); ///< -1: none
BEL_API int bel_learner_label_count(const bel_learner *learner);
BEL_API bel_port bel_learner_label_port(const bel_learner *learner, int label);
BEL_API int bel_learner_find_label(const bel_learner *learner, const char *name); ///< -1: none

/// One update from one batch: the gradient of its mean loss, then the optimizer. `inputs` has a
/// tensor for each input, `labels` one for each label, in their order and in C order; they are read
/// during the call. *out_loss (may be NULL) is the batch's mean loss before the update. The first
/// step of a shape makes a program for it, of which the 64 used last are kept. After an error the
/// model is as it was before, but where memory runs out while rows of tables are updated: then the
/// learner is FAILED_PRECONDITION from there on. INVALID_ARGUMENT: a type or a shape is another one
/// (named), the batch is empty, or a number is not finite. OUT_OF_RANGE: a label or index is (names
/// the operation). ABORTED: the loss is not finite. RESOURCE_EXHAUSTED.
BEL_API bel_status *bel_learner_step(bel_learner *learner, const bel_tensor *inputs,
                                     const bel_tensor *labels, float *out_loss) BEL_MUST_USE;

/// Updates so far, those before the checkpoint among them.
BEL_API int64_t bel_learner_step_count(const bel_learner *learner);

/// Saves values and the optimizer's state as a checkpoint in model_dir, which is made; it becomes
/// visible whole, or not at all. Others there are removed, those of the lowest steps, as
/// `keep_checkpoint_max` says. The one of the highest step is what a load takes.
/// *out_digest (may be NULL) is a text of 32 hexadecimal digits over what it holds, that of `belfry
/// inspect --digest`. ABORTED: a value is not finite (named), so nothing was saved. Else the errors
/// of files.
BEL_API bel_status *bel_learner_save(bel_learner *learner, const char *model_dir,
                                     char out_digest[33]) BEL_MUST_USE;

/// A predictor of the model as it is now, or of its moving averages where it keeps them: as
/// `belfry predict` would give it of a checkpoint that is saved now. Values are copied: it stays as
/// it is while the learner goes on, on another thread perhaps, and after the learner has gone.
/// `threads` as in bel_predictor_options. RESOURCE_EXHAUSTED.
BEL_API bel_status *bel_learner_predictor(const bel_learner *learner, int threads,
                                          bel_predictor **out_predictor) BEL_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
