// The ONNX file that --model names, or of which a model's folder has a copy.
#ifndef BELFRY_TOOLS_SETUP_ONNX_H
#define BELFRY_TOOLS_SETUP_ONNX_H

#include <stdbool.h>

#include "params.h"
#include "setup.h"

bool bel_is_onnx_file(const char *model); // by the end of its name

// Sets setup->onnx_file to the file that is read (the setup's), onnx_digest in the parameters, and
// class_count where the model says it and nothing else does. NOT_FOUND: no file and no copy.
// FAILED_PRECONDITION: another one than the checkpoint was trained with. UNIMPLEMENTED: its values
// are in other files. Else errors of bel_onnx_read_file.
bel_status *bel_setup_onnx_file(const bel_options *options, bel_params *params,
                                bel_setup *setup) BEL_MUST_USE;

#endif
