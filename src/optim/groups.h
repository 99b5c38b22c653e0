// Groups of variables and tables that have the same optimizer and the same factors of learning rate
// and weight decay in the same step function. Each group stores the numbers of a step once; usually
// there is one group.
#ifndef BELFRY_OPTIM_GROUPS_H
#define BELFRY_OPTIM_GROUPS_H

#include "optim/optimizers.h"
#include "optim/rule.h"

typedef struct bel_rule_group {
    int function;
    const bel_optimizer *optimizer; // borrowed
    const bel_rule *rule;
    double lr_factor, decay_factor;
    bel_rule_step numbers; // numbers of the current step
} bel_rule_group;

typedef struct bel_rule_groups { // zero-initialize, free with bel_rule_groups_deinit
    bel_rule_group *items;
    int count;
    size_t capacity;
} bel_rule_groups;

// Finds the group of a variable or table in a step function, or creates it; returns its number. The
// optimizers must outlive the groups.
int bel_rule_groups_find(bel_rule_groups *groups, const bel_optimizers *optimizers, int function,
                         const char *name);

// Computes the numbers of a step. Schedules count the steps of their function, of which runs[f]
// were made before. Rules count its updates: updates[f], the same number without local steps.
void bel_rule_groups_begin(bel_rule_groups *groups, const int64_t *runs, const int64_t *updates);

void bel_rule_groups_deinit(bel_rule_groups *groups);

#endif
