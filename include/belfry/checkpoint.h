/// Reader of checkpoints: their list of tensors, settings and values.
///
/// ```c
/// bel_checkpoint *checkpoint;
/// if ((status = bel_checkpoint_open("runs/digits", &checkpoint)) != NULL) return status;
/// status = bel_checkpoint_read(checkpoint, "logits/bias", bias, sizeof bias);
/// bel_checkpoint_close(checkpoint);
/// ```
///
/// Its tensors are the model's variables, by their names, and the optimizer's slots:
/// "<variable>/<rule>/<slot>", and "<variable>/average". It does not list rows of tables. The files
/// are safetensors (docs/formats/checkpoint.md), which other programs can read, too.
///
/// **Thread rule.** Several threads may read one checkpoint at once.
#ifndef BELFRY_CHECKPOINT_H
#define BELFRY_CHECKPOINT_H

#include "belfry/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Opened checkpoint; opaque.
typedef struct bel_ckpt_reader bel_checkpoint;

/// Opens a checkpoint by its folder, or the newest undamaged one of a model_dir, where a job may
/// still train. Checks sizes and checksums of all its files. The caller closes it. NOT_FOUND: no
/// checkpoint. DATA_LOSS: it is damaged (the file is named), or all are.
BEL_API bel_status *bel_checkpoint_open(const char *folder,
                                        bel_checkpoint **out_checkpoint) BEL_MUST_USE;
BEL_API void bel_checkpoint_close(bel_checkpoint *checkpoint); ///< accepts NULL

/// Opens the checkpoint in model_dir that a training with keep_best (estimator.h) keeps as the
/// best; bel_evaluate and bel_predict accept its folder. NOT_FOUND: no best checkpoint is kept, or
/// it was removed. DATA_LOSS: it is damaged.
BEL_API bel_status *bel_checkpoint_open_best(const char *model_dir,
                                             bel_checkpoint **out_checkpoint) BEL_MUST_USE;

/// Returns its folder. This text lives until bel_checkpoint_close.
BEL_API const char *bel_checkpoint_folder(const bel_checkpoint *checkpoint);
/// Returns its step.
BEL_API int64_t bel_checkpoint_step(const bel_checkpoint *checkpoint);
/// Returns the value of a setting ("model", "learning_rate", … as `belfry inspect` lists them);
/// NULL: unset. The text lives until bel_checkpoint_close.
BEL_API const char *bel_checkpoint_setting(const bel_checkpoint *checkpoint, const char *name);

/// Returns the name of a setting by index, from 0 on. NULL after the last. It lives until
/// bel_checkpoint_close.
BEL_API const char *bel_checkpoint_setting_name(const bel_checkpoint *checkpoint, int index);

/// Returns the number of tensors.
BEL_API int bel_checkpoint_count(const bel_checkpoint *checkpoint);
/// Returns name, type and shape of the tensor at a valid `index`, in byte order of names. Each of
/// the three may be NULL to skip.
BEL_API void bel_checkpoint_tensor(const bel_checkpoint *checkpoint, int index,
                                   const char **out_name, bel_dtype *out_dtype,
                                   bel_shape *out_shape);

/// Returns the index of a tensor; -1: no tensor has this name.
BEL_API int bel_checkpoint_find(const bel_checkpoint *checkpoint, const char *name);

/// Reads an entire tensor, in its type, in C order. NOT_FOUND: no tensor has this name.
/// INVALID_ARGUMENT: `bytes` is not the size of its elements. DATA_LOSS: the file cannot be read.
BEL_API bel_status *bel_checkpoint_read(const bel_checkpoint *checkpoint, const char *name,
                                        void *out_elements, size_t bytes) BEL_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
