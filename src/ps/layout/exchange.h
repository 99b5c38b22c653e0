// Payloads of the frames in which workers and shard 0 exchange a collective's values
// (belfry/collective.h). A value is sent in pieces, so rooms of one size serve every model. A
// piece's payload is
//
//   worker → shard   bel_exchange_head, its slots, and the elements of each slot
//   shard → worker   the slots of the answer, and their elements
//
// A slot is a node of the summation tree (REDUCE) or a replica (GATHER, BROADCAST) with a value.
// The answer to REDUCE and BROADCAST has one slot, the answer to GATHER one for each replica; the
// elements of a slot with no replicas mean nothing.
//
// The rooms are described in ps/layout/row_buffer.h. A worker says where in its room for answers it
// wants the answer, and reuses its rooms only after the answers arrived.
#ifndef BELFRY_PS_LAYOUT_EXCHANGE_H
#define BELFRY_PS_LAYOUT_EXCHANGE_H

#include "belfry/collective.h"
#include "ps/layout/assignment.h"

enum {
    BEL_EXCHANGE_ROOM = 1 << 18, // bytes, in each direction
    BEL_EXCHANGE_PIECES = 32,    // maximum number under way
    BEL_EXCHANGE_ALIGN = 64,
    BEL_EXCHANGE_FILE = 64,
};

typedef enum bel_exchange_kind {
    BEL_EXCHANGE_REDUCE,
    BEL_EXCHANGE_SCATTER, // as REDUCE; the workers decide who gets which part
    BEL_EXCHANGE_GATHER,
    BEL_EXCHANGE_BROADCAST,
    BEL_EXCHANGE_KIND_COUNT
} bel_exchange_kind;

// All fields but `slots` must be the same from all workers. Without padding.
typedef struct bel_exchange_head {
    int32_t kind, reduce, dtype;
    int32_t source; // BROADCAST: the source replica
    int32_t line;   // source line of the call
    int32_t slots;
    int32_t rank;                 // rank of a slot's complete value
    int32_t unused;               // 0
    int64_t dims[BEL_MAX_RANK];   // the complete value's; 0 after its rank
    int64_t total;                // elements of the complete value
    int64_t elements;             // elements of a slot in this piece
    char file[BEL_EXCHANGE_FILE]; // padded with zeros; the end of a name that is too long
} bel_exchange_head;

typedef struct bel_exchange_slot {
    int32_t first;    // replica: the node's first, or the replica itself
    int32_t replicas; // number with examples; 0: there is no value
    int64_t examples; // number of examples, or their weight (bel_weight)
} bel_exchange_slot;

static inline size_t bel_exchange_bytes(const bel_exchange_head *head, int64_t slots)
{
    size_t size = bel_dtype_size((bel_dtype)head->dtype);
    return (size_t)slots * (sizeof(bel_exchange_slot) + (size_t)head->elements * size);
}

// Returns the bytes of a contribution with head->slots slots.
static inline size_t bel_exchange_sent(const bel_exchange_head *head)
{
    return sizeof *head + bel_exchange_bytes(head, head->slots);
}
// Returns the bytes of the answer for that number of replicas.
static inline size_t bel_exchange_answered(const bel_exchange_head *head, int replicas)
{
    return bel_exchange_bytes(head, head->kind == BEL_EXCHANGE_GATHER ? replicas : 1);
}

#endif
