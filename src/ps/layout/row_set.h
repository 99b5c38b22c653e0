// Rows of a table on their way: which shard holds a key, what is reported of rows, and their sum
// over replicas by the same tree as that of dense gradients.
#ifndef BELFRY_PS_LAYOUT_ROW_SET_H
#define BELFRY_PS_LAYOUT_ROW_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ps/layout/assignment.h"

enum { BEL_TABLE_SHARD_BITS = 27 };

// A bijection, so that distinct keys have distinct hashes: Murmur3's 64-bit finalizer.
static inline uint64_t bel_table_hash(int64_t key)
{
    uint64_t h = (uint64_t)key;
    h = (h ^ (h >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ (h >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ (h >> 33);
}

// The shard of `shard_count` that holds a key: a hash, the same on all machines.
static inline int bel_table_shard(int64_t key, int shard_count)
{
    uint64_t low = bel_table_hash(key) & ((UINT64_C(1) << BEL_TABLE_SHARD_BITS) - 1);
    return (int)(low * (uint64_t)shard_count >> BEL_TABLE_SHARD_BITS);
}

// Distinct rows in order of their keys. Borrowed memory.
typedef struct bel_row_set {
    int64_t count;
    const int64_t *keys;
    const float *rows; // count × width
} bel_row_set;

// True when keys ascend, none twice, and `shard` holds them all.
bool bel_row_keys_check(const int64_t *keys, int64_t count, int shard, int shard_count);

// As a report's payload a set is its keys, then its rows.
static inline size_t bel_row_set_bytes(int64_t count, int width)
{
    return (size_t)count * (sizeof(int64_t) + (size_t)width * sizeof(float));
}

// Reads a payload in place. False when it is none, or its keys are not as above.
bool bel_row_set_read(const void *payload, size_t bytes, int width, int shard, int shard_count,
                      bel_row_set *out_set);

// Memory for sums; zero-initialise, reuse, free with bel_row_sum_deinit.
typedef struct bel_row_sum {
    int64_t *keys;
    float *rows;
    size_t key_capacity, row_capacity, used;
} bel_row_sum;
void bel_row_sum_deinit(bel_row_sum *sum);

// The sum of `count` sets over the summation tree: sets[i] is what is known of the ids from
// firsts[i] on (ascending), and weights[i] its weight as in assignment.h; a row that a set does not
// have is passed over, never added as zero. Sets and weights are used up; the result lies in one of
// them or in `sum`, until it is used again, and weights[0] is its weight.
bel_row_set bel_row_sum_run(bel_row_sum *sum, const int *firsts, bel_row_set *sets,
                            bel_weight *weights, int count, int width);

#endif
