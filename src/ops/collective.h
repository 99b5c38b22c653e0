// What a collective is, as its attributes say it.
#ifndef BELFRY_OPS_COLLECTIVE_H
#define BELFRY_OPS_COLLECTIVE_H

#include "belfry/collective.h"
#include "ops/op.h"
#include "tensor/moments.h"

typedef struct bel_collective {
    bel_op op;            // ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER or BROADCAST_FROM
    bel_reduce_op reduce; // or BEL_REDUCE_MOMENTS (tensor/moments.h), of ALL_REDUCE alone
    int source;           // BROADCAST_FROM: the replica
    int replicas;         // that take part, where all have examples
    bool weighted;  // what replica r gives counts as its gradient does in the step, w_r, and what
                    // replica i is given is divided by w_i: the form of a gradient
    bool needs_all; // a replica without examples is an error
    int index;      // of the graph's collectives
} bel_collective;

bel_collective bel_collective_read(bel_op op, const bel_attr_list *attrs);

static inline bool bel_op_is_collective(bel_op op)
{
    return (bel_op_get(op)->flags & BEL_OP_COLLECTIVE) != 0;
}

#endif
