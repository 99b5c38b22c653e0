// Memory of a member that other processes of its host read in place: a shard's parameters, a
// worker's gradients. Without shared memory it is private. A shard's region has two buffers of the
// whole space, with a ledger a copy for each worker, then the rooms for rows; only the pages of its
// chunks are touched, the rest costs nothing. If the shard's state is kept (ps/server/kept.h), the
// rest of the state follows the two buffers: such jobs have neither copies nor rooms.
//
// A worker maps each run of a shard's chunks over its space when the first version has arrived;
// that also replaces the mapping of an earlier generation. Gradients are allocated again with each
// assignment; a shard's region only if there are tables, whose rooms for rows differ.
//
// In a job over several hosts a worker whose reports a relay of its host reads has such a region of
// gradients, and maps the relay's values over its space. The relay keeps its values in a region for
// this, the only copy on the host.
#include <unistd.h>

#include "base/alloc.h"
#include "base/linux_shared.h"
#include "base/log.h"
#include "base/str.h"
#include "member/member_inner.h"

// --- A shard's parameters ------------------------------------------------------------------------

// Calls `each` for every run of neighboring chunks of one shard: offset and bytes, multiples of
// the page size.
static bel_status *each_run(const bel_layout *layout, int shard,
                            bel_status *(*each)(void *context, size_t offset, size_t bytes),
                            void *context)
{
    const size_t page = BEL_LAYOUT_PAGE * sizeof(float);
    for (int c = 0; c < layout->chunk_count;) {
        const bel_chunk *first = &layout->chunks[c], *last = first;
        if (first->shard != shard) {
            c++;
            continue;
        }
        while (++c < layout->chunk_count && layout->chunks[c].shard == shard)
            last = &layout->chunks[c];
        size_t offset = (size_t)first->offset * sizeof(float);
        size_t end = (size_t)(last->offset + last->count) * sizeof(float);
        BEL_TRY(each(context, offset, (end + page - 1) / page * page - offset));
    }
    return NULL;
}

// Two buffers and, with a ledger, a copy for each worker.
static size_t arrays_of(const member *m)
{
    return 2 + (bel_member_has_ledger(m) ? (size_t)m->assignment->worker_count : 0);
}

static const bel_layout *layout_of(const member *m)
{
    return m->worker.here ? m->worker.trainable.layout : m->layout;
}

size_t bel_member_parameter_bytes(const member *m)
{
    const bel_layout *layout = layout_of(m);
    size_t bytes = arrays_of(m) * bel_space_bytes(layout);
    for (int w = 0; w < m->assignment->worker_count; w++)
        bytes += bel_row_buffer_answer_bytes(layout, m->assignment, w);
    return bytes;
}

// The rooms for rows follow the values, worker after worker.
static void place_answers(member *m)
{
    member_shard *s = &m->shard;
    if (s->layout->table_count == 0 && !s->layout->exchanges) return;
    char *room = bel_shm_region_memory(m->shm.parameters);
    room += arrays_of(m) * bel_space_bytes(s->layout);
    s->memory.answer_rooms =
        bel_xcalloc((size_t)m->assignment->worker_count, sizeof *s->memory.answer_rooms);
    for (int w = 0; w < m->assignment->worker_count; w++) {
        s->memory.answer_rooms[w] = room;
        room += bel_row_buffer_answer_bytes(s->layout, m->assignment, w);
    }
}

// Touches one run of chunks, in each array of the region.
static bel_status *touch_run(void *context, size_t offset, size_t bytes)
{
    const member *m = context;
    for (size_t i = 0; i < arrays_of(m); i++)
        bel_shm_region_touch(m->shm.parameters, i * bel_space_bytes(m->shard.layout) + offset,
                             bytes);
    return NULL;
}

void bel_member_look_at_memory(member *m)
{
    int descriptor = m->task->memory;
    size_t bytes = descriptor > 0 ? bel_linux_shared_bytes(descriptor) : 0;
    void *memory = bytes > 0 ? bel_linux_shared_map(descriptor, bytes) : NULL;
    if (memory == NULL) return; // nothing yet, or it cannot be read
    m->shard.held = bel_kept_look(memory, bytes);
    bel_linux_shared_unmap(memory, bytes);
}

static void say_not_kept(const char *why)
{
    bel_log_write(BEL_LOG_DEBUG, "if this process is lost, training goes back to a checkpoint: %s",
                  why);
}

// Makes the region in the memory that the launcher holds for this process and its successors, if
// the shard can keep its state. Otherwise the region is made as without that memory.
static void make_kept(member *m, const bel_layout *layout)
{
    member_shard *s = &m->shard;
    const char *why_not = bel_kept_why_not(layout, &m->settings);
    if (why_not != NULL) {
        say_not_kept(why_not);
        close(m->task->memory);
        return;
    }
    size_t bytes = bel_kept_bytes(layout, s->index, &m->settings);
    bel_status *status = bel_shm_region_keep(m->task->memory, bytes, &m->shm.parameters);
    if (status != NULL) {
        say_not_kept(bel_status_message(status));
        bel_status_ignore(status); // logged
        return;
    }
    s->memory.kept =
        bel_kept_over(bel_shm_region_memory(m->shm.parameters), layout, s->index, &m->settings);
}

// With a hub and a shard the space is in the region, as it is if its state is kept; a process with
// only a worker has a separate space, over which it maps the shards' parts.
bel_status *bel_member_make_parameters(member *m, const bel_layout *layout, bel_space **out_space)
{
    size_t bytes = bel_space_bytes(layout);
    if (m->shard.here && m->task->memory > 0) make_kept(m, layout);
    if (m->shm.parameters == NULL) {
        bool shared = m->shard.here && bel_member_is_on_one_host(m);
        if (!shared) return bel_space_create(layout, 2, out_space);
        BEL_TRY(bel_shm_region_create("belfry-parameters", bel_member_parameter_bytes(m),
                                      &m->shm.parameters));
    }
    char *memory = bel_shm_region_memory(m->shm.parameters);
    float *const buffers[2] = {(float *)(void *)memory, (float *)(void *)(memory + bytes)};
    *out_space = bel_space_over(layout, buffers);
    m->shard.layout = layout;
    place_answers(m);
    return each_run(layout, m->shard.index, touch_run, m); // untouched pages cost nothing
}

void bel_member_forget_answers(member *m)
{
    member_shard *s = &m->shard;
    if (s->memory.answer_rooms == NULL || m->worker.here) return;
    bel_free(s->memory.answer_rooms);
    bel_space_destroy(s->memory.space);
    bel_shm_region_destroy(m->shm.parameters);
    s->memory.answer_rooms = NULL;
    s->memory.space = NULL;
    m->shm.parameters = NULL;
}

// With a ledger worker w's copy is array 2 + w of the region, after the two buffers. The process's
// worker has private memory, and without a hub each copy is an array.
bel_status *bel_member_make_outboxes(member *m)
{
    member_shard *s = &m->shard;
    if (!bel_member_has_ledger(m) || !s->here) return NULL;
    s->memory.outboxes =
        bel_xcalloc((size_t)m->assignment->worker_count, sizeof *s->memory.outboxes);
    for (int w = 0; w < m->assignment->worker_count; w++) {
        bool own = m->worker.here && w == m->task->index;
        if (own) {
            s->memory.outboxes[w] = m->worker.values;
        } else if (bel_member_is_on_one_host(m)) {
            char *memory = bel_shm_region_memory(m->shm.parameters);
            s->memory.outboxes[w] =
                (float *)(void *)(memory + (size_t)(2 + w) * bel_space_bytes(s->layout));
        } else {
            BEL_TRY(bel_space_array(s->layout, "parameters of a worker", &s->memory.outboxes[w]));
        }
    }
    return NULL;
}

typedef struct mapping {
    const bel_shm_region *region;
    bel_space *space;
    size_t first_array, arrays; // in the region: the arrays that replace the buffers
} mapping;

// With a ledger only this worker's copy is mapped, over the first buffer.
static bel_status *map_run(void *context, size_t offset, size_t bytes)
{
    const mapping *map = context;
    size_t space_bytes = bel_space_bytes(map->space->layout);
    for (size_t i = 0; i < map->arrays; i++) {
        char *at = (char *)map->space->buffers[i] + offset;
        size_t from = (map->first_array + i) * space_bytes + offset;
        BEL_TRY(bel_shm_region_map(map->region, from, bytes, at));
    }
    return NULL;
}

// The first version has arrived, and with it every shard's or the relay's memory: maps its parts
// over the space, where they replace those of an earlier generation.
bel_status *bel_member_attach(void *context)
{
    const member *m = context;
    const bel_layout *layout = m->worker.trainable.layout;
    for (int k = 0; k < layout->shard_count; k++) {
        if (m->shard.here && m->shard.index == k) continue;
        int lane = bel_member_is_on_one_host(m) ? k : 0; // a relay has the values of all shards
        mapping map = {bel_shm_lane_peer(m->worker.lanes[lane]), m->worker.space, 0, 2};
        if (bel_member_has_ledger(m)) {
            map.first_array = 2 + (size_t)m->task->index;
            map.arrays = 1;
        }
        if (map.region == NULL)
            return BEL_ERR(BEL_UNAVAILABLE, "%s %d has gone",
                           bel_member_is_on_one_host(m) ? "shard" : "the relay of worker",
                           bel_member_is_on_one_host(m) ? k : m->relays.place.worker);
        BEL_TRY_CTX(each_run(layout, k, map_run, &map), "memory of shard %d", k);
    }
    return NULL;
}

// --- A worker's gradients ------------------------------------------------------------------------

// Differences of values, and the sums of each node.
static size_t rounded_bytes(const member *m)
{
    const int *first = m->assignment->first_node;
    int nodes = first[m->task->index + 1] - first[m->task->index];
    return bel_rounding_bytes(m->settings.rounding, m->worker.trainable.layout->size * (1 + nodes));
}

// Without such readers: rooms for rows, and for rounded values, only of this process.
static bel_status *make_own_rooms(member *m)
{
    member_worker *w = &m->worker;
    if (m->settings.rounding != BEL_ROUNDING_NONE)
        BEL_TRY(bel_pages_create(rounded_bytes(m), false, "rounded sums", &w->rounded_room));
    size_t sent = bel_row_buffer_bytes(w->trainable.layout, m->assignment, m->task->index);
    size_t got = bel_row_buffer_answer_bytes(w->trainable.layout, m->assignment, m->task->index);
    if (sent == 0) return NULL;
    BEL_TRY(bel_pages_create(sent, false, "rows", &w->row_buffer));
    if (got == 0) return NULL;
    return bel_pages_create(got, false, "rows", &w->answer_room);
}

// For readers in place one region holds the ranges, one after the other, followed by the rooms for
// rows.
bel_status *bel_member_make_ranges(member *m)
{
    member_worker *w = &m->worker;
    const bel_layout *layout = w->trainable.layout;
    w->range_count = bel_assignment_replicas(m->assignment, m->task->index);
    if (!bel_member_reports_in_place(m)) {
        BEL_TRY(make_own_rooms(m));
        return bel_space_arrays(layout, "gradients", w->range_count, &w->ranges);
    }
    size_t bytes = bel_space_bytes(layout), count = (size_t)w->range_count;
    size_t rows = bel_row_buffer_bytes(layout, m->assignment, m->task->index);
    BEL_TRY(bel_shm_region_create("belfry-gradients", count * bytes + rows, &m->shm.gradients));
    bel_shm_region_touch(m->shm.gradients, 0, count * bytes);
    char *memory = bel_shm_region_memory(m->shm.gradients);
    w->ranges = bel_xcalloc(count, sizeof *w->ranges);
    for (size_t r = 0; r < count; r++)
        w->ranges[r] = (float *)(void *)(memory + r * bytes);
    w->row_buffer = memory + count * bytes;
    return NULL;
}

void bel_member_free_ranges(member *m)
{
    member_worker *w = &m->worker;
    if (m->shm.gradients != NULL) {
        bel_free(w->ranges);
    } else if (w->ranges != NULL) {
        int index = m->task->index;
        bel_pages_destroy(w->row_buffer,
                          bel_row_buffer_bytes(w->trainable.layout, m->assignment, index));
        bel_pages_destroy(w->answer_room,
                          bel_row_buffer_answer_bytes(w->trainable.layout, m->assignment, index));
        bel_pages_destroy(w->rounded_room, rounded_bytes(m));
        bel_space_free_arrays(w->trainable.layout, w->ranges, w->range_count);
    }
    bel_shm_region_destroy(m->shm.gradients);
    m->shm.gradients = NULL;
    w->ranges = NULL;
    w->row_buffer = w->answer_room = w->rounded_room = NULL;
}

// --- A relay's values ----------------------------------------------------------------------------

bel_status *bel_member_make_relay_values(member *m)
{
    size_t bytes = 2 * bel_space_bytes(m->worker.trainable.layout);
    if (m->shm.parameters != NULL) return NULL;
    BEL_TRY(bel_shm_region_create("belfry-parameters", bytes, &m->shm.parameters));
    bel_shm_region_touch(m->shm.parameters, 0, bytes);
    return NULL;
}

// A shard's memory is also its worker's, and stays.
void bel_member_forget_values(member *m)
{
    if (m->shard.here) return;
    bel_space_destroy(m->worker.space);
    bel_shm_region_destroy(m->shm.parameters);
    m->worker.space = NULL;
    m->shm.parameters = NULL;
}

// --- The end -------------------------------------------------------------------------------------

void bel_member_free_memory(member *m)
{
    const member_worker *w = &m->worker;
    const member_shard *s = &m->shard;
    for (int i = 0; s->memory.outboxes != NULL && i < m->assignment->worker_count; i++) {
        bool own = w->here && i == m->task->index;
        if (!bel_member_is_on_one_host(m) && !own)
            bel_space_free_array(s->layout, s->memory.outboxes[i]);
    }
    bel_free(s->memory.outboxes);
    bel_free(s->memory.answer_rooms);
    bel_kept_destroy(s->memory.kept);
    bel_member_free_ranges(m);
    bel_shm_region_destroy(m->shm.parameters);
}
