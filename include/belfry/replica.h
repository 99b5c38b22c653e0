/// A training loop of the program's own: it runs steps, one after the other, and decides by what
/// they return which one comes next.
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
///         bel_step_result result;
///         for (int i = 0; i < 3; i++)
///             BEL_TRY(bel_replicator_run(replicator, DISCRIMINATOR, NULL));
///         BEL_TRY(bel_replicator_run(replicator, GENERATOR, &result));
///     }
///     return NULL;
/// }
/// const bel_loop own = {.functions = functions, .function_count = 2, .run = loop};
/// const bel_train_spec train = {.input_fn = input_fn, .loop = &own};
/// return bel_run_job(estimator, &train, NULL, 0, NULL);
/// ```
///
/// **What runs where.** Steps are those of bel_train_and_evaluate: every replica computes its
/// batch, gradients are averaged, parameter servers update. The same program runs on one device, on
/// the towers of a process and on the workers of a cluster, in every mode, as flags and
/// cluster.yaml say. The loop's body runs in one process, that which speaks for the job (the
/// master), on a thread of its own. Workers call the step functions once, to build the graph, and
/// run what the loop asks for; parameter servers call none of the program's functions. In both, the
/// call that trains returns when the job ends.
///
/// **Several step functions** are parts of one graph, so a variable of the same name is the same
/// variable. A step updates the variables that its function names and whose gradient it has, and
/// assigns the states that it assigns; all others stay as they are, to the bit. Each function has
/// its loss and its optimizer, with slots and a count of steps of its own, also for variables that
/// several functions update. Every step, whichever it is, takes the next batch of the input and
/// makes the next version.
///
/// **Again.** When a member is lost, training may go back to a checkpoint; and a process that was
/// killed goes on from one. Then the loop begins anew: bel_replicator_run returns an error that the
/// loop passes on, and `run` is called once more, with `state` as it was when the step that follows
/// the checkpoint was asked for, and bel_replicator_step saying at which version it stands. So a
/// loop keeps in `state` all that decides what it does next.
#ifndef BELFRY_REPLICA_H
#define BELFRY_REPLICA_H

#include "belfry/estimator.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BEL_MAX_LOOP_FUNCTIONS = 8 };

/// One kind of step.
typedef struct bel_step_function {
    const char *name; ///< letters, digits, _ and -; in checkpoints and summaries
    /// Builds the step as a model function does in TRAIN: it sets loss and optimizer of the spec,
    /// and adds summaries and what the step returns (bel_return_add).
    bel_model_fn *fn;
    /// Names of trainable variables that a step may update, with * and ?, several with commas, each
    /// of which matches one; NULL: all.
    const char *variables;
} bel_step_function;

/// A loop in progress; opaque. For the thread that runs it.
typedef struct bel_replicator bel_replicator;

/// Runs steps and returns NULL when training is to end, or an error, which ends the job. Errors of
/// bel_replicator_run are passed on.
typedef bel_status *bel_loop_fn(void *user, bel_replicator *replicator);

/// A loop and its steps; read during the call that trains. bel_train_spec.max_steps, the end of the
/// input, and a request to stop end training all the same.
typedef struct bel_loop {
    const bel_step_function *functions;
    int function_count; ///< 1 to BEL_MAX_LOOP_FUNCTIONS
    bel_loop_fn *run;
    void *user; ///< of `run`
    /// What the loop remembers from step to step; a checkpoint keeps it. Plain bytes without
    /// pointers, owned by the program, read and written by the loop alone while it runs.
    void *state;
    size_t state_bytes; ///< 0: none
} bel_loop;

/// Numbers that a step function has added with bel_return_add, in the order of its elements.
typedef struct bel_returned {
    const char *name;
    const double *numbers;
    int64_t count; ///< RETURN_REPLICAS: elements · replicas
} bel_returned;

/// What a step has returned. It lives until the loop runs the next one.
typedef struct bel_step_result {
    int64_t step;               ///< the version that it made
    double loss;                ///< mean over its examples; NaN without any
    int64_t examples;           ///< of all replicas
    const bel_returned *values; ///< as the step function has added them
    int value_count;
} bel_step_result;

/// Runs a step of function `function`, an index into bel_loop.functions. Without *out_result it
/// does not wait for the step, so that the next one can be asked for while it is made; with it, the
/// call returns when the step is made. Errors are to be passed on: INVALID_ARGUMENT, there is no
/// such function; OUT_OF_RANGE, training ends here, as max_steps says or the input has no more (the
/// job ends well); CANCELLED, a stop was asked for, the job has failed, or training goes back.
BEL_API bel_status *bel_replicator_run(bel_replicator *replicator, int function,
                                       bel_step_result *out_result) BEL_MUST_USE;

/// The version on which the next step is made.
BEL_API int64_t bel_replicator_step(const bel_replicator *replicator);

/// The numbers that a step has returned under this name, *out_count of them (NULL: not wanted).
/// NULL: none.
BEL_API const double *bel_step_result_find(const bel_step_result *result, const char *name,
                                           int64_t *out_count);

/// --- Input of replicas --------------------------------------------------------------------------

/// Examples of a replica's batch where a step of all replicas has `global` of them: what an input
/// function batches by. INVALID_ARGUMENT: `global` is not positive, or no multiple of the replicas.
BEL_API bel_status *bel_batch_per_replica(const bel_estimator *estimator, int64_t global,
                                          int64_t *out_batch) BEL_MUST_USE;

/// Of how many pipelines the input is made. With one, blocks of a single stream are dealt to the
/// replicas; else each worker, or each replica, has a pipeline of its own, such as files of its
/// own.
typedef enum bel_input_mode {
    BEL_INPUT_SINGLE,
    BEL_INPUT_PER_WORKER, ///< of the workers that the job was started with
    BEL_INPUT_PER_REPLICA,
} bel_input_mode;

/// Which pipeline is wanted.
typedef struct bel_input_context {
    int pipeline;  ///< its number: 0, that of the worker, or that of the replica
    int pipelines; ///< how many there are
    int replicas;  ///< whose batches make a step (bel_estimator_replicas)
} bel_input_context;

/// Makes the dataset of a pipeline, without a repeat that has no end and without a batch stage, and
/// hands it over in *out_dataset.
typedef bel_status *bel_pipeline_fn(void *user, const bel_input_context *context,
                                    bel_dataset **out_dataset);

/// Puts the pipelines of a training together, for an input function: replica r's batches of `batch`
/// examples come from its pipeline, in the pipeline's order, and in each step replica 0 draws
/// before replica 1. Whoever plays a replica later on, after a loss say, reads its pipeline. Stages
/// such as a repeat and the batch stage follow. Behind the end of a pipeline that is shorter than
/// others their records move up. With PER_WORKER the bits depend on the number of workers. Errors:
/// those of `fn`; INVALID_ARGUMENT: `batch` is not positive; PER_WORKER, and workers have different
/// numbers of replicas.
BEL_API bel_status *bel_input_pipelines(const bel_estimator *estimator, bel_input_mode mode,
                                        bel_pipeline_fn *fn, void *user, int64_t batch,
                                        bel_dataset **out_dataset) BEL_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
