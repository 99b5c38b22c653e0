/// Custom training loop of a program: it runs steps, one after the other, and chooses each next
/// step by the results of the last.
///
/// ```c
/// enum { DISCRIMINATOR, GENERATOR };
/// static const bel_step_function functions[] = {
///     {"discriminator", discriminator_fn, "discriminator/*"},
///     {"generator", generator_fn, "generator/*"},
/// };
/// static bel_status *loop(void *user, bel_replicator *replicator)
/// {
///     while (bel_replicator_step(replicator) < 4000) {
///         const bel_step_result *result;
///         for (int i = 0; i < 3; i++)
///             BEL_TRY(bel_replicator_run(replicator, DISCRIMINATOR, NULL));
///         BEL_TRY(bel_replicator_run(replicator, GENERATOR, &result));
///     }
///     return NULL;
/// }
/// const bel_loop own = {
///     .size = sizeof own, .functions = functions, .function_count = 2, .run = loop};
/// const bel_train_spec train = {.size = sizeof train, .input_fn = input_fn, .loop = &own};
/// return bel_run_job(estimator, &train, NULL, 0, NULL);
/// ```
///
/// **Placement.** Steps are those of bel_train_and_evaluate: every replica computes its batch,
/// gradients are averaged, parameter servers update. The same program runs on one device, on the
/// towers of a process and on the workers of a cluster, in every mode that flags and cluster.yaml
/// select. The loop's body runs only in the process that represents the job (the master), on a
/// separate thread. Workers call the step functions once, to build the graph, and run the steps
/// that the loop requests. Parameter servers call no function of the program. In both, the call
/// that trains returns when the job ends.
///
/// **Several step functions** are parts of one graph, so a variable of the same name is the same
/// variable. A step updates those of its function's named variables that have a gradient, and
/// assigns the states that it assigns. All others keep their bits. Each function has its loss and
/// its optimizer, with separate slots and step count, also for variables that several functions
/// update. Every step of any function consumes the next batch of the input and makes the next
/// version.
///
/// **Repetition.** Training may return to a checkpoint when a member is lost, and a killed process
/// resumes from one. Then the loop restarts: bel_replicator_run returns an error that the loop
/// passes on, and `run` is called once more. `state` is then as it was when the step after the
/// checkpoint was requested, and bel_replicator_step returns the current version. A loop must
/// therefore keep in `state` all data that determines its next step.
#ifndef BELFRY_REPLICA_H
#define BELFRY_REPLICA_H

#include "belfry/estimator.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BEL_MAX_LOOP_FUNCTIONS = 8 };

/// One kind of step.
typedef struct bel_step_function {
    const char *name; ///< letters, digits, _ and -; used in checkpoints and summaries
    /// Builds the step as a model function does in TRAIN: sets loss and optimizer of the spec, and
    /// adds summaries and returned values (bel_return_add).
    bel_model_fn *fn;
    /// Names of trainable variables that a step may update: patterns with * and ?, separated by
    /// commas, each of which must match a variable. NULL: all.
    const char *variables;
} bel_step_function;

/// Running loop; opaque. For the thread that runs it.
typedef struct bel_replicator bel_replicator;

/// Runs steps and returns NULL to end training, or an error, which ends the job. Must pass on
/// errors of bel_replicator_run.
typedef bel_status *bel_loop_fn(void *user, bel_replicator *replicator);

/// Loop and its steps; read during the call that trains. bel_train_spec.max_steps, the end of the
/// input, and a request to stop also end training.
typedef struct bel_loop {
    size_t size; ///< sizeof(bel_loop): fields after it count as 0
    const bel_step_function *functions;
    int function_count; ///< 1 to BEL_MAX_LOOP_FUNCTIONS
    bel_loop_fn *run;
    void *user; ///< for `run`
    /// Memory of the loop, which a checkpoint keeps. Plain bytes without pointers, owned by the
    /// program; only the loop reads and writes it while it runs.
    void *state;
    size_t state_bytes; ///< 0: none
} bel_loop;

/// Numbers that a step function added with bel_return_add, in the order of its elements.
typedef struct bel_returned {
    const char *name;
    const double *numbers;
    int64_t count; ///< RETURN_REPLICAS: elements · replicas
} bel_returned;

/// Results of a step. They live until the loop runs the next one.
typedef struct bel_step_result {
    int64_t step;               ///< version that the step made
    double loss;                ///< mean over its examples; NaN without any
    int64_t examples;           ///< examples of all replicas
    const bel_returned *values; ///< values that the step function added
    int value_count;
} bel_step_result;

/// Runs a step of function `function`, an index into bel_loop.functions. With NULL for out_result
/// it does not wait for the step, so the loop can request the next one meanwhile. Otherwise the
/// call returns when the step is done, and *out_result belongs to the replicator. The loop must
/// pass on errors. INVALID_ARGUMENT: there is no such function. OUT_OF_RANGE: training ends here,
/// by max_steps or the end of the input (the job ends normally). CANCELLED: a stop was requested,
/// the job failed, or training returns to a checkpoint.
BEL_API bel_status *bel_replicator_run(bel_replicator *replicator, int function,
                                       const bel_step_result **out_result) BEL_MUST_USE;

/// Returns the version on which the next step is made.
BEL_API int64_t bel_replicator_step(const bel_replicator *replicator);

/// Returns the numbers that a step returned under this name, *out_count of them (NULL to skip).
/// NULL: no such name.
BEL_API const double *bel_step_result_find(const bel_step_result *result, const char *name,
                                           int64_t *out_count);

/// --- Input of replicas --------------------------------------------------------------------------

/// Divides a step's `global` examples by the number of replicas, which gives the batch size for an
/// input function. INVALID_ARGUMENT: `global` is not positive, or no multiple of the replicas.
BEL_API bel_status *bel_batch_per_replica(const bel_estimator *estimator, int64_t global,
                                          int64_t *out_batch) BEL_MUST_USE;

/// Number of pipelines of the input. SINGLE: one stream, whose blocks are assigned to the replicas.
/// Otherwise each worker, or each replica, has a separate pipeline, such as separate files.
typedef enum bel_input_mode {
    BEL_INPUT_SINGLE,
    BEL_INPUT_PER_WORKER, ///< for the workers that the job was started with
    BEL_INPUT_PER_REPLICA,
} bel_input_mode;

/// Pipeline to make.
typedef struct bel_input_context {
    int pipeline;  ///< its number: 0, the worker's, or the replica's
    int pipelines; ///< number of pipelines
    int replicas;  ///< replicas whose batches make a step (bel_estimator_replicas)
} bel_input_context;

/// Makes the dataset of a pipeline in *out_dataset, without an endless repeat and without a batch
/// stage.
typedef bel_status *bel_pipeline_fn(void *user, const bel_input_context *context,
                                    bel_dataset **out_dataset);

/// Combines the pipelines of a training, for an input function. Batches of `batch` examples of
/// replica r come from its pipeline, in the pipeline's order; in each step replica 0 draws before
/// replica 1. A process that computes a replica later, for example after a loss, reads the
/// replica's pipeline. Stages such as a repeat and the batch stage can follow. After the end of a
/// shorter pipeline the others' records move up. With PER_WORKER the bits depend on the number of
/// workers. Errors: those of `fn`; INVALID_ARGUMENT: `batch` is not positive; PER_WORKER, and
/// workers have different numbers of replicas.
BEL_API bel_status *bel_input_pipelines(const bel_estimator *estimator, bel_input_mode mode,
                                        bel_pipeline_fn *fn, void *user, int64_t batch,
                                        bel_dataset **out_dataset) BEL_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
