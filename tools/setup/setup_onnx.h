// ONNX file of --model, or its copy in a model's folder.
#ifndef BELFRY_TOOLS_SETUP_SETUP_ONNX_H
#define BELFRY_TOOLS_SETUP_SETUP_ONNX_H

#include <stdbool.h>

#include "setup/params.h"
#include "setup/setup.h"

bool bel_is_onnx_file(const char *model); // by the suffix

// Sets setup->onnx_file, owned by the setup, onnx_digest in the parameters, and class_count if only
// the model has it. NOT_FOUND: no file and no copy. FAILED_PRECONDITION: the checkpoint was trained
// with another file. UNIMPLEMENTED: values are in other files. Else errors of bel_onnx_read_file.
bel_status *bel_setup_onnx_file(const bel_options *options, bel_params *params,
                                bel_setup *setup) BEL_MUST_USE;

#endif
