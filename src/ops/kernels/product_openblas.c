// Matrix products by OpenBLAS: one call each, so that a product's bits depend only on its shape,
// the library's version and its core type. Start values are copied to y first, as the library adds
// to y. The caller (../matmul.c) makes tiles, which depend only on shapes, for both
// implementations.
#include <limits.h>
#include <string.h>

#include "base/openblas.h"
#include "ops/kernels/product.h"

static bel_openblas_matrix matrix(const float *x, int64_t row, int64_t column, int64_t columns)
{
    bool transposed = column != 1;
    int64_t step = transposed ? column : row;
    // The step of a single row or column is arbitrary, but the library requires at least this.
    if (!transposed && step < columns) step = columns;
    return (bel_openblas_matrix){x, (int)step, transposed};
}

bool bel_product_fits_openblas(int64_t m, int64_t n, int64_t k)
{
    return m <= INT_MAX && n <= INT_MAX && k <= INT_MAX;
}

void bel_product_run_openblas(const bel_product *product)
{
    const bel_product *x = product;
    for (int64_t i = 0; i < x->m && x->start != x->y; i++) {
        const float *start = x->start;
        float *y = x->y + i * x->y_row;
        if (start == NULL) {
            if (x->k == 0) memset(y, 0, (size_t)x->n * sizeof *y);
            continue;
        }
        memcpy(y, start + (x->start_is_row ? 0 : i * x->y_row), (size_t)x->n * sizeof *y);
    }
    if (x->m == 0 || x->n == 0 || x->k == 0) return;
    const bel_openblas_matrix a = matrix(x->a, x->a_row, x->a_column, x->k);
    const bel_openblas_matrix b = matrix(x->b, x->b_row, x->b_column, x->n);
    bel_openblas_multiply((int)x->m, (int)x->n, (int)x->k, &a, &b, x->start == NULL ? 0.0f : 1.0f,
                          x->y, (int)x->y_row);
}
