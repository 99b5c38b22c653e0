// An exported training as files: what who writes them (estimator/export_training.c) and the learner
// agree on. docs/formats/training.md is the normative description.
#ifndef BELFRY_LEARNER_TRAINING_FILE_H
#define BELFRY_LEARNER_TRAINING_FILE_H

#define BEL_TRAINING_FORMAT "belfry-training"
enum { BEL_TRAINING_VERSION = 1 };

#define BEL_TRAINING_SIGNATURE "signature.json"
#define BEL_TRAINING_GRAPH "training.onnx"
#define BEL_TRAINING_PREDICTION "prediction.onnx"

// How the signature ends: a CRC-32C of all bytes before.
#define BEL_TRAINING_SEAL ",\n \"crc32c\":\"%08x\"}\n"
enum { BEL_TRAINING_SEAL_BYTES = 24 };

// Outputs of training.onnx: the loss; for a variable its gradient, or what it becomes; for a
// look-up, by the name of its input, the gradient of its rows.
#define BEL_TRAINING_LOSS "loss"
#define BEL_TRAINING_REPORT "report:"
#define BEL_TRAINING_ROWS "rows:"

#endif
