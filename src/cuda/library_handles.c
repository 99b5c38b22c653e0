// Shared parts of the two libraries of fast arithmetic: their use, and their handles. A handle of
// cuDNN takes some hundred milliseconds to create and belongs to one thread at a time, so towers of
// a GPU share one, under a mutex. It is held while work is queued, not while the GPU works.
#include "cuda/device.h"

bool bel_cuda_is_fast(const bel_cuda_build *build)
{
    const bel_kernel_call *call = build->call;
    if (build->prepare->gpu_math == BEL_GPU_MATH_EXACT || build->prepare->reference) return false;
    return call->inputs[0].dtype == BEL_DTYPE_F32; // as are the other operands except lengths
}

static bel_status *make_handles(bel_cuda_device *device)
{
    BEL_TRY(bel_cuda_open_fast(NULL));
    BEL_TRY(bel_cuda_enter(device));
    if (device->cublas == NULL)
        BEL_TRY(bel_cuda_library_status(device->api->cublas_create(&device->cublas), "cuBLAS",
                                        "begin"));
    if (device->cudnn == NULL)
        BEL_TRY(
            bel_cuda_library_status(device->api->cudnn_create(&device->cudnn), "cuDNN", "begin"));
    return NULL;
}

bel_status *bel_cuda_libraries(bel_cuda_device *device)
{
    pthread_mutex_lock(&device->libraries_mutex);
    bel_status *status = make_handles(device);
    pthread_mutex_unlock(&device->libraries_mutex);
    return status;
}

void bel_cuda_forget_stream(bel_cuda_device *device, const void *stream)
{
    pthread_mutex_lock(&device->libraries_mutex);
    if (device->cudnn_stream == stream && device->cudnn != NULL) {
        device->cudnn_stream = NULL;
        device->api->cudnn_stream(device->cudnn, NULL); // its next user reports an error
    }
    pthread_mutex_unlock(&device->libraries_mutex);
}
