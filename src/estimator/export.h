// Exported models: what a folder of one holds, for whoever keeps checkpoints (src/master) besides
// bel_export. docs/formats/export.md says what is in the files.
#ifndef BELFRY_ESTIMATOR_EXPORT_H
#define BELFRY_ESTIMATOR_EXPORT_H

#include "belfry/estimator.h"

// The files of an exported model.
#define BEL_EXPORT_MODEL "model.onnx"
#define BEL_EXPORT_WEIGHTS "weights.safetensors"
#define BEL_EXPORT_SIGNATURE "signature.json"

// bel_export into a folder that is there, beside what is in it; after an error none of the three
// files is there.
bel_status *bel_export_files(const bel_estimator *estimator, const char *checkpoint,
                             const bel_export_options *options, const char *folder) BEL_MUST_USE;

#endif
