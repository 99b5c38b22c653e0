// Hooks of a training, in the form for their callers: copied, as an older program's is shorter.
#ifndef BELFRY_ESTIMATOR_HOOKS_H
#define BELFRY_ESTIMATOR_HOOKS_H

#include "belfry/estimator.h"
#include "report/run_log.h"

struct bel_hook_context {
    const bel_estimator *estimator;
    bool *stop;       // set to true by a request; NULL: requests have no effect
    bel_run_log *log; // log of texts; NULL: texts have no effect
    int64_t step;
};

typedef struct bel_hooks {
    bel_hook items[BEL_MAX_HOOKS + 1]; // last one: a loop's memory (master/job/replicator.h)
    int count;
} bel_hooks;

// Copies and checks the hooks. INVALID_ARGUMENT: too many, one without a name, a period below 0;
// one with a state but without memory for it, or whose name is not plain (it names a file) or is
// another hook's.
bel_status *bel_hooks_init(bel_hooks *hooks, const bel_train_spec *spec) BEL_MUST_USE;

// Period of steps for the master's after_step; 0: never.
int64_t bel_hooks_period(const bel_hooks *hooks);

// Whether a worker has a function to call.
bool bel_hooks_for_workers(const bel_hooks *hooks);

// Each call runs one function of all hooks in order, up to the first error. Errors name the hook.
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
