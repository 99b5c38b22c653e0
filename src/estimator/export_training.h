// Exported trainings: the graph of a training step with one replica, for programs that learn by
// themselves (belfry/learner.h). docs/formats/training.md says what is in the files.
#ifndef BELFRY_ESTIMATOR_EXPORT_TRAINING_H
#define BELFRY_ESTIMATOR_EXPORT_TRAINING_H

#include "belfry/estimator.h"

// Writes training.onnx, prediction.onnx, signature.json and the checkpoint (NULL: the newest in
// model_dir; its files are shared) into a folder that is there and empty. FAILED_PRECONDITION: the
// checkpoint does not say what its fields are, or the estimator is not that of the checkpoint (each
// difference is named). Else the errors of the model function and of files.
bel_status *bel_export_training_files(const bel_estimator *estimator, const char *checkpoint,
                                      const char *folder) BEL_MUST_USE;

#endif
