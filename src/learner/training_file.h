// File format constants of an exported training, shared by its writer (export/export_training.c)
// and the learner. docs/formats/training.md is the normative description.
#ifndef BELFRY_LEARNER_TRAINING_FILE_H
#define BELFRY_LEARNER_TRAINING_FILE_H

#define BEL_TRAINING_FORMAT "belfry-training"
enum { BEL_TRAINING_VERSION = 1 };

#define BEL_TRAINING_SIGNATURE "signature.json"
#define BEL_TRAINING_GRAPH "training.onnx"
#define BEL_TRAINING_PREDICTION "prediction.onnx"

// End of the signature: a CRC-32C of all preceding bytes.
#define BEL_TRAINING_SEAL ",\n \"crc32c\":\"%08x\"}\n"
enum { BEL_TRAINING_SEAL_BYTES = 24 };

// Outputs of training.onnx: the loss; a variable's gradient, or its new value; the gradient of a
// lookup's rows, named after its input.
#define BEL_TRAINING_LOSS "loss"
#define BEL_TRAINING_REPORT "report:"
#define BEL_TRAINING_ROWS "rows:"

#endif
