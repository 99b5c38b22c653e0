// Exported models: the contents of their folder, for checkpoint writers (src/master) besides
// bel_export. docs/formats/export.md defines the files.
#ifndef BELFRY_ESTIMATOR_EXPORT_H
#define BELFRY_ESTIMATOR_EXPORT_H

#include "belfry/estimator.h"

// The files of an exported model.
#define BEL_EXPORT_MODEL "model.onnx"
#define BEL_EXPORT_WEIGHTS "weights.safetensors"
#define BEL_EXPORT_SIGNATURE "signature.json"
#define BEL_EXPORT_TOKENIZER "tokenizer.json" // as in the model's folder

// Like bel_export, into an existing folder that may have other files. After an error the
// three files are absent.
bel_status *bel_export_files(const bel_estimator *estimator, const char *checkpoint,
                             const bel_export_options *options, const char *folder) BEL_MUST_USE;

#endif
