// CUDA as Belfry uses it: the driver API and NVRTC, and cuBLASLt and cuDNN for fast arithmetic. The
// libraries are opened at run time, so Belfry is built, installed and run without them. api.def
// lists the functions, with their published types. Handles of the driver are void *, addresses on a
// GPU uint64_t.
//
// The libraries are searched in the folders of BELFRY_CUDA_PATH (separated by ":"), then by the
// loader, then in /usr/local/cuda.
#ifndef BELFRY_CUDA_API_H
#define BELFRY_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

#define BEL_CUDA_PATH_VARIABLE "BELFRY_CUDA_PATH"

enum {
    BEL_CUDA_OLDEST = 12000, // driver, NVRTC and cuBLASLt: 1000 · major + 10 · minor
    BEL_CUDNN_OLDEST = 9000,
};

// Numbers of the published interface.
enum {
    BEL_CUDA_OUT_OF_MEMORY = 2,
    BEL_CUDA_NOT_READY = 600,
    BEL_CUDA_NO_DEVICE = 100,
    BEL_CUDA_MEMORY_ERROR = 214, // uncorrectable; 220: on the way between GPUs
    BEL_CUDA_LINK_ERROR = 220,
    BEL_CUDA_ILLEGAL_ADDRESS = 700,
    BEL_CUDA_LAUNCH_TIMEOUT = 702,
    BEL_CUDA_FIRST_FAULT = 714, // killed kernels, up to …
    BEL_CUDA_LAST_FAULT = 719,
    BEL_CUDA_ATTRIBUTE_MULTIPROCESSORS = 16,
    BEL_CUDA_ATTRIBUTE_MAJOR = 75,
    BEL_CUDA_ATTRIBUTE_MINOR = 76,
    BEL_CUDA_STREAM_NON_BLOCKING = 1,
    BEL_CUDA_EVENT_TIMED = 0,
    BEL_CUDA_EVENT_NO_TIMING = 2,
    BEL_CUDA_HOST_PORTABLE = 1,
    BEL_CUDA_HOST_READ_ONLY = 8, // registered for the GPU to read only
    BEL_CUDA_CAPTURE_THREAD_LOCAL = 1,
    // Properties of cuBLASLt and cuDNN
    BEL_CUDA_PROPERTY_MAJOR = 0,
    BEL_CUDA_PROPERTY_MINOR = 1,
    // cuBLASLt
    BEL_CUBLAS_F32 = 0,          // type of matrices and of scales
    BEL_CUBLAS_BF16 = 14,        // type of matrices
    BEL_CUBLAS_COMPUTE_F32 = 68, // compute types: how f32 is multiplied
    BEL_CUBLAS_COMPUTE_BF16 = 75,
    BEL_CUBLAS_COMPUTE_TF32 = 77,
    BEL_CUBLAS_LAYOUT_COUNT = 5, // attributes of a layout: number of matrices, int32_t …
    BEL_CUBLAS_LAYOUT_STEP = 6,  // … and elements between them, int64_t
    BEL_CUBLAS_TRANSPOSE_A = 3,  // attributes of a product: int32_t
    BEL_CUBLAS_TRANSPOSE_B = 4,
    BEL_CUBLAS_EPILOGUE = 7, // uint32_t
    BEL_CUBLAS_BIAS = 8,     // const void *: one number for each row of d
    BEL_CUBLAS_PLAIN = 0,    // whether a matrix is transposed
    BEL_CUBLAS_TRANSPOSED = 1,
    BEL_CUBLAS_THEN_NOTHING = 1, // epilogues
    BEL_CUBLAS_THEN_RELU = 2,
    BEL_CUBLAS_THEN_BIAS = 4,
    BEL_CUBLAS_ALLOCATION = 3, // statuses
    BEL_CUBLAS_NOT_SUPPORTED = 15,
    BEL_CUBLAS_MOST_WORKSPACE = 1, // attributes of a preference: size_t …
    BEL_CUBLAS_ALIGNMENT_A = 5,    // … and of a, b, c and d, in order: uint32_t
    // cuDNN
    BEL_CUDNN_F32 = 0,  // types of tensors and of arithmetic
    BEL_CUDNN_BF16 = 9, // only of tensors
    BEL_CUDNN_CHANNELS_LAST = 1,
    BEL_CUDNN_CROSS_CORRELATION = 1,
    BEL_CUDNN_MATH_DEFAULT = 0, // math types; the default may use tf32 for f32
    BEL_CUDNN_MATH_TENSOR = 1,
    BEL_CUDNN_MATH_FMA = 3,
    BEL_CUDNN_BAD_PARAM = 2000,     // statuses: these and all up to the next thousand …
    BEL_CUDNN_NOT_SUPPORTED = 3000, // … of which some are the installation's fault
    BEL_CUDNN_INCOMPATIBLE_DRIVER = 3005,
    BEL_CUDNN_SUBLIBRARY_UNAVAILABLE = 3009,
    BEL_CUDNN_HOST_ALLOCATION = 4003,
    BEL_CUDNN_DEVICE_ALLOCATION = 4004,
    BEL_CUDNN_DETERMINISTIC = 1,
    BEL_CUDNN_MOST_CHOICES = 8,
};

// cublasLtMatmulHeuristicResult_t
typedef struct bel_cublas_choice {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int status; // 0: good
    float waves;
    int reserved[4];
} bel_cublas_choice;

// cudnnConvolutionFwdAlgoPerf_t, and the equal structs of the two gradients
typedef struct bel_cudnn_choice {
    int algorithm;
    int status; // 0: good
    float milliseconds;
    size_t workspace_bytes;
    int determinism, math;
    int reserved[3];
} bel_cudnn_choice;

typedef struct bel_cuda_api {
#define FUNCTION(library, name, symbol, arguments) int(*name) arguments;
#include "cuda/api.def"
    int driver; // versions, as BEL_CUDA_OLDEST
    int nvrtc;
    int cublas, cudnn; // after bel_cuda_open_fast (cuda.h)
} bel_cuda_api;

// Opens the driver and NVRTC, once per process; any thread. NOT_FOUND: there is no driver or no GPU
// (out_api is NULL then, too). FAILED_PRECONDITION: NVRTC or a function is missing, or a version is
// too old; says which, and what to install.
bel_status *bel_cuda_open_api(const bel_cuda_api **out_api) BEL_MUST_USE;

// The status for error `error` of a library ("cuBLAS") on `action`; NULL for 0. RESOURCE_EXHAUSTED:
// out of memory. INTERNAL: others, with their number.
bel_status *bel_cuda_library_status(int error, const char *whose, const char *action) BEL_MUST_USE;

// The status for error `error` of the driver on `action` ("copy 12 bytes"); NULL for 0.
// RESOURCE_EXHAUSTED: out of memory. INTERNAL: others, with the driver's name and text. Errors that
// end a context are noted (bel_cuda_note_lost).
bel_status *bel_cuda_status(int error, const char *action) BEL_MUST_USE;

#endif
