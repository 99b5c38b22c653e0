// The index from keys to rows, and room for new rows. Rows are admitted in phases. All keys are
// looked up in parallel; missing keys are listed by part in order of positions; all room is
// reserved or released. Then parts are filled in parallel, as no two share a bucket. So row numbers
// do not depend on threads, and an error leaves the table unchanged. A larger part is filled from
// the hashes of the smaller one, without its keys. A part is at most four fifths full, so each
// search ends.
//
// The limit is compared with bytes that are a function of the numbers of rows by part, not of their
// history. So the keys that a full table still admits are the same after a restart.
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "ps/table/table_inner.h"

enum { TILE = 8 * BEL_TABLE_GROUP, PAGE_BUCKETS = 4096 / sizeof(bel_table_bucket), FILL = 4 };

// --- Looking up ----------------------------------------------------------------------------------

typedef struct index_place {
    bel_table_bucket *bucket;
    int at;
} index_place;

static inline int first_free(const bel_table_bucket *bucket)
{
    int at = 0;
    while (bucket->row_after[at] != 0)
        at++;
    return at;
}

// Finds a hash, or the free place where it belongs. Hash 0 equals that of a free place, which is
// the right answer too. A bucket fills from the front, so its last place shows whether it is full.
// The search then continues with the next bucket, wrapping at the end.
static inline index_place find_place(const bel_table_part *part, uint64_t hash)
{
    for (uint64_t b = bel_table_place(part, hash);; b = b + 1 == part->capacity ? 0 : b + 1) {
        bel_table_bucket *bucket = &part->buckets[b];
        unsigned equal = 0;
        for (int i = 0; i < BEL_TABLE_BUCKET; i++)
            equal |= (unsigned)(bucket->hash[i] == hash) << i;
        if (equal != 0) return (index_place){bucket, __builtin_ctz(equal)};
        if (bucket->row_after[BEL_TABLE_BUCKET - 1] == 0) {
            return (index_place){bucket, first_free(bucket)};
        }
    }
}

void bel_table_seek(const bel_table *table, const int64_t *keys, int n, uint64_t *out_hashes)
{
    for (int i = 0; i < n; i++) {
        uint64_t hash = out_hashes[i] = bel_table_hash(keys[i]);
        const bel_table_part *part = &table->parts[bel_table_part_of(hash)];
        __builtin_prefetch(&part->buckets[bel_table_place(part, hash)]);
    }
}

void bel_table_find(const bel_table *table, const uint64_t *hashes, int n, size_t fetch_floats,
                    uint32_t *out_rows)
{
    for (int i = 0; i < n; i++) {
        const bel_table_part *part = &table->parts[bel_table_part_of(hashes[i])];
        index_place found = find_place(part, hashes[i]);
        uint32_t row = found.bucket->row_after[found.at] - 1; // free: NO_ROW
        out_rows[i] = row;
        if (row == BEL_TABLE_NO_ROW || fetch_floats == 0) continue;
        if (table->disk == NULL) bel_table_prefetch(bel_table_record(table, row), fetch_floats);
    }
}

// --- Room ----------------------------------------------------------------------------------------

static void shrink_blocks(bel_table_blocks *blocks, size_t count)
{
    while (blocks->count > count)
        bel_pages_destroy(blocks->at[--blocks->count], blocks->bytes);
}

// Returns the number of blocks that the rows need.
static size_t blocks_for(const bel_table_blocks *blocks, int64_t rows)
{
    return (size_t)((rows + (INT64_C(1) << blocks->bits) - 1) >> blocks->bits);
}

// Returns the first capacity that is enough for `rows`, beginning with `capacity`: one of the fixed
// series of a page, and half more each time in multiples of a page. At most four rows to a bucket
// of five places, on average: 16 to 24 bytes a row.
static uint64_t capacity_for(uint64_t capacity, uint64_t rows)
{
    while (rows > capacity * FILL)
        capacity = (capacity + capacity / 2 + PAGE_BUCKETS - 1) / PAGE_BUCKETS * PAGE_BUCKETS;
    return capacity;
}

// Plan and state of one admission.
typedef struct admission {
    bel_table *table;
    const int64_t *keys;
    const uint32_t *places; // NULL: unknown
    int64_t n;
    _Atomic int64_t missing;
    int64_t first[BEL_TABLE_PARTS + 1]; // start of a part's new rows in table->missing
    bel_table_part grown[BEL_TABLE_PARTS];
    int64_t count, bytes; // the table's afterwards
} admission;

// The table's `top` afterwards: new rows first take free numbers.
static int64_t admission_top(const admission *a)
{
    int64_t unused = a->count - a->table->count - a->table->free.count;
    return a->table->top + (unused > 0 ? unused : 0);
}

static int64_t block_bytes(const bel_table *table, int64_t rows)
{
    const bel_table_disk *disk = table->disk;
    size_t bytes = blocks_for(&table->keys, rows) * table->keys.bytes;
    if (disk != NULL) {
        size_t arrays = table->expire_after > 0 ? 2 : 1;
        bytes += arrays * blocks_for(&disk->locations, rows) * disk->locations.bytes;
        if (rows > disk->frame_count) rows = disk->frame_count;
    }
    return (int64_t)(bytes + blocks_for(&table->records, rows) * table->records.bytes);
}

// Computes what the table will take with its new rows, before any allocation, to compare it with
// the limit. A part that is larger than its rows need, after bel_table_clear, counts as if it were
// not.
static void admission_plan(admission *a, int64_t new_rows)
{
    const bel_table *table = a->table;
    a->count = table->count + new_rows;
    a->bytes = block_bytes(table, a->count);
    for (int p = 0; p < BEL_TABLE_PARTS; p++) {
        bel_table_part *grown = &a->grown[p];
        grown->used = table->parts[p].used + (uint64_t)(a->first[p + 1] - a->first[p]);
        grown->capacity = capacity_for(PAGE_BUCKETS, grown->used);
        a->bytes += (int64_t)(grown->capacity * sizeof(bel_table_bucket));
    }
}

static bool is_within_limit(const bel_table *table, int64_t bytes)
{
    return table->memory_limit == 0 || bytes <= table->memory_limit;
}

// Adds one row to the plan if the table then stays within its limit.
static bool admit_one(admission *a, unsigned part)
{
    const bel_table *table = a->table;
    bel_table_part *grown = &a->grown[part];
    uint64_t capacity = capacity_for(grown->capacity, grown->used + 1);
    int64_t bytes = a->bytes;
    bytes += block_bytes(table, a->count + 1) - block_bytes(table, a->count);
    bytes += (int64_t)((capacity - grown->capacity) * sizeof(bel_table_bucket));
    if (!is_within_limit(table, bytes)) return false;
    grown->capacity = capacity;
    grown->used++;
    a->count++;
    a->bytes = bytes;
    return true;
}

// True if no key can get a row, as one more row would need a block beyond the limit. Then an update
// plans nothing.
static bool is_full(const bel_table *table)
{
    int64_t more = block_bytes(table, table->count + 1) - block_bytes(table, table->count);
    return !is_within_limit(table, table->bytes + more);
}

static void refuse_all(const admission *a)
{
    uint32_t *rows = a->table->rows;
    for (int64_t i = 0; i < a->n; i++)
        rows[i] = rows[i] == BEL_TABLE_NO_ROW ? BEL_TABLE_REFUSED : rows[i];
}

// Refuses the missing keys for which there is no room, in order of positions. A part of the index
// may be full when another still has room. Returns the number of refused keys.
static int64_t refuse_rest(admission *a)
{
    bel_table *table = a->table;
    int64_t refused = 0;
    memset(a->first, 0, sizeof a->first);
    admission_plan(a, 0);
    for (int64_t i = 0; i < a->n; i++) {
        if (table->rows[i] != BEL_TABLE_NO_ROW) continue;
        if (admit_one(a, bel_table_part_of(bel_table_hash(a->keys[i])))) continue;
        table->rows[i] = BEL_TABLE_REFUSED;
        refused++;
    }
    return refused;
}

// Frames get memory when records come into them.
static bel_status *grow_disk_blocks(bel_table *table, int64_t top)
{
    bel_table_disk *disk = table->disk;
    size_t blocks = blocks_for(&disk->locations, top);
    BEL_TRY(bel_table_grow_blocks(&disk->locations, blocks));
    return table->expire_after > 0 ? bel_table_grow_blocks(&disk->last_uses, blocks) : NULL;
}

// On failure some room may be allocated; reserve frees it.
static bel_status *take_room(admission *a)
{
    bel_table *table = a->table;
    int64_t top = admission_top(a);
    BEL_TRY(bel_table_grow_blocks(&table->keys, blocks_for(&table->keys, top)));
    if (table->disk == NULL) {
        BEL_TRY(bel_table_grow_blocks(&table->records, blocks_for(&table->records, top)));
    } else {
        BEL_TRY(grow_disk_blocks(table, top));
    }
    if (table->changes != NULL) {
        bel_table_blocks *states = &table->changes->states;
        BEL_TRY(bel_table_grow_blocks(states, blocks_for(states, top)));
    }
    for (int p = 0; p < BEL_TABLE_PARTS; p++) {
        if (a->grown[p].capacity <= table->parts[p].capacity) continue;
        void *buckets;
        BEL_TRY(bel_pages_create(a->grown[p].capacity * sizeof(bel_table_bucket), false, "an index",
                                 &buckets));
        a->grown[p].buckets = buckets;
    }
    return NULL;
}

// Reserves all room for the planned rows; on failure none.
static bel_status *admission_reserve(admission *a)
{
    bel_table *table = a->table;
    long long new_rows = (long long)(a->count - table->count);
    if (admission_top(a) >= BEL_TABLE_REFUSED || !is_within_limit(table, a->bytes)) {
        return BEL_ERR(
            BEL_RESOURCE_EXHAUSTED,
            "table \"%s\" has %lld rows in %lld bytes; %lld more rows would take it to "
            "%lld bytes, expected at most %lld bytes and %u rows on a shard; hint: raise "
            "table_memory, or use more shards",
            table->name, (long long)table->count, (long long)table->bytes, new_rows,
            (long long)a->bytes,
            (long long)(table->memory_limit > 0 ? table->memory_limit : INT64_MAX),
            BEL_TABLE_REFUSED - 1);
    }
    size_t key_blocks = table->keys.count, record_blocks = table->records.count;
    bel_status *status = take_room(a);
    if (status == NULL) return NULL;
    shrink_blocks(&table->keys, key_blocks);
    shrink_blocks(&table->records, record_blocks);
    for (int p = 0; p < BEL_TABLE_PARTS; p++)
        bel_pages_destroy(a->grown[p].buckets, a->grown[p].capacity * sizeof(bel_table_bucket));
    return bel_status_wrap(status, __FILE__, __LINE__,
                           "table \"%s\" has %lld rows in %lld bytes, %lld more are wanted",
                           table->name, (long long)table->count, (long long)table->bytes, new_rows);
}

// --- New rows ------------------------------------------------------------------------------------

// Looks up the keys whose place is unknown, group by group; returns how many have no row. In a full
// table these are most keys of many updates.
static int64_t find_rest(const admission *a, int64_t first, int64_t end)
{
    int64_t missing = 0;
    for (int64_t i = first; i < end;) {
        int64_t keys[BEL_TABLE_GROUP], positions[BEL_TABLE_GROUP];
        uint64_t hashes[BEL_TABLE_GROUP];
        uint32_t rows[BEL_TABLE_GROUP];
        int n = 0;
        for (; i < end && n < BEL_TABLE_GROUP; i++) {
            a->table->rows[i] = a->places[i];
            keys[n] = a->keys[i];
            positions[n] = i;
            n += a->places[i] == BEL_TABLE_NO_ROW;
        }
        bel_table_seek(a->table, keys, n, hashes);
        bel_table_find(a->table, hashes, n, 0, rows);
        for (int k = 0; k < n; k++) {
            a->table->rows[positions[k]] = rows[k];
            missing += rows[k] == BEL_TABLE_NO_ROW;
        }
    }
    return missing;
}

// The index of the next group is prefetched while this one is looked up.
static int64_t find_all(const admission *a, int64_t first, int64_t end)
{
    int64_t i = first, missing = 0;
    uint64_t hashes[2][BEL_TABLE_GROUP];
    bel_table_seek(a->table, a->keys + i, bel_table_group(i, end), hashes[0]);
    for (int turn = 0; i < end; turn = 1 - turn) {
        int group = bel_table_group(i, end);
        uint32_t *rows = a->table->rows + i;
        i += group;
        bel_table_seek(a->table, a->keys + i, bel_table_group(i, end), hashes[1 - turn]);
        bel_table_find(a->table, hashes[turn], group, 0, rows);
        for (int j = 0; j < group; j++)
            missing += rows[j] == BEL_TABLE_NO_ROW;
    }
    return missing;
}

// Threads of the team look up tiles in parallel. The count is relaxed: the team's end orders it
// before its reader.
static void find_tile(void *argument, int64_t tile)
{
    admission *a = argument;
    int64_t first = tile * TILE, end = first + TILE < a->n ? first + TILE : a->n;
    int64_t missing = a->places != NULL ? find_rest(a, first, end) : find_all(a, first, end);
    if (missing > 0) atomic_fetch_add_explicit(&a->missing, missing, memory_order_relaxed);
}

// Lists the positions of missing keys by part, in order of positions.
static void list_missing(admission *a)
{
    bel_table *table = a->table;
    int64_t place[BEL_TABLE_PARTS] = {0}, next = 0;
    for (int64_t i = 0; i < a->n; i++) {
        if (table->rows[i] != BEL_TABLE_NO_ROW) continue;
        place[bel_table_part_of(bel_table_hash(a->keys[i]))]++;
    }
    for (int p = 0; p < BEL_TABLE_PARTS; p++) {
        int64_t count = place[p];
        a->first[p] = place[p] = next;
        next += count;
    }
    a->first[BEL_TABLE_PARTS] = next;
    for (int64_t i = 0; i < a->n; i++) {
        if (table->rows[i] != BEL_TABLE_NO_ROW) continue;
        table->missing[place[bel_table_part_of(bel_table_hash(a->keys[i]))]++] = (uint32_t)i;
    }
}

// Fills a larger part from a smaller one. Both are in the order of hashes, so one pass over each is
// enough.
static void move_rows(const bel_table_part *from, const bel_table_part *to)
{
    for (uint64_t b = 0; b < from->capacity; b++) {
        const bel_table_bucket *bucket = &from->buckets[b];
        for (int i = 0; i < BEL_TABLE_BUCKET && bucket->row_after[i] != 0; i++) {
            index_place free = find_place(to, bucket->hash[i]);
            free.bucket->hash[free.at] = bucket->hash[i];
            free.bucket->row_after[free.at] = bucket->row_after[i];
        }
    }
}

// Returns the number of the j-th new row: a free one, or the next unused one.
static uint32_t number_of(const bel_table *table, int64_t j)
{
    int64_t free = table->free.count;
    return j < free ? table->free.at[free - 1 - j] : (uint32_t)(table->top + j - free);
}

// Prepares a number that another row had: its record is not beside those of the other new rows, so
// it is initialized here.
static void reuse_row(bel_table *table, int64_t key, uint32_t row)
{
    if (table->snapshot != NULL) bel_table_snapshot_skip(table, row);
    if (table->disk != NULL) return; // when it comes to memory
    float *record = bel_table_record(table, row);
    bel_table_start_values(table, key, record);
    bel_table_start_slots(table, record);
}

// Inserts one part's new rows, in the order of the list: a row's number depends only on the list.
static void insert_part(void *argument, int64_t p)
{
    enum { AHEAD = 16 };
    admission *a = argument;
    bel_table *table = a->table;
    bel_table_part *part = &table->parts[p];
    if (a->grown[p].buckets != NULL) {
        move_rows(part, &a->grown[p]);
        bel_pages_destroy(part->buckets, part->capacity * sizeof *part->buckets);
        *part = a->grown[p];
    }
    part->used = a->grown[p].used;
    for (int64_t j = a->first[p]; j < a->first[p + 1]; j++) {
        if (j + AHEAD < a->first[p + 1]) {
            uint64_t later = bel_table_hash(a->keys[table->missing[j + AHEAD]]);
            __builtin_prefetch(&part->buckets[bel_table_place(part, later)]);
        }
        uint32_t row = number_of(table, j), position = table->missing[j];
        uint64_t hash = bel_table_hash(a->keys[position]);
        if ((int64_t)row < table->top) reuse_row(table, a->keys[position], row);
        index_place free = find_place(part, hash);
        BEL_CHECK(free.bucket->row_after[free.at] == 0); // keys of an update are distinct
        free.bucket->hash[free.at] = hash;
        free.bucket->row_after[free.at] = row + 1;
        *bel_table_key(table, row) = a->keys[position];
        if (table->changes != NULL) *bel_table_state(table, row) = BEL_TABLE_CREATED;
        table->rows[position] = row;
    }
}

// The new rows have the numbers of number_of.
static void take_numbers(const admission *a)
{
    bel_table *table = a->table;
    int64_t new_rows = a->count - table->count, free = table->free.count;
    table->top = admission_top(a);
    table->free.count -= new_rows < free ? new_rows : free;
    table->count = a->count;
}

static void table_index_run(bel_team *team, bel_team_job *job, void *argument, int64_t tiles)
{
    if (team != NULL) {
        bel_team_run(team, job, argument, tiles);
        return;
    }
    for (int64_t tile = 0; tile < tiles; tile++)
        job(argument, tile);
}

// Reserves row numbers and missing positions, in one allocation; the contents are not kept.
static bel_status *grow_scratch(bel_table *table, int64_t n)
{
    if (n <= table->scratch_capacity) return NULL;
    void *memory;
    BEL_TRY_CTX(bel_pages_create((size_t)n * 2 * sizeof(uint32_t), false, "an update", &memory),
                "table \"%s\"", table->name);
    bel_pages_destroy(table->rows, (size_t)table->scratch_capacity * 2 * sizeof(uint32_t));
    table->rows = memory;
    table->missing = table->rows + n;
    table->scratch_capacity = n;
    return NULL;
}

// The snapshot's room is reserved before rows are created, so that an error leaves the table
// unchanged.
bel_status *bel_table_look_up(bel_table *table, bel_team *team, const int64_t *keys,
                              const uint32_t *places, int64_t n, int64_t *out_missing)
{
    BEL_CHECK(n >= 0 && n < UINT32_MAX);
    BEL_TRY(grow_scratch(table, n));
    admission a = {.table = table, .keys = keys, .places = places, .n = n};
    table_index_run(team, find_tile, &a, (n + TILE - 1) / TILE);
    if (table->snapshot != NULL) BEL_TRY(bel_table_snapshot_reserve(table, n));
    *out_missing = atomic_load_explicit(&a.missing, memory_order_relaxed);
    return NULL;
}

bel_status *bel_table_admit(bel_table *table, bel_team *team, const int64_t *keys, int64_t n,
                            int64_t missing, bool refuses)
{
    admission a = {.table = table, .keys = keys, .n = n};
    if (missing == 0) return NULL;
    if (refuses && is_full(table)) {
        refuse_all(&a);
        table->refused += missing;
        return NULL;
    }
    list_missing(&a);
    admission_plan(&a, missing);
    int64_t refused = 0;
    if (refuses && !is_within_limit(table, a.bytes)) {
        refused = refuse_rest(&a);
        list_missing(&a);
    }
    BEL_TRY(admission_reserve(&a));
    table_index_run(team, insert_part, &a, BEL_TABLE_PARTS);
    if (refuses) table->admitted += a.count - table->count;
    take_numbers(&a);
    table->bytes = a.bytes;
    table->refused += refused;
    return NULL;
}

// --- Removal -------------------------------------------------------------------------------------

// Buckets from a hash's first bucket to `bucket`, around the end.
static uint64_t distance(const bel_table_part *part, uint64_t hash, uint64_t bucket)
{
    uint64_t first = bel_table_place(part, hash);
    return bucket >= first ? bucket - first : bucket + part->capacity - first;
}

// Frees a place of a bucket: its last row moves there, as a bucket is filled from the front. True
// if the bucket was full, so that a later bucket may have rows that a search would not reach now.
static bool free_place(bel_table_bucket *bucket, int at)
{
    int last = BEL_TABLE_BUCKET - 1;
    bool full = bucket->row_after[last] != 0;
    while (bucket->row_after[last] == 0)
        last--;
    bucket->hash[at] = bucket->hash[last];
    bucket->row_after[at] = bucket->row_after[last];
    bucket->hash[last] = 0;
    bucket->row_after[last] = 0;
    return full;
}

// Fills the free place of bucket `to` from the first later bucket that has a row whose search
// passes `to`, then that bucket's, and so on. A bucket that is not full ends every search.
static void close_gap(const bel_table_part *part, uint64_t to)
{
    for (uint64_t b = to;;) {
        b = b + 1 == part->capacity ? 0 : b + 1;
        bel_table_bucket *bucket = &part->buckets[b];
        uint64_t passed = b >= to ? b - to : b + part->capacity - to;
        int at = 0;
        while (at < BEL_TABLE_BUCKET && bucket->row_after[at] != 0 &&
               distance(part, bucket->hash[at], b) < passed)
            at++;
        bool found = at < BEL_TABLE_BUCKET && bucket->row_after[at] != 0;
        bool full = bucket->row_after[BEL_TABLE_BUCKET - 1] != 0;
        if (found) {
            bel_table_bucket *gap = &part->buckets[to];
            int free = first_free(gap);
            gap->hash[free] = bucket->hash[at];
            gap->row_after[free] = bucket->row_after[at];
            (void)free_place(bucket, at);
            to = b;
        }
        if (!full) return;
    }
}

void bel_table_remove(bel_table *table, int64_t key)
{
    uint64_t hash = bel_table_hash(key);
    bel_table_part *part = &table->parts[bel_table_part_of(hash)];
    index_place found = find_place(part, hash);
    uint32_t row = found.bucket->row_after[found.at] - 1;
    BEL_CHECK(row != BEL_TABLE_NO_ROW);
    if (table->changes != NULL && table->changes->on) bel_table_note_removal(table, key, row);
    if (free_place(found.bucket, found.at))
        close_gap(part, (uint64_t)(found.bucket - part->buckets));
    part->used--;
    table->count--;
    bool retires = bel_table_snapshot_has(table, row);
    if (!retires) bel_table_disk_release(table, row);
    bel_table_note(retires ? &table->retired : &table->free, row);
}

void bel_table_count_bytes(bel_table *table)
{
    admission a = {.table = table};
    admission_plan(&a, 0);
    table->bytes = a.bytes;
}

// The plan of a table with one row.
bel_status *bel_table_check_limit(const bel_table *table)
{
    int64_t bytes = block_bytes(table, 1) +
                    BEL_TABLE_PARTS * (int64_t)PAGE_BUCKETS * (int64_t)sizeof(bel_table_bucket);
    if (is_within_limit(table, bytes)) return NULL;
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                   "table \"%s\": a limit of %lld bytes holds no row, the first takes %lld bytes; "
                   "hint: raise table_memory",
                   table->name, (long long)table->memory_limit, (long long)bytes);
}

bel_status *bel_table_index_init(bel_table *table)
{
    for (int p = 0; p < BEL_TABLE_PARTS; p++) {
        void *buckets;
        BEL_TRY(
            bel_pages_create(PAGE_BUCKETS * sizeof(bel_table_bucket), false, "an index", &buckets));
        table->parts[p] = (bel_table_part){.buckets = buckets, .capacity = PAGE_BUCKETS};
    }
    bel_table_count_bytes(table);
    return NULL;
}

void bel_table_index_deinit(bel_table *table)
{
    for (int p = 0; p < BEL_TABLE_PARTS; p++) {
        const bel_table_part *part = &table->parts[p];
        bel_pages_destroy(part->buckets, part->capacity * sizeof *part->buckets);
    }
    shrink_blocks(&table->keys, 0);
    shrink_blocks(&table->records, 0);
    if (table->disk != NULL) shrink_blocks(&table->disk->locations, 0);
    if (table->disk != NULL) shrink_blocks(&table->disk->last_uses, 0);
    if (table->changes != NULL) shrink_blocks(&table->changes->states, 0);
    bel_free(table->keys.at);
    bel_free(table->records.at);
    bel_pages_destroy(table->rows, (size_t)table->scratch_capacity * 2 * sizeof(uint32_t));
}
