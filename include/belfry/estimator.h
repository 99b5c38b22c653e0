/// Estimator: train, evaluate and predict with a model function.
///
/// ```c
/// static bel_status *model_fn(bel_model_context *ctx, bel_estimator_spec *spec)
/// {
///     bel_graph *g = bel_context_graph(ctx);
///     bel_value *logits = bel_dense(g, bel_context_feature(ctx, "x"), 10, "logits");
///     bel_predictions_set(spec, bel_softmax(g, logits));
///     if (bel_context_labels(ctx) != NULL) {
///         bel_value *labels = bel_context_labels(ctx);
///         bel_value *losses = bel_softmax_cross_entropy(g, logits, labels);
///         bel_loss_set(spec, bel_mean(g, losses));
///         bel_metric_accuracy(ctx, spec, "accuracy", labels, bel_arg_max(g, logits, 1), NULL);
///     }
///     const bel_optimizer adam = {
///         .size = sizeof adam, .kind = BEL_OPTIMIZER_ADAM, .learning_rate = 0.001};
///     bel_optimizer_use(spec, NULL, &adam);
///     return NULL;
/// }
/// ```
///
/// Every call uses one training loop: workers compute gradients, and parameter servers sum them and
/// update, in this process or in many. The bits of the result depend on data, seed and settings,
/// not on how threads, towers, workers and shards divide the replicas (docs/determinism.md).
///
/// **Functions of the program.** Every process of a job that needs their graph or data calls the
/// model function and the input functions. Their results must depend only on their arguments and on
/// the object at `user`. They run on the thread that called the library; in a master that trains,
/// also on a second thread at the same time. They return NULL or an error. The library takes
/// ownership of the error and ends the call with it, with the mode before its message.
///
/// **Thread rule.** One call at a time uses an estimator. A process runs one training at a time,
/// since requests to stop and traces apply to the entire process.
#ifndef BELFRY_ESTIMATOR_H
#define BELFRY_ESTIMATOR_H

#include "belfry/dataset.h"
#include "belfry/hook.h"
#include "belfry/model.h"
#include "belfry/predictor.h"
#include "belfry/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/// --- Input and when to evaluate -----------------------------------------------------------------

/// Makes a dataset for a mode in *out_dataset, which the library destroys. Called at least once for
/// each graph that is built for that mode; each call makes a separate dataset. Every worker gets
/// all of the data and selects its batches by position. The dataset must therefore not depend on
/// rank or size (bel_estimator_rank), or two runs give different bits. Parameters come from
/// bel_estimator_param. Returns NULL, or an error with *out_dataset unset.
typedef bel_status *bel_input_fn(void *user, const bel_estimator *estimator, bel_mode mode,
                                 bel_dataset **out_dataset);

/// Whether a lower or a higher value of a metric is better. AUTO decides by the metric's name.
/// Lower: loss, log_loss, error, error_rate, perplexity, and mean_squared_error,
/// root_mean_squared_error, mean_absolute_error, which are also mse, rmse and mae. Higher:
/// accuracy, auc, precision, recall, f1, r2, and top_k with k or a number. Any other name is an
/// error with AUTO (INVALID_ARGUMENT) that asks for MIN or MAX.
typedef enum bel_goal { BEL_GOAL_AUTO, BEL_GOAL_MIN, BEL_GOAL_MAX } bel_goal;

/// Ends training when evaluations stop improving. The master decides once for all processes, from
/// the evaluations of the whole run. A resumed run therefore stops at the same step as an
/// uninterrupted one. After an early stop, the same call does not train the job further.
typedef struct bel_early_stopping {
    int patience;       ///< evaluations in a row without a better one; 0: off
    const char *metric; ///< NULL: "loss"
    bel_goal goal;      ///< which value is better [AUTO]
    double min_delta;   ///< minimal difference for a better value [0]
    const char *eval;   ///< name of the evaluation (bel_eval_spec.name); NULL: the unnamed one
} bel_early_stopping;

/// Keeps the checkpoint with the best evaluation of a metric, besides those of keep_checkpoint_max.
/// When a better one exists, keep_checkpoint_max applies to the old one again. Among equal values
/// the earliest is the best; NaN is never the best. If the best evaluated version is not saved yet,
/// it is saved. The master decides from the evaluations of the whole run, so a run that was killed
/// and resumed keeps the same checkpoint. Earlier evaluations count if their checkpoint still
/// exists. model_dir/best.json (docs/formats/checkpoint.md) and bel_checkpoint_open_best name the
/// best checkpoint. Later runs keep it even if they do not use this option.
typedef struct bel_keep_best {
    const char *metric; ///< NULL: off
    bel_goal goal;      ///< which value is better [AUTO]
    const char *eval;   ///< as in bel_early_stopping
} bel_keep_best;

/// Variable with another name in the checkpoint. A `*` at the end of both names stands for all
/// names with that prefix: "encoder/*" and "bert/*". A `*` in only one of them is an error.
typedef struct bel_rename {
    const char *from; ///< name in the checkpoint
    const char *to;   ///< name in this model
} bel_rename;

/// Initial values from a checkpoint of another training. A new run reads them; a resumed run does
/// not, and logs that. Tables count as variables: their rows begin with the checkpoint's values,
/// and rows that the checkpoint lacks begin as usual. A table of another width is DATA_LOSS, like a
/// variable of another shape. The optimizer's slots start from scratch. Variables that FTRL trains
/// are refused, as FTRL would replace the values in the first step.
typedef struct bel_warm_start {
    /// Its folder, or a model_dir: its newest, or a file *.safetensors of any program, which has
    /// variables, as floats, and no tables; NULL: none.
    const char *checkpoint;
    const char *const *variables; ///< patterns (bel_multiplier) of this model's names; NULL: all
    int variable_count;
    const bel_rename *names; ///< other names are the same; the last matching pair applies
    int name_count;
    bool averages; ///< use moving averages if the checkpoint has them
} bel_warm_start;

/// Sets the initial values of a variable. `values`, F32 of `shape` in C order, hold the result of
/// the initializer or the warm start. The new values must depend only on the arguments and `user`,
/// or two runs give different bits. The process that begins a new run calls it once for each
/// variable, in their order, on the thread that called the library. Returns NULL, or an error,
/// which ends the call.
typedef bel_status *bel_init_fn(void *user, const bel_estimator *estimator, const char *variable,
                                const bel_shape *shape, float *values);

/// Input and end of training. Read only during the call, as is bel_eval_spec.
typedef struct bel_train_spec {
    size_t size; ///< sizeof(bel_train_spec): fields after it count as 0
    bel_input_fn *input_fn;
    void *input_user; ///< `user` of its calls
    /// The step at which training ends, counted from the first run on; it is the same in a resumed
    /// run. 0: until the input ends.
    int64_t max_steps;
    /// Instead of max_steps: the number of steps from the beginning of this call. Not for the
    /// processes of a job, which may be restarted in between. 0: off.
    int64_t steps;
    double max_seconds; ///< training ends normally after this time in this call; 0: no limit [0]
    bel_early_stopping early_stopping; ///< zero: none
    bel_keep_best keep_best;           ///< zero: none
    const bel_hook *const *hooks;      ///< hook.h; called in this order
    int hook_count;                    ///< up to BEL_MAX_HOOKS
    bel_warm_start warm_start;         ///< zero: none
    bel_init_fn *init_fn;              ///< after the warm start; NULL: none
    void *init_user;                   ///< `user` of its calls
    /// The program's own loop of steps (replica.h), instead of steps of the model function, which
    /// then serves only evaluation and prediction. NULL: none.
    const struct bel_loop *loop;
} bel_train_spec;

/// Size of a digest: 32 hex digits and the closing 0.
enum { BEL_RESULT_TEXT = 33 };

/// Value of a metric.
typedef struct bel_result_metric {
    char name[64];
    double value;
} bel_result_metric;

/// Numbers of an evaluation, and of training. Owns nothing.
typedef struct bel_result {
    size_t size;             ///< sizeof(bel_result), by the caller; in callbacks by the library
    int64_t global_step;     ///< EVAL: the checkpoint's; training: the last version's
    int64_t evaluation_step; ///< evaluated version: global_step, or an earlier one if training was
                             ///< interrupted; -1: there was no evaluation
    double loss;             ///< EVAL: mean over examples; training without evaluations: the last
                             ///< step's; NaN if a requested evaluation did not happen
    double batch_mean_loss;  ///< EVAL: mean of the batches' means, as TensorFlow reports it
    int64_t examples;        ///< EVAL: number of evaluated examples
    bel_result_metric metrics[BEL_MAX_METRICS]; ///< EVAL: those that the model function added
    int metric_count;
    bool interrupted;             ///< ended by a signal or bel_request_stop, after saving
    char digest[BEL_RESULT_TEXT]; ///< digest of the last checkpoint
    double train_seconds;         ///< time in training steps
    double examples_per_second;   ///< during training
} bel_result;

enum { BEL_MAX_EVALS = 16 };

/// Evaluated versions that an exporter keeps. Checkpoint rotation does not remove them.
typedef enum bel_export_kind {
    BEL_EXPORT_LATEST, ///< each evaluated version
    BEL_EXPORT_BEST,   ///< each better than all before, including earlier runs
    BEL_EXPORT_FINAL,  ///< the last of a run that ends normally
} bel_export_kind;

/// Returns true when `now` is better than `best`.
typedef bool bel_compare_fn(void *user, const bel_result *best, const bel_result *now);

/// Keeps versions as model_dir/export/<name>/<step>/. The folder has the checkpoint,
/// evaluation.json with the result, and the model for other programs as bel_export writes it. The
/// checkpoint shares its files with the original instead of copying them, and any reader of
/// checkpoints accepts it. The exported model stores the values in each of two files. If it cannot
/// be written, a warning is logged, and the rest is kept.
typedef struct bel_exporter {
    size_t size;      ///< sizeof(bel_exporter): fields after it count as 0
    const char *name; ///< letters, digits, _ and -; unique in the job
    bel_export_kind kind;
    int keep;                  ///< number of newest versions that stay; 0: 1 for BEST, else 5
    const char *metric;        ///< BEST: NULL: "loss"
    bel_goal goal;             ///< BEST: which value is better [AUTO]
    bel_compare_fn *is_better; ///< BEST, instead of metric; NULL: by metric
    void *user;                ///< `user` of is_better
} bel_exporter;

enum { BEL_MAX_EXPORTERS = 8 };

/// Called by the thread that evaluates, before each group of batches. Returns NULL, or an error,
/// which ends the evaluation with it.
typedef bel_status *bel_between_fn(void *user);

/// Input and schedule of an evaluation. Several specs, up to BEL_MAX_EVALS, give several
/// evaluations with different names. An evaluator of a cluster evaluates all of them together for
/// each new checkpoint, at the pace of the smallest start_delay_secs and throttle_secs among them.
typedef struct bel_eval_spec {
    size_t size; ///< sizeof(bel_eval_spec): fields after it count as 0; the same in a list of specs
    bel_input_fn *input_fn;
    void *input_user;
    int64_t steps;           ///< batches; 0: all of the input
    const char *name;        ///< NULL: folder "eval"; else "eval_<name>"
    int64_t every_steps;     ///< evaluate every N steps; 0: at checkpoints [0]
    double throttle_secs;    ///< at checkpoints, at most every N seconds; 0: at each
    double start_delay_secs; ///< at checkpoints, not before this time after the start; 0: at once
    bel_result *out_result;  ///< receives this spec's last evaluation; NULL to skip
    int exporter_count;      ///< up to BEL_MAX_EXPORTERS
    const bel_exporter *const *exporters; ///< run by the process that evaluates
    bel_between_fn *between;              ///< how a program ends a long evaluation; NULL: none
    void *between_user;
} bel_eval_spec;

/// --- The estimator ------------------------------------------------------------------------------

/// Makes an estimator with copies of config and params, owned by the caller. The function must stay
/// valid until the estimator is destroyed. Touches no files. Reads this process's task in a job
/// from the environment (BELFRY_TASK, TF_CONFIG). INVALID_ARGUMENT: a setting is out of range
/// (named), or the task is malformed. FAILED_PRECONDITION: the processor lacks a feature that the
/// kernels need (named).
BEL_API bel_status *bel_estimator_create(bel_model_fn *model_fn, const bel_run_config *config,
                                         const bel_param *params, int param_count,
                                         bel_estimator **out_estimator) BEL_MUST_USE;

/// Frees an estimator; accepts NULL. No call on it may be running.
BEL_API void bel_estimator_destroy(bel_estimator *estimator);

/// Returns the effective settings: model_dir is resolved and, in a cluster, the job's counts
/// replace the program's. Lives as long as the estimator.
BEL_API const bel_run_config *bel_estimator_config(const bel_estimator *estimator);

/// The functions below describe this process's part in the job, as it was when the process started.
/// `belfry jobs scale` may change the sizes while a job runs; later workers have higher ranks.
///
/// Returns the role of this process.
BEL_API bel_role bel_estimator_role(const bel_estimator *estimator);
/// Returns a worker's index among the `size` workers, 0 for a master that trains and for a process
/// without a job, -1 for others.
BEL_API int bel_estimator_rank(const bel_estimator *estimator);
/// Returns the number of workers in the job. Processes that are no workers get it too.
BEL_API int bel_estimator_size(const bel_estimator *estimator);
/// Returns the rank among the job's workers on this process's host. The launcher names the host (or
/// an address of TF_CONFIG does).
BEL_API int bel_estimator_local_rank(const bel_estimator *estimator);
/// Returns the number of the job's workers on this process's host.
BEL_API int bel_estimator_local_size(const bel_estimator *estimator);
/// Returns true in the process that saves and represents the job, the master.
BEL_API bool bel_estimator_is_chief(const bel_estimator *estimator);

/// Returns the number of replicas whose batches make a step: the towers of all workers, in all
/// their turns. With async and bounded aggregation an update has only one or a few of these
/// batches.
BEL_API int bel_estimator_replicas(const bel_estimator *estimator);

/// Returns the text of a parameter as given to the estimator, or `otherwise` (which may be NULL) if
/// it is unset. It lives as long as the estimator. Any thread may call it.
BEL_API const char *bel_estimator_param(const bel_estimator *estimator, const char *name,
                                        const char *otherwise);

/// Stores the parameter as a number in *out_value, or `otherwise` if it is unset. INVALID_ARGUMENT:
/// the text is no number; *out_value is not set. The next two functions do the same for other
/// types.
BEL_API bel_status *bel_estimator_param_number(const bel_estimator *estimator, const char *name,
                                               double otherwise, double *out_value) BEL_MUST_USE;
/// The same for an integer.
BEL_API bel_status *bel_estimator_param_int(const bel_estimator *estimator, const char *name,
                                            int64_t otherwise, int64_t *out_value) BEL_MUST_USE;
/// The same for a switch: true, false, 1 or 0.
BEL_API bel_status *bel_estimator_param_bool(const bel_estimator *estimator, const char *name,
                                             bool otherwise, bool *out_value) BEL_MUST_USE;

/// Trains, evaluates along the way and at the end, and saves: an entire job, or this process's part
/// of one. Without a task in the environment (BELFRY_TASK, TF_CONFIG) it does the following, in
/// order.
///
/// 1. **Locks** model_dir, and creates it if it is missing. FAILED_PRECONDITION: another run trains
///    there.
/// 2. **Builds.** Calls input function and model function in TRAIN, then in EVAL for each of the
///    `eval_count` specs (0, with evals NULL: no evaluation). Their errors show here, before
///    anything is trained.
/// 3. **Resumes** from the newest undamaged checkpoint in model_dir, also in the middle of an
///    epoch, to the bits of an uninterrupted run. FAILED_PRECONDITION: it was made with other
///    settings, data or model (listed); config.allow_changes accepts them. DATA_LOSS: there are
///    checkpoints, and all are damaged. Without a checkpoint the initial values (also those of
///    train->warm_start and init_fn) become ckpt-00000000, and step 0 begins.
/// 4. **Trains** until version max_steps, or until the input ends if that is earlier. Trains
///    nothing if that checkpoint already exists. INVALID_ARGUMENT: neither would ever end training;
///    the input has no example, or with drop_remainder not enough for a step.
/// 5. **Saves** every save_checkpoints_steps versions or, if that is 0, every
///    save_checkpoints_secs. Removes old checkpoints (keep_checkpoint_max), except the best one of
///    train->keep_best. Training continues during a save. If a save is due during the previous one,
///    training waits; a save that is due by time is postponed.
/// 6. **Evaluates** each spec. With every_steps: at each multiple of it. Otherwise: with each saved
///    checkpoint, the first one at once and then at most every throttle_secs. Moving averages, if
///    the optimizer keeps them, are evaluated instead of the variables. Training continues during
///    an evaluation. If a stop or a kill interrupts an evaluation, the resumed run repeats it,
///    provided that it was due by steps only.
/// 7. **Ends**: saves the last version, if it is not saved yet, and evaluates each spec that has
///    not seen it. Event files and report.html are written along the way and here.
/// 8. **Returns** NULL and sets *out_result (NULL to skip): the evaluation of the last version by
///    the first spec (for others see bel_eval_spec.out_result), with loss NaN if there is no
///    evaluation; the figures of training; the digest of the last checkpoint. Without specs, loss
///    is the last step's.
///
/// bel_request_stop cuts 4 short: the step finishes, and its version is saved but not evaluated.
/// The call returns NULL with result.interrupted and the last evaluation, which is that of
/// result.evaluation_step. (If an earlier run made it, batch_mean_loss and examples are NaN and 0.)
/// The same call resumes from there. The library installs no signal handlers. To save on Ctrl-C, a
/// program calls bel_request_stop in a signal handler, and on SIGTERM bel_request_leave, as the
/// command does. A run that is killed at any moment resumes from the newest complete checkpoint.
///
/// Errors besides those above end training at once, and *out_result is not set; complete
/// checkpoints stay. Errors of the input and model functions are returned. ABORTED: the loss is not
/// finite; this step and later ones are not saved. DATA_LOSS: data cannot be read, or an evaluation
/// has no example. OUT_OF_RANGE: an index in the data (a label …). DEADLINE_EXCEEDED: no step for
/// stall_timeout. RESOURCE_EXHAUSTED: memory or disk. An evaluation that fails ends the job
/// after its version is saved.
///
/// **As a process of a cluster** (docs/cluster-yaml.md) it plays the role that the task names. The
/// task also gives the counts of workers and shards, and of towers if it has them. A master does
/// all of the above, but the steps are computed in other processes. Its result is the job's, and
/// lost members are replaced (docs/protocol.md). A worker builds in TRAIN; an evaluator builds in
/// EVAL for each checkpoint; a parameter server calls no function of the program. Each returns when
/// the job ends, or earlier if the job does not need it, a worker with only the step in
/// *out_result. CANCELLED in these processes: the job failed, and the master gives the reason. If a
/// worker's step does not end with the job, the process exits with an exit code and a message, as a
/// thread that hangs in user code cannot be stopped. A process that a supervisor started gets
/// SIGINT when the supervisor ends.
BEL_API bel_status *bel_train_and_evaluate(bel_estimator *estimator, const bel_train_spec *train,
                                           const bel_eval_spec *evals, int eval_count,
                                           bel_result *out_result) BEL_MUST_USE;

/// Runs bel_train_and_evaluate as the entire work of a program, and returns the exit code for main.
/// SIGINT requests a stop (bel_request_stop). SIGTERM, a notice that this machine is to go
/// (docs/operations.md) and, unless it is ignored, SIGHUP request to leave (bel_request_leave). A
/// second signal ends the process at once, unless a supervisor started it. An error is one line on
/// stderr, or with BELFRY_LOG_FORMAT=json an object, so that a supervisor's message contains it.
/// The message of a crash names the step.
///
/// Exit codes: 0; bel_status_exit_code of the error; 128 + the signal's number for a run that was
/// stopped and saved, and for a process that has left. *out_result (NULL to skip) is as
/// bel_train_and_evaluate sets it in the process that represents the job. It is zero, with an empty
/// digest, in others and after errors. Call it on the first thread, before others are started.
///
/// ```c
/// int code = bel_run_job(estimator, &train, &eval, 1, &result);
/// if (result.digest[0] != '\0') printf("loss %.4f\n", result.loss);
/// bel_estimator_destroy(estimator);
/// return code;
/// ```
BEL_API int bel_run_job(bel_estimator *estimator, const bel_train_spec *train,
                        const bel_eval_spec *evals, int eval_count, bel_result *out_result);

/// Calls bel_train_and_evaluate with the signals of bel_run_job, for a program that continues
/// afterwards, such as an interpreter. Restores the previous handlers, and returns an error instead
/// of reporting it. *out_result (NULL to skip) is as in bel_run_job, and *out_exit_code is set on
/// success. It is 0 unless a signal or a notice ended this training, or this process's part in a
/// job. Then it is the exit code of bel_run_job, with which the program exits if it has no other
/// work. Call it on the first thread.
BEL_API bel_status *bel_train_with_signals(bel_estimator *estimator, const bel_train_spec *train,
                                           const bel_eval_spec *evals, int eval_count,
                                           bel_result *out_result, int *out_exit_code) BEL_MUST_USE;

/// Trains without evaluations: bel_train_and_evaluate with the same locking, resuming, saving,
/// ends, errors and roles. In *out_result (NULL to skip) loss is the last step's in this run (NaN
/// if there was no step), batch_mean_loss is NaN, evaluation_step is -1, and there are no metrics.
BEL_API bel_status *bel_train(bel_estimator *estimator, const bel_train_spec *train,
                              bel_result *out_result) BEL_MUST_USE;

/// Evaluates `checkpoint` (a folder), or the newest undamaged one in model_dir when NULL, on
/// `eval->steps` batches or all of the input. The schedule fields of `eval` are ignored. Uses the
/// towers of all workers of the process and their threads; their number does not change the result.
/// Reads model_dir without locking it, so it may run during a training. Uses moving averages if
/// config.averages is set and the checkpoint has them. Sets *out_result (not NULL) with loss,
/// metrics, examples, global_step and the checkpoint's digest. Adds an event to model_dir/evaluate,
/// or evaluate_<name>, which no training reads; a warning reports a failure to write it. Errors:
/// NOT_FOUND: there is no checkpoint, or it lacks a variable of EVAL. DATA_LOSS: it is damaged or
/// has another shape, or the input has no example. INVALID_ARGUMENT: the input repeats forever and
/// eval->steps is 0. Errors of the input and model function are returned.
BEL_API bel_status *bel_evaluate(bel_estimator *estimator, const bel_eval_spec *eval,
                                 const char *checkpoint, bel_result *out_result) BEL_MUST_USE;

/// Prediction of one example: "predictions", or the name of an output.
typedef struct bel_row {
    const char *name;
    bel_tensor value; ///< without the batch dimension
} bel_row;

/// Receives one example's predictions: its number, counted from 0 over the examples that were not
/// skipped, and its rows: that of bel_predictions_set, if it was called, then the outputs in their
/// order. Rows are valid during the call. Returns NULL, or an error, which ends bel_predict with
/// it.
typedef bel_status *bel_predict_fn(void *user, int64_t example, const bel_row *rows, int count);

/// Predicts every example of the input, and calls `each` with them in the input's order, on the
/// calling thread. Checkpoint, averages, towers and errors as with bel_evaluate. Writes nothing.
/// The dataset needs no label. An input without examples is no error: `each` is not called.
BEL_API bel_status *bel_predict(bel_estimator *estimator, bel_input_fn *input_fn, void *input_user,
                                const char *checkpoint, bel_predict_fn *each,
                                void *user) BEL_MUST_USE;

/// --- A predictor of a model and a checkpoint ----------------------------------------------------

/// Feature of one example as the model function gets it: shape without the batch. A dimension below
/// 0 is open; open dimensions with the same number have the same size.
typedef struct bel_feature {
    const char *name;
    bel_dtype dtype; ///< any but STRING
    bel_shape shape;
} bel_feature;

/// Builds the model in PREDICT for these features, loads a checkpoint as bel_predict does, and
/// makes a predictor (predictor.h) of both, which the caller owns. Its inputs are the features, in
/// their order, each with a leading batch dimension of at least one example. Its outputs are those
/// of bel_predict, in their order, with a leading batch dimension: `predictions` first if it is
/// set. Batches of the same shape have the same bits, those of bel_predict. The estimator must
/// outlive the predictor. A checkpoint that is saved later needs a new predictor. Errors: those of
/// bel_predict; INVALID_ARGUMENT: an invalid feature.
BEL_API bel_status *bel_estimator_predictor(bel_estimator *estimator, const bel_feature *features,
                                            int feature_count, const char *checkpoint,
                                            bel_predictor **out_predictor) BEL_MUST_USE;

/// --- Export -------------------------------------------------------------------------------------

/// Options of bel_export. Zero is the default of every field.
typedef struct bel_export_options {
    size_t size; ///< sizeof(bel_export_options): fields after it count as 0
    /// Values are only in weights.safetensors, to which model.onnx points. Always on if they exceed
    /// 1 GiB. [false]
    bool external_data;
    /// The model accepts ids and looks up their places itself, comparing each with all keys. For
    /// tables of up to 65,536 keys; INVALID_ARGUMENT for larger ones. false: the model accepts
    /// places. [false]
    bool inline_tables;
    /// Exports the training instead of the model, as one replica. The folder, a new one, gets the
    /// files that belfry/learner.h loads, and the other options are ignored. [false]
    bool training;
    int64_t opset; ///< ONNX opset, 13 to 17; 0: 17
    /// Features of the model instead of those of the training, for a model function that builds
    /// another graph for them, as in bel_estimator_predictor. NULL: those of the training.
    const bel_feature *features;
    int64_t feature_count;
} bel_export_options;

/// Writes the model of a checkpoint (a folder; NULL: the newest in model_dir) into `folder`, which
/// is created, or replaced if it is an earlier export. Files: model.onnx, the graph of PREDICT with
/// its values; weights.safetensors, the same values by the names of variables; signature.json,
/// inputs and outputs and their meaning (docs/formats/export.md); tokenizer.json, if model_dir has
/// one and the parameter `tokenizer`, its digest, is set. Uses moving averages if
/// config.averages is set and the checkpoint has them. Options may be NULL. Errors: those of
/// bel_predict; UNIMPLEMENTED: an operation of the graph cannot be exported (it is named);
/// FAILED_PRECONDITION: the checkpoint is of a version that did not record features;
/// ALREADY_EXISTS: the folder is something else.
BEL_API bel_status *bel_export(bel_estimator *estimator, const char *checkpoint,
                               const bel_export_options *options, const char *folder) BEL_MUST_USE;

/// Asks the training of this process (in a cluster: the entire job) to save and end at the next
/// step border. Before training, it ends the next one at once. The request is cleared when the
/// training that it ended returns. Safe in signal handlers and on any thread.
BEL_API void bel_request_stop(void);

/// Asks that the job continues without this process (a spot machine that is about to go). The
/// process leaves at a step border with nothing lost. Its part is saved first if it holds
/// parameters or is the master, and bel_train_and_evaluate returns CANCELLED. The launcher is
/// expected to start it again. Acts as bel_request_stop if the job has only one process, if
/// processes are not restarted, or if all of them are asked at once. Safe in signal handlers and on
/// any thread.
BEL_API void bel_request_leave(void);

/// --- Version ------------------------------------------------------------------------------------

#define BEL_VERSION_MAJOR 0
#define BEL_VERSION_MINOR 3
#define BEL_VERSION_PATCH 0
BEL_API const char *bel_version(void); ///< Library version, "0.3.0". Static.

#ifdef __cplusplus
}
#endif

#endif
