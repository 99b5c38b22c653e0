// Belfry's server with onnxruntime's runs: the linker sends the calls of bel_predictor_bind, _run
// and _output to this module, which passes them on until bench_serve_ort_use.
#ifndef BELFRY_BENCH_SERVE_ORT_H
#define BELFRY_BENCH_SERVE_ORT_H

#include <stdbool.h>

#include "serve/served.h"

// Loads the model of an export with one input and one output, and makes values of one example for
// each slot's predictor. False: ORT_DIR is not set.
bool bench_serve_ort_load(const char *export, const bel_served *version);

// From now on onnxruntime runs instead of these predictors. No request may be in progress.
void bench_serve_ort_use(bool use);

#endif
