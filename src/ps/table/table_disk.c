// Records of a table that is larger than its memory. Frames in memory have the records that were
// used last; the others are in a file. Which record is where has no effect on a bit.
//
// An update brings its rows to memory in portions: rows of a portion stay until it is done. Room is
// made by a clock. Its hand goes over the frames, takes one from the uses of each, and lets go
// those that have no more. A use counts up to three, and a record that has just come has none. So a
// record that is used once, as most of a power law, goes before those that are used often. Many
// records go at once, in order of keys: into neighboring cells of the file, with one write. So a
// checkpoint, which reads in order of keys, reads neighbors. A pull moves no record. It keeps those
// that it reads from the file, as far as there is room, for the update that follows.
//
// The thread that updates is the only one that moves records. While there is a snapshot it does so
// under the lock of the row's number (table_snapshot.c).
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "ps/table/table_inner.h"

enum {
    LEAST_FRAMES = 4,
    MOST_PORTION = 16384,
    MOST_USES = 3,
    PINNED = 128,
    TILE = 256, // cells that a thread of the team reads at once
    LEAST_SEGMENT = 256 << 10,
    MOST_SEGMENT = 4 << 20,
    AHEAD = 16,
    STAGED_SHARE = 16, // share in the records in memory
    MOST_STAGED = 16384,
};

// --- Creation ------------------------------------------------------------------------------------

static size_t record_bytes(const bel_table *table)
{
    return table->record_floats * sizeof(float);
}

static bel_table_blocks blocks_of_numbers(void)
{
    return (bel_table_blocks){.bits = BEL_TABLE_KEY_BLOCK_BITS,
                              .bytes = sizeof(uint32_t) << BEL_TABLE_KEY_BLOCK_BITS};
}

static bel_status *create_frames(bel_table *table)
{
    bel_table_disk *disk = table->disk;
    size_t frames = (size_t)disk->frame_count, rows = (size_t)disk->victim_capacity;
    size_t blocks = (frames >> table->records.bits) + 1;
    table->records.at = bel_xcalloc(blocks, sizeof *table->records.at); // it never moves
    table->records.capacity = blocks;
    void *owners, *uses;
    BEL_TRY(bel_pages_create(frames * sizeof *disk->owners, false, "frames", &owners));
    disk->owners = owners;
    BEL_TRY(bel_pages_create(frames, false, "frames", &uses));
    disk->uses = uses;
    disk->cold = bel_xcalloc((size_t)disk->portion, sizeof *disk->cold);
    disk->cold_spare = bel_xcalloc((size_t)disk->portion, sizeof *disk->cold_spare);
    disk->cold_frames = bel_xcalloc((size_t)disk->portion, sizeof *disk->cold_frames);
    void *staged = NULL;
    BEL_TRY(bel_pages_create(disk->staged_count * record_bytes(table), false, "frames", &staged));
    disk->staged_records = staged;
    disk->staged = bel_xcalloc(disk->staged_count, sizeof *disk->staged);
    disk->victims = bel_xcalloc(2 * rows, sizeof *disk->victims);
    disk->victim_rows = bel_xcalloc(rows, sizeof *disk->victim_rows);
    disk->victim_cells = bel_xcalloc(rows, sizeof *disk->victim_cells);
    disk->victim_records = bel_xcalloc(rows, sizeof *disk->victim_records);
    return NULL;
}

static size_t segment_size(int64_t memory)
{
    int64_t bytes = memory / 16;
    return (size_t)(bytes < LEAST_SEGMENT  ? LEAST_SEGMENT
                    : bytes > MOST_SEGMENT ? MOST_SEGMENT
                                           : bytes);
}

bel_status *bel_table_disk_open(bel_table *table, const char *folder, int64_t memory)
{
    int64_t frames = memory / (int64_t)record_bytes(table);
    if (frames < LEAST_FRAMES) {
        return BEL_ERR(
            BEL_RESOURCE_EXHAUSTED,
            "%lld bytes hold %lld rows of %zu bytes, expected room for %d or more; hint: "
            "raise table_memory",
            (long long)memory, (long long)frames, record_bytes(table), LEAST_FRAMES);
    }
    bel_table_disk *disk = table->disk = bel_xcalloc(1, sizeof *disk);
    if (frames > BEL_TABLE_IN_FILE - 2) frames = BEL_TABLE_IN_FILE - 2;
    for (int64_t n = 1; n <= frames / STAGED_SHARE && n <= MOST_STAGED; n *= 2)
        disk->staged_count = (size_t)n;
    frames -= (int64_t)disk->staged_count;
    disk->frame_count = frames;
    disk->portion = frames / 4 < MOST_PORTION ? frames / 4 : MOST_PORTION;
    pthread_mutex_init(&disk->staged_mutex, NULL);
    disk->locations = disk->last_uses = blocks_of_numbers();
    BEL_TRY(bel_table_file_create(folder, record_bytes(table), segment_size(memory),
                                  BEL_TABLE_CELLS, &disk->file));
    disk->victim_capacity = disk->frame_count / 8;
    if (disk->victim_capacity > bel_table_file_segment(disk->file))
        disk->victim_capacity = bel_table_file_segment(disk->file);
    if (disk->victim_capacity < disk->portion) disk->victim_capacity = disk->portion;
    return create_frames(table);
}

void bel_table_disk_close(bel_table *table)
{
    bel_table_disk *disk = table->disk;
    if (disk == NULL) return;
    bel_table_file_destroy(disk->file);
    bel_pages_destroy(disk->owners, (size_t)disk->frame_count * sizeof *disk->owners);
    bel_pages_destroy(disk->uses, (size_t)disk->frame_count);
    pthread_mutex_destroy(&disk->staged_mutex);
    bel_pages_destroy(disk->staged_records, disk->staged_count * record_bytes(table));
    bel_free(disk->staged);
    bel_free(disk->unused.at);
    bel_free(disk->pinned.at);
    bel_free(disk->locations.at);
    bel_free(disk->last_uses.at);
    bel_free(disk->cold);
    bel_free(disk->cold_spare);
    bel_free(disk->cold_frames);
    bel_free(disk->victims);
    bel_free(disk->victim_rows);
    bel_free(disk->victim_cells);
    bel_free(disk->victim_records);
    bel_free(disk);
    table->disk = NULL;
}

bel_status *bel_table_disk_clear(bel_table *table)
{
    bel_table_disk *disk = table->disk;
    if (disk == NULL) return NULL;
    for (size_t b = 0; b < disk->locations.count; b++)
        memset(disk->locations.at[b], 0, disk->locations.bytes);
    memset(disk->owners, 0, (size_t)disk->taken * sizeof *disk->owners);
    memset(disk->uses, 0, (size_t)disk->taken);
    if (disk->staged_count > 0) memset(disk->staged, 0, disk->staged_count * sizeof *disk->staged);
    disk->taken = disk->hand = disk->unused.count = disk->pinned.count = 0;
    disk->failed = false;
    return bel_table_file_clear(disk->file);
}

// --- Making room ---------------------------------------------------------------------------------

static void free_frame(bel_table_disk *disk, uint32_t frame)
{
    disk->owners[frame] = 0;
    disk->uses[frame] = 0;
    bel_table_note(&disk->unused, frame);
}

// Moves the hand until it has found n records that may go: at most three quarters of the frames
// are pinned or wanted, so it ends.
static void choose_victims(bel_table *table, int64_t n)
{
    bel_table_disk *disk = table->disk;
    for (int64_t found = 0; found < n;) {
        int64_t frame = disk->hand;
        disk->hand = frame + 1 == disk->taken ? 0 : frame + 1;
        if (disk->owners[frame] == 0 || (disk->uses[frame] & PINNED) != 0) continue;
        if (disk->uses[frame] > 0) {
            disk->uses[frame]--;
            continue;
        }
        uint32_t row = disk->owners[frame] - 1;
        disk->uses[frame] = PINNED; // it is not found again
        disk->victims[found++] = (bel_keyed){*bel_table_key(table, row), row};
    }
}

static bool is_at(void *context, uint32_t row, uint32_t cell)
{
    const bel_table *table = context;
    return (int64_t)row < table->top &&
           *bel_table_location(table, row) == (BEL_TABLE_IN_FILE | cell);
}

static void moved(void *context, uint32_t row, uint32_t cell)
{
    bel_table_snapshot_move(context, row, BEL_TABLE_IN_FILE | cell);
}

// Writes n records to the file and frees their frames.
static bel_status *let_go(bel_table *table, int64_t n)
{
    bel_table_disk *disk = table->disk;
    choose_victims(table, n);
    const bel_keyed *sorted = bel_sort_keyed(disk->victims, disk->victims + n, n);
    for (int64_t i = 0; i < n; i++) {
        disk->victim_rows[i] = sorted[i].number;
        disk->victim_records[i] = bel_table_record(table, sorted[i].number);
    }
    BEL_TRY(bel_table_file_append(disk->file, disk->victim_rows, disk->victim_records, n,
                                  disk->victim_cells));
    for (int64_t i = 0; i < n; i++) {
        uint32_t row = disk->victim_rows[i], frame = *bel_table_location(table, row) - 1;
        bel_table_snapshot_move(table, row, BEL_TABLE_IN_FILE | disk->victim_cells[i]);
        free_frame(disk, frame);
    }
    return NULL;
}

// Makes room for n records: at least n frames are free afterwards, and have memory.
static bel_status *make_room(bel_table *table, int64_t n)
{
    bel_table_disk *disk = table->disk;
    int64_t room = disk->unused.count + disk->frame_count - disk->taken;
    if (room < n) {
        int64_t some = disk->frame_count / 8, segment = bel_table_file_segment(disk->file);
        if (some > segment) some = segment;
        BEL_TRY(let_go(table, some > n - room ? some : n - room));
    }
    int64_t more = n - disk->unused.count;
    if (more <= 0) return NULL;
    return bel_table_grow_blocks(&table->records,
                                 (size_t)((disk->taken + more - 1) >> table->records.bits) + 1);
}

// --- Staging -------------------------------------------------------------------------------------

// The place for a row's record, of which there is at least one.
static size_t stage_of(const bel_table_disk *disk, uint32_t row)
{
    return row * UINT32_C(0x9E3779B1) >> 7 & (disk->staged_count - 1);
}

static float *staged_record(const bel_table *table, size_t place)
{
    return table->disk->staged_records + place * table->record_floats;
}

// Keeps a record that a pull has read. Another one in its place is lost.
static void stage(const bel_table *table, uint32_t row, const float *record)
{
    bel_table_disk *disk = table->disk;
    if (disk->staged_count == 0) return;
    size_t place = stage_of(disk, row);
    pthread_mutex_lock(&disk->staged_mutex);
    disk->staged[place] = (bel_table_staged){
        .row_after = row + 1, .cell = *bel_table_location(table, row) & ~BEL_TABLE_IN_FILE};
    memcpy(staged_record(table, place), record, record_bytes(table));
    pthread_mutex_unlock(&disk->staged_mutex);
}

// Returns what is staged for the row, and forgets it.
static bel_table_staged forget_staged(const bel_table_disk *disk, uint32_t row)
{
    bel_table_staged none = {.row_after = 0};
    if (disk->staged_count == 0) return none;
    bel_table_staged *place = &disk->staged[stage_of(disk, row)], found = *place;
    if (found.row_after != row + 1) return none;
    place->row_after = 0;
    return found;
}

// Copies a staged record, if there is one. It is forgotten when the row comes to memory or goes, so
// it is as in its cell.
static bool take_staged(const bel_table *table, uint32_t row, uint32_t cell, float *out_record)
{
    bel_table_staged found = forget_staged(table->disk, row);
    if (found.row_after == 0 || found.cell != cell) return false;
    memcpy(out_record, staged_record(table, stage_of(table->disk, row)), record_bytes(table));
    return true;
}

void bel_table_disk_release(bel_table *table, uint32_t row)
{
    bel_table_disk *disk = table->disk;
    if (disk == NULL) return;
    uint32_t location = *bel_table_location(table, row);
    *bel_table_location(table, row) = BEL_TABLE_NO_RECORD;
    if (location == BEL_TABLE_NO_RECORD) return;
    if ((location & BEL_TABLE_IN_FILE) == 0) {
        free_frame(disk, location - 1);
        return;
    }
    bel_table_file_drop(disk->file, location & ~BEL_TABLE_IN_FILE);
    forget_staged(disk, row); // another row may have its number and, one day, its cell
}

// --- Bringing ------------------------------------------------------------------------------------

static void pin(bel_table_disk *disk, uint32_t frame, int uses)
{
    disk->uses[frame] = (uint8_t)(PINNED | uses);
    bel_table_note(&disk->pinned, frame);
}

static void unpin_all(bel_table_disk *disk)
{
    for (int64_t i = 0; i < disk->pinned.count; i++)
        disk->uses[disk->pinned.at[i]] &= (uint8_t)~PINNED;
    disk->pinned.count = 0;
}

// A record comes into a free frame, pinned and without uses.
static uint32_t take_frame(bel_table_disk *disk, uint32_t row)
{
    uint32_t frame =
        disk->unused.count > 0 ? disk->unused.at[--disk->unused.count] : (uint32_t)disk->taken++;
    disk->owners[frame] = row + 1;
    pin(disk, frame, 0);
    return frame;
}

typedef struct bringing {
    bel_table *table;
    const uint32_t *rows;  // the portion's
    const bel_keyed *cold; // positions of those in the file, by cell
    int64_t cold_count, new_count;
} bringing;

// Pins the records that are in memory, and lists those in the file.
static void look_at_rows(bringing *b, int64_t n)
{
    bel_table_disk *disk = b->table->disk;
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n && b->rows[i + AHEAD] != BEL_TABLE_REFUSED)
            __builtin_prefetch(bel_table_location(b->table, b->rows[i + AHEAD]));
        if (b->rows[i] == BEL_TABLE_REFUSED) continue;
        uint32_t location = *bel_table_location(b->table, b->rows[i]);
        if (location == BEL_TABLE_NO_RECORD) {
            b->new_count++;
        } else if ((location & BEL_TABLE_IN_FILE) != 0) {
            disk->cold[b->cold_count++] = (bel_keyed){location & ~BEL_TABLE_IN_FILE, (uint32_t)i};
        } else {
            int uses = disk->uses[location - 1];
            pin(disk, location - 1, uses < MOST_USES ? uses + 1 : MOST_USES);
        }
    }
}

static bel_status *take_record(void *context, uint32_t position, uint32_t row, const float *record)
{
    const bringing *b = context;
    bel_table *table = b->table;
    uint32_t wanted = b->rows[position];
    if (row != wanted) {
        return bel_table_file_damage(table->disk->file,
                                     *bel_table_location(table, wanted) & ~BEL_TABLE_IN_FILE);
    }
    memcpy(bel_table_frame(table, table->disk->cold_frames[position]), record, record_bytes(table));
    return NULL;
}

static bel_status *read_tile(void *context, int64_t tile)
{
    const bringing *b = context;
    int64_t first = tile * TILE, n = b->cold_count - first < TILE ? b->cold_count - first : TILE;
    return bel_table_file_fetch(b->table->disk->file, b->cold + first, n, take_record, context);
}

// Threads read into distinct frames. The records stay where they are until all have been read. The
// sort leaves staged records in place, after the others.
static bel_status *read_records(bringing *b, bel_team *team)
{
    bel_table *table = b->table;
    bel_table_disk *disk = table->disk;
    if (b->cold_count == 0) return NULL;
    int64_t n = b->cold_count, rest = 0;
    for (int64_t k = 0; k < n; k++) { // those that are not staged go to the front
        bel_keyed cell = disk->cold[k];
        uint32_t row = b->rows[cell.number], frame = take_frame(disk, row);
        disk->cold_frames[cell.number] = frame;
        if (take_staged(table, row, (uint32_t)cell.key, bel_table_frame(table, frame))) continue;
        disk->cold[k] = disk->cold[rest];
        disk->cold[rest++] = cell;
    }
    b->cold_count = rest;
    b->cold = bel_sort_keyed(disk->cold, disk->cold_spare, rest);
    if (team != NULL) {
        BEL_TRY(bel_team_try(team, read_tile, b, (b->cold_count + TILE - 1) / TILE));
    } else {
        BEL_TRY(bel_table_file_fetch(disk->file, b->cold, b->cold_count, take_record, b));
    }
    for (int64_t k = 0; k < n; k++) {
        const bel_keyed *cell = k < rest ? &b->cold[k] : &disk->cold[k];
        bel_table_snapshot_move(table, b->rows[cell->number], disk->cold_frames[cell->number] + 1);
        bel_table_file_drop(disk->file, (uint32_t)cell->key);
    }
    return NULL;
}

bel_status *bel_table_disk_check(const bel_table *table)
{
    if (table->disk == NULL || !table->disk->failed) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "table \"%s\" is of no use since an error of its file, until it is cleared",
                   table->name);
}

static bel_status *bring_portion(bel_table *table, bel_team *team, const int64_t *keys,
                                 const uint32_t *rows, int64_t n)
{
    bel_table_disk *disk = table->disk;
    unpin_all(disk);
    const bel_table_file_owner owner = {.is_at = is_at, .moved = moved, .context = table};
    BEL_TRY(bel_table_file_tidy(disk->file, &owner)); // before any cell is noted
    bringing b = {.table = table, .rows = rows};
    look_at_rows(&b, n);
    BEL_TRY(make_room(table, b.new_count + b.cold_count));
    BEL_TRY(read_records(&b, team));
    for (int64_t i = 0; b.new_count > 0 && i < n; i++) {
        if (rows[i] == BEL_TABLE_REFUSED) continue;
        if (*bel_table_location(table, rows[i]) != BEL_TABLE_NO_RECORD) continue;
        uint32_t frame = take_frame(disk, rows[i]);
        *bel_table_location(table, rows[i]) = frame + 1;
        bel_table_start_values(table, keys[i], bel_table_frame(table, frame));
        bel_table_start_slots(table, bel_table_frame(table, frame));
        b.new_count--;
    }
    return NULL;
}

bel_status *bel_table_disk_bring(bel_table *table, bel_team *team, const int64_t *keys,
                                 const uint32_t *rows, int64_t n)
{
    bel_table_disk *disk = table->disk;
    if (disk == NULL) return NULL;
    BEL_CHECK(n <= disk->portion);
    BEL_TRY(bel_table_disk_check(table));
    bel_status *status = bring_portion(table, team, keys, rows, n);
    disk->failed = status != NULL;
    return status;
}

// --- Pulling -------------------------------------------------------------------------------------

typedef struct pulling {
    const bel_table *table;
    const uint32_t *rows;
    float *out_rows;
    bool stages;
} pulling;

static bel_status *take_values(void *context, uint32_t position, uint32_t row, const float *record)
{
    const pulling *p = context;
    uint32_t wanted = p->rows[position];
    int width = p->table->width;
    if (row != wanted) {
        return bel_table_file_damage(p->table->disk->file,
                                     *bel_table_location(p->table, wanted) & ~BEL_TABLE_IN_FILE);
    }
    memcpy(p->out_rows + (int64_t)position * width, record, (size_t)width * sizeof *record);
    if (p->stages) stage(p->table, row, record);
    return NULL;
}

// Prefetches a row's record, if it is in memory.
static void fetch_ahead(const bel_table *table, uint32_t row)
{
    if (row == BEL_TABLE_NO_ROW) return;
    uint32_t location = *bel_table_location(table, row);
    if ((location & BEL_TABLE_IN_FILE) != 0) return;
    bel_table_prefetch(bel_table_frame(table, location - 1), (size_t)table->width);
}

bel_status *bel_table_disk_pull(const bel_table *table, const int64_t *keys, const uint32_t *rows,
                                int64_t n, bool stages, float *out_rows)
{
    size_t capacity = 0;
    int64_t count = 0;
    bel_keyed *cold = NULL;
    BEL_TRY(bel_table_disk_check(table));
    for (int64_t i = 0; i < n; i++) {
        float *out = out_rows + i * table->width;
        if (i + 2 * AHEAD < n && rows[i + 2 * AHEAD] != BEL_TABLE_NO_ROW)
            __builtin_prefetch(bel_table_location(table, rows[i + 2 * AHEAD]));
        if (i + AHEAD < n) fetch_ahead(table, rows[i + AHEAD]);
        if (rows[i] == BEL_TABLE_NO_ROW) {
            bel_table_start_values(table, keys[i], out);
            continue;
        }
        uint32_t location = *bel_table_location(table, rows[i]);
        if ((location & BEL_TABLE_IN_FILE) == 0) {
            memcpy(out, bel_table_frame(table, location - 1), (size_t)table->width * sizeof *out);
            continue;
        }
        cold = bel_xgrow(cold, &capacity, 2 * (size_t)(count + 1), sizeof *cold);
        cold[count++] = (bel_keyed){location & ~BEL_TABLE_IN_FILE, (uint32_t)i};
    }
    pulling p = {.table = table, .rows = rows, .out_rows = out_rows, .stages = stages};
    bel_status *status = NULL;
    if (count > 0) {
        const bel_keyed *sorted = bel_sort_keyed(cold, cold + count, count);
        status = bel_table_file_fetch(table->disk->file, sorted, count, take_values, &p);
    }
    bel_free(cold);
    return status;
}
