/// Hooks: functions of the program that are called while it trains.
///
/// ```c
/// static bel_status *tell(void *user, bel_hook_context *context, const bel_step_report *step)
/// {
///     fprintf(user, "%lld %g\n", (long long)step->step, step->loss);
///     return NULL;
/// }
/// static const bel_hook hook = {.size = sizeof hook, .name = "tell", .after_step = tell,
///                               .every_steps = 10};
/// const bel_train_spec train = {.size = sizeof train, .input_fn = input_fn,
///                               .hooks = (const bel_hook *[]){&hook}, .hook_count = 1};
/// ```
///
/// **Threads.** The process that represents the job calls the master's functions, on the thread
/// that called the library; training continues meanwhile. Every process with workers calls the
/// workers' functions, on the worker's thread, in the middle of training. Their time is part of the
/// step, and several workers of one process call them at once. A hook cannot change a bit of the
/// result, except by a request to stop.
///
/// **Repetition.** When a member is lost or the process was killed, training returns to a
/// checkpoint, and versions repeat. The master's functions are notified (`went_back`); a worker's
/// see each step at least once. A hook's memory is lost with its process, except its `state`.
///
/// **Errors.** A function returns NULL or an error. The library takes ownership of the error and
/// ends the job with it, with the hook's name before its message. Complete checkpoints stay.
#ifndef BELFRY_HOOK_H
#define BELFRY_HOOK_H

#include "belfry/run.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bel_estimator;
struct bel_result;

/// Access to the training for a hook's function; opaque, valid during the call.
typedef struct bel_hook_context bel_hook_context;

/// Returns the estimator: settings, role, rank, parameters.
BEL_API const struct bel_estimator *bel_hook_estimator(const bel_hook_context *context);

/// Requests a normal end of the training before its last step, at the master: the current version
/// is saved and evaluated as at any end. From `begin`: nothing is trained. From `after_evaluation`
/// of a run that saves or evaluates by steps: ends at the next step at which it would do so, the
/// same one in every run. Else: ends at one of the next versions. Has no effect at a worker.
BEL_API void bel_hook_request_stop(bel_hook_context *context);

/// Adds a text of this run, shown as Markdown among TensorBoard's texts, at the step that the
/// function received. At the master, from after_step to after_evaluation; elsewhere it has no
/// effect. Copied.
BEL_API void bel_hook_summary_text(const bel_hook_context *context, const char *name,
                                   const char *text);

/// Named number of a step: a summary, or a metric if config.train_metrics is set.
typedef struct bel_step_value {
    const char *name;
    double value;
} bel_step_value;

/// Report of a step. At the master: over all replicas; at a worker: over the worker's replicas.
typedef struct bel_step_report {
    int64_t step; ///< at the master the version that the step made (global_step); at a worker the
                  ///< version that it computed on, one less
    double loss;  ///< mean over the examples
    int64_t examples;           ///< at a worker: the step's; at the master 0
    double examples_per_second; ///< at the master: since the last report; 0 at the first
    bool went_back; ///< at the master: first report after a return to a checkpoint; this step and
                    ///< later ones may have been reported before
    const bel_step_value *values;
    int value_count;
} bel_step_report;

/// Functions to call during training; NULL: not called. The training call keeps the pointer until
/// it returns.
typedef struct bel_hook {
    size_t size;      ///< sizeof(bel_hook): fields after it count as NULL
    const char *name; ///< for messages
    void *user;       ///< for all functions of the hook

    /// The master: before the first step of this call, after everything was built and loaded.
    bel_status *(*begin)(void *user, bel_hook_context *context, int64_t step);

    /// The master: once for each version that is a multiple of every_steps, in order, soon after
    /// that step.
    bel_status *(*after_step)(void *user, bel_hook_context *context, const bel_step_report *step);
    int64_t every_steps; ///< for after_step; 0: each

    /// The master: a checkpoint is complete in `folder`. A full one that replaces the delta of a
    /// run's last step is no further call.
    bel_status *(*after_save)(void *user, bel_hook_context *context, int64_t step,
                              const char *folder);

    /// The master: an evaluation is done; `name` is its folder, "eval" or "eval_<name>". A job with
    /// a separate evaluator refuses a hook that has this function.
    bel_status *(*after_evaluation)(void *user, bel_hook_context *context, const char *name,
                                    const struct bel_result *result);

    /// The master: training ended normally, with this result.
    bel_status *(*end)(void *user, bel_hook_context *context, const struct bel_result *result);

    /// Each worker: before its replicas compute on version `step`.
    bel_status *(*worker_before_step)(void *user, bel_hook_context *context, int64_t step);
    /// Each worker: after its replicas have reported.
    bel_status *(*worker_after_step)(void *user, bel_hook_context *context,
                                     const bel_step_report *step);

    /// Memory of the master's functions that belongs to the training: plain bytes without pointers,
    /// owned by the program. Each checkpoint stores it as it was after the reports and evaluations
    /// of its version. A run that resumes or returns to that checkpoint restores it before `begin`.
    /// If the checkpoint lacks it, the run restores its contents at the start of the call. (After a
    /// kill an evaluation that the memory already reflects may be reported again.) With it, the
    /// name consists of letters, digits, _ and -, and is unique among the hooks.
    void *state;
    size_t state_bytes; ///< 0: none
} bel_hook;

enum { BEL_MAX_HOOKS = 16 };

#ifdef __cplusplus
}
#endif

#endif
