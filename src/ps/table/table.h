// The rows of one table (a sparse, or embedding, variable) that one shard holds: int64 keys, each
// with `width` floats and the optimizer's slots.
//
// A row exists from its first update on. Until then its values are a function of (seed, name, key),
// computed where they are asked for, so that a pull changes nothing and asks for no memory. Which
// rows exist, and their bits, depend on the updates alone: not on threads, on the order of keys
// within an update, on what was pulled, or on how many shards there are.
//
// Memory a row: 8 bytes of key, width · 4 · (1 + slots) bytes, and the index; docs/tables.md has
// the figure.
#ifndef BELFRY_PS_TABLE_TABLE_H
#define BELFRY_PS_TABLE_TABLE_H

#include "base/thread.h"
#include "belfry/graph.h"
#include "belfry/optimizer.h"
#include "checkpoint/table.h"
#include "optim/rule.h"
#include "ps/layout/layout.h"
#include "ps/layout/row_set.h"

typedef struct bel_table bel_table;

typedef enum bel_table_start {
    BEL_TABLE_ZEROS,
    BEL_TABLE_UNIFORM, // [-scale, scale)
    BEL_TABLE_NORMAL,  // standard deviation `scale`, cut off at two of them
} bel_table_start;

typedef struct bel_table_config {
    const char *name; // of the variable; it keys the random numbers
    int width;        // floats of a row, ≥ 1
    bel_table_start start;
    float scale;
    uint64_t seed;
    bel_optimizer optimizer; // checked; SGD, ADAGRAD, ADAM and FTRL are for rows
    // Those of further step functions that update it; each has slots of its own, a layer of them.
    const bel_optimizer *others[BEL_MAX_STEP_FUNCTIONS - 1];
    int other_count;
    int64_t memory_limit; // bytes for all that grows with the rows; 0: none
} bel_table_config;

// The configuration of a graph's table. `initializer` is ZEROS, UNIFORM or NORMAL.
bel_table_config bel_table_describe(const char *name, int width, bel_initializer initializer,
                                    uint64_t seed, const bel_optimizer *optimizer);

// INVALID_ARGUMENT: an optimizer that has no rule for rows, or a setting of it that needs the whole
// variable (clip_norm, clip_global_norm), named; a width below 1 or above 2^20; a scale that is
// negative or not finite. RESOURCE_EXHAUSTED.
bel_status *bel_table_create(const bel_table_config *config, bel_table **out_table) BEL_MUST_USE;
void bel_table_destroy(bel_table *table);

// Writes the values of rows `keys` (any order, repeats allowed), n × width. Several threads may
// pull at once, but not during an update, a load or a restart.
void bel_table_pull(const bel_table *table, const int64_t *keys, int64_t n, float *out_rows);

// The same, and notes in out_places where each row is, BEL_TABLE_NOWHERE where there is none. A row
// never moves, so a place is right until bel_table_clear: a caller that pulls rows and updates them
// later spares the update its look-ups, half of its time. Places never come from a peer.
#define BEL_TABLE_NOWHERE UINT32_MAX
void bel_table_pull_places(const bel_table *table, const int64_t *keys, int64_t n, float *out_rows,
                           uint32_t *out_places);

// One update of n distinct rows: gradient = sums × scale, then as the optimizer says for elements
// (clip by value, weight decay, update) on the rows given and no others: ADAM is lazy, a row that
// no example named keeps its moments. New rows are made. On the threads of `team` (NULL: the
// caller's). RESOURCE_EXHAUSTED: the rows would need more than memory_limit, or memory is gone;
// says how many rows there are and their bytes; then no row has changed.
bel_status *bel_table_update(bel_table *table, bel_team *team, const bel_rule_step *step,
                             const int64_t *keys, const float *sums, float scale,
                             int64_t n) BEL_MUST_USE;

// The same with places that bel_table_pull_places noted for these keys (NULL: none did), by the
// rule of the optimizer whose layer it is (0: the first one's).
bel_status *bel_table_update_places(bel_table *table, bel_team *team, const bel_rule_step *step,
                                    int layer, const int64_t *keys, const uint32_t *places,
                                    const float *sums, float scale, int64_t n) BEL_MUST_USE;

int64_t bel_table_count(const bel_table *table);
int64_t bel_table_bytes(const bel_table *table); // memory held: what memory_limit limits

// --- Snapshots -----------------------------------------------------------------------------------

// Marks the state of now. Rows are copied aside before a later update changes them, so that the
// snapshot can be read by another thread while updates go on. One snapshot at a time. Neither
// bel_table_bytes nor memory_limit counts the copies: whether an update succeeds must not depend
// on how fast a checkpoint is written. RESOURCE_EXHAUSTED.
bel_status *bel_table_snapshot(bel_table *table) BEL_MUST_USE;
// The snapshot in order of keys, for one thread at a time. `out_keys` has room for
// bel_table_snapshot_count, the arrays for that × width floats; slots by rule. Safe beside updates
// and pulls.
int64_t bel_table_snapshot_count(const bel_table *table);
bel_status *bel_table_snapshot_read(const bel_table *table, int64_t *out_keys, float *out_rows,
                                    float *const *out_slots) BEL_MUST_USE;
// The same for the n rows from the first-th on, for a writer of snapshots without room for
// all of it. out_keys, out_rows, out_slots and each of the slots may be NULL. The first reading
// sorts the keys, which takes 36 bytes a row for a moment and 4 until the end. RESOURCE_EXHAUSTED.
bel_status *bel_table_snapshot_range(const bel_table *table, int64_t first, int64_t n,
                                     int64_t *out_keys, float *out_rows,
                                     float *const *out_slots) BEL_MUST_USE;
void bel_table_snapshot_end(bel_table *table);

// Adds rows that do not exist yet, of a checkpoint: the table's own values and slots. Where `slots`
// is NULL they are as in a new row. RESOURCE_EXHAUSTED; DATA_LOSS: a key comes twice. Then no row
// was added.
bel_status *bel_table_load(bel_table *table, const int64_t *keys, const float *rows,
                           const float *const *slots, int64_t n) BEL_MUST_USE;
// --- Checkpoints ---------------------------------------------------------------------------------

// The snapshot (without one: no rows) as bel_ckpt_write_shard_tables wants it: columns "values" and
// "<rule>/<slot>", of a layer behind the first "<rule>/<layer>/<slot>". What is pointed to belongs
// to the table; reading it is ABORTED at a value that is not finite.
bel_ckpt_rows bel_table_rows(const bel_table *table);

// Loads the rows of one of `shard_count` shards, whatever number of shards wrote them, block by
// block. The table has no rows yet; after an error it may have some. NOT_FOUND: no such table.
// DATA_LOSS: other columns, or malformed. RESOURCE_EXHAUSTED.
bel_status *bel_table_restore(bel_table *table, const bel_ckpt_reader *reader, int shard,
                              int shard_count) BEL_MUST_USE;

// The same for rows that begin with values which another training has made of them, in a table that
// has the name `there` in its checkpoint, whatever optimizer it had: slots are as in a new row.
bel_status *bel_table_warm_up(bel_table *table, const bel_ckpt_reader *reader, const char *there,
                              int shard, int shard_count) BEL_MUST_USE;

// Removes all rows; memory is kept for the next ones. Not while there is a snapshot.
void bel_table_clear(bel_table *table);

#endif
