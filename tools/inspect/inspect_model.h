// Description of an ONNX model, for verb inspect.
#ifndef BELFRY_TOOLS_INSPECT_INSPECT_MODEL_H
#define BELFRY_TOOLS_INSPECT_INSPECT_MODEL_H

#include <stdbool.h>

#include "belfry/status.h"

// Returns true if the path is a model: a file, or a folder with model.onnx that is no checkpoint.
bool bel_is_model(const char *path);

// Writes inputs, outputs and a row for each node to stdout. *out_exit_code is 1 if some nodes
// cannot be built. Errors: the file cannot be read, or is no model.
bel_status *bel_inspect_model(const char *path, bool json, int *out_exit_code) BEL_MUST_USE;

#endif
