// Attention in f32 without its scores in memory: softmax(scale · q kᵀ) v block by block (Milakov &
// Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et al. 2022, "FlashAttention").
//
// Keys and values are processed in blocks that fit the first caches. Each query keeps its largest
// score so far, the sum of the powers and the weighted sum of the values. When the largest score
// grows, the sums are multiplied by the power of the difference. Each query keeps one number, the
// logarithm of its sum of powers, from which the gradient recomputes the weights. A tile uses 250
// KB of its thread's stack.
#ifndef BELFRY_OPS_KERNELS_ATTENTION_H
#define BELFRY_OPS_KERNELS_ATTENTION_H

#include "ops/op.h"

// Maximal width of a head of these kernels, for q and k, or for v.
enum { BEL_ATTENTION_MOST_WIDTH = 256 };

// q [n, heads, t, d], k [n, heads, s, d], v [n, heads, s, e].
typedef struct bel_attention_shape {
    int64_t n, heads, t, s, d, e;
    double scale;
    bool causal;
    int lengths; // number of the input; -1: absent
} bel_attention_shape;

// Returns how many leading keys a query of a sequence of `length` keys sees.
static inline int64_t bel_attention_seen(const bel_attention_shape *shape, int64_t length,
                                         int64_t query)
{
    return shape->causal && query + 1 < length ? query + 1 : length;
}

// Returns true if these kernels support the shape.
static inline bool bel_attention_fits(const bel_attention_shape *shape)
{
    return shape->d <= BEL_ATTENTION_MOST_WIDTH && shape->e <= BEL_ATTENTION_MOST_WIDTH;
}

// Queries that are processed together. Those that see less of a block of keys than the last one use
// weight 0 for the others.
enum { BEL_ATTENTION_QUERIES = 48 };

// Params of these kernels; the plain ones use only the first member.
typedef struct bel_attention_walk {
    bel_attention_shape shape;
    int64_t matrices;
    int64_t keys;             // in a block
    int64_t queries, tiles;   // in a tile, and tiles of a matrix
    int64_t parts, part_keys; // per matrix, in the gradient
} bel_attention_walk;

// Choose calls for f32: inputs q, k, v, or dy, q, k, v, y and the logarithms.
void bel_attention_prepare(const bel_prepare *prepare, bel_kernel_call *call,
                           const bel_attention_shape *shape);
void bel_attention_prepare_gradient(const bel_prepare *prepare, bel_kernel_call *call,
                                    const bel_attention_shape *shape);

#endif
