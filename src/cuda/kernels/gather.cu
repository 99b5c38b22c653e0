// Gather, GatherElements and their gradients. Forward, a thread moves an element. Backward, a
// thread makes an element of dx: it adds the elements gathered from it in the order of the indices,
// which is the CPU's. For GatherGrad the indices are sorted first, so that those of a thread's row
// are neighbors.
#include "cuda/kernels/gather.h"
#include "cuda/kernels/numbers.h"

static inline bool good_index(const bel_cuda_operands *at, int64_t index, int64_t rows, bool report)
{
    bool good = index >= 0 && index < rows;
    if (!good && report) report_bad(at, index, 0, rows);
    return good;
}

KERNEL(gather, bel_cuda_gather)
{
    const int64_t *indices = (const int64_t *)at.in[1];
    for (int64_t e = THREAD; e < p.outer * p.count * p.width; e += THREADS) {
        int64_t i = e / p.width, index = indices[i % p.count];
        int64_t from = (i / p.count * p.rows + index) * p.width + e % p.width;
        bool good = good_index(&at, index, p.rows, true);
        bits_set(at.out[0], e, p.size, good ? bits_get(at.in[0], from, p.size) : 0);
    }
}

KERNEL(gather_elements, bel_cuda_gather)
{
    const int64_t *indices = (const int64_t *)at.in[1];
    for (int64_t e = THREAD; e < p.count; e += THREADS) {
        int64_t outer = e / p.width / p.lines, index = indices[e];
        int64_t from = (outer * p.rows + index) * p.width + e % p.width;
        bool good = good_index(&at, index, p.rows, true);
        bits_set(at.out[0], e, p.size, good ? bits_get(at.in[0], from, p.size) : 0);
    }
}

KERNEL(gather_elements_grad, bel_cuda_gather)
{
    const int64_t *indices = (const int64_t *)at.in[1];
    for (int64_t e = THREAD; e < p.outer * p.rows * p.width; e += THREADS) {
        int64_t row = e / p.width % p.rows, outer = e / p.width / p.rows;
        double sum = 0;
        for (int64_t line = 0; line < p.lines; line++) {
            int64_t from = (outer * p.lines + line) * p.width + e % p.width;
            good_index(&at, indices[from], p.rows, row == 0);
            if (indices[from] == row)
                sum = number_rounded(sum + number_get(at.in[0], from, p.type), p.type);
        }
        number_set(at.out[0], e, p.type, sum);
    }
}

// --- GatherGrad ----------------------------------------------------------------------------------

// Row numbers and their positions, after `pass` passes.
static inline int32_t *sorted_rows(void *work, int64_t count, int pass)
{
    return (int32_t *)work + (pass % 2 == 0 ? 0 : 2 * count);
}

// Stable radix sort by one block, from the lowest bits on. Each thread has a range of the numbers,
// and a count of each digit in it. Its numbers with a digit go after all smaller digits, and after
// the same digit in earlier ranges.
KERNEL(gather_sort, bel_cuda_gather)
{
    enum { THREADS_HERE = BEL_CUDA_SORT_THREADS, DIGITS = 1 << BEL_CUDA_SORT_BITS };
    __shared__ int32_t counts[DIGITS * THREADS_HERE], sums[THREADS_HERE];
    const int64_t *indices = (const int64_t *)at.in[1];
    int me = (int)threadIdx.x;
    int64_t each = (p.count + THREADS_HERE - 1) / THREADS_HERE, first = me * each;
    int64_t end = first + each < p.count ? first + each : p.count;
    int32_t *rows = sorted_rows(at.work, p.count, 0);
    for (int64_t i = first; i < end; i++) { // an index out of range goes after the last row
        bool good = good_index(&at, indices[i], p.rows, true);
        rows[i] = good ? (int32_t)indices[i] : (int32_t)p.rows;
        rows[p.count + i] = (int32_t)i;
    }
    for (int pass = 0; pass < p.passes; pass++) {
        const int32_t *from = sorted_rows(at.work, p.count, pass);
        int32_t *to = sorted_rows(at.work, p.count, pass + 1);
        int shift = pass * BEL_CUDA_SORT_BITS;
        for (int digit = 0; digit < DIGITS; digit++)
            counts[digit * THREADS_HERE + me] = 0;
        for (int64_t i = first; i < end; i++)
            counts[(from[i] >> shift & (DIGITS - 1)) * THREADS_HERE + me]++;
        __syncthreads();
        int32_t *mine = counts + me * DIGITS, sum = 0; // counts that are neighbors
        for (int k = 0; k < DIGITS; k++)
            sum += mine[k];
        sums[me] = sum;
        __syncthreads();
        sum = 0;
        for (int t = 0; t < me; t++)
            sum += sums[t];
        for (int k = 0; k < DIGITS; k++) {
            int32_t count = mine[k];
            mine[k] = sum;
            sum += count;
        }
        __syncthreads();
        for (int64_t i = first; i < end; i++) {
            int32_t place = counts[(from[i] >> shift & (DIGITS - 1)) * THREADS_HERE + me]++;
            to[place] = from[i];
            to[p.count + place] = from[p.count + i];
        }
        __syncthreads();
    }
}

KERNEL(gather_grad, bel_cuda_gather)
{
    const int32_t *rows = sorted_rows(at.work, p.count, p.passes);
    for (int64_t e = THREAD; e < p.outer * p.rows * p.width; e += THREADS) {
        int64_t row = e / p.width % p.rows, outer = e / p.width / p.rows;
        int64_t low = 0, high = p.count; // the first that is at least `row`
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (rows[middle] < row) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        double sum = 0;
        for (; low < p.count && rows[low] == row; low++) {
            int64_t from = (outer * p.count + rows[p.count + low]) * p.width + e % p.width;
            sum = number_rounded(sum + number_get(at.in[0], from, p.type), p.type);
        }
        number_set(at.out[0], e, p.type, sum);
    }
}
