// CUDA as Belfry uses it: the driver API and NVRTC, opened at run time, so that Belfry is built,
// installed and run without them. api.def lists the functions, with their types as published;
// handles of the driver are void *, addresses on a card uint64_t.
//
// The libraries are looked for in the folder that BELFRY_CUDA_PATH names, if it is set, then where
// the loader looks, and in /usr/local/cuda.
#ifndef BELFRY_CUDA_API_H
#define BELFRY_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

#define BEL_CUDA_PATH_VARIABLE "BELFRY_CUDA_PATH"

enum { BEL_CUDA_OLDEST = 12000 }; // of driver and NVRTC: 1000 · major + 10 · minor

// Numbers of the published interface.
enum {
    BEL_CUDA_OUT_OF_MEMORY = 2,
    BEL_CUDA_NO_DEVICE = 100,
    BEL_CUDA_ATTRIBUTE_MULTIPROCESSORS = 16,
    BEL_CUDA_ATTRIBUTE_MAJOR = 75,
    BEL_CUDA_ATTRIBUTE_MINOR = 76,
    BEL_CUDA_STREAM_NON_BLOCKING = 1,
    BEL_CUDA_EVENT_NO_TIMING = 2,
    BEL_CUDA_HOST_PORTABLE = 1,
    BEL_CUDA_CAPTURE_THREAD_LOCAL = 1,
};

typedef struct bel_cuda_api {
#define FUNCTION(library, name, symbol, arguments) int(*name) arguments;
#include "cuda/api.def"
    int driver; // versions, as BEL_CUDA_OLDEST
    int nvrtc;
} bel_cuda_api;

// Opens both libraries, once per process; any thread. NOT_FOUND: there is no driver or no card
// (out_api is NULL then, too). FAILED_PRECONDITION: NVRTC is missing, a function is missing, or a
// version is too old; says which, and what to install.
bel_status *bel_cuda_open_api(const bel_cuda_api **out_api) BEL_MUST_USE;

// The status of an error that the driver returned to `action` ("copy 12 bytes"); NULL for 0.
// RESOURCE_EXHAUSTED: out of memory. INTERNAL: others, with the driver's name and text.
bel_status *bel_cuda_status(int error, const char *action) BEL_MUST_USE;

#endif
