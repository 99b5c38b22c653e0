// Grain hashes and the digest over them. Shards hash their pieces and rows, and the master merges
// the reports without reading a file. For that, the unit is a grain, cuts are only at grain
// borders, and rows are added up instead of being hashed in the order of their keys.
//
// The caller sorts; each name's head is hashed once, with its first run. A change here needs a new
// format version, since runs are compared by the digest.
#include "checkpoint/digest.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/table.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "integers are hashed as they lie");

size_t bel_ckpt_grain_count(int64_t count)
{
    return (size_t)(count / BEL_GRAIN + (count % BEL_GRAIN != 0));
}

void bel_ckpt_hash_grains(bel_dtype dtype, const void *data, int64_t count, uint64_t *out_hashes)
{
    size_t element_bytes = bel_dtype_size(dtype);
    const unsigned char *bytes = data;
    for (; count > 0; count -= BEL_GRAIN) {
        size_t grain_bytes = (size_t)(count < BEL_GRAIN ? count : BEL_GRAIN) * element_bytes;
        *out_hashes++ = bel_hash64(bytes, grain_bytes);
        bytes += grain_bytes;
    }
}

// Orders by name, then by place in the tensor. The shard decides between two that claim one place.
// They are refused later, and this order makes the message deterministic.
static int compare_runs(const void *a, const void *b)
{
    const bel_ckpt_run *left = *(const bel_ckpt_run *const *)a;
    const bel_ckpt_run *right = *(const bel_ckpt_run *const *)b;
    int order = strcmp(left->name, right->name);
    if (order != 0) return order;
    if (left->first != right->first) return left->first < right->first ? -1 : 1;
    return (left->shard_index > right->shard_index) - (left->shard_index < right->shard_index);
}

void bel_ckpt_sort_runs(const bel_ckpt_run **runs, size_t run_count)
{
    if (run_count > 0) qsort(runs, run_count, sizeof *runs, compare_runs);
}

// Runs once for each tensor, before the hashes of its grains, whichever shards hold these.
static void hash_head(bel_hasher *hasher, const bel_ckpt_run *run)
{
    const char *dtype = bel_dtype_name(run->dtype);
    uint32_t rank = (uint32_t)run->shape.rank;
    bel_hasher_update(hasher, run->name, strlen(run->name) + 1); // including the zero byte
    bel_hasher_update(hasher, dtype, strlen(dtype) + 1);
    bel_hasher_update(hasher, &rank, sizeof rank);
    bel_hasher_update(hasher, run->shape.dims, rank * sizeof run->shape.dims[0]);
}

// Modulo 2^128.
static void add_hash(bel_hash128 *sum, bel_hash128 hash)
{
    bool carry = __builtin_add_overflow(sum->low, hash.low, &sum->low);
    sum->high += hash.high + carry;
}

void bel_ckpt_hash_rows(const int64_t *keys, const float *rows, int width, int64_t n,
                        bel_hash128 *sum)
{
    size_t row_bytes = (size_t)width * sizeof *rows;
    for (int64_t i = 0; i < n; i++)
        add_hash(sum, bel_hash128_of(rows + i * width, row_bytes, (uint64_t)keys[i]));
}

// Orders by name, then by shard.
static int compare_tables(const void *a, const void *b)
{
    const bel_ckpt_table_run *left = *(const bel_ckpt_table_run *const *)a;
    const bel_ckpt_table_run *right = *(const bel_ckpt_table_run *const *)b;
    int order = strcmp(left->name, right->name);
    if (order != 0) return order;
    return (left->shard_index > right->shard_index) - (left->shard_index < right->shard_index);
}

void bel_ckpt_sort_tables(const bel_ckpt_table_run **tables, size_t table_count)
{
    if (table_count > 0) qsort(tables, table_count, sizeof *tables, compare_tables);
}

// Hashes the parts of one table. The commit checks that their columns agree.
static void hash_table(bel_hasher *hasher, const bel_ckpt_table_run *const *parts, size_t count)
{
    const bel_ckpt_table_run *head = parts[0];
    uint32_t width = (uint32_t)head->width, columns = (uint32_t)head->column_count;
    int64_t rows = 0;
    for (size_t i = 0; i < count; i++)
        rows += parts[i]->row_count;
    bel_hasher_update(hasher, head->name, strlen(head->name) + 1);
    bel_hasher_update(hasher, "table", sizeof "table");
    bel_hasher_update(hasher, &width, sizeof width);
    bel_hasher_update(hasher, &columns, sizeof columns);
    bel_hasher_update(hasher, &rows, sizeof rows);
    for (int c = 0; c < head->column_count; c++) {
        bel_hash128 sum = {0};
        for (size_t i = 0; i < count; i++)
            if (c < parts[i]->column_count) add_hash(&sum, parts[i]->sums[c]);
        bel_hasher_update(hasher, head->columns[c], strlen(head->columns[c]) + 1);
        bel_hasher_update(hasher, &sum.low, sizeof sum.low);
        bel_hasher_update(hasher, &sum.high, sizeof sum.high);
    }
}

bel_hash128 bel_ckpt_digest_runs(const bel_ckpt_run *const *runs, size_t run_count,
                                 const bel_ckpt_table_run *const *tables, size_t table_count)
{
    bel_hasher *hasher = bel_hasher_create();
    for (size_t i = 0; i < run_count; i++) {
        if (i == 0 || strcmp(runs[i]->name, runs[i - 1]->name) != 0) hash_head(hasher, runs[i]);
        bel_hasher_update(hasher, runs[i]->grain_hashes,
                          bel_ckpt_grain_count(runs[i]->count) * sizeof runs[i]->grain_hashes[0]);
    }
    for (size_t i = 0, end; i < table_count; i = end) {
        for (end = i + 1; end < table_count && strcmp(tables[end]->name, tables[i]->name) == 0;)
            end++;
        hash_table(hasher, tables + i, end - i);
    }
    bel_hash128 digest = bel_hasher_finish(hasher);
    bel_hasher_destroy(hasher);
    return digest;
}
