// What workers and shard 0 say to each other of a collective (belfry/collective.h), beside the
// fields of its frames. A value goes in pieces, so that rooms of one size serve every model; a
// piece's payload is
//
//   worker → shard   bel_exchange_head, its slots, and the elements of each slot
//   shard → worker   the slots of the answer, and their elements
//
// A slot is a node of the summation tree (REDUCE), or a replica (GATHER, BROADCAST), that has a
// value. The answer to REDUCE and BROADCAST is one slot, to GATHER one for each replica; in a slot
// of no replicas nothing is said.
//
// Rooms are those of ps/layout/row_buffer.h. A worker says where in its room for answers the answer
// shall lie, and uses its room again only behind answers.
#ifndef BELFRY_PS_LAYOUT_EXCHANGE_H
#define BELFRY_PS_LAYOUT_EXCHANGE_H

#include "belfry/collective.h"
#include "ps/layout/assignment.h"

enum {
    BEL_EXCHANGE_ROOM = 1 << 18, // bytes, of each direction
    BEL_EXCHANGE_PIECES = 32,    // under way at once, at most
    BEL_EXCHANGE_ALIGN = 64,
    BEL_EXCHANGE_FILE = 64,
};

typedef enum bel_exchange_kind {
    BEL_EXCHANGE_REDUCE,
    BEL_EXCHANGE_SCATTER, // as REDUCE; who gets which part is the workers' affair
    BEL_EXCHANGE_GATHER,
    BEL_EXCHANGE_BROADCAST,
    BEL_EXCHANGE_KIND_COUNT
} bel_exchange_kind;

// All but `slots` must be the same from all workers. Without padding.
typedef struct bel_exchange_head {
    int32_t kind, reduce, dtype;
    int32_t source; // BROADCAST: the replica
    int32_t line;   // where it was called
    int32_t slots;
    int32_t rank;                 // of a slot's value as a whole
    int32_t unused;               // 0
    int64_t dims[BEL_MAX_RANK];   // of the value as a whole; 0 behind its rank
    int64_t total;                // elements of it
    int64_t elements;             // of a slot, in this piece
    char file[BEL_EXCHANGE_FILE]; // filled up with zeros; the end of a name that is too long
} bel_exchange_head;

typedef struct bel_exchange_slot {
    int32_t first;    // replica: of the node, or itself
    int32_t replicas; // that have examples; 0: there is no value
    int64_t examples; // or how they count (bel_weight)
} bel_exchange_slot;

static inline size_t bel_exchange_bytes(const bel_exchange_head *head, int64_t slots)
{
    size_t size = bel_dtype_size((bel_dtype)head->dtype);
    return (size_t)slots * (sizeof(bel_exchange_slot) + (size_t)head->elements * size);
}

// Bytes of a contribution with head->slots slots, and of the answer where there are so many
// replicas.
static inline size_t bel_exchange_sent(const bel_exchange_head *head)
{
    return sizeof *head + bel_exchange_bytes(head, head->slots);
}
static inline size_t bel_exchange_answered(const bel_exchange_head *head, int replicas)
{
    return bel_exchange_bytes(head, head->kind == BEL_EXCHANGE_GATHER ? replicas : 1);
}

#endif
