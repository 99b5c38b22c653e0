/// Learner: training inside a program, without processes, data files or a network, for programs
/// that learn where they run.
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
/// A step equals a step of `belfry train` with one replica: the same batches give the same bits. A
/// learner resumes from a checkpoint and saves checkpoints, which `belfry train`, `evaluate` and
/// `export` can also read.
///
/// A program needs only this header and predictor.h, status.h, tensor.h with libbelfry-learner, a
/// static library that also has predictors (`pkg-config --static belfry-learner`). libbelfry has
/// the same functions.
///
/// **Thread rule.** One thread at a time uses a learner. Several learners are independent. While
/// one saves to a folder, no other learner or training may save there.
#ifndef BELFRY_LEARNER_H
#define BELFRY_LEARNER_H

#include "belfry/predictor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Model that learns; opaque.
typedef struct bel_learner bel_learner;

/// Options of bel_learner_load. Zero is the default of every field.
typedef struct bel_learner_options {
    size_t size;             ///< sizeof(bel_learner_options): fields after it count as 0
    int threads;             ///< threads that run a step; 0: only the calling one
    int keep_checkpoint_max; ///< checkpoints that bel_learner_save keeps; 0: 5, below 0: all
    /// Start: a folder with a manifest, or one with such folders, of which the newest undamaged one
    /// counts. NULL: the newest one in `path`.
    const char *checkpoint;
    /// For all variables, instead of the training's rate and schedule, which may have reached its
    /// end. Saved checkpoints do not record it. 0: the training's. [0]
    double learning_rate;
} bel_learner_options;

/// Loads an export of `belfry export --training`: a folder with training.onnx, signature.json,
/// prediction.onnx and checkpoints. Options may be NULL. The caller owns the learner. All files are
/// read before this returns. NOT_FOUND: no such folder, or no checkpoint. DATA_LOSS: a file is
/// damaged. UNIMPLEMENTED: a later version wrote it. FAILED_PRECONDITION: the checkpoint is of
/// another model or training than the export (each difference is named), or of a version that
/// computes other bits; or the processor lacks a feature that the kernels need. INVALID_ARGUMENT:
/// an option is out of range. RESOURCE_EXHAUSTED.
BEL_API bel_status *bel_learner_load(const char *path, const bel_learner_options *options,
                                     bel_learner **out_learner) BEL_MUST_USE;

BEL_API void bel_learner_destroy(bel_learner *learner); ///< accepts NULL

/// Inputs and labels of a step, by number from 0 on, with the names of the model function. Open
/// dimensions are below 0; -1 is the batch, and dimensions with the same number are equal. A port
/// lives as long as the learner.
BEL_API int bel_learner_input_count(const bel_learner *learner);
BEL_API bel_port bel_learner_input_port(const bel_learner *learner, int input);
BEL_API int bel_learner_find_input(const bel_learner *learner, const char *name); ///< -1: none
BEL_API int bel_learner_label_count(const bel_learner *learner);
BEL_API bel_port bel_learner_label_port(const bel_learner *learner, int label);
BEL_API int bel_learner_find_label(const bel_learner *learner, const char *name); ///< -1: none

/// Runs one update from one batch: the gradient of its mean loss, then the optimizer. `inputs` has
/// a tensor for each input, `labels` one for each label, in their order and in C order; they are
/// read only during the call. *out_loss (NULL to skip) is the batch's mean loss before the update.
/// The first step of a shape builds a program for it; the 64 most recently used programs are kept.
/// After an error the model is unchanged. Exception: if memory runs out while rows of tables are
/// updated, the learner is FAILED_PRECONDITION from then on. INVALID_ARGUMENT: another type or
/// shape (named), an empty batch, or a number that is not finite. OUT_OF_RANGE: a label or index
/// (names the operation). ABORTED: the loss is not finite. RESOURCE_EXHAUSTED.
BEL_API bel_status *bel_learner_step(bel_learner *learner, const bel_tensor *inputs,
                                     const bel_tensor *labels, float *out_loss) BEL_MUST_USE;

/// Returns the number of updates, including those before the checkpoint.
BEL_API int64_t bel_learner_step_count(const bel_learner *learner);

/// Saves values and the optimizer's state as a checkpoint in model_dir, which is created. The save
/// is atomic. Removes the checkpoints of the lowest steps there, as `keep_checkpoint_max` says.
/// bel_learner_load uses the one of the highest step. *out_digest (NULL to skip) receives a text of
/// 32 hexadecimal digits over its contents, the same as `belfry inspect --digest`. ABORTED: a value
/// is not finite (named), and nothing was saved. Other errors are those of files.
BEL_API bel_status *bel_learner_save(bel_learner *learner, const char *model_dir,
                                     char out_digest[33]) BEL_MUST_USE;

/// Makes a predictor of the current model, or of its moving averages if it keeps them: the same as
/// `belfry predict` with a checkpoint saved now. Values are copied, so the predictor does not
/// change while the learner continues, possibly on another thread, and outlives the learner.
/// `threads` as in bel_predictor_options. RESOURCE_EXHAUSTED.
BEL_API bel_status *bel_learner_predictor(const bel_learner *learner, int threads,
                                          bel_predictor **out_predictor) BEL_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
