// Description of a collective, read from its attributes.
#ifndef BELFRY_OPS_COLLECTIVE_H
#define BELFRY_OPS_COLLECTIVE_H

#include "belfry/collective.h"
#include "ops/op.h"
#include "tensor/moments.h"

typedef struct bel_collective {
    bel_op op;            // ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER or BROADCAST_FROM
    bel_reduce_op reduce; // or BEL_REDUCE_MOMENTS (tensor/moments.h), only for ALL_REDUCE
    int source;           // BROADCAST_FROM: the replica
    int replicas;         // number of participants, if all have examples
    bool weighted;  // values of replica r have its weight w_r in the step, and values received by
                    // replica i are divided by w_i: the form of a gradient
    bool needs_all; // a replica without examples is an error
    int index;      // index in the graph's collectives
} bel_collective;

bel_collective bel_collective_read(bel_op op, const bel_attr_list *attrs);

static inline bool bel_op_is_collective(bel_op op)
{
    return (bel_op_get(op)->flags & BEL_OP_COLLECTIVE) != 0;
}

#endif
