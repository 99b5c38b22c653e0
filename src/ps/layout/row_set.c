// Sets of rows and their sums. Two sets are merged in order of their keys. Results go one after the
// other into memory that only grows; each level of the tree merges a row at most once, so rows ·
// levels is enough room. If only one side has rows and its factor is 1, nothing is copied: the sum
// may be in a report's memory. Keys of a payload are checked before any use.
#include "ps/layout/row_set.h"

#include <string.h>

#include "base/alloc.h"

bool bel_row_keys_check(const int64_t *keys, int64_t count, int shard, int shard_count)
{
    for (int64_t i = 0; i < count; i++) {
        if (i > 0 && keys[i] <= keys[i - 1]) return false;
        if (shard_count > 1 && bel_table_shard(keys[i], shard_count) != shard) return false;
    }
    return true;
}

bool bel_row_set_read(const void *payload, size_t bytes, int width, int shard, int shard_count,
                      bel_row_set *out_set)
{
    size_t each = bel_row_set_bytes(1, width);
    if (bytes % each != 0) return false;
    int64_t count = (int64_t)(bytes / each);
    const int64_t *keys = payload;
    if (!bel_row_keys_check(keys, count, shard, shard_count)) return false;
    const void *rows = count > 0 ? keys + count : NULL; // without rows there may be no payload
    *out_set = (bel_row_set){count, keys, rows};
    return true;
}

void bel_row_sum_deinit(bel_row_sum *sum)
{
    bel_free(sum->keys);
    bel_free(sum->rows);
}

// Two sets, with the factors of their rows.
typedef struct pair {
    const bel_row_set *left, *right;
    float left_factor, right_factor;
} pair;

static void add_row(float *to, const float *a, float a_factor, const float *b, float b_factor,
                    size_t width)
{
    for (size_t j = 0; j < width; j++)
        to[j] = a[j] * a_factor + b[j] * b_factor; // · 1 changes no bit
}

static void copy_row(float *to, const float *from, float factor, size_t width)
{
    for (size_t j = 0; j < width; j++)
        to[j] = from[j] * factor;
}

// left + right, row by row; `sum` has room.
static bel_row_set row_set_merge(bel_row_sum *sum, const pair *p, int width)
{
    const bel_row_set *left = p->left, *right = p->right;
    size_t row = (size_t)width;
    int64_t *keys = sum->keys + sum->used, count = 0;
    float *rows = sum->rows + sum->used * row;
    int64_t i = 0, k = 0;
    while (i < left->count || k < right->count) {
        bool from_left = k == right->count || (i < left->count && left->keys[i] <= right->keys[k]);
        bool both = from_left && k < right->count && left->keys[i] == right->keys[k];
        const float *a = from_left ? left->rows + (size_t)i * row : NULL; // a set without rows
        const float *b = both || !from_left ? right->rows + (size_t)k * row : NULL; // has none
        float *to = rows + (size_t)count * row;
        keys[count++] = from_left ? left->keys[i] : right->keys[k];
        if (both) {
            add_row(to, a, p->left_factor, b, p->right_factor, row);
        } else {
            copy_row(to, from_left ? a : b, from_left ? p->left_factor : p->right_factor, row);
        }
        i += from_left;
        k += both || !from_left;
    }
    sum->used += (size_t)count;
    return (bel_row_set){count, keys, rows};
}

// The set that begins at an id; -1: there is no such set.
static int set_at(const int *firsts, int count, int first)
{
    for (int i = 0; i < count; i++)
        if (firsts[i] == first) return i;
    return -1;
}

// The sum of two sets. If only one has rows and their factor is 1, nothing is copied.
static bel_row_set add_sets(bel_row_sum *sum, const pair *p, int width)
{
    bool alike = p->left_factor == 1 && p->right_factor == 1;
    if (p->left->count == 0 && p->right->count == 0) return *p->left; // `sum` may have no memory
    if (alike && p->left->count == 0) return *p->right;
    if (alike && p->right->count == 0) return *p->left;
    return row_set_merge(sum, p, width);
}

// At each level a set at a multiple of 2^(level+1) absorbs the one 2^level after it, if there is
// one. At the end sets[0] has the whole sum.
bel_row_set bel_row_sum_run(bel_row_sum *sum, const int *firsts, bel_row_set *sets,
                            bel_weight *weights, int count, int width)
{
    size_t total = 0;
    int depth = 0;
    for (int i = 0; i < count; i++)
        total += (size_t)sets[i].count;
    while ((1 << depth) <= firsts[count - 1])
        depth++;
    size_t room = total * (size_t)depth; // each level merges every row at most once
    sum->keys = bel_xgrow(sum->keys, &sum->key_capacity, room, sizeof *sum->keys);
    sum->rows = bel_xgrow(sum->rows, &sum->row_capacity, room * (size_t)width, sizeof *sum->rows);
    sum->used = 0;
    for (int level = 0; level < depth; level++) {
        for (int i = 0; i < count; i++) {
            if (firsts[i] % (2 << level) != 0) continue;
            int right = set_at(firsts, count, firsts[i] + (1 << level));
            if (right < 0) continue;
            pair p = {.left = &sets[i], .right = &sets[right]};
            double left, other;
            weights[i] = bel_weight_add(weights[i], weights[right], &left, &other);
            p.left_factor = (float)left;
            p.right_factor = (float)other;
            sets[i] = add_sets(sum, &p, width);
            sets[right].count = 0;
            weights[right] = (bel_weight){0};
        }
    }
    return sets[0];
}
