// The memory is: two buffers of values, arrays of slots, the averages, then values, slots and
// averages of the snapshot, each as large as the space; words for each chunk; room for a copy of
// one piece of each chunk; shard 0's ring of points; the head, in the last page. Words are written
// in the order in which a successor must see them. A kill stops a thread between two instructions,
// and what it has stored by then reaches memory, also stores past the caches. So release stores are
// enough.
#include "ps/server/kept.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "optim/groups.h"
#include "ps/layout/space.h"
#include "ps/server/control.h"
#include "ps/server/shard_inner.h"

enum { PAGE = BEL_LAYOUT_PAGE * sizeof(float) };

static const uint64_t magic = UINT64_C(0x3274706b79726662); // "bfrykpt2"

// State of a chunk. Within a pass, `done` of its pieces are finished, and the first `copied` have
// been copied; a piece that was copied and is not finished may be half updated.
typedef struct kept_chunk {
    _Atomic int64_t version;
    _Atomic int64_t opened; // 1 + the version on which the pass is made; 0: no pass
    _Atomic int64_t done, copied;
    int64_t offset, count; // the copied piece
} kept_chunk;

typedef struct kept_head {
    uint64_t magic;
    _Atomic uint32_t generation; // 0: no state
    uint32_t chunk_count;
    int64_t loaded;
    _Atomic int64_t step;
    uint64_t chunks;             // offset of the words in the memory
    _Atomic int64_t point_count; // so far
    _Atomic int64_t saved_ns;    // 0: not saved
    _Atomic int64_t snapshot;    // 0: none
} kept_head;

struct bel_kept {
    char *memory;
    size_t space_bytes;
    int slots; // arrays
    bool averages;
    kept_chunk *chunks;
    float *copies;             // by chunk: `arrays` pieces
    bel_control_point *points; // a point's number modulo BEL_KEPT_POINTS; NULL: another shard
    kept_head *head;
};

const char *bel_kept_why_not(const bel_layout *layout, const bel_shard_settings *settings)
{
    if (settings->counting.kind != BEL_COUNTING_ALL) return "not all workers count in every step";
    if (bel_counting_is_local(&settings->counting)) return "workers make local steps";
    if (settings->function_count > 1) return "the program's loop has several step functions";
    if (layout->table_count > 0) return "the model has tables";
    if (layout->exchanges) return "replicas exchange values in the middle of a step";
    for (int v = 0; v < layout->variable_count; v++) {
        const char *name = layout->variables[v].name;
        if (bel_rule_get(bel_optimizers_find(settings->optimizers, name))->trusts)
            return "the optimizer has trust ratios";
    }
    return NULL;
}

// --- The memory ----------------------------------------------------------------------------------

static bool has_averages(const bel_shard_settings *settings)
{
    return settings->optimizers->main.moving_average_decay > 0; // alike in all optimizers
}

static int slots_of(const bel_shard_settings *settings)
{
    return bel_optimizers_kept(settings->optimizers) - has_averages(settings);
}

static size_t chunks_of(const bel_layout *layout, int shard)
{
    size_t count = 0;
    for (int c = 0; c < layout->chunk_count; c++)
        count += layout->chunks[c].shard == shard;
    return count;
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

// Sizes of the parts, in their order.
typedef struct parts {
    size_t arrays, chunks, copies, points;
} parts;

static parts find_parts(const bel_layout *layout, int shard, const bel_shard_settings *settings)
{
    size_t changed = (size_t)slots_of(settings) + has_averages(settings);
    size_t chunks = chunks_of(layout, shard);
    return (parts){.arrays = (2 + changed + 1 + changed) * bel_space_bytes(layout),
                   .chunks = whole_pages(chunks * sizeof(kept_chunk)),
                   .copies = whole_pages(chunks * changed * BEL_SHARD_PIECE * sizeof(float)),
                   .points =
                       shard == 0 ? whole_pages(BEL_KEPT_POINTS * sizeof(bel_control_point)) : 0};
}

size_t bel_kept_bytes(const bel_layout *layout, int shard, const bel_shard_settings *settings)
{
    parts p = find_parts(layout, shard, settings);
    return p.arrays + p.chunks + p.copies + p.points + PAGE;
}

bel_kept *bel_kept_over(void *memory, const bel_layout *layout, int shard,
                        const bel_shard_settings *settings)
{
    parts p = find_parts(layout, shard, settings);
    bel_kept *kept = bel_xcalloc(1, sizeof *kept);
    *kept = (bel_kept){.memory = memory,
                       .space_bytes = bel_space_bytes(layout),
                       .slots = slots_of(settings),
                       .averages = has_averages(settings)};
    kept->chunks = (kept_chunk *)(void *)(kept->memory + p.arrays);
    kept->copies = (float *)(void *)(kept->memory + p.arrays + p.chunks);
    char *rest = kept->memory + p.arrays + p.chunks + p.copies;
    if (shard == 0) kept->points = (bel_control_point *)(void *)rest;
    kept->head = (kept_head *)(void *)(rest + p.points);
    uint32_t chunks = (uint32_t)chunks_of(layout, shard);
    bool known = kept->head->magic == magic && kept->head->chunks == p.arrays &&
                 kept->head->chunk_count == chunks;
    if (known) return kept;
    kept->head->chunks = p.arrays;
    kept->head->chunk_count = chunks;
    bel_kept_clear(kept);
    kept->head->magic = magic;
    return kept;
}

void bel_kept_destroy(bel_kept *kept)
{
    bel_free(kept);
}

bel_kept_state bel_kept_look(const void *memory, size_t bytes)
{
    bel_kept_state state = {0};
    if (bytes < PAGE || bytes % PAGE != 0) return state;
    const kept_head *head = (const kept_head *)(const void *)((const char *)memory + bytes - PAGE);
    size_t room = bytes - PAGE;
    bool good = head->magic == magic && head->chunks <= room &&
                head->chunk_count <= (room - head->chunks) / sizeof(kept_chunk);
    if (!good || atomic_load(&head->generation) == 0) return state;
    state.generation = atomic_load(&head->generation);
    state.step = atomic_load(&head->step);
    state.snapshot = atomic_load(&head->snapshot);
    return state;
}

static float *array_at(const bel_kept *kept, int index)
{
    return (float *)(void *)(kept->memory + (size_t)index * kept->space_bytes);
}

float *bel_kept_buffer(const bel_kept *kept, int buffer)
{
    return array_at(kept, buffer);
}

float *bel_kept_slots(const bel_kept *kept, int slot)
{
    BEL_CHECK(slot < kept->slots);
    return array_at(kept, 2 + slot);
}

float *bel_kept_averages(const bel_kept *kept)
{
    BEL_CHECK(kept->averages);
    return array_at(kept, 2 + kept->slots);
}

// The snapshot's arrays follow in the same order, with one of values.
static int first_of_snapshot(const bel_kept *kept)
{
    return 2 + kept->slots + kept->averages;
}

float *bel_kept_snapshot_values(const bel_kept *kept)
{
    return array_at(kept, first_of_snapshot(kept));
}

float *bel_kept_snapshot_slots(const bel_kept *kept, int slot)
{
    BEL_CHECK(slot < kept->slots);
    return array_at(kept, first_of_snapshot(kept) + 1 + slot);
}

float *bel_kept_snapshot_averages(const bel_kept *kept)
{
    BEL_CHECK(kept->averages);
    return array_at(kept, first_of_snapshot(kept) + 1 + kept->slots);
}

// --- The state -----------------------------------------------------------------------------------

// A pass that was open is void: the version may come again.
void bel_kept_clear(bel_kept *kept)
{
    atomic_store(&kept->head->generation, 0);
    for (uint32_t c = 0; c < kept->head->chunk_count; c++)
        atomic_store(&kept->chunks[c].opened, 0);
    atomic_store(&kept->head->point_count, 0);
    bel_kept_set_snapshot(kept, 0);
}

void bel_kept_begin(bel_kept *kept, uint32_t generation, int64_t loaded, int64_t step)
{
    kept->head->loaded = loaded;
    bel_kept_set_step(kept, step);
    atomic_store(&kept->head->generation, generation);
}

void bel_kept_set_step(bel_kept *kept, int64_t step)
{
    atomic_store_explicit(&kept->head->step, step, memory_order_release);
}

void bel_kept_set_snapshot(bel_kept *kept, int64_t version)
{
    atomic_store(&kept->head->snapshot, version);
}

int64_t bel_kept_snapshot(const bel_kept *kept)
{
    return atomic_load(&kept->head->snapshot);
}

bool bel_kept_holds(const bel_kept *kept)
{
    return atomic_load(&kept->head->generation) != 0;
}

int64_t bel_kept_loaded(const bel_kept *kept)
{
    return kept->head->loaded;
}

int64_t bel_kept_version(const bel_kept *kept, int local)
{
    return atomic_load(&kept->chunks[local].version);
}

// The pass that was open is complete with it.
void bel_kept_set_version(bel_kept *kept, int local, int64_t version)
{
    atomic_store_explicit(&kept->chunks[local].version, version, memory_order_release);
}

void bel_kept_set_saved(bel_kept *kept, int64_t ns)
{
    atomic_store(&kept->head->saved_ns, ns);
}

int64_t bel_kept_saved(const bel_kept *kept)
{
    return atomic_load(&kept->head->saved_ns);
}

// --- Points --------------------------------------------------------------------------------------

void bel_kept_add_point(bel_kept *kept, const bel_control_point *point)
{
    int64_t count = bel_kept_end_point(kept);
    kept->points[count % BEL_KEPT_POINTS] = *point;
    atomic_store_explicit(&kept->head->point_count, count + 1, memory_order_release);
}

void bel_kept_drop_points_after(bel_kept *kept, int64_t step)
{
    int64_t first = bel_kept_first_point(kept), end = bel_kept_end_point(kept);
    while (end > first && kept->points[(end - 1) % BEL_KEPT_POINTS].step > step)
        end--;
    atomic_store(&kept->head->point_count, end);
}

int64_t bel_kept_first_point(const bel_kept *kept)
{
    int64_t end = bel_kept_end_point(kept);
    return end > BEL_KEPT_POINTS ? end - BEL_KEPT_POINTS : 0;
}

int64_t bel_kept_end_point(const bel_kept *kept)
{
    return atomic_load(&kept->head->point_count);
}

void bel_kept_read_point(const bel_kept *kept, int64_t number, bel_control_point *out_point)
{
    *out_point = kept->points[number % BEL_KEPT_POINTS];
}

// --- Pieces --------------------------------------------------------------------------------------

// Copies a piece of every array that changes in place, here or back.
static void copy_arrays(const bel_kept *kept, int local, int64_t offset, int64_t count, bool back)
{
    int arrays = kept->slots + kept->averages;
    float *copy = kept->copies + (size_t)local * (size_t)arrays * BEL_SHARD_PIECE;
    for (int k = 0; k < arrays; k++, copy += BEL_SHARD_PIECE) {
        float *there = array_at(kept, 2 + k) + offset;
        memcpy(back ? there : copy, back ? copy : there, (size_t)count * sizeof(float));
    }
}

int64_t bel_kept_open_chunk(bel_kept *kept, int local, int64_t version)
{
    kept_chunk *chunk = &kept->chunks[local];
    if (atomic_load(&chunk->opened) != version + 1) { // 0 stands for no pass
        atomic_store_explicit(&chunk->opened, 0, memory_order_release);
        atomic_store_explicit(&chunk->done, 0, memory_order_release);
        atomic_store_explicit(&chunk->copied, 0, memory_order_release);
        atomic_store_explicit(&chunk->opened, version + 1, memory_order_release);
    }
    int64_t done = atomic_load(&chunk->done);
    if (atomic_load(&chunk->copied) > done)
        copy_arrays(kept, local, chunk->offset, chunk->count, true);
    return done;
}

void bel_kept_copy_piece(bel_kept *kept, int local, int64_t piece, int64_t offset, int64_t count)
{
    kept_chunk *chunk = &kept->chunks[local];
    copy_arrays(kept, local, offset, count, false);
    chunk->offset = offset;
    chunk->count = count;
    atomic_store_explicit(&chunk->copied, piece + 1, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst); // the update's stores come after it
}

void bel_kept_end_piece(bel_kept *kept, int local, int64_t piece)
{
    atomic_store_explicit(&kept->chunks[local].done, piece + 1, memory_order_release);
}
