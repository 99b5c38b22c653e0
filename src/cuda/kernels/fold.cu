// ReduceMin, ReduceProd, ReduceL1, ReduceL2 and the gradient of ReduceProd: in double, each
// result's elements one after another, by one thread.
#define PLAIN
#include "cuda/kernels/fold.h"
#include "cuda/kernels/numbers.h"

KERNEL(fold, bel_cuda_fold)
{
    for (int64_t i = THREAD; i < p.outputs; i += THREADS) {
        int64_t base = walk_place(&p.kept, 0, i);
        double sum = p.op == BEL_CUDA_FOLD_MIN    ? (double)INFINITY
                     : p.op == BEL_CUDA_FOLD_PROD ? 1.0
                                                  : 0.0;
        for (int64_t j = 0; j < p.count; j++) {
            double v = number_get(at.in[0], base + walk_place(&p.reduced, 0, j), p.type);
            switch (p.op) {
            case BEL_CUDA_FOLD_MIN: sum = bel_smaller_of(sum, v); break;
            case BEL_CUDA_FOLD_PROD: sum *= v; break;
            case BEL_CUDA_FOLD_L1: sum += fabs(v); break;
            default: sum += v * v;
            }
        }
        number_set(at.out[0], i, p.type, p.op == BEL_CUDA_FOLD_L2 ? sqrt(sum) : sum);
    }
}

// The product of all other elements: with a zero among them it is 0, but for that element.
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
