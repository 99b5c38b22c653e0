// A case of ONNX's test data: a folder with model.onnx and test_data_set_0/input_*.pb, output_*.pb,
// and optional further sets.
#ifndef BELFRY_TESTS_ONNX_ONNX_CASE_H
#define BELFRY_TESTS_ONNX_ONNX_CASE_H

#include "onnx/onnx.h"

// Folder of the cases in Debian's libonnx-testdata.
#define ONNX_DATA "/usr/include/onnx/backend/test/data"

enum { ONNX_CASE_TENSORS = 16 };

typedef struct onnx_tensors {
    bel_tensor items[ONNX_CASE_TENSORS];
    int count;
} onnx_tensors;

typedef struct onnx_case {
    bel_onnx_model *model;
    onnx_tensors inputs, outputs; // from the files
} onnx_case;

bel_status *onnx_case_open(const char *folder, int set, onnx_case *out) BEL_MUST_USE;
void onnx_case_close(onnx_case *opened);

// Closeness of an output to the expected one.
typedef enum onnx_match {
    ONNX_DIFFERS,
    ONNX_NEAR,  // |got - expected| <= 1e-7 + 1e-3 |expected|: the tolerance of ONNX's runner
    ONNX_CLOSE, // 1e-7 + 1e-5 |expected|
} onnx_match;

// `difference` describes the first element that differs.
onnx_match onnx_compare(const bel_tensor *got, const bel_tensor *expected, char difference[200]);

// Builds the model with the case's inputs, runs it on the plain or on the fast kernels and compares
// all outputs. *out_bound counts inputs that became constants. Errors: UNIMPLEMENTED if Belfry
// lacks something (also if outputs are random); INTERNAL if an output differs.
bel_status *onnx_case_run(const onnx_case *opened, bool reference, int *out_bound,
                          onnx_match *out_match) BEL_MUST_USE;

// The same, but the model is built without its inputs' values. `variables`: initializers become
// variables. Returns the largest |got - expected| / max(1, |expected|).
bel_status *onnx_case_run_open(const onnx_case *opened, bool reference, bool variables,
                               double *out_difference) BEL_MUST_USE;

// The same for a model whose inputs all begin with one open batch, as if its file closed that at
// `batch`: the build opens the model again. *out_fits is false, and nothing runs, if an input
// begins with another dimension, or the case has one example.
bel_status *onnx_case_run_closed(const onnx_case *opened, int64_t batch, bool variables,
                                 bool *out_fits, double *out_difference) BEL_MUST_USE;

// onnx_case_run for a model of one optimizer (ai.onnx.preview.training), compared with src/optim.
bool onnx_is_optimizer(const onnx_case *opened);
bel_status *onnx_optimizer_run(const onnx_case *opened, onnx_match *out_match) BEL_MUST_USE;

#endif
