// Slots for reports, if there is no room for all of them (ps/layout/report_room.h). Parts get slots
// in one order, whatever arrives, and a slot is free when its report is merged or passed. So no
// report waits for a part that has no slot, and a step always continues.
//
// A slot stays with its node until the report has come, also if the worker is replaced meanwhile:
// a predecessor's lane may still write there, and the successor's report has the same bits. Reports
// that have come are kept for the same reason, and a successor begins after them.
#include "base/alloc.h"
#include "ps/server/shard_inner.h"

enum { NO_SLOT = -1 };

static int nodes_of(const bel_shard *shard)
{
    return shard->config.assignment->node_count;
}

// The parts of a report in this step. Until its function is known, those that every function has.
static int parts_now(const bel_shard *shard)
{
    const int *counts = shard->room.counts;
    int least = shard->room.plan.parts;
    if (shard->decision.known) return counts[bel_shard_function(shard)];
    for (int f = 0; f < shard->config.settings.function_count; f++)
        least = counts[f] < least ? counts[f] : least;
    return least;
}

static size_t cells_of(const bel_shard *shard)
{
    return (size_t)shard->room.plan.parts * (size_t)nodes_of(shard);
}

// The part of a chunk in a step of the function; -1: the step does not change it.
static int part_of(const bel_shard *shard, int function, int local)
{
    return shard->room.parts[function * shard->chunk_count + local];
}

static size_t cell_of(const bel_shard *shard, int part, int node)
{
    return (size_t)part * (size_t)nodes_of(shard) + (size_t)node;
}

// --- Life ----------------------------------------------------------------------------------------

static void list_parts(bel_shard *shard)
{
    const bel_layout *layout = shard->config.layout;
    int functions = shard->config.settings.function_count;
    int *order = bel_xcalloc((size_t)layout->chunk_count, sizeof *order);
    size_t count = (size_t)functions * (size_t)shard->chunk_count;
    shard->room.parts = bel_xcalloc(count, sizeof *shard->room.parts);
    for (size_t i = 0; i < count; i++)
        shard->room.parts[i] = -1;
    for (int f = 0; f < functions; f++) {
        int parts = bel_report_order(layout, shard->config.shard, f, order);
        shard->room.counts[f] = parts;
        for (int p = 0; p < parts; p++)
            shard->room.parts[f * shard->chunk_count + bel_shard_local_chunk(shard, order[p])] = p;
    }
    bel_free(order);
}

void bel_shard_create_room(bel_shard *shard)
{
    const bel_shard_config *config = &shard->config;
    bel_shard_room *room = &shard->room;
    bel_rounding rounding = config->settings.rounding;
    size_t limit = config->report_room > 0 ? config->report_room : BEL_REPORT_ROOM;
    if (shard->policy->lockstep && !bel_shard_on_devices(shard))
        room->plan =
            bel_report_room_of(config->layout, config->assignment, config->shard, rounding, limit);
    if (!room->plan.limited) return;
    room->free = bel_xcalloc((size_t)room->plan.slots, sizeof *room->free);
    room->slots = bel_xcalloc(cells_of(shard), sizeof *room->slots);
    room->places = bel_xcalloc(cells_of(shard), sizeof *room->places);
    room->given = bel_xcalloc((size_t)config->assignment->worker_count, sizeof *room->given);
    list_parts(shard);
}

static size_t memory_bytes(const bel_report_room *plan)
{
    return ((size_t)plan->slots + 1) * plan->slot_bytes;
}

bel_status *bel_shard_reserve_room(bel_shard *shard)
{
    void *memory;
    if (shard->room.memory != NULL) return NULL;
    BEL_TRY(bel_pages_create(memory_bytes(&shard->room.plan), false, "reports", &memory));
    shard->room.memory = memory;
    size_t nodes = (size_t)nodes_of(shard);
    for (int i = 0; i < shard->chunk_count && shard->room.plan.merge_levels > 0; i++) {
        shard->chunks[i].levels = bel_xcalloc(nodes, sizeof *shard->chunks[i].levels);
        shard->chunks[i].merging = bel_xcalloc(nodes, sizeof *shard->chunks[i].merging);
    }
    return NULL;
}

void bel_shard_destroy_room(bel_shard *shard)
{
    bel_shard_room *room = &shard->room;
    bel_pages_destroy(room->memory, memory_bytes(&room->plan));
    bel_free(room->free);
    bel_free(room->slots);
    bel_free(room->places);
    bel_free(room->parts);
    bel_free(room->given);
    for (int i = 0; i < shard->chunk_count; i++) {
        bel_free(shard->chunks[i].levels);
        bel_free(shard->chunks[i].merging);
    }
}

static char *slot_at(const bel_shard *shard, int slot)
{
    return shard->room.memory + (size_t)slot * shard->room.plan.slot_bytes;
}

char *bel_shard_slot_of(const bel_shard *shard, int local, int node)
{
    int part = part_of(shard, bel_shard_function(shard), local);
    return slot_at(shard, shard->room.slots[cell_of(shard, part, node)]);
}

// --- Giving slots --------------------------------------------------------------------------------

// A worker that does not have the version yet learns its room with it.
static void tell_locked(bel_shard *shard, int worker)
{
    if (bel_shard_reads_in_place(shard, worker)) return;
    if (shard->workers[worker].version != shard->step) return;
    bel_room_frame room = {.version = shard->step, .parts = shard->room.given[worker]};
    bel_shard_send_locked(shard, shard->config.worker_lanes[worker],
                          bel_room_frame_write(room, NULL, 0));
}

// A report that was read in place may have come before its slot, into which it may be merged.
static void climb_early_ones_locked(bel_shard *shard, int part, int first, int end)
{
    bool early = bel_shard_reads_in_place(shard, shard->config.assignment->nodes[first].worker);
    if (!early || shard->room.plan.merge_levels == 0 || !shard->decision.known) return;
    for (int i = 0; i < shard->chunk_count; i++) {
        if (part_of(shard, bel_shard_function(shard), i) != part) continue;
        for (int k = first; k < end; k++)
            if (shard->chunks[i].nodes[k] != NULL) bel_shard_climb_locked(shard, i, k);
    }
}

// All nodes of a worker get slots together. Workers in this process get some as well, so that the
// numbers of slots are the same for all.
static void give_locked(bel_shard *shard, bool says)
{
    bel_shard_room *room = &shard->room;
    const bel_assignment *assignment = shard->config.assignment;
    int parts = parts_now(shard);
    while (room->part < parts) {
        int w = room->worker, part = room->part;
        int first = assignment->first_node[w], end = assignment->first_node[w + 1];
        if (end - first > room->free_count) return;
        for (int k = first; k < end; k++) {
            size_t cell = cell_of(shard, part, k);
            room->slots[cell] = room->free[--room->free_count];
            atomic_store(&room->places[cell], room->slots[cell]);
        }
        room->given[w] = part + 1;
        room->worker = (w + 1) % assignment->worker_count;
        room->part += room->worker == 0;
        if (!says || first == end) continue;
        tell_locked(shard, w);
        climb_early_ones_locked(shard, part, first, end);
    }
}

void bel_shard_begin_room_locked(bel_shard *shard)
{
    bel_shard_room *room = &shard->room;
    const bel_assignment *assignment = shard->config.assignment;
    if (room->memory == NULL) return;
    atomic_store(&room->version, shard->step); // first: a late report must not look for its slot
    for (size_t i = 0; i < cells_of(shard); i++) {
        room->slots[i] = NO_SLOT;
        atomic_store_explicit(&room->places[i], NO_SLOT, memory_order_relaxed);
    }
    for (int i = 0; i < shard->chunk_count && room->plan.merge_levels > 0; i++) {
        shard->chunks[i].merges = 0;
        for (int k = 0; k < assignment->node_count; k++) {
            shard->chunks[i].levels[k] = (signed char)assignment->nodes[k].level;
            shard->chunks[i].merging[k] = false;
        }
    }
    for (int s = 0; s < room->plan.slots; s++)
        room->free[s] = room->plan.slots - 1 - s; // the first slot is on top
    room->free_count = room->plan.slots;
    room->part = room->worker = 0;
    for (int w = 0; w < assignment->worker_count; w++)
        room->given[w] = 0;
    give_locked(shard, false);
}

static void free_slot(bel_shard *shard, size_t cell)
{
    bel_shard_room *room = &shard->room;
    if (room->slots[cell] == NO_SLOT) return;
    room->free[room->free_count++] = room->slots[cell];
    room->slots[cell] = NO_SLOT;
}

void bel_shard_free_room_locked(bel_shard *shard, int local)
{
    int part = -1;
    if (shard->room.memory == NULL) return;
    if (shard->decision.known) part = part_of(shard, bel_shard_function(shard), local);
    if (part < 0) return;
    for (int k = 0; k < nodes_of(shard); k++)
        free_slot(shard, cell_of(shard, part, k));
    give_locked(shard, true);
}

// --- Reports -------------------------------------------------------------------------------------

// A repeated report goes into a slot that is never read: the first one may be in work.
void *bel_shard_place_in_room(const bel_shard *shard, const bel_report_frame *report, int local)
{
    const bel_shard_room *room = &shard->room;
    int function = bel_decision_function(report->decision);
    int64_t version = atomic_load(&room->version);
    if (report->version > version || function >= shard->config.settings.function_count) return NULL;
    if (report->version < version) return slot_at(shard, room->plan.slots);
    int part = part_of(shard, function, local);
    if (part < 0) return NULL;
    int place = atomic_load(&room->places[cell_of(shard, part, report->node)]);
    return place == NO_SLOT ? NULL : slot_at(shard, place);
}

bool bel_shard_take_room_locked(bel_shard *shard, const bel_frame *frame, int local, int node)
{
    bel_shard_room *room = &shard->room;
    size_t cell = cell_of(shard, part_of(shard, bel_shard_function(shard), local), node);
    if (room->slots[cell] == NO_SLOT || frame->payload != slot_at(shard, room->slots[cell])) {
        bel_shard_fail_locked(shard, frame, "a report without room");
        return false;
    }
    atomic_store(&room->places[cell], room->plan.slots);
    return true;
}

// Leading parts of a worker's report that have come, as its successor need not send them.
static int reported_parts(const bel_shard *shard, int worker)
{
    const bel_assignment *assignment = shard->config.assignment;
    int reported = parts_now(shard);
    if (!shard->decision.known) return 0;
    for (int i = 0; i < shard->chunk_count; i++) {
        int part = part_of(shard, bel_shard_function(shard), i);
        if (part < 0 || part >= reported) continue;
        for (int k = assignment->first_node[worker]; k < assignment->first_node[worker + 1]; k++)
            if (shard->chunks[i].nodes[k] == NULL) reported = part;
    }
    return reported;
}

bool bel_shard_has_parts(const bel_shard *shard, int worker)
{
    const bel_assignment *assignment = shard->config.assignment;
    if (!bel_shard_limits(shard, worker)) return false;
    for (int i = 0; i < shard->chunk_count; i++)
        for (int k = assignment->first_node[worker]; k < assignment->first_node[worker + 1]; k++)
            if (shard->chunks[i].nodes[k] != NULL) return true;
    return false;
}

// A step that is finished here needs no reports.
void bel_shard_tell_room_locked(const bel_shard *shard, int worker, bel_version_frame *version)
{
    if (!bel_shard_limits(shard, worker)) return;
    bool over = version->version < shard->step;
    version->limited = 1;
    version->reported = over ? shard->room.plan.parts : reported_parts(shard, worker);
    version->room = over ? shard->room.plan.parts : shard->room.given[worker];
}

bool bel_shard_waits_for_room(const bel_shard *shard, int worker)
{
    if (!bel_shard_limits(shard, worker)) return false;
    int given = shard->room.given[worker];
    return given < parts_now(shard) && given <= reported_parts(shard, worker);
}

void bel_shard_function_known_locked(bel_shard *shard)
{
    if (shard->room.memory != NULL) give_locked(shard, true);
}

// --- Merging -------------------------------------------------------------------------------------

// A subtree of the summation tree: its nodes [begin, end), and those that hold values.
typedef struct subtree {
    int level, begin, end, heads;
    bool ready; // all reports are there, in slots, and no job reads them
} subtree;

static subtree subtree_of(const bel_shard *shard, int local, int node, int level)
{
    const bel_shard_chunk *chunk = &shard->chunks[local];
    const bel_assignment *assignment = shard->config.assignment;
    int first = assignment->nodes[node].first >> level << level;
    int part = part_of(shard, bel_shard_function(shard), local);
    subtree t = {.level = level, .begin = node, .end = node, .ready = true};
    while (t.begin > 0 && assignment->nodes[t.begin - 1].first >= first)
        t.begin--;
    while (t.end < assignment->node_count && assignment->nodes[t.end].first < first + (1 << level))
        t.end++;
    for (int k = t.begin; k < t.end && t.ready; k++) {
        if (chunk->levels[k] < 0) continue;
        t.heads++;
        t.ready = chunk->nodes[k] != NULL && !chunk->merging[k] &&
                  chunk->levels[k] >= level - shard->room.plan.merge_levels &&
                  shard->room.slots[cell_of(shard, part, k)] != NO_SLOT;
    }
    return t;
}

// Goes up from a value as long as subtrees are complete. When all reports have come, the pass adds
// the rest.
void bel_shard_climb_locked(bel_shard *shard, int local, int node)
{
    bel_shard_chunk *chunk = &shard->chunks[local];
    const bel_assignment *assignment = shard->config.assignment;
    int step = shard->room.plan.merge_levels;
    if (step == 0 || chunk->reported == assignment->node_count) return;
    for (;;) {
        int level = (chunk->levels[node] / step + 1) * step;
        int first = assignment->nodes[node].first >> level << level;
        if (level >= assignment->depth || !bel_assignment_covers(assignment, level, first)) return;
        subtree t = subtree_of(shard, local, node, level);
        if (!t.ready) return;
        if (t.heads > 1) {
            for (int k = t.begin; k < t.end; k++)
                chunk->merging[k] = chunk->levels[k] >= 0;
            chunk->merges++;
            bel_shard_push_locked(
                shard, (bel_shard_job){
                           .kind = BEL_JOB_MERGE, .local = local, .node = t.begin, .level = level});
            return;
        }
        chunk->levels[node] = (signed char)level; // no other replica is below
    }
}

// The subtree's sum is at its first node.
void bel_shard_merged_locked(bel_shard *shard, bel_shard_job job)
{
    bel_shard_chunk *chunk = &shard->chunks[job.local];
    const bel_assignment *assignment = shard->config.assignment;
    int part = part_of(shard, bel_shard_function(shard), job.local);
    int end = assignment->nodes[job.node].first + (1 << job.level);
    chunk->nodes[job.node] = (float *)(void *)bel_shard_slot_of(shard, job.local, job.node);
    chunk->levels[job.node] = (signed char)job.level;
    chunk->merging[job.node] = false;
    chunk->packed[job.node] = bel_shard_rounding(shard, chunk->chunk) != BEL_ROUNDING_NONE;
    for (int k = job.node + 1; k < assignment->node_count && assignment->nodes[k].first < end;
         k++) {
        if (chunk->levels[k] < 0) continue;
        chunk->weights[job.node].replicas += chunk->weights[k].replicas;
        chunk->weights[job.node].examples += chunk->weights[k].examples;
        chunk->weights[k] = (bel_weight){0};
        chunk->levels[k] = -1;
        chunk->merging[k] = false;
        free_slot(shard, cell_of(shard, part, k));
    }
    chunk->merges--;
    bel_shard_climb_locked(shard, job.local, job.node);
    bel_shard_look_at_chunk_locked(shard, job.local);
    give_locked(shard, true);
}
