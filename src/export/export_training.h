// Exported trainings: the graph of a training step with one replica, for programs that learn
// without a job (belfry/learner.h). docs/formats/training.md defines the files.
#ifndef BELFRY_ESTIMATOR_EXPORT_TRAINING_H
#define BELFRY_ESTIMATOR_EXPORT_TRAINING_H

#include "belfry/estimator.h"

// Writes training.onnx, prediction.onnx, signature.json and the checkpoint (NULL: the newest in
// model_dir; its files are shared) into an existing, empty folder. FAILED_PRECONDITION: the
// checkpoint does not describe its fields, or the estimator differs from the checkpoint's (the
// message has each difference). Otherwise the errors of the model function and of files.
bel_status *bel_export_training_files(const bel_estimator *estimator, const char *checkpoint,
                                      const char *folder) BEL_MUST_USE;

#endif
