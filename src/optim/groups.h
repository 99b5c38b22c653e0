// Groups: variables and tables with the same optimizer and the same factors of learning rate and
// weight decay in the same step function. Each has the numbers of a step once; mostly there is one.
#ifndef BELFRY_OPTIM_GROUPS_H
#define BELFRY_OPTIM_GROUPS_H

#include "optim/optimizers.h"
#include "optim/rule.h"

typedef struct bel_rule_group {
    int function;
    const bel_optimizer *optimizer; // borrowed
    const bel_rule *rule;
    double lr_factor, decay_factor;
    bel_rule_step numbers; // of the step that was begun
} bel_rule_group;

typedef struct bel_rule_groups { // zero-initialise, free with bel_rule_groups_deinit
    bel_rule_group *items;
    int count;
    size_t capacity;
} bel_rule_groups;

// The number of the group of a variable or table in a step function, made if it is the first. The
// optimizers must stay as long as the groups.
int bel_rule_groups_find(bel_rule_groups *groups, const bel_optimizers *optimizers, int function,
                         const char *name);

// The numbers of a step: rules and schedules count the steps of their own function, of which
// runs[f] were made before.
void bel_rule_groups_begin(bel_rule_groups *groups, const int64_t *runs);

void bel_rule_groups_deinit(bel_rule_groups *groups);

#endif
