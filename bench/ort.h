// onnxruntime as a peer, by its C API: one thread, all optimizations, values in memory of the
// caller.
// ORT_DIR is the folder of libonnxruntime.so.1: that of npm's onnxruntime-node
// (npm install --ignore-scripts onnxruntime-node onnxruntime-common).
#ifndef BELFRY_BENCH_ORT_H
#define BELFRY_BENCH_ORT_H

#include <stdbool.h>

#include "belfry/tensor.h"

// Opens the library and prints its version. False: ORT_DIR is not set.
bool bench_ort_open(void);

// Model of a file, with one input and one output that are used. Any thread may run it.
typedef struct bench_ort_model {
    void *session;
    const char *in_name, *out_name;
} bench_ort_model;

// The names must live as long as the model. There is no call to free one.
bench_ort_model bench_ort_load(const char *path, const char *in_name, const char *out_name);

// Input and output of runs, in the memory of f32 tensors.
typedef struct bench_ort_values {
    void *in, *out;
} bench_ort_values;

bench_ort_values bench_ort_bind(const bel_tensor *in, const bel_tensor *out);
void bench_ort_run(const bench_ort_model *model, const bench_ort_values *values);

#endif
