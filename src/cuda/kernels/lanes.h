// The sums of rows.h, for kernels. Every thread of the block must call these functions, also one
// without a row.
#ifndef BELFRY_CUDA_KERNELS_LANES_H
#define BELFRY_CUDA_KERNELS_LANES_H

#include "cuda/kernels/kernel.h"
#include "cuda/kernels/rows.h"

#define LANE ((int)threadIdx.x % BEL_CUDA_LANES)
#define ROW ((int)threadIdx.x / BEL_CUDA_LANES) // in the block

typedef float lanes_of_rows[BEL_CUDA_ROWS][BEL_CUDA_LANES];

// Sum of the lanes of each row, returned to all its threads. `shared` is the block's.
static inline float add_lanes(lanes_of_rows shared, float mine)
{
    __syncthreads(); // the previous content has been read
    shared[ROW][LANE] = mine;
    __syncthreads();
    for (int half = BEL_CUDA_LANES / 2; half > 0; half /= 2) {
        if (LANE < half) shared[ROW][LANE] += shared[ROW][LANE + half];
        __syncthreads();
    }
    return shared[ROW][0];
}

static inline float larger(float a, float b)
{
    return a > b ? a : b;
}

// The largest of the lanes, compared in order.
static inline float largest_lane(lanes_of_rows shared, float mine)
{
    __syncthreads();
    shared[ROW][LANE] = mine;
    __syncthreads();
    float most = shared[ROW][0];
    for (int l = 1; l < BEL_CUDA_LANES; l++)
        most = larger(shared[ROW][l], most);
    return most;
}

// The largest of n elements; 0 if n is 0.
static inline float largest_of(lanes_of_rows shared, const float *x, int64_t n)
{
    float most = n > 0 ? x[0] : 0.0f;
    for (int64_t i = LANE; i < n; i += BEL_CUDA_LANES)
        most = larger(x[i], most);
    return largest_lane(shared, most);
}

static inline float sum_of(lanes_of_rows shared, const float *x, int64_t n)
{
    float sum = 0.0f;
    for (int64_t i = LANE; i < n; i += BEL_CUDA_LANES)
        sum += x[i];
    return add_lanes(shared, sum);
}

#endif
