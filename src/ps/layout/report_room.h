// Room for reports at a shard whose workers share no memory with it, if all workers count.
//
// If a whole report of every worker fits BEL_REPORT_ROOM bytes, each has its place. Otherwise the
// room is a number of equal slots, one for the sums of a node for a chunk, and a worker may send a
// chunk only after the shard has given slots to all its nodes. The shard gives slots in one order:
// chunk after chunk, in the order in which workers report them, and within a chunk worker after
// worker. A worker's reports of one chunk are a *part* of its report; parts have the positions of
// their chunks.
//
// If half of the slots hold the reports of all nodes for a chunk, a pass reads them all. Otherwise
// the shard merges complete subtrees of the summation tree into one slot, `merge_levels` levels at
// a time. So the room does not grow with the number of workers, only with the depth of the tree.
#ifndef BELFRY_PS_LAYOUT_REPORT_ROOM_H
#define BELFRY_PS_LAYOUT_REPORT_ROOM_H

#include "ps/layout/assignment.h"
#include "ps/layout/layout.h"
#include "ps/layout/rounding.h"

enum { BEL_REPORT_ROOM = 32 << 20 }; // bytes

typedef struct bel_report_room {
    bool limited;      // false: there is room for whole reports, and what follows is 0
    int parts;         // chunks of the shard that steps change
    size_t slot_bytes; // room for the largest of these chunks
    int slots;
    int merge_levels; // 0: nothing is merged
} bel_report_room;

// Returns the room at a shard for `limit` bytes. `rounding`: of the sums of trainable
// variables. There are more slots than fit `limit` if otherwise no order of arrival would be safe:
// two for each level of the tree and two for each node of a worker. Thread-safe, as the next.
bel_report_room bel_report_room_of(const bel_layout *layout, const bel_assignment *assignment,
                                   int shard, bel_rounding rounding, size_t limit);

// Returns how many of its parts a worker may send when a step begins, before the shard has passed
// any chunk.
int bel_report_room_at_begin(const bel_report_room *room, const bel_assignment *assignment,
                             int worker);

// Lists the chunks of a shard that a step of the function changes, in the order of their reports:
// trainable variables backward, as their gradients are computed, then all others. Returns their
// number. out_chunks has room for the layout's chunks.
int bel_report_order(const bel_layout *layout, int shard, int function, int *out_chunks);

#endif
