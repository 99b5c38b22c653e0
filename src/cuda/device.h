// GPU device, and declarations shared by the files of this folder. The calling thread must have
// called bel_cuda_enter, which makes the GPU's context current.
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
    int number; // the driver's number
    int multiprocessors;
    void *context;
    atomic_size_t taken;   // bytes of memory that programs use
    pthread_mutex_t mutex; // for the list
    bel_cuda_module *modules;
    // Handles of cuBLASLt, for any thread, and of cuDNN, for the holder of the mutex, which is
    // recursive; NULL: not yet created (bel_cuda_libraries).
    pthread_mutex_t libraries_mutex;
    void *cublas, *cudnn;
    void *cudnn_stream; // last stream that cuDNN's handle got; NULL: none
} bel_cuda_device;

// Marks the GPU as lost. `status` is the error that showed it.
static inline void bel_cuda_lose(bel_cuda_device *device, const bel_status *status)
{
    // First, as a thread that sees `lost` may ask for the reason.
    bel_cuda_note_lost(device->device.name, bel_status_message(status));
    atomic_store(&device->device.lost, true);
}

// Error of a wait on a GPU when it, or another one, is lost already.
static inline bel_status *bel_cuda_lost(const bel_cuda_device *device)
{
    return BEL_ERR(BEL_INTERNAL, "%s is not used any more since a GPU is lost: %s",
                   device->device.name, bel_cuda_why_lost());
}

static inline bel_status *bel_cuda_enter(const bel_cuda_device *device)
{
    if (bel_device_is_lost(&device->device)) return bel_cuda_lost(device);
    return bel_cuda_status(device->api->context_set(device->context), "use a GPU's context");
}

// --- Kernels (compile.c) -------------------------------------------------------------------------

// Function `kernel` of a source, which is compiled on first use and cached in memory and on disk.
// `name` is the source's name in messages. INTERNAL: it cannot be compiled; has NVRTC's log.
bel_status *bel_cuda_kernel(bel_cuda_device *device, const char *name, const char *source,
                            const char *kernel, void **out_function) BEL_MUST_USE;

// Only the NVRTC step, for a compute capability such as 90, so that tests without a GPU can check
// it.
bel_status *bel_cuda_compile(const bel_cuda_api *api, const char *name, const char *source,
                             int capability, char **out_image,
                             size_t *out_bytes) BEL_MUST_USE; // free with bel_free

// --- Calls (launch_prepare.c, launch.c) ----------------------------------------------------------

enum { BEL_CUDA_MAX_LAUNCHES = 8, BEL_CUDA_BLOCK = 256 };

// Queues a library's part of a call, with the params that it was added with.
typedef bel_status *bel_cuda_library_fn(bel_cuda_device *device, void *stream,
                                        const bel_cuda_operands *operands, const void *params);

typedef struct bel_cuda_launch {
    void *function;
    unsigned blocks, threads;
    bel_cuda_library_fn *library; // instead of a kernel
    const void *params;           // second argument of the kernel
} bel_cuda_launch;

// bel_kernel_call.params on a GPU: launches that run in order. (Collectives have no launches and
// keep the CPU's params.)
typedef struct bel_cuda_call {
    int count;
    bel_cuda_launch launches[BEL_CUDA_MAX_LAUNCHES];
    const char *random; // purpose of the key of random numbers (base/rng.h); NULL: it draws none
} bel_cuda_call;

// Input of a family that fills in a call. `call->params` is the result of the CPU's prepare
// function, so attributes are read in one place. Its workspace_bytes is 0; the family sets it.
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

// Only looks the kernel up, for a library_fn that launches it.
bel_status *bel_cuda_kernel_of(const bel_cuda_build *build, const char *source, const char *kernel,
                               void **out_function) BEL_MUST_USE;

// The same for a generated source, in blocks of BEL_CUDA_BLOCK threads.
bel_status *bel_cuda_add_text(bel_cuda_build *build, const char *name, const char *text,
                              const char *kernel, int64_t blocks, const void *params,
                              size_t params_bytes) BEL_MUST_USE;

// Adds a library's part of a call.
void bel_cuda_add_library(bel_cuda_build *build, bel_cuda_library_fn *library, const void *params,
                          size_t params_bytes);

// Number of blocks for `elements`: one thread each, up to a number that fills any GPU. Kernels step
// from THREAD by THREADS.
int64_t bel_cuda_blocks(int64_t elements);

bel_status *bel_cuda_prepare(bel_device *device, const bel_prepare *prepare, bel_kernel_call *call);

// Families, each in a separate file.
#define FAMILY(id, family) bel_cuda_prepare_fn bel_cuda_prepare_##family;
#include "cuda/families.def"
#undef FAMILY

// --- Fast arithmetic (library_handles.c, library_cublas.c, library_cudnn.c, library_attention.c) -

// Start of a library's workspace, `offset` bytes into the call's, which is aligned to
// BEL_PLAN_ALIGNMENT. NULL: the call has none.
enum { BEL_CUDA_WORK_ALIGNMENT = 256 };
static inline char *bel_cuda_work_at(const bel_cuda_operands *operands, size_t offset)
{
    if (operands->work == NULL) return NULL;
    uintptr_t at = (uintptr_t)operands->work + offset;
    size_t rest = at % BEL_CUDA_WORK_ALIGNMENT;
    return (char *)operands->work + offset + (rest == 0 ? 0 : BEL_CUDA_WORK_ALIGNMENT - rest);
}

// Reserves room for `elements` in a call's workspace at *end. Returns its offset and moves *end to
// the next multiple of the alignment.
static inline size_t bel_cuda_add_work(size_t *end, int64_t elements, size_t size)
{
    size_t at = *end, all = at + (size_t)elements * size;
    *end = (all + BEL_CUDA_WORK_ALIGNMENT - 1) / BEL_CUDA_WORK_ALIGNMENT * BEL_CUDA_WORK_ALIGNMENT;
    return at;
}

// Whether the call may differ from the CPU's bits: it is f32, and fast arithmetic was asked for.
bool bel_cuda_is_fast(const bel_cuda_build *build);

// Opens the libraries and creates the device's handles. Errors: those of bel_cuda_open_fast; the
// libraries'.
bel_status *bel_cuda_libraries(bel_cuda_device *device) BEL_MUST_USE;

// Call it before a stream is destroyed: cuDNN's handle uses its current stream when it gets another
// one.
void bel_cuda_forget_stream(bel_cuda_device *device, const void *stream);

// Take a call if the library can compute it, and set *out_taken; else nothing was added. The same
// GPU with the same library chooses the same algorithm, and no chosen algorithm adds in a random
// order.
bel_status *bel_cuda_try_cublas(bel_cuda_build *build, bool *out_taken) BEL_MUST_USE;
bel_status *bel_cuda_try_cudnn(bel_cuda_build *build, bool *out_taken) BEL_MUST_USE;
struct bel_cuda_attention; // kernels/attention.h: as read by launch_attention.c
bel_status *bel_cuda_try_attention(bel_cuda_build *build, const struct bel_cuda_attention *shape,
                                   bool *out_taken) BEL_MUST_USE;

// --- Operands as bfloat16 (bf16_operands.c) ------------------------------------------------------

bel_status *bel_cuda_takes_bf16(bel_device *device, const bel_prepare *prepare,
                                bel_kernel_call *call, bel_bf16_operands *out_operands);

// Error if an operand is stored as bf16. For kernels that read f32, when a library does not take
// the call although it said that it accepts bf16.
bel_status *bel_cuda_refuse_bf16(const bel_kernel_call *call) BEL_MUST_USE;

// The families' answers, for a call that was built as for preparing it.
bel_status *bel_cuda_cublas_bf16(bel_cuda_build *build, bel_bf16_operands *out) BEL_MUST_USE;
bel_status *bel_cuda_cudnn_bf16(bel_cuda_build *build, bel_bf16_operands *out) BEL_MUST_USE;
bool bel_cuda_reduces_columns(const bel_kernel_call *call); // the first dimensions of two
void bel_cuda_elementwise_bf16(const bel_kernel_call *call, bel_bf16_operands *out);

// --- Running (graph_bind.c, graph_executor.c, graph_profile.c) -----------------------------------

// Waits until the GPU has done all work queued on a stream, with the caller's event, at most for
// the device's patience, since a hanging GPU does not report it. On any error the GPU counts as
// lost (bel_device_is_lost). DEADLINE_EXCEEDED; the driver's errors, for `action`.
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
