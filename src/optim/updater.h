// Parameters that are stored on devices and updated there, for a training whose towers are all on
// them. Programs read the values and write the gradients in place, and one pass over all of them
// makes the next version. Until a checkpoint is due, only numbers of a step cross between the
// process and a device.
//
// Arrays have the layout of the parameter space (ps/layout/layout.h). Every device has all values,
// and the gradients of the replicas that run on it. Slots and averages are cut into one range per
// device. Each device updates its range from the gradients of all replicas, and sends the new
// values to the others. A sum over replicas is the tree of ps/layout/assignment.h. Neither the
// number of devices nor their kind changes the bits, which are those of optim/rule.h.
//
// Implemented for GPUs (cuda/updater.c). One thread at a time calls it.
#ifndef BELFRY_OPTIM_UPDATER_H
#define BELFRY_OPTIM_UPDATER_H

#include "optim/groups.h"

typedef enum bel_update_kind {
    BEL_UPDATE_RULE,  // a parameter: by the rule of its group
    BEL_UPDATE_MEAN,  // mean of the replicas' reports
    BEL_UPDATE_ADD,   // grows by the sum of the replicas' reports
    BEL_UPDATE_FIRST, // report of the first replica that counts
} bel_update_kind;

// At most BEL_GRAIN elements of one variable, from the start of a grain.
typedef struct bel_update_piece {
    int64_t offset; // in the space
    int64_t grain;  // index among all grains
    int32_t count;
    int32_t kind;     // bel_update_kind
    int32_t group;    // RULE: index of its numbers
    int32_t variable; // RULE: index of its factor
} bel_update_piece;

enum { BEL_UPDATER_REPLICAS = 64 }; // at most

// Description of the update. Host arrays have the layout of the space. They and the groups, whose
// numbers are read in each step, must stay valid until `forget`.
typedef struct bel_update_plan {
    const bel_update_piece *pieces; // ascending; elements in no piece never change
    int piece_count;
    const bel_rule_groups *groups;
    int variable_count;
    int64_t grain_count;
    bool norms;               // two passes: a rule or a limit needs norms
    bool trusts;              // norms of values are needed, too
    float *values, *averages; // averages: NULL if not kept
    float *slots[BEL_RULE_MAX_SLOTS];
    int slot_count;
} bel_update_plan;

// Numbers of a step.
typedef struct bel_update_step {
    uint64_t counts;      // bit r: replica r's report counts; 0: nothing changes
    const float *joins;   // bel_assignment_joins
    float scale;          // factor of means: 1 / replicas that count
    float of_gradient;    // factor of a gradient's sum: scale, or 1
    float average_rest;   // bel_rule_average_rest
    const float *factors; // for each variable, in the second pass; 1 in a single pass
} bel_update_step;

typedef struct bel_updater bel_updater;

// Functions that return a status return the device's errors.
typedef struct bel_updater_ops {
    // All values, in the memory of the tower's device. Only for programs of that device.
    const float *(*values)(const bel_updater *updater, int tower);
    // Gradients in the memory of the device of the replica's tower; zeros until a program writes
    // them.
    float *(*gradients)(const bel_updater *updater, int replica);

    // Prepares for steps; copies the pieces. RESOURCE_EXHAUSTED.
    bel_status *(*plan)(bel_updater *updater, const bel_update_plan *plan);
    void (*forget)(bel_updater *updater); // the host arrays; no effect without a plan

    bel_status *(*load)(bel_updater *updater); // from the host arrays to the devices
    bel_status *(*save)(bel_updater *updater); // and back

    // Makes the single pass of a plan without norms. No program of the replicas may run meanwhile,
    // and all that count must have reported.
    bel_status *(*update)(bel_updater *updater, const bel_update_step *step);
    // Makes the first of two passes: states, directions, and the sums of squares of their grains.
    // If a rule trusts, those of values follow: out_squares [grain_count, or twice that]. Sums of
    // grains that belong to no rule are undefined.
    bel_status *(*direct)(bel_updater *updater, const bel_update_step *step, double *out_squares);
    // Makes the second pass, with factors.
    bel_status *(*follow)(bel_updater *updater, const bel_update_step *step);

    // Checks that all devices have the same values, in bits. Needs a plan, and no running program
    // or update. DATA_LOSS: a device differs; the message names it.
    bel_status *(*compare)(bel_updater *updater);

    void (*destroy)(bel_updater *updater);
} bel_updater_ops;

struct bel_updater {
    const bel_updater_ops *ops;
    int device_count;
};

#endif
