// ReduceMin, ReduceProd, ReduceL1, ReduceL2 and the gradient of ReduceProd: in double, by one
// thread for each result, in the order of its elements. If results are few and long, a block reads
// for that thread.
#define PLAIN
#include "cuda/kernels/fold.h"
#include "cuda/kernels/numbers.h"

static inline double fold_start(int op)
{
    return op == BEL_CUDA_FOLD_MIN ? (double)INFINITY : op == BEL_CUDA_FOLD_PROD ? 1.0 : 0.0;
}

static inline double fold_one(int op, double sum, double v)
{
    switch (op) {
    case BEL_CUDA_FOLD_MIN: return bel_smaller_of(sum, v);
    case BEL_CUDA_FOLD_PROD: return sum * v;
    case BEL_CUDA_FOLD_L1: return sum + fabs(v);
    default: return sum + v * v;
    }
}

KERNEL(fold, bel_cuda_fold)
{
    for (int64_t i = THREAD; i < p.outputs; i += THREADS) {
        int64_t base = walk_place(&p.kept, 0, i);
        double sum = fold_start(p.op);
        for (int64_t j = 0; j < p.count; j++) {
            int64_t from = base + walk_place(&p.reduced, 0, j);
            sum = fold_one(p.op, sum, number_get(at.in[0], from, p.type));
        }
        number_set(at.out[0], i, p.type, p.op == BEL_CUDA_FOLD_L2 ? sqrt(sum) : sum);
    }
}

KERNEL(fold_long, bel_cuda_fold)
{
    enum { THREADS_HERE = 256 };
    __shared__ double part[THREADS_HERE];
    for (int64_t i = blockIdx.x; i < p.outputs; i += gridDim.x) {
        int64_t base = walk_place(&p.kept, 0, i);
        double sum = fold_start(p.op);
        for (int64_t first = 0; first < p.count; first += THREADS_HERE) {
            int64_t j = first + threadIdx.x, left = p.count - first;
            int n = left < THREADS_HERE ? (int)left : THREADS_HERE;
            if (j < p.count) {
                int64_t from = base + walk_place(&p.reduced, 0, j);
                part[threadIdx.x] = number_get(at.in[0], from, p.type);
            }
            __syncthreads();
            for (int k = 0; threadIdx.x == 0 && k < n; k++)
                sum = fold_one(p.op, sum, part[k]);
            __syncthreads();
        }
        if (threadIdx.x == 0)
            number_set(at.out[0], i, p.type, p.op == BEL_CUDA_FOLD_L2 ? sqrt(sum) : sum);
    }
}

// The product of all other elements: with one zero among them, it is 0 except for that element.
KERNEL(prod_grad, bel_cuda_fold)
{
    for (int64_t i = THREAD; i < p.outputs; i += THREADS) {
        int64_t base = walk_place(&p.kept, 0, i), zeros = 0;
        double product = number_get(at.in[0], i, p.type);
        for (int64_t j = 0; j < p.count; j++) {
            double v = number_get(at.in[1], base + walk_place(&p.reduced, 0, j), p.type);
            zeros += v == 0;
            if (v != 0) product *= v;
        }
        for (int64_t j = 0; j < p.count; j++) {
            int64_t from = base + walk_place(&p.reduced, 0, j);
            double v = number_get(at.in[1], from, p.type);
            double others = v == 0 ? (zeros == 1 ? product : 0) : (zeros == 0 ? product / v : 0);
            number_set(at.out[0], from, p.type, others);
        }
    }
}
