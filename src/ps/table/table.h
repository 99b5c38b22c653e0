// One shard's rows of one table (a sparse, or embedding, variable): int64 keys, each with `width`
// floats and the optimizer's slots.
//
// A row exists from its first update on. Before that its values are a function of (seed, name,
// key), computed on demand, so that a pull changes nothing and allocates no memory. The set of rows
// and their bits depend only on the updates: not on threads, on the order of keys within an update,
// on pulls, or on the number of shards.
//
// With admit_after N a key waits: its N-th update creates its row, and its earlier gradients are
// dropped. The counts of waiting keys are a second table, `uses`, inside of this one.
//
// With expire_after E a row is removed that no update named in E versions: at the first version
// from then on whose number, modulo the number of slices, is that of the key's slice. A slice is a
// range of hashes, so each version looks at one range of the index. The number of slices is the
// largest power of two up to E / 4 and 65,536, or 1. The same goes for the counts of waiting keys.
// With expire_below a row whose values have a smaller L2 norm is removed at the first such version
// after E / 4 versions without an update, of at least one. It is looked at once, as its values stay
// until the next update, so a table on disk reads it once.
//
// With a memory_limit new keys get rows only while there is room. Then the set of rows also depends
// on the order of keys within an update and on the number of shards, and on nothing else.
//
// With a disk_folder records have that much memory, and the others are in a file: same bits, no
// limit of rows.
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
    BEL_TABLE_NORMAL,  // standard deviation `scale`, truncated at two of them
} bel_table_start;

typedef struct bel_table_config {
    const char *name; // the variable's; it keys the random numbers
    int width;        // floats of a row, ≥ 1
    bel_table_start start;
    float scale;
    uint64_t seed;
    bel_optimizer optimizer; // checked; SGD, ADAGRAD, ADAM, ADAMW and FTRL are for rows
    // Optimizers of further step functions that update it. Each has separate slots: a layer.
    const bel_optimizer *others[BEL_MAX_STEP_FUNCTIONS - 1];
    int other_count;
    // Maximum of bel_table_bytes; 0: no limit. With admit_after above 1, a quarter of it is for
    // waiting keys and the rest for rows, so that neither depends on how many there are of the
    // other. With a disk_folder the limit is for records only, and counts of waiting keys have
    // none.
    int64_t memory_limit;
    // Folder of a file for the records that have no room in memory_limit, which is then only for
    // records: the index and the keys come on top. NULL: none.
    const char *disk_folder;
    int64_t admit_after;  // updates that name a key until one creates its row; 0 and 1: the first
    int64_t expire_after; // versions without an update of a row until it is removed; 0: never
    double expire_below;  // L2 norm; only with expire_after; 0: none
    // Notes which rows change, a byte a row, so that bel_table_changed_rows can be called. Changes
    // no bit of the rows.
    bool tracks_changes;
} bel_table_config;

// Returns the configuration of a graph's table. `initializer` is ZEROS, UNIFORM or NORMAL.
bel_table_config bel_table_describe(const char *name, int width, bel_initializer initializer,
                                    uint64_t seed, const bel_optimizer *optimizer);

// INVALID_ARGUMENT: the optimizer has no rule for rows; the optimizer has a setting that needs the
// whole variable (clip_norm, clip_global_norm), which the message names; `width` is below 1 or
// above 2^20; `scale` or expire_below is negative or infinite. RESOURCE_EXHAUSTED: memory_limit
// holds no row, or no memory. Others: the file cannot be created.
bel_status *bel_table_create(const bel_table_config *config, bel_table **out_table) BEL_MUST_USE;
void bel_table_destroy(bel_table *table);

// Writes the values of rows `keys` (any order, repeats allowed), n × width. Several threads may
// pull at once, but not during an update, a load or a restart. The table has no disk_folder.
void bel_table_pull(const bel_table *table, const int64_t *keys, int64_t n, float *out_rows);

// As bel_table_pull, and writes each row's place to out_places, BEL_TABLE_NOWHERE for an absent
// row. A row never moves, so a place is valid until bel_table_end_step or bel_table_clear. A caller
// that pulls rows and updates them later saves the update its look-ups, half of its time. Places
// never come from a peer. `out_places` may be NULL. Errors: with a disk_folder, the file cannot be
// read (UNKNOWN), or is damaged (DATA_LOSS).
#define BEL_TABLE_NOWHERE UINT32_MAX
bel_status *bel_table_pull_places(const bel_table *table, const int64_t *keys, int64_t n,
                                  float *out_rows, uint32_t *out_places) BEL_MUST_USE;

// Updates n distinct rows. The gradient is sums × scale; the optimizer's rules for elements follow
// (clip by value, weight decay, update). Only the given rows change: ADAM and ADAMW are lazy, so a
// row that no example named keeps its moments and does not decay. Creates absent rows, in order of
// the keys, each if the table stays within memory_limit; the others stay absent, and
// bel_table_refused counts them. With a limit let keys ascend, as those of reports and of
// bel_row_batch_keys do. With admit_after an absent key may wait instead. Runs on the threads of
// `team` (NULL: the caller's).
// RESOURCE_EXHAUSTED: no memory; the message gives the number of rows and their bytes. After an
// error no row has changed; keys that wait may be counted. With a disk_folder also the errors of
// its file, after which the table is of no use: FAILED_PRECONDITION until it is cleared.
// `places`: those that bel_table_pull_places noted for these keys; NULL: unknown. `layer`: the
// number of the optimizer; 0: the first.
bel_status *bel_table_update(bel_table *table, bel_team *team, const bel_rule_step *step, int layer,
                             const int64_t *keys, const uint32_t *places, const float *sums,
                             float scale, int64_t n) BEL_MUST_USE;

// Ends the step that makes `version`, and removes the rows and counts that are due at it. Updates
// belong to the version after the last one that ended, or after the restored one. A removed row's
// place is for later rows; while a snapshot has the row, it stays there. Not during a pull. Needed
// only with expire_after. Errors: of the disk_folder's file.
bel_status *bel_table_end_step(bel_table *table, int64_t version) BEL_MUST_USE;

int64_t bel_table_count(const bel_table *table);

typedef struct bel_table_tally {
    int64_t rows, waiting;     // now: keys that have a row, keys that wait for one
    int64_t admitted, expired; // since the table was created: rows made by updates, rows removed
    // Records in the disk_folder's file, also of removed rows that a snapshot still has; its size.
    int64_t in_file, file_bytes;
} bel_table_tally;

bel_table_tally bel_table_count_all(const bel_table *table);

// Memory that memory_limit limits: a function of the keys that have rows or wait, in whatever order
// they were created, removed or loaded. The process holds what the most rows took so far.
int64_t bel_table_bytes(const bel_table *table);
// Absent keys of updates that got no row, or could not wait, as the table was full.
int64_t bel_table_refused(const bel_table *table);

// --- Snapshots -----------------------------------------------------------------------------------

// Starts a snapshot of the present state. A later update copies a row before it changes it, so that
// another thread can read the snapshot during updates. One snapshot at a time. Neither
// bel_table_bytes nor memory_limit counts the copies: the success of an update must not depend on
// how fast a checkpoint is written. RESOURCE_EXHAUSTED.
bel_status *bel_table_snapshot(bel_table *table) BEL_MUST_USE;
int64_t bel_table_snapshot_count(const bel_table *table); // rows
// Reads n rows of the snapshot in order of keys, from row `first` on, one thread at a time; safe
// during updates and pulls. `out_keys` has room for n keys, the arrays for n × width floats; slots
// by rule. out_keys, out_rows, out_slots and each of the slots may be NULL. The first reading sorts
// row numbers by key, which takes 4 bytes a row until the end. RESOURCE_EXHAUSTED.
bel_status *bel_table_snapshot_range(const bel_table *table, int64_t first, int64_t n,
                                     int64_t *out_keys, float *out_rows,
                                     float *const *out_slots) BEL_MUST_USE;
void bel_table_snapshot_end(bel_table *table);

// Adds a checkpoint's rows, which must not exist yet: values and slots, with age 0. If `slots` is
// NULL they are as in a new row. RESOURCE_EXHAUSTED: beyond memory_limit, or no memory; DATA_LOSS:
// a duplicate key. After an error no row was added; after one of a disk_folder's file the table is
// of no use until it is cleared.
bel_status *bel_table_load(bel_table *table, const int64_t *keys, const float *rows,
                           const float *const *slots, int64_t n) BEL_MUST_USE;
// --- Checkpoints ---------------------------------------------------------------------------------

// Writes the snapshot (no rows without one) for bel_ckpt_write_shard_tables, and returns the number
// of tables that it is, at most BEL_TABLE_MOST_SAVED:
// - the rows, named as the table. Columns are "values", "<rule>/<slot>", and for layers after the
//   first "<rule>/<layer>/<slot>";
// - with expire_after "NAME/age": a float for each row, the versions since its last update;
// - with admit_after above 1 "NAME/uses": for each waiting key the updates that named it; with
//   expire_after also "NAME/uses/age".
// The table owns the memory. Reading it returns ABORTED at a value that is not finite.
enum { BEL_TABLE_MOST_SAVED = 4 };
int bel_table_rows(const bel_table *table, bel_ckpt_rows *out_rows);

// For a table that tracks changes. The snapshot, that of `version` above 0, of which all rows were
// written, is the base of the next ones; `report` is that of the writer, for its sums. Call it
// before the snapshot ends, on the thread that reads it.
void bel_table_set_base(bel_table *table, int64_t version, const bel_ckpt_shard *report);

// As bel_table_rows, for a delta: only the rows of the snapshot that were created or changed since
// the base, that of version `base`. FAILED_PRECONDITION: there was no base since the table was
// created or cleared, or the last is another one. RESOURCE_EXHAUSTED.
bel_status *bel_table_changed_rows(const bel_table *table, int64_t base, bel_ckpt_rows *out_rows,
                                   int *out_count) BEL_MUST_USE;

// Loads the rows of one of `shard_count` shards block by block, from a checkpoint of any number of
// shards. The table must have no rows; after an error it may have some. Without ages in the
// checkpoint, the rows were updated at its step; without uses, no key waits. NOT_FOUND: no such
// table. DATA_LOSS: other columns, or malformed. RESOURCE_EXHAUSTED.
bel_status *bel_table_restore(bel_table *table, const bel_ckpt_reader *reader, int shard,
                              int shard_count) BEL_MUST_USE;

// Loads start values for rows from another training's checkpoint, in which the table is named
// `there`. The other training may have had any optimizer: slots are as in a new row. Ages and keys
// that wait are not loaded.
bel_status *bel_table_warm_up(bel_table *table, const bel_ckpt_reader *reader, const char *there,
                              int shard, int shard_count) BEL_MUST_USE;

// Removes all rows and waiting keys; memory is kept for the next ones. Not during a snapshot.
// Errors: of the disk_folder's file.
bel_status *bel_table_clear(bel_table *table) BEL_MUST_USE;

#endif
