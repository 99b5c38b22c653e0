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
/// const bel_train_spec train = {.input_fn = input_fn, .hooks = (const bel_hook *[]){&hook},
///                               .hook_count = 1};
/// ```
///
/// **Where.** Functions for the master are called by the process that speaks for the job, on the
/// thread that called the library; training goes on meanwhile. Those for workers are called in
/// every process that has workers, on the worker's thread, in the middle of training: what they
/// take is time of the step, and several workers of one process call them at once. Nothing that a
/// hook does changes a bit of the result, but for a request to stop.
///
/// **Again.** When a member is lost or the process was killed, training goes back to a checkpoint,
/// and versions come again: the master's functions are told (`went_back`); a worker's see each step
/// at least once. What a hook keeps in memory dies with its process, but for its `state`.
///
/// **Errors.** A function returns NULL, or an error, whose ownership passes on, and which ends the
/// job with the hook's name in front; checkpoints that are complete stay.
#ifndef BELFRY_HOOK_H
#define BELFRY_HOOK_H

#include "belfry/run.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bel_estimator;
struct bel_result;

/// What a hook's function can ask and do; opaque, valid during the call.
typedef struct bel_hook_context bel_hook_context;

/// The estimator: settings, role, rank, parameters.
BEL_API const struct bel_estimator *bel_hook_estimator(const bel_hook_context *context);

/// Asks the training to end well before its last step, at the master: what is there is saved and
/// evaluated as at any end. From `begin`: nothing is trained. From `after_evaluation` of a run that
/// saves or evaluates by steps: at the next step at which it would do so, the same one in
/// every run. Else at one of the next versions. At a worker it has no effect.
BEL_API void bel_hook_request_stop(bel_hook_context *context);

/// A text of this run, shown as Markdown where TensorBoard shows texts, at the step that the
/// function is told. At the master, from after_step to after_evaluation; elsewhere it has no
/// effect. Copied.
BEL_API void bel_hook_summary_text(const bel_hook_context *context, const char *name,
                                   const char *text);

/// A named number of a step: a summary, or a metric where config.train_metrics asks for them.
typedef struct bel_step_value {
    const char *name;
    double value;
} bel_step_value;

/// What a step said. At the master: of all replicas; at a worker: of its own.
typedef struct bel_step_report {
    int64_t step; ///< at the master the version that it made (global_step); at a worker the version
                  ///< that it computed on, one less
    double loss;  ///< mean over the examples
    int64_t examples;           ///< at a worker: of the step; at the master 0
    double examples_per_second; ///< at the master: since the last report; 0 at the first
    bool went_back; ///< at the master: the first report behind a checkpoint that training went back
                    ///< to; this step, and those behind it, may have been reported before
    const bel_step_value *values;
    int value_count;
} bel_step_report;

/// A hook; functions that are NULL are not called. Kept as a pointer by whoever trains, until the
/// call returns.
typedef struct bel_hook {
    size_t size;      ///< sizeof(bel_hook): what lies behind counts as NULL
    const char *name; ///< for messages
    void *user;       ///< of all its functions

    /// The master: before the first step of this call, and after everything was built and loaded.
    bel_status *(*begin)(void *user, bel_hook_context *context, int64_t step);

    /// The master: once for each version that is a multiple of every_steps, in order, soon after it
    /// was made.
    bel_status *(*after_step)(void *user, bel_hook_context *context, const bel_step_report *step);
    int64_t every_steps; ///< of after_step; 0: each

    /// The master: a checkpoint is complete in `folder`.
    bel_status *(*after_save)(void *user, bel_hook_context *context, int64_t step,
                              const char *folder);

    /// The master: an evaluation is done; `name` is its folder, "eval" or "eval_<name>". A job with
    /// an evaluator of its own refuses a hook that has this function.
    bel_status *(*after_evaluation)(void *user, bel_hook_context *context, const char *name,
                                    const struct bel_result *result);

    /// The master: training has ended well, with this result.
    bel_status *(*end)(void *user, bel_hook_context *context, const struct bel_result *result);

    /// Each worker: before its replicas compute on version `step`, and when they have reported.
    bel_status *(*worker_before_step)(void *user, bel_hook_context *context, int64_t step);
    bel_status *(*worker_after_step)(void *user, bel_hook_context *context,
                                     const bel_step_report *step);

    /// Memory of the master's functions that belongs to the training: each checkpoint keeps it as
    /// it was behind the reports and evaluations of its version, and a run that goes on from there,
    /// or goes back, gets it again before `begin`; from a checkpoint without it, as it was when
    /// the call began. (After a kill an evaluation may be told again that the memory knows of.)
    /// Plain bytes without pointers, owned by the program. With it the name is made of letters,
    /// digits, _ and -, and no other hook has it.
    void *state;
    size_t state_bytes; ///< 0: none
} bel_hook;

enum { BEL_MAX_HOOKS = 16 };

#ifdef __cplusplus
}
#endif

#endif
