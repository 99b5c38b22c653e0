// The update of a whole parameter space in one process, from the gradients of one replica.
//
// A shard updates its chunks from the sum over all replicas (ps/server/pass.c). A learner, and a
// replica that makes local steps, update all variables from a single gradient, with the same rules
// and the same bits: a rule gives an element the same bits wherever its range begins, so segments
// may be cut anywhere and run on any thread. Rules with norms make a first pass, which computes
// directions and their squares.
#ifndef BELFRY_PS_LAYOUT_SPACE_UPDATE_H
#define BELFRY_PS_LAYOUT_SPACE_UPDATE_H

#include "base/thread.h"
#include "optim/groups.h"
#include "ps/layout/layout.h"

// Rules of the variables, and scratch. Not thread-safe: each caller has a separate one. Zero-
// initialize; free with bel_space_update_deinit.
typedef struct bel_space_update {
    const bel_layout *layout;
    const bel_optimizer *main; // borrowed
    bel_rule_groups groups;
    int *group_of;           // by variable
    int slot_count;          // largest number of slots of a variable
    bool needs_norm, trusts; // a variable's rule does
    float *directions;       // trusts: from the first pass, else they take the gradients' array
    double *grain_squares;   // needs_norm
    float *factors;          // needs_norm: by variable
} bel_space_update;

// The arrays of an update, with the layout of the space.
typedef struct bel_space_values {
    float *values;    // updated in place
    float *gradients; // gradients of trainable variables, which are clipped in place, and assigned
                      // values of state variables
    const bool *reported; // by variable: false: no gradient, which is then zero, or no assignment
    float *const *slots;  // by variable and slot, BEL_RULE_MAX_SLOTS each: the slot's first element
    float *averages;      // NULL: not kept
    float average_rest;   // bel_rule_average_rest
} bel_space_values;

// Finds the groups of the variables in a job's only step function. The layout and the optimizers
// must outlive it. RESOURCE_EXHAUSTED: no memory; deinit it in any case.
bel_status *bel_space_update_init(bel_space_update *update, const bel_layout *layout,
                                  const bel_optimizers *optimizers) BEL_MUST_USE;
void bel_space_update_deinit(bel_space_update *update);

// Returns the group of a variable.
static inline const bel_rule_group *bel_space_update_group(const bel_space_update *update,
                                                           int variable)
{
    return &update->groups.items[update->group_of[variable]];
}

// Updates all variables with the numbers of `groups`, on all threads of the team.
void bel_space_update_run(bel_space_update *update, bel_team *team, const bel_space_values *values);

#endif
