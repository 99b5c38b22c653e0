// A prefix of the nodes, all merged as far as possible, leaves at most 2^g - 1 subtrees for each
// group of g levels, in a part of the tree on both sides. Half of the slots must hold those, so
// that the other half is free for the next workers' nodes: that is why a step always continues
// (docs/protocol.md, Room for reports).
#include "ps/layout/report_room.h"

enum { SLOT_ALIGN = 64 };

static size_t bytes_of(const bel_chunk *chunk, bel_rounding rounding)
{
    bool packed = chunk->kind == BEL_VARIABLE_TRAINABLE;
    size_t bytes = bel_rounding_bytes(packed ? rounding : BEL_ROUNDING_NONE, chunk->count);
    return (bytes + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
}

// Ends of a prefix of the nodes inside the tree: one, or two in a part that may begin anywhere.
static int edges_of(const bel_assignment *assignment)
{
    bool part = bel_assignment_first(assignment) > 0 ||
                bel_assignment_end(assignment) < assignment->replica_count;
    return part ? 2 : 1;
}

// Most subtrees that a prefix of the nodes leaves.
static int most_subtrees(const bel_assignment *assignment, int levels)
{
    int groups = (assignment->depth + levels - 1) / levels;
    return edges_of(assignment) * ((1 << levels) - 1) * groups;
}

static int at_least(int a, int b)
{
    return a > b ? a : b;
}

bel_report_room bel_report_room_of(const bel_layout *layout, const bel_assignment *assignment,
                                   int shard, bel_rounding rounding, size_t limit)
{
    enum { MOST_LEVELS = 8, MOST_SLOTS = 1 << 20 };
    bel_report_room room = {0};
    size_t all = 0;
    for (int c = 0; c < layout->chunk_count; c++) {
        const bel_chunk *chunk = &layout->chunks[c];
        if (chunk->shard != shard || chunk->kind == BEL_VARIABLE_FROZEN) continue;
        size_t bytes = bytes_of(chunk, rounding);
        room.slot_bytes = bytes > room.slot_bytes ? bytes : room.slot_bytes;
        room.parts++;
        all += bytes;
    }
    if (all * (size_t)assignment->node_count <= limit) return (bel_report_room){0};
    room.limited = true;
    size_t fit = limit / room.slot_bytes;
    room.slots = fit < MOST_SLOTS ? (int)fit : MOST_SLOTS;
    room.slots = at_least(room.slots, 2 * bel_assignment_most_nodes(assignment));
    if (assignment->node_count <= room.slots / 2) return room;
    room.slots = at_least(room.slots, 2 * edges_of(assignment) * assignment->depth);
    room.merge_levels = 1;
    while (room.merge_levels < MOST_LEVELS &&
           most_subtrees(assignment, room.merge_levels + 1) <= room.slots / 2)
        room.merge_levels++;
    return room;
}

int bel_report_room_at_begin(const bel_report_room *room, const bel_assignment *assignment,
                             int worker)
{
    int nodes = assignment->node_count, whole = room->slots / nodes;
    if (!room->limited || whole >= room->parts) return room->parts;
    int left = room->slots - whole * nodes;
    return whole + (assignment->first_node[worker + 1] <= left ? 1 : 0);
}

int bel_report_order(const bel_layout *layout, int shard, int function, int *out_chunks)
{
    int count = 0;
    for (int turn = 0; turn < 2; turn++) {
        for (int c = layout->chunk_count - 1; c >= 0; c--) {
            const bel_chunk *chunk = &layout->chunks[c];
            bool first = chunk->kind == BEL_VARIABLE_TRAINABLE;
            if (chunk->shard != shard || !bel_chunk_changes(chunk, function)) continue;
            if (first == (turn == 0)) out_chunks[count++] = c;
        }
    }
    return count;
}
