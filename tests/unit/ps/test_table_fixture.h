// Shared parts of the tests of tables: a table, updates from random numbers, and the content of a
// set of shards in order of keys.
#ifndef BELFRY_TESTS_UNIT_PS_TEST_TABLE_FIXTURE_H
#define BELFRY_TESTS_UNIT_PS_TEST_TABLE_FIXTURE_H

#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/sort.h"
#include "optim/settings.h"
#include "ps/table/table.h"
#include "support/bel_test.h"

enum { WIDTH = 10, MAX_SLOTS = 2 };

static inline bel_optimizer make_optimizer(bel_optimizer_kind kind)
{
    bel_optimizer optimizer = {.kind = kind,
                               .learning_rate = 0.05,
                               .weight_decay = 0.01,
                               .ftrl_l1 = 0.001,
                               .ftrl_l2 = 0.01};
    BEL_ASSERT_OK(bel_optimizer_check(&optimizer));
    return optimizer;
}

static inline bel_table_config make_config(bel_optimizer_kind kind)
{
    return (bel_table_config){.name = "users",
                              .width = WIDTH,
                              .start = BEL_TABLE_NORMAL,
                              .scale = 0.1f,
                              .seed = 7,
                              .optimizer = make_optimizer(kind)};
}

// Tables are on disk, with room for few rows in memory, if CTest says so (tests/CMakeLists.txt).
static inline bool tables_are_on_disk(void)
{
    return getenv("BEL_TEST_TABLES_ON_DISK") != NULL;
}

static inline bel_table *make_table(const bel_table_config *config)
{
    bel_table *table;
    bel_table_config own = *config;
    if (tables_are_on_disk() && own.memory_limit == 0) {
        own.memory_limit = 64 << 10;
        own.disk_folder = ".";
    }
    BEL_ASSERT_OK(bel_table_create(&own, &table));
    return table;
}

static inline void pull_rows(const bel_table *table, const int64_t *keys, int64_t n, float *rows)
{
    BEL_ASSERT_OK(bel_table_pull_places(table, keys, n, rows, NULL));
}

// n distinct keys in `range` (n < range), determined by (step, range), ascending or shuffled.
static inline void make_keys(int64_t step, int64_t range, bool shuffled, int64_t *keys, int64_t n)
{
    bel_rng_key key = bel_rng_key_make(3, "keys", (uint64_t)step);
    bel_keyed *items = bel_xcalloc((size_t)n * 2, sizeof *items);
    int64_t stride = range / n;
    for (int64_t i = 0; i < n; i++) {
        uint32_t words[4];
        bel_rng_block(key, 0, (uint64_t)i, words);
        keys[i] = (i * stride + words[0] % stride - range / 2) * 7919;
        items[i] = (bel_keyed){shuffled ? (int64_t)words[1] : i, (uint32_t)i};
    }
    const bel_keyed *order = bel_sort_keyed(items, items + n, n);
    int64_t *copy = bel_xcalloc((size_t)n, sizeof *copy);
    memcpy(copy, keys, (size_t)n * sizeof *keys);
    for (int64_t i = 0; i < n; i++)
        keys[i] = copy[order[i].number];
    bel_free(copy);
    bel_free(items);
}

// Element i of the gradient of a row at a step.
static inline float gradient_at(int64_t key, int64_t step, int i)
{
    uint64_t mixed = ((uint64_t)key * 31 + (uint64_t)step * 104729 + (uint64_t)i * 7919) % 2003;
    return (float)mixed / 500.0f - 2.0f;
}

static inline void make_sums(const int64_t *keys, int64_t n, int width, int64_t step, float *sums)
{
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < width; i++)
            sums[k * width + i] = gradient_at(keys[k], step, i);
}

static inline void update_rows(bel_table *table, bel_team *team, const bel_optimizer *optimizer,
                               int64_t step, const int64_t *keys, int64_t n)
{
    float *sums = bel_xcalloc((size_t)n * WIDTH, sizeof *sums);
    make_sums(keys, n, WIDTH, step, sums);
    bel_rule_step numbers = bel_rule_begin(optimizer, step);
    BEL_ASSERT_OK(bel_table_update(table, team, &numbers, 0, keys, NULL, sums, 0.25f, n));
    bel_free(sums);
}

typedef struct content {
    int64_t count;
    int64_t *keys;
    float *rows, *slots[MAX_SLOTS];
} content;

static inline content make_content(int64_t count)
{
    content made = {.count = count, .keys = bel_xcalloc((size_t)count, sizeof(int64_t))};
    made.rows = bel_xcalloc((size_t)count * WIDTH, sizeof(float));
    for (int k = 0; k < MAX_SLOTS; k++)
        made.slots[k] = bel_xcalloc((size_t)count * WIDTH, sizeof(float));
    return made;
}

static inline void free_content(content *c)
{
    bel_free(c->keys);
    bel_free(c->rows);
    for (int k = 0; k < MAX_SLOTS; k++)
        bel_free(c->slots[k]);
}

// Returns the content of a snapshot, which must exist.
static inline content read_snapshot(const bel_table *table)
{
    content read = make_content(bel_table_snapshot_count(table));
    BEL_ASSERT_OK(bel_table_snapshot_range(table, 0, read.count, read.keys, read.rows, read.slots));
    return read;
}

static inline content read_table(bel_table *table)
{
    BEL_ASSERT_OK(bel_table_snapshot(table));
    content read = read_snapshot(table);
    bel_table_snapshot_end(table);
    assert_int_equal(read.count, bel_table_count(table));
    for (int64_t i = 1; i < read.count; i++)
        assert_true(read.keys[i - 1] < read.keys[i]);
    return read;
}

static inline void assert_same(const content *a, const content *b)
{
    size_t count = (size_t)a->count;
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->keys, b->keys, count * sizeof *a->keys);
    assert_memory_equal(a->rows, b->rows, count * WIDTH * sizeof *a->rows);
    for (int k = 0; k < MAX_SLOTS; k++)
        assert_memory_equal(a->slots[k], b->slots[k], count * WIDTH * sizeof *a->rows);
}

#endif
