// Kernels of test_cuda_double.c. Some are correct; each of the others has one error.
#include "cuda/kernels/kernel.h"

typedef struct params { int64_t count; float factor, offset; } params;
KERNEL(add, params) {
    const float *a = (const float *)at.in[0], *b = (const float *)at.in[1];
    float *y = (float *)at.out[0];
    for (int64_t i = THREAD; i < p.count; i += THREADS) y[i] = a[i] + b[i];
}
KERNEL(count_up, params) { // y += factor
    float *y = (float *)at.out[0];
    for (int64_t i = THREAD; i < p.count; i += THREADS) y[i] = y[i] * p.factor + p.offset;
}
#define SUM(name, BARRIER)\
KERNEL(name, params) {\
    __shared__ float part[64];\
    const float *x = (const float *)at.in[0];\
    float *y = (float *)at.out[0];\
    (void)p;\
    part[threadIdx.x] = x[THREAD];\
    __syncthreads();\
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {\
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];\
        BARRIER;\
    }\
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];\
}
SUM(block_sum, __syncthreads())
SUM(block_sum_in_haste, (void)0)
KERNEL(all_to_one, params) {
    float *y = (float *)at.out[0];
    if (threadIdx.x == 0) y[0] = p.factor;
}
KERNEL(neighbors, params) { // reads bytes that another block writes
    float *y = (float *)at.out[0];
    if (blockIdx.x == 1) y[0] = 1; else p.factor = y[0];
    y[4 + blockIdx.x] = p.factor;
}
typedef struct __attribute__((aligned(16))) four { float v[4]; } four;
KERNEL(double_fours, params) { // four numbers at a time
    const four *a = (const four *)at.in[0];
    float *y = (float *)at.out[0];
    (void)p;
    for (int j = 0; j < 4; j++) y[4 * THREAD + j] = 2 * a[THREAD].v[j];
}
KERNEL(bytes, params) {
    unsigned char *y = (unsigned char *)at.out[0];
    if (THREAD < p.count) y[THREAD] = (unsigned char)THREAD;
}
KERNEL(least, params) { // minimum, under a lock
    int *y = (int *)at.out[0];
    while (atomicCAS(&y[0], 0, 1) != 0) { }
    if (y[1] == 0 || THREAD + p.count < y[1]) y[1] = (int)(THREAD + p.count);
    __threadfence();
    atomicExch(&y[0], 0);
}
KERNEL(first, params) { // only the first thread writes; all of them continue
    int *y = (int *)at.out[0];
    y[2 + THREAD] = 1;
    if (atomicCAS(&y[0], 0, 1) == 0) y[1] = (int)p.count;
    y[2 + THREAD] += 1;
}
KERNEL(deserters, params) {
    (void)at; (void)p;
    if (threadIdx.x == 0) return;
    __syncthreads();
}
KERNEL(bare_shared, params) {
    __shared__ float part[64];
    if (threadIdx.x > 0) part[threadIdx.x] = 1;
    __syncthreads();
    ((float *)at.out[0])[threadIdx.x] = part[threadIdx.x] * p.factor;
}
static void sort(double *x, int n) {
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && x[k] < x[k - 1]; k--) {
            double t = x[k]; x[k] = x[k - 1]; x[k - 1] = t;
        }
}
static const double table[4] = {3, 1, 4, 1.5};
KERNEL(own_memory, params) { // arrays on the stack, constants, indices in three dimensions
    double mine[4];
    memcpy(mine, table, sizeof mine);
    sort(mine, 4);
    unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    ((float *)at.out[0])[b * blockDim.x * blockDim.y * blockDim.z + t] =
        (float)mine[t % 4] + p.offset;
}
