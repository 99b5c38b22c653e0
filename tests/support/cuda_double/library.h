// What the stand-ins for cuBLASLt and cuDNN share: descriptors, the kernels, and launches of them.
// Both are ordinary users of the driver and of NVRTC, and know nothing of the insides of their
// stand-ins; what is wrong with memory, streams and order is found there.
//
// Each of the two is a library of its own that holds library.c, its kernels' source (this_library
// names it) and its own file. Descriptors are never freed, only marked, so that one that was
// destroyed is told from a living one; with CUDA_DOUBLE_LEAKS=1 those that are alive at the end are
// listed, but for handles, and the exit code is 1. Any thread may call anything here.
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

// Defined by each library: what library.c has to know of it.
typedef struct library {
    const char *name, *source;         // the file of its kernels
    const char *kernels[MOST_KERNELS]; // and their names
    const char *kinds[MOST_KINDS];     // of descriptors; 0 is the handle, NULL ends them
} library;

extern const library this_library;

// Ends the process: "cuda double: …" on stderr.
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

// What MAJOR, MINOR and PATCH are answered with; CUDA_DOUBLE_OLD_LIBRARIES=1 makes the first an 8.
// False: there is no such property.
bool version_of(int property, int major, int minor, int *out_value);

// --- Descriptors ---------------------------------------------------------------------------------

// What everything that callers hold begins with.
typedef struct thing {
    const struct library *of; // this_library
    int kind;
    bool alive;
    unsigned number; // counted by kind, from 1
    struct thing *next;
} thing;

void *thing_create(int kind, size_t bytes); // zeros behind the head
// What the caller's pointer means: of that kind and alive, or the process ends.
void *thing_of(const void *pointer, int kind, const char *call);
void thing_destroy(void *pointer, int kind, const char *call);

// --- Launches ------------------------------------------------------------------------------------

// The kernels in one context.
typedef struct loaded {
    void *context, *module;
    void *kernels[MOST_KERNELS];
} loaded;

// Loads into the calling thread's current context; the kernels are compiled first, once per
// process. False: there is no context, or the driver says no.
bool kernels_load(loaded *out);

// Ends the process if another context than that of `l` is current.
void need_context(const loaded *l, const char *call);

// Queues a kernel for `count` elements; returns what the driver does.
int kernel_launch(const loaded *l, int kernel, long long count, void *stream, void *params);

// Ends the process if a stream was destroyed.
void need_stream(void *stream);

// Whether an address is as aligned as that; NULL is.
bool is_aligned(const void *address, size_t alignment);

#endif
