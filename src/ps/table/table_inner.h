// Inside view of a table, for the files table*.c of this folder.
//
// A row gets a number at its creation, which never changes. Its record is in a block of records:
// its values, then its slots, with expire_after then the version of its last use. Its key is in a
// block of keys; blocks never move. With a disk folder a record may also be in a file: its number
// leads to where it is (table_disk.c). The number of a removed row is free for a later one. The
// index maps keys to numbers. It has PARTS hash tables of (hash, number), one for each part of the
// keys, with buckets and linear probing. The hash is a bijection of the key, so a look-up touches
// the index and the record but no key: the cost of a look-up is its cache lines. Keys by number
// serve the snapshots.
//
// The upper 5 bits of a hash select the part, the next 32 the place in its array, and the lowest 27
// the shard. Places are in the order of hashes, so that a larger array is filled from a smaller one
// in one pass over both.
#ifndef BELFRY_PS_TABLE_TABLE_INNER_H
#define BELFRY_PS_TABLE_TABLE_INNER_H

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "ps/table/table.h"
#include "ps/table/table_file.h"

enum {
    BEL_TABLE_PART_BITS = 5,
    BEL_TABLE_PARTS = 1 << BEL_TABLE_PART_BITS,
    BEL_TABLE_GROUP = 128,           // keys looked up together: all their cache lines are under way
    BEL_TABLE_BUCKET = 5,            // hashes and numbers that fit a cache line
    BEL_TABLE_KEY_BLOCK_BITS = 18,   // keys of a block: 2 MiB
    BEL_TABLE_BLOCK_BYTES = 2 << 20, // minimum size of a block of records; a huge page backs it
    BEL_TABLE_LOCKS = 64,
    BEL_TABLE_LOCKED = 64, // neighboring row numbers of a lock
    BEL_TABLE_MAX_SLOTS = BEL_MAX_STEP_FUNCTIONS * BEL_RULE_MAX_SLOTS,
};

#define BEL_TABLE_NO_ROW BEL_TABLE_NOWHERE
#define BEL_TABLE_REFUSED (BEL_TABLE_NO_ROW - 1) // in `rows`: a key that waits, or that got no room
#define BEL_TABLE_NOT_IN UINT32_MAX              // in `saved`: the number's row is younger

// A cache line of the index, filled from the front. All five hashes are compared without a branch:
// a mispredicted branch costs more than the comparisons.
typedef struct bel_table_bucket {
    uint64_t hash[BEL_TABLE_BUCKET];
    uint32_t row_after[BEL_TABLE_BUCKET]; // row number + 1; 0: free
    uint32_t unused;
} bel_table_bucket;

// A full bucket overflows into the next one, and a bucket with a free place ends a search: a
// removal moves a later row into the place that it frees.
typedef struct bel_table_part {
    bel_table_bucket *buckets;
    uint64_t capacity; // buckets
    uint64_t used;     // rows
} bel_table_part;

// Blocks of one size, each of 2^bits items.
typedef struct bel_table_blocks {
    char **at;
    size_t count, capacity;
    size_t bytes; // bytes of a block
    int bits;
} bel_table_blocks;

// Numbers of rows.
typedef struct bel_table_numbers {
    uint32_t *at;
    int64_t count;
    size_t capacity;
} bel_table_numbers;

enum { BEL_TABLE_MOST_COLUMNS = 1 + BEL_TABLE_MAX_SLOTS };

// Changes of rows since a snapshot.
typedef struct bel_table_since {
    bel_hash128 lost[BEL_TABLE_MOST_COLUMNS]; // hashes, at the snapshot, of rows that differ now
    int64_t *removed;                         // keys that have no row or another one now
    int64_t removed_count;
    size_t removed_capacity;
} bel_table_since;

// State of a row's number: how its row differs from the one that had the number in the base, and in
// the last snapshot. A row that did not exist there is created; all others that differ are changed.
enum {
    BEL_TABLE_CHANGED_SINCE_BASE = 1,
    BEL_TABLE_CREATED_SINCE_BASE = 2,
    BEL_TABLE_CHANGED_SINCE_SNAPSHOT = 4,
    BEL_TABLE_CREATED_SINCE_SNAPSHOT = 8,
    BEL_TABLE_SINCE_SNAPSHOT_SHIFT = 2,
    BEL_TABLE_CREATED = 15,
};

// Changes of a table that tracks them (table_changes.c).
typedef struct bel_table_changes {
    bool on;                 // a snapshot was made since the table was created or cleared
    bel_table_blocks states; // a byte for each number
    bel_table_since base, snapshot;
    int64_t base_version; // 0: no base
    bel_hash128 base_sums[BEL_TABLE_MOST_COLUMNS];
    // Set by bel_table_set_base until the next snapshot: the last one is the base.
    int64_t next_version; // 0: it is not
    bel_hash128 next_sums[BEL_TABLE_MOST_COLUMNS];
    pthread_mutex_t mutex; // guards `lost` and the next base
} bel_table_changes;

// A delta of a snapshot on a base.
typedef struct bel_table_delta {
    int64_t base;              // its version
    bel_table_numbers changed; // numbers of created and changed rows
    uint32_t *order;           // the same by key; NULL until bel_table_changed_rows
    int64_t *removed;          // keys that the base has and that had no row, or a new one
    int64_t removed_count;     // after bel_table_changed_rows only those without a row, ascending
    bel_hash128 rest[BEL_TABLE_MOST_COLUMNS]; // sums of the rows that are as in the base
    bel_ckpt_change rows, ages;
} bel_table_delta;

// State of a snapshot. An update copies a row before it changes it for the first time, and notes
// the copy's place under the lock of the row's number. A reader takes the same lock and finds the
// row's place. A row that is removed meanwhile is left as it is, and its number is not free before
// the end.
typedef struct bel_table_snapshot_state {
    int64_t count;            // rows
    int64_t top;              // the snapshot has the rows below this number, but for `absent`
    uint32_t now;             // version of the ages
    uint32_t *saved;          // [row]: place of its copy + 1; 0: unchanged since; BEL_TABLE_NOT_IN
    bel_table_numbers absent; // numbers without a row at the snapshot's start
    char **keys;              // directories of blocks at the snapshot's start
    char **records;
    char **locations, **last_uses; // a table on disk has them
    char **copies;                 // blocks of copies; the directory has its maximum length
    size_t copy_blocks;
    _Atomic int64_t copy_count;
    uint32_t *order;        // row numbers by key; NULL until the first reading
    bel_table_delta *delta; // NULL: the table has no base
    pthread_mutex_t locks[BEL_TABLE_LOCKS];
} bel_table_snapshot_state;

// Location of a row's record: nowhere yet, in a frame (its number + 1), or in a cell of the file.
enum { BEL_TABLE_NO_RECORD = 0 };
#define BEL_TABLE_IN_FILE (UINT32_C(1) << 31)

// A row's record as it is in a cell.
typedef struct bel_table_staged {
    uint32_t row_after; // row number + 1; 0: none
    uint32_t cell;
} bel_table_staged;

// Records of a table on disk. Frames are places for records in memory, in blocks of records.
typedef struct bel_table_disk {
    bel_table_file *file;
    int64_t frame_count;        // most records in memory
    int64_t taken;              // frames that had a record so far
    bel_table_numbers unused;   // frames below `taken` without one
    uint32_t *owners;           // by frame: the row's number + 1; 0: none
    uint8_t *uses;              // by frame: BEL_TABLE_PINNED, and uses since the hand passed
    int64_t hand;               // the clock's: the next frame that it looks at
    int64_t portion;            // rows that are brought to memory and updated together
    bel_table_blocks locations; // by number
    bel_table_blocks last_uses; // by number; with expire_after
    bel_table_numbers pinned;   // frames
    // Records that pulls have read from the file, for the update that follows: by the row's hash.
    // Pulls of several threads write them under the lock; an update takes each once.
    bel_table_staged *staged;
    float *staged_records;
    size_t staged_count; // a power of two; 0: none
    pthread_mutex_t staged_mutex;
    // Rows of a portion whose records are in the file: by cell, their positions in the portion.
    bel_keyed *cold, *cold_spare;
    uint32_t *cold_frames; // by position: the frames that they get
    // Rows that are to go, in order of keys.
    bel_keyed *victims;
    uint32_t *victim_rows, *victim_cells;
    const float **victim_records;
    int64_t victim_capacity;
    bool failed; // an error of the file has left records between places
} bel_table_disk;

// Keys of an update that have no row, in a table whose keys wait.
typedef struct bel_table_waiting {
    int64_t *keys;
    uint32_t *positions; // in the update
    int64_t count;
    size_t key_capacity, position_capacity;
} bel_table_waiting;

struct bel_table {
    char *name;
    int width;
    bel_table_start start;
    float scale;
    bel_rng_key random;
    int slot_count;                          // over all layers
    int first_slots[BEL_MAX_STEP_FUNCTIONS]; // by layer
    char *columns[1 + BEL_TABLE_MAX_SLOTS];  // names in checkpoints
    float slot_start[BEL_TABLE_MAX_SLOTS];
    int64_t memory_limit;
    int64_t count, bytes;      // rows; memory that they need, by a function of the rows by part
    int64_t top;               // numbers that rows had so far: those from here on are unused
    bel_table_numbers free;    // numbers below `top` without a row
    bel_table_numbers retired; // the same, while a snapshot has the row
    int64_t refused, admitted, expired; // since the creation
    size_t record_floats;
    int64_t expire_after;
    double expire_below;
    int slice_bits;             // the number of slices is a power of two
    uint32_t now;               // the last version that ended, modulo 2^32
    char *age_name;             // in checkpoints
    bel_table_numbers due;      // rows that bel_table_end_step removes
    bel_table_numbers idle;     // rows that it removes if they are small
    int64_t admit_after;        // at least 2 if there are `uses`
    bool counts_uses;           // it is the `uses` of a table
    bel_table *uses;            // counts of waiting keys; NULL: no key waits
    bel_table_waiting wait;     // for the update in progress
    bel_table_changes *changes; // NULL: they are not tracked
    bel_table_disk *disk;       // NULL: all records are in memory
    bel_table_blocks keys, records;
    bel_table_part parts[BEL_TABLE_PARTS];
    // For the update in progress: row numbers by position, and positions of new rows by part.
    uint32_t *rows, *missing;
    int64_t scratch_capacity;
    bel_table_snapshot_state *snapshot;
};

// Number of keys in the group from `at` on, limited by `end`; 0 past the end.
static inline int bel_table_group(int64_t at, int64_t end)
{
    if (at >= end) return 0;
    return (int)(end - at < BEL_TABLE_GROUP ? end - at : BEL_TABLE_GROUP);
}

static inline unsigned bel_table_part_of(uint64_t hash)
{
    return (unsigned)(hash >> (64 - BEL_TABLE_PART_BITS));
}

// Maps 32 bits of the hash to the capacity as a fraction: so places are in the order of hashes.
static inline uint64_t bel_table_place(const bel_table_part *part, uint64_t hash)
{
    return (uint64_t)(uint32_t)(hash >> BEL_TABLE_SHARD_BITS) * part->capacity >> 32;
}

// The low bits of a row's number are its index in the block, the others the block's index.
static inline void *bel_table_item(char *const *blocks, int bits, size_t item_bytes, uint32_t row)
{
    return blocks[row >> bits] + (row & ((UINT32_C(1) << bits) - 1)) * item_bytes;
}

static inline int64_t *bel_table_key(const bel_table *table, uint32_t row)
{
    return bel_table_item(table->keys.at, BEL_TABLE_KEY_BLOCK_BITS, sizeof(int64_t), row);
}

static inline uint32_t *bel_table_location(const bel_table *table, uint32_t row)
{
    return bel_table_item(table->disk->locations.at, BEL_TABLE_KEY_BLOCK_BITS, sizeof(uint32_t),
                          row);
}

static inline float *bel_table_frame(const bel_table *table, uint32_t frame)
{
    return bel_table_item(table->records.at, table->records.bits,
                          table->record_floats * sizeof(float), frame);
}

// The record of a row; with a disk it must be in memory.
static inline float *bel_table_record(const bel_table *table, uint32_t row)
{
    return bel_table_frame(table, table->disk != NULL ? *bel_table_location(table, row) - 1 : row);
}

// The version, modulo 2^32, in a record's last float.
static inline uint32_t bel_table_noted_use(const bel_table *table, const float *record)
{
    uint32_t version;
    memcpy(&version, record + table->record_floats - 1, sizeof version);
    return version;
}

static inline void bel_table_note_use(const bel_table *table, float *record, uint32_t version)
{
    memcpy(record + table->record_floats - 1, &version, sizeof version);
}

// With expire_after: the version of the row's last use, modulo 2^32. It is in the record's last
// float; with a disk in an array, so that a look at all rows reads none, and in copies of records.
static inline uint32_t *bel_table_use_on_disk(const bel_table *table, uint32_t row)
{
    return bel_table_item(table->disk->last_uses.at, BEL_TABLE_KEY_BLOCK_BITS, sizeof(uint32_t),
                          row);
}

static inline uint32_t bel_table_last_use(const bel_table *table, uint32_t row)
{
    if (table->disk != NULL) return *bel_table_use_on_disk(table, row);
    return bel_table_noted_use(table, bel_table_record(table, row));
}

static inline void bel_table_set_last_use(const bel_table *table, uint32_t row, uint32_t version)
{
    if (table->expire_after == 0) return;
    if (table->disk != NULL) *bel_table_use_on_disk(table, row) = version;
    if (table->disk == NULL) bel_table_note_use(table, bel_table_record(table, row), version);
}

// Prefetches what bel_table_last_use reads, but for a record's location.
static inline void bel_table_prefetch_last_use(const bel_table *table, uint32_t row)
{
    if (table->disk != NULL) __builtin_prefetch(bel_table_use_on_disk(table, row));
    if (table->disk == NULL)
        __builtin_prefetch(bel_table_record(table, row) + table->record_floats - 1);
}

// Prefetches the cache lines of `count` floats.
static inline void bel_table_prefetch(const float *record, size_t count)
{
    enum { LINE = 16, LINES = 16 }; // beyond that the hardware prefetcher detects the run
    size_t end = count < LINE * LINES ? count : LINE * LINES;
    for (size_t i = 0; i < end; i += LINE)
        __builtin_prefetch(record + i);
    if (end % LINE != 0) __builtin_prefetch(record + end - 1); // it may extend over one more line
}

// Allocates blocks until there are `needed`. With room for them `at` is not written: with a disk a
// snapshot's reader may be reading it.
static inline bel_status *bel_table_grow_blocks(bel_table_blocks *blocks, size_t needed)
{
    if (needed > blocks->capacity)
        blocks->at = bel_xgrow(blocks->at, &blocks->capacity, needed, sizeof *blocks->at);
    while (blocks->count < needed) {
        void *block;
        BEL_TRY(bel_pages_create(blocks->bytes, false, "rows", &block));
        blocks->at[blocks->count++] = block;
    }
    return NULL;
}

static inline void bel_table_note(bel_table_numbers *numbers, uint32_t row)
{
    numbers->at =
        bel_xgrow(numbers->at, &numbers->capacity, (size_t)numbers->count + 1, sizeof *numbers->at);
    numbers->at[numbers->count++] = row;
}

// --- table_disk.c --------------------------------------------------------------------------------

// Opens the file in a folder; `memory` is for records. RESOURCE_EXHAUSTED: less than four records
// fit; others as bel_table_file_create.
bel_status *bel_table_disk_open(bel_table *table, const char *folder, int64_t memory) BEL_MUST_USE;
void bel_table_disk_close(bel_table *table);
bel_status *bel_table_disk_clear(bel_table *table) BEL_MUST_USE;

// FAILED_PRECONDITION: bel_table_disk_bring has returned an error since the last clear.
bel_status *bel_table_disk_check(const bel_table *table) BEL_MUST_USE;

// Number of rows of a portion from position `at` on, of n: those that bel_table_disk_bring takes.
// Without a disk all.
static inline int64_t bel_table_portion(const bel_table *table, int64_t at, int64_t n)
{
    if (table->disk == NULL || n - at < table->disk->portion) return n - at;
    return table->disk->portion;
}

// Brings the records of a portion of rows (of distinct numbers; BEL_TABLE_REFUSED is no row) to
// memory, where they stay until the next call. A new row's record has its start values. `keys`: of
// new rows. No effect without a disk. Errors: those of the file, and no memory; the table is void
// then.
bel_status *bel_table_disk_bring(bel_table *table, bel_team *team, const int64_t *keys,
                                 const uint32_t *rows, int64_t n) BEL_MUST_USE;

// Forgets the record of a number that is free now. No effect without a disk.
void bel_table_disk_release(bel_table *table, uint32_t row);

// Writes values of rows for bel_table_pull_places, any thread. `stages`: an update of the rows
// follows. Errors: those of the file.
bel_status *bel_table_disk_pull(const bel_table *table, const int64_t *keys, const uint32_t *rows,
                                int64_t n, bool stages, float *out_rows) BEL_MUST_USE;

// --- table_index.c -------------------------------------------------------------------------------

bel_status *bel_table_index_init(bel_table *table) BEL_MUST_USE;
void bel_table_index_deinit(bel_table *table);

// Look-up of n ≤ BEL_TABLE_GROUP keys in two stages, so that the second stage of one group can
// follow the first stage of the next. The first computes hashes and prefetches the index. The
// second finds row numbers, BEL_TABLE_NO_ROW for absent ones, and prefetches `fetch_floats` floats
// of the records.
void bel_table_seek(const bel_table *table, const int64_t *keys, int n, uint64_t *out_hashes);
void bel_table_find(const bel_table *table, const uint64_t *hashes, int n, size_t fetch_floats,
                    uint32_t *out_rows);

// Finds the rows of n keys (table->rows, by position), BEL_TABLE_NO_ROW for the missing ones, and
// reserves room for their copies in a snapshot. `places` is as in bel_table_update.
bel_status *bel_table_look_up(bel_table *table, bel_team *team, const int64_t *keys,
                              const uint32_t *places, int64_t n, int64_t *out_missing) BEL_MUST_USE;

// Then creates the missing rows, with their keys but without content, except that the former place
// of another row has the start values. The numbers of the others start at the former `top`.
// `missing`: the number of BEL_TABLE_NO_ROW in table->rows. `refuses`: keys beyond the limit get
// BEL_TABLE_REFUSED, the last ones first; false: they are an error. After an error nothing has
// changed.
bel_status *bel_table_admit(bel_table *table, bel_team *team, const int64_t *keys, int64_t n,
                            int64_t missing, bool refuses) BEL_MUST_USE;

// Removes a row, which must exist. The caller calls bel_table_count_bytes.
void bel_table_remove(bel_table *table, int64_t key);

void bel_table_count_bytes(bel_table *table); // sets `bytes`

// RESOURCE_EXHAUSTED: the table's limit is below what its first row takes.
bel_status *bel_table_check_limit(const bel_table *table) BEL_MUST_USE;

// Key of a row of the snapshot.
static inline int64_t bel_table_snapshot_key(const bel_table_snapshot_state *snapshot, uint32_t row)
{
    const int64_t *key =
        bel_table_item(snapshot->keys, BEL_TABLE_KEY_BLOCK_BITS, sizeof(int64_t), row);
    return *key;
}

// --- table_uses.c --------------------------------------------------------------------------------

// For a table with uses: counts a use of each key whose row is BEL_TABLE_NO_ROW in table->rows.
// Those that wait further, or for which there is no room to wait, become BEL_TABLE_REFUSED;
// *out_missing: the others, which the update admits. RESOURCE_EXHAUSTED.
bel_status *bel_table_count_uses(bel_table *table, bel_team *team, const int64_t *keys, int64_t n,
                                 int64_t *out_missing) BEL_MUST_USE;
// Then removes the counts of the admitted keys.
void bel_table_settle_uses(bel_table *table);

// --- table_order.c -------------------------------------------------------------------------------

// Writes the snapshot's row numbers, or the given ones (NULL: all), in order of keys, to room for
// all. RESOURCE_EXHAUSTED.
bel_status *bel_table_sort_rows(const bel_table_snapshot_state *snapshot,
                                const bel_table_numbers *numbers, uint32_t *out_order) BEL_MUST_USE;

// Adds a hash to a sum modulo 2^128.
static inline void bel_table_add_hash(bel_hash128 *sum, bel_hash128 hash)
{
    bool carry = __builtin_add_overflow(sum->low, hash.low, &sum->low);
    sum->high += hash.high + carry;
}

// --- table_changes.c -----------------------------------------------------------------------------

void bel_table_changes_init(bel_table *table);
void bel_table_changes_deinit(bel_table *table); // after bel_table_index_deinit
void bel_table_changes_clear(bel_table *table);

static inline uint8_t *bel_table_state(const bel_table *table, uint32_t row)
{
    return bel_table_item(table->changes->states.at, BEL_TABLE_KEY_BLOCK_BITS, 1, row);
}

// Notes that n rows will change, if changes are tracked. `rows` may have BEL_TABLE_REFUSED, and
// rows that are new.
void bel_table_note_changes(bel_table *table, const int64_t *keys, const uint32_t *rows, int n);
// Notes that a row will be removed, whose key and record are still there.
void bel_table_note_removal(bel_table *table, int64_t key, uint32_t row);

// Begins to note changes since the snapshot that was just made; gives it its delta.
void bel_table_changes_mark(bel_table *table);
void bel_table_delta_destroy(bel_table_delta *delta);

// Prepares the snapshot's delta for reading. FAILED_PRECONDITION, RESOURCE_EXHAUSTED.
bel_status *bel_table_order_delta(const bel_table *table, int64_t base) BEL_MUST_USE;

// --- table_snapshot.c ----------------------------------------------------------------------------

// Reserves room for copies of those rows of table->rows[0..n) that have no copy.
bel_status *bel_table_snapshot_reserve(bel_table *table, int64_t n) BEL_MUST_USE;
void bel_table_snapshot_save(bel_table *table, uint32_t row); // call it before the row changes
void bel_table_snapshot_skip(bel_table *table, uint32_t row); // before a new row has that number

// A lock is for 64 neighbors, so that a pass over all rows in the order of their numbers takes few.
static inline pthread_mutex_t *bel_table_snapshot_lock(bel_table_snapshot_state *snapshot,
                                                       uint32_t row)
{
    return &snapshot->locks[row / BEL_TABLE_LOCKED % BEL_TABLE_LOCKS];
}

// Sets where a row's record is; a reader of the snapshot sees the one or the other.
static inline void bel_table_snapshot_move(const bel_table *table, uint32_t row, uint32_t location)
{
    bel_table_snapshot_state *snapshot = table->snapshot;
    bool shared = snapshot != NULL && (int64_t)row < snapshot->top;
    if (shared) pthread_mutex_lock(bel_table_snapshot_lock(snapshot, row));
    *bel_table_location(table, row) = location;
    if (shared) pthread_mutex_unlock(bel_table_snapshot_lock(snapshot, row));
}

// True if the snapshot, if there is one, has a row of that number.
static inline bool bel_table_snapshot_has(const bel_table *table, uint32_t row)
{
    const bel_table_snapshot_state *snapshot = table->snapshot;
    return snapshot != NULL && (int64_t)row < snapshot->top &&
           snapshot->saved[row] != BEL_TABLE_NOT_IN;
}

// Arrays to write rows to, each of which may be NULL.
typedef struct bel_table_outputs {
    int64_t *keys;
    float *rows;
    float *const *slots;
    float *ages; // versions since the last use; the table has expire_after
} bel_table_outputs;

// Reads rows [first, first + n) of an order of the snapshot's rows (NULL: all rows by key).
// Errors: no memory for the order; with a disk those of the file.
bel_status *bel_table_snapshot_read(const bel_table *table, const uint32_t *order, int64_t first,
                                    int64_t n, const bel_table_outputs *out) BEL_MUST_USE;

// Adds the hashes of the ages, at the snapshot, of the rows that were not used since the delta's
// base.
bel_status *bel_table_snapshot_add_ages(const bel_table *table, bel_hash128 *sum) BEL_MUST_USE;

// --- table_start.c -------------------------------------------------------------------------------

void bel_table_start_values(const bel_table *table, int64_t key, float *out_values);
void bel_table_start_slots(const bel_table *table, float *record);

// Prepares a row for an update, after bel_table_note_changes: initializes a new one, saves another
// for the snapshot, and notes the use. Rows from number `old_top` on are new.
static inline void bel_table_prepare(bel_table *table, int64_t old_top, int64_t key, uint32_t row,
                                     float *record)
{
    if ((int64_t)row >= old_top) {
        bel_table_start_values(table, key, record);
        bel_table_start_slots(table, record);
    } else if (table->snapshot != NULL) {
        bel_table_snapshot_save(table, row);
    }
    bel_table_set_last_use(table, row, table->now + 1);
}

#endif
