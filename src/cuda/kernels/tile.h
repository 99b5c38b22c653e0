// Tiles of sums of products, for kernels. A block stages a piece of either side's numbers in shared
// memory, as [product, row] and [product, column], and each thread adds them to ROWS x COLUMNS sums
// in registers. A sum stays one chain in the order of its products.
//
// A multiprocessor reads 32 numbers of shared memory in the time of 128 products. So a thread's
// rows are neighbors, as are its columns, and are read four at a time. In tiles that are wide
// enough, the 32 threads of a warp are 4 by 8, and those that read the same numbers are one or two
// apart.
#ifndef BELFRY_CUDA_KERNELS_TILE_H
#define BELFRY_CUDA_KERNELS_TILE_H

#include "cuda/kernels/kernel.h"

// Unrolls the next loop by `count`, so that its loads come before its sums.
#ifdef BEL_CUDA_DOUBLE
#define UNROLL(count)
#else
#define TILE_PRAGMA(text) _Pragma(#text)
#define UNROLL(count) TILE_PRAGMA(unroll count)
#endif

typedef struct __attribute__((aligned(16))) tile_four {
    float v[4];
} tile_four;

typedef struct __attribute__((aligned(8))) tile_two {
    float v[2];
} tile_two;

// Shared memory of whole fours. Its rows are somewhat longer than the tile's (TILE_ROW), so that
// threads that write one below the other use different banks.
#define TILE_SHARED __shared__ __attribute__((aligned(16)))
#define TILE_ROW(side) ((side) + ((side) % 32 == 16 ? 2 : 4))

// Reads `count` numbers: neighbors, or fours that start `apart` from each other. They are aligned
// to the size of an access.
static inline void tile_take(const float *from, int count, int apart, float *to)
{
    if (count % 4 == 0) {
        for (int i = 0; i < count; i += 4) {
            const float *at = from + (apart > 0 ? i / 4 * apart : i);
            tile_four taken = *(const tile_four *)(const void *)at;
            for (int j = 0; j < 4; j++)
                to[i + j] = taken.v[j];
        }
    } else if (count % 2 == 0) {
        for (int i = 0; i < count; i += 2) {
            tile_two taken = *(const tile_two *)(const void *)(from + i);
            to[i] = taken.v[0];
            to[i + 1] = taken.v[1];
        }
    } else {
        for (int i = 0; i < count; i++)
            to[i] = from[i];
    }
}

// Adds one product to each sum: a has the thread's ROWS numbers, b its COLUMNS, in fours that are
// APART if that is not 0. Otherwise a thread has eight neighbors, and those of the fifth thread
// are in the banks of the first.
#define TILE_ADD(a, b, ROWS, COLUMNS, APART, sums)                                                 \
    do {                                                                                           \
        float left[ROWS], right[COLUMNS];                                                          \
        tile_take(a, ROWS, 0, left);                                                               \
        tile_take(b, COLUMNS, APART, right);                                                       \
        for (int i = 0; i < ROWS; i++)                                                             \
            for (int j = 0; j < COLUMNS; j++)                                                      \
                sums[i][j] = fmaf(left[i], right[j], sums[i][j]);                                  \
    } while (0)

// Row and column of this thread in a tile with `across` threads side by side. Narrow: threads are
// counted row by row. Else a warp is 4 by 8: bits 0 and 4 of the thread give the row, bits 1 to 3
// the column.
static inline int tile_thread_row(bool narrow, int across)
{
    int thread = (int)threadIdx.x, lane = thread % 32, warp = thread / 32;
    if (narrow) return thread / across;
    return lane % 2 + lane / 16 * 2 + warp / (across / 8) * 4;
}

static inline int tile_thread_column(bool narrow, int across)
{
    int thread = (int)threadIdx.x, lane = thread % 32, warp = thread / 32;
    if (narrow) return thread % across;
    return lane / 2 % 8 + warp % (across / 8) * 8;
}

// All threads of a block share the loads of `depth` products by `side` rows or columns of the tile.
// Neighboring threads load neighbors: rows of a product if `rows_first`, else products of a row.
// So all numbers of a thread are in row *m, or all are of product *k. The other result is that of
// number i.
static inline void tile_mine(bool rows_first, int depth, int side, int threads, int i, int *k,
                             int *m)
{
    int thread = (int)threadIdx.x;
    *k = rows_first ? thread / side + i * (threads / side) : thread % depth;
    *m = rows_first ? thread % side : thread / depth + i * (threads / depth);
}

static inline void tile_keep(bool rows_first, int depth, int side, int threads, const float *from,
                             float *to)
{
    for (int i = 0; i < depth * side / threads; i++) {
        int k, m;
        tile_mine(rows_first, depth, side, threads, i, &k, &m);
        to[k * TILE_ROW(side) + m] = from[i];
    }
}

#endif
