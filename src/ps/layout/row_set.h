// Rows of a table under way: the shard of a key, the sets of rows in reports, and their sum over
// replicas by the tree that sums dense gradients.
#ifndef BELFRY_PS_LAYOUT_ROW_SET_H
#define BELFRY_PS_LAYOUT_ROW_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ps/layout/assignment.h"

enum { BEL_TABLE_SHARD_BITS = 27 };

// Bijection, so distinct keys have distinct hashes: Murmur3's 64-bit finalizer.
static inline uint64_t bel_table_hash(int64_t key)
{
    uint64_t h = (uint64_t)key;
    h = (h ^ (h >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ (h >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ (h >> 33);
}

// Returns the shard of `shard_count` that holds a key. It uses a hash that is the same on all
// machines.
static inline int bel_table_shard(int64_t key, int shard_count)
{
    uint64_t low = bel_table_hash(key) & ((UINT64_C(1) << BEL_TABLE_SHARD_BITS) - 1);
    return (int)(low * (uint64_t)shard_count >> BEL_TABLE_SHARD_BITS);
}

// Distinct rows in order of their keys. The memory is borrowed.
typedef struct bel_row_set {
    int64_t count;
    const int64_t *keys;
    const float *rows; // count × width
} bel_row_set;

// True if keys ascend without duplicates and `shard` holds all of them.
bool bel_row_keys_check(const int64_t *keys, int64_t count, int shard, int shard_count);

// Returns the bytes of a report's payload with a set: its keys, then its rows.
static inline size_t bel_row_set_bytes(int64_t count, int width)
{
    return (size_t)count * (sizeof(int64_t) + (size_t)width * sizeof(float));
}

// Reads a payload in place. Returns false if it is not a set, or its keys are not as above.
bool bel_row_set_read(const void *payload, size_t bytes, int width, int shard, int shard_count,
                      bel_row_set *out_set);

// Memory for sums: initialize it with zeros, reuse it, free it with bel_row_sum_deinit.
typedef struct bel_row_sum {
    int64_t *keys;
    float *rows;
    size_t key_capacity, row_capacity, used;
} bel_row_sum;
void bel_row_sum_deinit(bel_row_sum *sum);

// Sums `count` sets over the summation tree. sets[i] is the node that begins at id firsts[i]
// (ascending), and weights[i] its weight, as in assignment.h. A row that a set does not have is
// skipped, never added as zero. Overwrites sets and weights. The result is in one of the sets or in
// `sum`, until its next use; its weight is weights[0].
bel_row_set bel_row_sum_run(bel_row_sum *sum, const int *firsts, bel_row_set *sets,
                            bel_weight *weights, int count, int width);

#endif
