// Where exports go: folders that appear whole, or not at all.
#ifndef BELFRY_ESTIMATOR_EXPORT_FOLDER_H
#define BELFRY_ESTIMATOR_EXPORT_FOLDER_H

#include "belfry/estimator.h"

// Lets `fill` write into a folder under another name, and renames that to `folder`. Where
// `replaces`, an exported model that is there steps aside and goes; else a folder that is there is
// ALREADY_EXISTS, as is one that is something else. FAILED_PRECONDITION: another process exports to
// it. Else the errors of `fill` and of files; then all is as it was.
bel_status *bel_export_to_folder(const char *folder, bool replaces,
                                 bel_status *(*fill)(void *context, const char *folder),
                                 void *context) BEL_MUST_USE;

// The copy of the ONNX file that a model is of, without which its checkpoints cannot be read; there
// is none of other models.
bel_status *bel_export_share_source(const bel_estimator *estimator,
                                    const char *folder) BEL_MUST_USE;

#endif
