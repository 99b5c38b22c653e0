// Folders of exports, which appear complete or not at all.
#ifndef BELFRY_ESTIMATOR_EXPORT_FOLDER_H
#define BELFRY_ESTIMATOR_EXPORT_FOLDER_H

#include "belfry/estimator.h"

// Calls `fill` to write a folder under a temporary name, and renames that to `folder`. With
// `replaces`, an exported model at `folder` steps aside and is removed. ALREADY_EXISTS: `folder`
// exists, and is not such a model or `replaces` is false. FAILED_PRECONDITION: another process
// exports to it. Otherwise the errors of `fill` and of files. An error leaves everything unchanged.
bel_status *bel_export_to_folder(const char *folder, bool replaces,
                                 bel_status *(*fill)(void *context, const char *folder),
                                 void *context) BEL_MUST_USE;

// Shares the copy of the ONNX file that the model is based on, without which its checkpoints cannot
// be read. Other models have no such file.
bel_status *bel_export_share_source(const bel_estimator *estimator,
                                    const char *folder) BEL_MUST_USE;

// Shares the tokenizer that the model's folder keeps, which makes the inputs of a model that was
// trained on texts. Other models have no tokenizer.
bel_status *bel_export_share_tokenizer(const bel_estimator *estimator,
                                       const char *folder) BEL_MUST_USE;

#endif
