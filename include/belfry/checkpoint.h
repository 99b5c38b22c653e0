/// Checkpoints, read from a program: which there is, what is in it, and the values.
///
/// ```c
/// bel_checkpoint *checkpoint;
/// if ((status = bel_checkpoint_open("runs/digits", &checkpoint)) != NULL) return status;
/// status = bel_checkpoint_read(checkpoint, "logits/bias", bias, sizeof bias);
/// bel_checkpoint_close(checkpoint);
/// ```
///
/// Its tensors are the model's variables, by their names, and what the optimizer keeps beside them:
/// "<variable>/<rule>/<slot>", and "<variable>/average". Rows of tables are not among them. The
/// files are safetensors (docs/formats/checkpoint.md), which other programs read, too.
///
/// **Thread rule.** Several threads may read one checkpoint at once.
#ifndef BELFRY_CHECKPOINT_H
#define BELFRY_CHECKPOINT_H

#include "belfry/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// An opened checkpoint; opaque.
typedef struct bel_ckpt_reader bel_checkpoint;

/// Opens a checkpoint by its folder, or by that of a model, whose newest one that is not damaged it
/// is then; a job may go on training there. Checks sizes and checksums of all its files. The caller
/// closes it. NOT_FOUND: there is none. DATA_LOSS: it is damaged (the file is named), or all are.
BEL_API bel_status *bel_checkpoint_open(const char *folder,
                                        bel_checkpoint **out_checkpoint) BEL_MUST_USE;
BEL_API void bel_checkpoint_close(bel_checkpoint *checkpoint); ///< accepts NULL

/// Opens the checkpoint in model_dir that a training with keep_best (estimator.h) keeps as the
/// best; bel_evaluate and bel_predict take its folder. NOT_FOUND: none is kept as the best, or it
/// was removed. DATA_LOSS: it is damaged.
BEL_API bel_status *bel_checkpoint_open_best(const char *model_dir,
                                             bel_checkpoint **out_checkpoint) BEL_MUST_USE;

/// Its folder, its step, and what it says of a setting ("model", "learning_rate", … as `belfry
/// inspect` lists them; NULL: nothing). Texts live until it is closed.
BEL_API const char *bel_checkpoint_folder(const bel_checkpoint *checkpoint);
BEL_API int64_t bel_checkpoint_step(const bel_checkpoint *checkpoint);
BEL_API const char *bel_checkpoint_setting(const bel_checkpoint *checkpoint, const char *name);

/// How many tensors it has; and name, type and shape of that at `index`, in byte order of names.
/// `index` must be one. Each of the three may be NULL: not wanted.
BEL_API int bel_checkpoint_count(const bel_checkpoint *checkpoint);
BEL_API void bel_checkpoint_tensor(const bel_checkpoint *checkpoint, int index,
                                   const char **out_name, bel_dtype *out_dtype,
                                   bel_shape *out_shape);

/// The index of a tensor; -1: there is none of this name.
BEL_API int bel_checkpoint_find(const bel_checkpoint *checkpoint, const char *name);

/// Reads the whole of a tensor, in its type, in C order. NOT_FOUND: there is none of this name.
/// INVALID_ARGUMENT: `bytes` are not those of its elements. DATA_LOSS: the file cannot be read.
BEL_API bel_status *bel_checkpoint_read(const bel_checkpoint *checkpoint, const char *name,
                                        void *out_elements, size_t bytes) BEL_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
