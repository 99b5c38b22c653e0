// Parameters that lie on devices and are updated there, for a training whose towers are all on
// them: programs read the values and write the gradients where they lie, and one pass over all of
// them makes the next version. So nothing but numbers of a step crosses between the process and a
// device, until a checkpoint is due.
//
// Arrays are laid out as the parameter space (ps/layout/layout.h). Every device has all values, and
// the gradients of the replicas that run on it. Slots and averages are cut into as many ranges as
// there are devices: each device updates its own range, from the gradients of all replicas, and
// gives the others its new values. A sum over replicas is the tree of ps/layout/assignment.h, so
// neither how many devices there are nor which they are enters the bits, which are those of
// optim/rule.h.
//
// The implementation is the cards' (cuda/updater.c); one thread at a time calls it.
#ifndef BELFRY_OPTIM_UPDATER_H
#define BELFRY_OPTIM_UPDATER_H

#include "optim/groups.h"

typedef enum bel_update_kind {
    BEL_UPDATE_RULE,  // a parameter: by the rule of its group
    BEL_UPDATE_MEAN,  // the mean of what replicas report
    BEL_UPDATE_ADD,   // grows by the sum of what they report
    BEL_UPDATE_FIRST, // what the first replica that counts reports
} bel_update_kind;

// At most BEL_GRAIN elements of one variable, from a grain's begin.
typedef struct bel_update_piece {
    int64_t offset; // in the space
    int64_t grain;  // its number among all grains
    int32_t count;
    int32_t kind;     // bel_update_kind
    int32_t group;    // RULE: of its numbers
    int32_t variable; // RULE: of its factor
} bel_update_piece;

enum { BEL_UPDATER_REPLICAS = 64 }; // at most

// What is updated. Host arrays are laid out as the space; they and the groups, whose numbers are
// read in each step, stay where they are until `forget`.
typedef struct bel_update_plan {
    const bel_update_piece *pieces; // ascending; what is in none never changes
    int piece_count;
    const bel_rule_groups *groups;
    int variable_count;
    int64_t grain_count;
    bool norms;               // two passes: a rule or a limit needs norms
    bool trusts;              // those of values, too
    float *values, *averages; // averages: NULL: none are kept
    float *slots[BEL_RULE_MAX_SLOTS];
    int slot_count;
} bel_update_plan;

// The numbers of a step.
typedef struct bel_update_step {
    uint64_t counts;      // bit r: what replica r reports is taken; none: nothing changes
    const float *joins;   // bel_assignment_joins
    float scale;          // of means: 1 / replicas that count
    float of_gradient;    // what a gradient's sum is multiplied by: that, or 1
    float average_rest;   // bel_rule_average_rest
    const float *factors; // by variable, of the second pass; 1 in the only one
} bel_update_step;

typedef struct bel_updater bel_updater;

// Errors of all that return a status: the device's.
typedef struct bel_updater_ops {
    // In the memory of the tower's device: all values. For programs of that device alone.
    const float *(*values)(const bel_updater *updater, int tower);
    // In the memory of the device of the replica's tower; zeros until a program writes them.
    float *(*gradients)(const bel_updater *updater, int replica);

    // Makes ready for steps; the pieces are copied. RESOURCE_EXHAUSTED.
    bel_status *(*plan)(bel_updater *updater, const bel_update_plan *plan);
    void (*forget)(bel_updater *updater); // the host arrays; without a plan nothing

    bel_status *(*load)(bel_updater *updater); // from the host arrays to the devices
    bel_status *(*save)(bel_updater *updater); // and back

    // The only pass of a plan without norms. No program of the replicas runs meanwhile, and all
    // that count have reported.
    bel_status *(*update)(bel_updater *updater, const bel_update_step *step);
    // The first of two passes: states, directions, and the sums of squares of their grains, behind
    // them those of values where a rule trusts: out_squares [grain_count, or twice as many].
    // Those of grains that belong to no rule mean nothing.
    bel_status *(*direct)(bel_updater *updater, const bel_update_step *step, double *out_squares);
    // The second one, with factors.
    bel_status *(*follow)(bel_updater *updater, const bel_update_step *step);

    // Whether all devices have the same values, in bits; with a plan, and while no program or
    // update runs. DATA_LOSS: one has others, and which.
    bel_status *(*compare)(bel_updater *updater);

    void (*destroy)(bel_updater *updater);
} bel_updater_ops;

struct bel_updater {
    const bel_updater_ops *ops;
    int device_count;
};

#endif
