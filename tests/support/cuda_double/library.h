// Shared part of the stand-ins for cuBLASLt and cuDNN: descriptors, kernels and their launches.
// Both are ordinary users of the driver and of NVRTC, and do not know the insides of their
// stand-ins. Those find errors of memory, streams and order.
//
// Each of the two is a separate library of library.c, its kernels' source (this_library names it)
// and its main file. Descriptors are never freed, only marked, so that a destroyed one is
// recognized. With CUDA_DOUBLE_LEAKS=1 the descriptors that are alive at the end, except handles,
// are listed, and the exit code is 1. Any thread may call any function here.
#ifndef CUDA_DOUBLE_LIBRARY_H
#define CUDA_DOUBLE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "library_params.h"

#define API(name, arguments)                                                                       \
    __attribute__((visibility("default"))) int name arguments;                                     \
    int name arguments

enum { MOST_KERNELS = 3, MOST_KINDS = 8, WORKSPACE_ALIGNMENT = 256 };

// Each library defines one for library.c.
typedef struct library {
    const char *name, *source;         // source: the file of its kernels
    const char *kernels[MOST_KERNELS]; // names of the kernels
    const char *kinds[MOST_KINDS];     // descriptors' kinds; 0 is the handle, NULL ends them
} library;

extern const library this_library;

// Ends the process: "cuda double: …" on stderr.
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Answers MAJOR, MINOR and PATCH. CUDA_DOUBLE_OLD_LIBRARIES=1 makes MAJOR 8. Returns false for
// another property.
bool version_of(int property, int major, int minor, int *out_value);

// --- Descriptors ---------------------------------------------------------------------------------

// Head of every descriptor that callers hold.
typedef struct thing {
    const struct library *of; // this_library
    int kind;
    bool alive;
    unsigned number; // counted by kind, from 1
    struct thing *next;
} thing;

void *thing_create(int kind, size_t bytes); // zeroed after the head
// Returns the caller's descriptor. Ends the process unless it has that kind and is alive.
void *thing_of(const void *pointer, int kind, const char *call);
void thing_destroy(void *pointer, int kind, const char *call);

// --- Launches ------------------------------------------------------------------------------------

// The kernels, loaded in one context.
typedef struct loaded {
    void *context, *module;
    void *kernels[MOST_KERNELS];
} loaded;

// Loads into the calling thread's current context. The first call in a process compiles the
// kernels. Returns false without a context, or if the driver fails.
bool kernels_load(loaded *out);

// Ends the process if another context than that of `l` is current.
void need_context(const loaded *l, const char *call);

// Queues a kernel for `count` elements; returns the driver's error code.
int kernel_launch(const loaded *l, int kernel, long long count, void *stream, void *params);

// Ends the process if a stream was destroyed.
void need_stream(void *stream);

// Whether the address is a multiple of `alignment`. NULL is.
bool is_aligned(const void *address, size_t alignment);

#endif
