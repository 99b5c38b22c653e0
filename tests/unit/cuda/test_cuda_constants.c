// Checks src/cuda/api.def and api.h against NVIDIA's headers: numbers, structs, and parameters of
// functions. It is built only if those headers are found (tests/CMakeLists.txt); the compiler
// checks most of it.
#include <cublasLt.h>
#include <cuda.h>
#include <cudnn.h>
#include <nvrtc.h>

#include "cuda/api.h"
#include "support/bel_test.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)

// --- Driver
SAME(BEL_CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(BEL_CUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(BEL_CUDA_MEMORY_ERROR, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(BEL_CUDA_LINK_ERROR, CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME(BEL_CUDA_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(BEL_CUDA_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(BEL_CUDA_FIRST_FAULT, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(BEL_CUDA_LAST_FAULT, CUDA_ERROR_LAUNCH_FAILED);
SAME(BEL_CUDA_ATTRIBUTE_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(BEL_CUDA_ATTRIBUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(BEL_CUDA_ATTRIBUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(BEL_CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(BEL_CUDA_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(BEL_CUDA_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(BEL_CUDA_EVENT_TIMED, CU_EVENT_DEFAULT);
SAME(BEL_CUDA_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(BEL_CUDA_HOST_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME(BEL_CUDA_HOST_READ_ONLY, CU_MEMHOSTREGISTER_READ_ONLY);
SAME(BEL_CUDA_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(BEL_CUDA_PROPERTY_MAJOR, MAJOR_VERSION);
SAME(BEL_CUDA_PROPERTY_MINOR, MINOR_VERSION);

// --- cuBLASLt
SAME(BEL_CUBLAS_F32, CUDA_R_32F);
SAME(BEL_CUBLAS_COMPUTE_F32, CUBLAS_COMPUTE_32F);
SAME(BEL_CUBLAS_COMPUTE_BF16, CUBLAS_COMPUTE_32F_FAST_16BF);
SAME(BEL_CUBLAS_COMPUTE_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(BEL_CUBLAS_LAYOUT_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(BEL_CUBLAS_LAYOUT_STEP, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(BEL_CUBLAS_TRANSPOSE_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(BEL_CUBLAS_TRANSPOSE_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(BEL_CUBLAS_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(BEL_CUBLAS_BIAS, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(BEL_CUBLAS_PLAIN, CUBLAS_OP_N);
SAME(BEL_CUBLAS_TRANSPOSED, CUBLAS_OP_T);
SAME(BEL_CUBLAS_THEN_NOTHING, CUBLASLT_EPILOGUE_DEFAULT);
SAME(BEL_CUBLAS_THEN_RELU, CUBLASLT_EPILOGUE_RELU);
SAME(BEL_CUBLAS_THEN_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(BEL_CUBLAS_THEN_BIAS | BEL_CUBLAS_THEN_RELU, CUBLASLT_EPILOGUE_RELU_BIAS);
SAME(BEL_CUBLAS_ALLOCATION, CUBLAS_STATUS_ALLOC_FAILED);
SAME(BEL_CUBLAS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(BEL_CUDNN_BAD_PARAM, CUDNN_STATUS_BAD_PARAM);
SAME(BEL_CUDNN_NOT_SUPPORTED, CUDNN_STATUS_NOT_SUPPORTED);
SAME(BEL_CUDNN_INCOMPATIBLE_DRIVER, CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER);
SAME(BEL_CUDNN_SUBLIBRARY_UNAVAILABLE, CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE);
SAME(BEL_CUDNN_HOST_ALLOCATION, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
SAME(BEL_CUDNN_DEVICE_ALLOCATION, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
SAME(BEL_CUBLAS_MOST_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);

// Further constants of the stand-in (tests/support/cuda_double/cublas.c)
SAME(14, CUDA_R_16BF);
SAME(1, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(7, CUBLAS_STATUS_INVALID_VALUE);
SAME(13, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(15, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(BEL_CUBLAS_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(BEL_CUBLAS_ALIGNMENT_A + 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(BEL_CUBLAS_ALIGNMENT_A + 2, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(BEL_CUBLAS_ALIGNMENT_A + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);

// --- cuDNN
SAME(BEL_CUDNN_F32, CUDNN_DATA_FLOAT);
SAME(BEL_CUDNN_BF16, CUDNN_DATA_BFLOAT16);
SAME(BEL_CUDNN_CHANNELS_LAST, CUDNN_TENSOR_NHWC);
SAME(BEL_CUDNN_CROSS_CORRELATION, CUDNN_CROSS_CORRELATION);
SAME(BEL_CUDNN_MATH_DEFAULT, CUDNN_DEFAULT_MATH);
SAME(BEL_CUDNN_MATH_TENSOR, CUDNN_TENSOR_OP_MATH);
SAME(BEL_CUDNN_MATH_FMA, CUDNN_FMA_MATH);
SAME(BEL_CUDNN_DETERMINISTIC, CUDNN_DETERMINISTIC);
_Static_assert((int)CUDNN_CONVOLUTION_FWD_ALGO_COUNT <= BEL_CUDNN_MOST_CHOICES &&
                   (int)CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT <= BEL_CUDNN_MOST_CHOICES &&
                   (int)CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT <= BEL_CUDNN_MOST_CHOICES,
               "all algorithms find room");

// Further constants of the stand-in (tests/support/cuda_double/cudnn.c)
SAME(0, CUDNN_TENSOR_NCHW);
SAME(0, CUDNN_NON_DETERMINISTIC);
SAME(1001, CUDNN_STATUS_NOT_INITIALIZED);
SAME(2000, CUDNN_STATUS_BAD_PARAM);
SAME(3000, CUDNN_STATUS_NOT_SUPPORTED);
SAME(5001, CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);

// --- Structs
#define FIELD(ours, field, theirs, their_field)                                                    \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, their_field) &&                       \
                       sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->their_field),           \
                   #ours "." #field)
_Static_assert(sizeof(bel_cublas_choice) == sizeof(cublasLtMatmulHeuristicResult_t), "choice");
FIELD(bel_cublas_choice, algorithm, cublasLtMatmulHeuristicResult_t, algo);
FIELD(bel_cublas_choice, workspace_bytes, cublasLtMatmulHeuristicResult_t, workspaceSize);
FIELD(bel_cublas_choice, status, cublasLtMatmulHeuristicResult_t, state);
FIELD(bel_cublas_choice, waves, cublasLtMatmulHeuristicResult_t, wavesCount);
FIELD(bel_cublas_choice, reserved, cublasLtMatmulHeuristicResult_t, reserved);

#define SAME_CHOICE(theirs)                                                                        \
    _Static_assert(sizeof(bel_cudnn_choice) == sizeof(theirs), #theirs);                           \
    FIELD(bel_cudnn_choice, algorithm, theirs, algo);                                              \
    FIELD(bel_cudnn_choice, status, theirs, status);                                               \
    FIELD(bel_cudnn_choice, milliseconds, theirs, time);                                           \
    FIELD(bel_cudnn_choice, workspace_bytes, theirs, memory);                                      \
    FIELD(bel_cudnn_choice, determinism, theirs, determinism);                                     \
    FIELD(bel_cudnn_choice, math, theirs, mathType);                                               \
    FIELD(bel_cudnn_choice, reserved, theirs, reserved)
SAME_CHOICE(cudnnConvolutionFwdAlgoPerf_t);
SAME_CHOICE(cudnnConvolutionBwdDataAlgoPerf_t);
SAME_CHOICE(cudnnConvolutionBwdFilterAlgoPerf_t);

// --- Functions
// gcc rejects some casts between function types (-Wcast-function-type, an error here). It accepts
// types with equally many parameters that have equal widths or are both pointers. clang accepts all
// casts that are not evaluated. CMake turns the lines of api.def into CHECK(name, symbol). No
// function is called, so none is linked.
#define CHECK(name, symbol)                                                                        \
    _Static_assert(sizeof((__typeof__(((bel_cuda_api *)0)->name))symbol) == sizeof(void *), #name);
#include "cuda_functions.def"
#undef CHECK

static void test_all_functions_are_checked(void **state)
{
    (void)state;
    static const char *const checked[] = {
#define CHECK(name, symbol) #symbol,
#include "cuda_functions.def"
    };
    static const char *const all[] = {
#define FUNCTION(library, name, symbol, arguments) symbol,
#include "cuda/api.def"
    };
    assert_int_equal(sizeof checked, sizeof all);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_string_equal(checked[i], all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_functions_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
