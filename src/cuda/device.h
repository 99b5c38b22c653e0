// A card, and what the files of this room share. Everything here is for threads that have called
// bel_cuda_enter, which makes the card's context theirs.
#ifndef BELFRY_CUDA_DEVICE_H
#define BELFRY_CUDA_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/hash.h"
#include "cuda/api.h"
#include "cuda/cuda.h"
#include "cuda/kernels/params.h"
#include "runtime/device.h"

// Kernels that were compiled together.
typedef struct bel_cuda_module {
    struct bel_cuda_module *next;
    bel_hash128 source;
    void *handle;
} bel_cuda_module;

typedef struct bel_cuda_device {
    bel_device device; // first: a bel_device is cast to this
    const bel_cuda_api *api;
    bel_cuda_card card;
    int number; // the driver's
    int multiprocessors;
    void *context;
    atomic_size_t taken;   // bytes of memory that programs have
    pthread_mutex_t mutex; // of the list
    bel_cuda_module *modules;
    // Handles of cuBLASLt, for any thread, and of cuDNN, for whoever holds the mutex, which is
    // recursive; NULL: not yet (bel_cuda_libraries).
    pthread_mutex_t libraries_mutex;
    void *cublas, *cudnn;
    void *cudnn_stream; // the one that cuDNN's handle was given last; NULL: none
} bel_cuda_device;

// `status` is what has shown that the card is lost.
static inline void bel_cuda_lose(bel_cuda_device *device, const bel_status *status)
{
    // First: who sees that it is lost may ask why.
    bel_cuda_note_lost(device->device.name, bel_status_message(status));
    atomic_store(&device->device.lost, true);
}

// Another wait has found that the card is lost, or one with which it is.
static inline bel_status *bel_cuda_lost(const bel_cuda_device *device)
{
    return BEL_ERR(BEL_INTERNAL, "%s is not used any more since a GPU is lost: %s",
                   device->device.name, bel_cuda_why_lost());
}

static inline bel_status *bel_cuda_enter(const bel_cuda_device *device)
{
    if (bel_device_is_lost(&device->device)) return bel_cuda_lost(device);
    return bel_cuda_status(device->api->context_set(device->context), "use a card's context");
}

// --- Kernels (compile.c) -------------------------------------------------------------------------

// Function `kernel` of a source, which is compiled on first sight and kept, in memory and on disk.
// `name` says in messages which source it is. INTERNAL: it cannot be compiled; has NVRTC's log.
bel_status *bel_cuda_kernel(bel_cuda_device *device, const char *name, const char *source,
                            const char *kernel, void **out_function) BEL_MUST_USE;

// NVRTC alone, for a compute capability such as 90: what a test without a card can look at.
bel_status *bel_cuda_compile(const bel_cuda_api *api, const char *name, const char *source,
                             int capability, char **out_image,
                             size_t *out_bytes) BEL_MUST_USE; // free with bel_free

// --- Calls (prepare.c, launch.c) -----------------------------------------------------------------

enum { BEL_CUDA_MAX_LAUNCHES = 8, BEL_CUDA_BLOCK = 256 };

// Queues what a library does of a call. The params are those that it was added with.
typedef bel_status *bel_cuda_library_fn(bel_cuda_device *device, void *stream,
                                        const bel_cuda_operands *operands, const void *params);

typedef struct bel_cuda_launch {
    void *function;
    unsigned blocks, threads;
    bel_cuda_library_fn *library; // in place of a kernel
    const void *params;           // second argument of the kernel
} bel_cuda_launch;

// What bel_kernel_call.params is on a card: launches, one after another. (Collectives, which have
// none, keep their own.)
typedef struct bel_cuda_call {
    int count;
    bel_cuda_launch launches[BEL_CUDA_MAX_LAUNCHES];
    const char *random; // purpose of the key of random numbers (base/rng.h); NULL: it draws none
} bel_cuda_call;

// What a family of operations is given to fill in a call. `call->params` is what the CPU's prepare
// function has made, so that attributes are read in one place; its workspace_bytes is 0 and the
// family's to set.
typedef struct bel_cuda_build {
    bel_cuda_device *device;
    const bel_prepare *prepare;
    bel_kernel_call *call;
    bel_cuda_call *made;
} bel_cuda_build;
typedef bel_status *bel_cuda_prepare_fn(bel_cuda_build *build);

// Adds a launch of `kernel` of cuda/kernels/`source`, with a copy of the params.
bel_status *bel_cuda_add(bel_cuda_build *build, const char *source, const char *kernel,
                         int64_t blocks, int threads, const void *params,
                         size_t params_bytes) BEL_MUST_USE;

// The kernel alone, for a library_fn that launches it.
bel_status *bel_cuda_kernel_of(const bel_cuda_build *build, const char *source, const char *kernel,
                               void **out_function) BEL_MUST_USE;

// The same of a source that was generated, for `elements` of which each thread takes some.
bel_status *bel_cuda_add_text(bel_cuda_build *build, const char *name, const char *text,
                              const char *kernel, int64_t blocks, const void *params,
                              size_t params_bytes) BEL_MUST_USE;

// Adds what a library does.
void bel_cuda_add_library(bel_cuda_build *build, bel_cuda_library_fn *library, const void *params,
                          size_t params_bytes);

// Blocks for so many elements, one for each thread up to a number that fills any card; kernels go
// on from THREAD by THREADS.
int64_t bel_cuda_blocks(int64_t elements);

bel_status *bel_cuda_prepare(bel_device *device, const bel_prepare *prepare, bel_kernel_call *call);

// Families, each in a file of its own.
#define FAMILY(id, family) bel_cuda_prepare_fn bel_cuda_prepare_##family;
#include "cuda/families.def"
#undef FAMILY

// --- Fast arithmetic (fast.c, cublas.c, cudnn.c, attention_library.c) ----------------------------

// Where a library's workspace begins behind `offset` bytes of the call's, which begins at a
// multiple of BEL_PLAN_ALIGNMENT. NULL: the call has none.
enum { BEL_CUDA_WORK_ALIGNMENT = 256 };
static inline char *bel_cuda_work_at(const bel_cuda_operands *operands, size_t offset)
{
    if (operands->work == NULL) return NULL;
    uintptr_t at = (uintptr_t)operands->work + offset;
    size_t rest = at % BEL_CUDA_WORK_ALIGNMENT;
    return (char *)operands->work + offset + (rest == 0 ? 0 : BEL_CUDA_WORK_ALIGNMENT - rest);
}

// Room in a call's workspace behind *end, of so many elements; returns where it begins, and *end
// moves to the next multiple of the alignment.
static inline size_t bel_cuda_add_work(size_t *end, int64_t elements, size_t size)
{
    size_t at = *end, all = at + (size_t)elements * size;
    *end = (all + BEL_CUDA_WORK_ALIGNMENT - 1) / BEL_CUDA_WORK_ALIGNMENT * BEL_CUDA_WORK_ALIGNMENT;
    return at;
}

// Whether the call may be computed otherwise than the CPU does it: in f32, where fast arithmetic
// was asked for.
bool bel_cuda_is_fast(const bel_cuda_build *build);

// Opens the libraries and makes the device's handles. Errors: those of bel_cuda_open_fast; what the
// libraries say.
bel_status *bel_cuda_libraries(bel_cuda_device *device) BEL_MUST_USE;

// Before a stream is destroyed: cuDNN's handle looks at the stream that it has when it is given
// another one.
void bel_cuda_forget_stream(bel_cuda_device *device, const void *stream);

// These take a call over where the library can compute it, and say so; else nothing was added. The
// same card with the same library chooses the same algorithm, none of which adds in an order of
// chance.
bel_status *bel_cuda_try_cublas(bel_cuda_build *build, bool *out_taken) BEL_MUST_USE;
bel_status *bel_cuda_try_cudnn(bel_cuda_build *build, bool *out_taken) BEL_MUST_USE;
struct bel_cuda_attention; // kernels/attention.h: as attention.c has read the call
bel_status *bel_cuda_try_attention(bel_cuda_build *build, const struct bel_cuda_attention *shape,
                                   bool *out_taken) BEL_MUST_USE;

// --- Operands as bfloat16 (halves.c) -------------------------------------------------------------

bel_status *bel_cuda_takes_halves(bel_device *device, const bel_prepare *prepare,
                                  bel_kernel_call *call, bel_half_operands *out_operands);

// An error where an operand lies as bfloat16: for kernels that read f32, which a library that had
// said that it would take the call is in front of.
bel_status *bel_cuda_refuse_halves(const bel_kernel_call *call) BEL_MUST_USE;

// What families say of a call that was built as for preparing it.
bel_status *bel_cuda_cublas_halves(bel_cuda_build *build, bel_half_operands *out) BEL_MUST_USE;
bel_status *bel_cuda_cudnn_halves(bel_cuda_build *build, bel_half_operands *out) BEL_MUST_USE;
bool bel_cuda_reduces_columns(const bel_kernel_call *call); // the first dimensions of two
void bel_cuda_elementwise_halves(const bel_kernel_call *call, bel_half_operands *out);

// --- Running (bind.c, executor.c, profile.c) -----------------------------------------------------

// Until the card has come to the event, or for as long as the device's patience lasts: a card that
// hangs does not say so. DEADLINE_EXCEEDED; the driver's errors, `action` is what they are of.
bel_status *bel_cuda_await(const bel_cuda_device *device, void *event,
                           const char *action) BEL_MUST_USE;

// The same for all that is queued on a stream, with an event of the caller's. Where that has not
// ended well the card is lost (bel_device_is_lost).
bel_status *bel_cuda_await_stream(bel_cuda_device *device, void *stream, void *event,
                                  const char *action) BEL_MUST_USE;

bel_status *bel_cuda_bind(bel_device *device, bel_instance *instance);
void bel_cuda_unbind(bel_instance *instance);
bel_status *bel_cuda_run(bel_instance *instance, int first, int end, int next, bel_team *team,
                         const bel_instance_run_args *args);
bel_status *bel_cuda_profile(bel_instance *instance, int runs, int64_t *out_ns,
                             int64_t *out_all_ns);
void *bel_cuda_result(const bel_instance *instance, int output);
void *bel_cuda_exchanged(const bel_instance *instance, int call, bool output);

#endif
