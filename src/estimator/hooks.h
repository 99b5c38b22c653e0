// The hooks of a training as the rooms call them: copied, as one of an older program is shorter.
#ifndef BELFRY_ESTIMATOR_HOOKS_H
#define BELFRY_ESTIMATOR_HOOKS_H

#include "belfry/estimator.h"
#include "estimator/run_log.h"

struct bel_hook_context {
    const bel_estimator *estimator;
    bool *stop;       // set to true by a request; NULL: it has no effect
    bel_run_log *log; // of texts; NULL: they have no effect
    int64_t step;
};

typedef struct bel_hooks {
    bel_hook items[BEL_MAX_HOOKS + 1]; // the last one: the memory of a loop (master/replicator.h)
    int count;
} bel_hooks;

// INVALID_ARGUMENT: too many, one without a name, a period below 0; one with a state without memory
// for it, or whose name is no plain one (it names a file) or that of another hook.
bel_status *bel_hooks_init(bel_hooks *hooks, const bel_train_spec *spec) BEL_MUST_USE;

// How often the master's after_step wants to hear of a step: 0: never.
int64_t bel_hooks_period(const bel_hooks *hooks);

// True when a worker has something to call.
bool bel_hooks_for_workers(const bel_hooks *hooks);

// The calls, each of all hooks in their order, up to the first error, which names the hook.
bel_status *bel_hooks_begin(const bel_hooks *hooks, bel_hook_context *context,
                            int64_t step) BEL_MUST_USE;
bel_status *bel_hooks_after_step(const bel_hooks *hooks, bel_hook_context *context,
                                 const bel_step_report *step) BEL_MUST_USE;
bel_status *bel_hooks_after_save(const bel_hooks *hooks, bel_hook_context *context, int64_t step,
                                 const char *folder) BEL_MUST_USE;
bel_status *bel_hooks_after_evaluation(const bel_hooks *hooks, bel_hook_context *context,
                                       const char *name, const bel_result *result) BEL_MUST_USE;
bel_status *bel_hooks_end(const bel_hooks *hooks, bel_hook_context *context,
                          const bel_result *result) BEL_MUST_USE;
bel_status *bel_hooks_before_worker(const bel_hooks *hooks, bel_hook_context *context,
                                    int64_t step) BEL_MUST_USE;
bel_status *bel_hooks_after_worker(const bel_hooks *hooks, bel_hook_context *context,
                                   const bel_step_report *step) BEL_MUST_USE;

#endif
