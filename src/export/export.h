// Exported models: the contents of their folder, for checkpoint writers (src/master) besides
// bel_export. docs/formats/export.md defines the files.
#ifndef BELFRY_ESTIMATOR_EXPORT_H
#define BELFRY_ESTIMATOR_EXPORT_H

#include "belfry/estimator.h"
#include "checkpoint/checkpoint.h"
#include "model/feature_list.h"

// The files of an exported model.
#define BEL_EXPORT_MODEL "model.onnx"
#define BEL_EXPORT_WEIGHTS "weights.safetensors"
#define BEL_EXPORT_SIGNATURE "signature.json"
#define BEL_EXPORT_TOKENIZER "tokenizer.json" // as in the model's folder

// Like bel_export, into an existing folder that may have other files. After an error the
// three files are absent.
bel_status *bel_export_files(const bel_estimator *estimator, const char *checkpoint,
                             const bel_export_options *options, const char *folder) BEL_MUST_USE;

// Reads the features of the model from the checkpoint's settings; texts are in `arena`.
// FAILED_PRECONDITION: an earlier version saved it and left them out.
bel_status *bel_export_read_features(const bel_ckpt_reader *reader, bel_arena *arena,
                                     bel_feature_list *out_features) BEL_MUST_USE;

#endif
