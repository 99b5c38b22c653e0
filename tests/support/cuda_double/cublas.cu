// Kernel of the stand-in for cuBLASLt, with one thread per element. Sums are f32, in order.
#include "library_kernel.h"

static float element(const library_matrix *m, long long row, long long column, long long batch,
                     int bf16)
{
    return number_of(m->at, row * m->row_step + column * m->column_step + batch * m->batch_step,
                     bf16);
}

KERNEL(cublasLtMatmul, library_product)
{
    use_workspace(&p.workspace);
    long long count = p.rows * p.columns * p.batches;
    for (long long i = THREAD; i < count; i += THREADS) {
        long long row = i % p.rows, column = i / p.rows % p.columns;
        long long batch = i / p.rows / p.columns;
        float sum = 0;
        for (long long k = 0; k < p.inner; k++)
            sum += rounded(element(&p.a, row, k, batch, p.in_bf16), p.dropped) *
                   rounded(element(&p.b, k, column, batch, p.in_bf16), p.dropped);
        float y = p.alpha * sum;
        if (p.beta != 0) y += p.beta * element(&p.c, row, column, batch, p.out_bf16);
        if (p.bias != 0) y += number_of(p.bias, row, p.out_bf16);
        if (p.relu && y < 0) y = 0;
        set_number(p.d, row + column * p.d_column_step + batch * p.d_batch_step, p.out_bf16, y);
    }
}
