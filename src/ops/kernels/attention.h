// Attention in f32 without its scores in memory: softmax(scale · q kᵀ) v block by block (Milakov &
// Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et al. 2022, "FlashAttention").
//
// Keys and values go by in blocks that fit the first caches. Each query keeps the largest score so
// far, the sum of the powers and the sum of the values that these weigh; when the largest grows,
// the sums shrink by the power of the difference. What is left of a query is one number, the
// logarithm of its sum of powers, from which the gradient makes the weights again. A tile takes
// 250 KB of its thread's stack.
#ifndef BELFRY_OPS_KERNELS_ATTENTION_H
#define BELFRY_OPS_KERNELS_ATTENTION_H

#include "ops/op.h"

// Of q and k, or of v: the widest head that these kernels take.
enum { BEL_ATTENTION_MOST_WIDTH = 256 };

// q [n, heads, t, d], k [n, heads, s, d], v [n, heads, s, e].
typedef struct bel_attention_shape {
    int64_t n, heads, t, s, d, e;
    double scale;
    bool causal;
    int lengths; // which input; -1: none
} bel_attention_shape;

// How many keys, from the first on, a query of a sequence of `length` keys sees.
static inline int64_t bel_attention_seen(const bel_attention_shape *shape, int64_t length,
                                         int64_t query)
{
    return shape->causal && query + 1 < length ? query + 1 : length;
}

// Whether there are such kernels for it.
static inline bool bel_attention_fits(const bel_attention_shape *shape)
{
    return shape->d <= BEL_ATTENTION_MOST_WIDTH && shape->e <= BEL_ATTENTION_MOST_WIDTH;
}

// So many queries go by together: those of them that see less of a block of keys than the last one
// take the others with weight 0.
enum { BEL_ATTENTION_QUERIES = 48 };

// What these kernels leave in call->params; the plain ones leave its first member alone.
typedef struct bel_attention_walk {
    bel_attention_shape shape;
    int64_t matrices;
    int64_t keys;             // of a block
    int64_t queries, tiles;   // of a tile, and tiles of a matrix
    int64_t parts, part_keys; // of a matrix, in the gradient
} bel_attention_walk;

// Choose calls for f32: inputs q, k, v, or dy, q, k, v, y and the logarithms.
void bel_attention_prepare(const bel_prepare *prepare, bel_kernel_call *call,
                           const bel_attention_shape *shape);
void bel_attention_prepare_gradient(const bel_prepare *prepare, bel_kernel_call *call,
                                    const bel_attention_shape *shape);

#endif
