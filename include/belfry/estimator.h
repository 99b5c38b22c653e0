/// Estimator: train, evaluate and predict with a model function.
///
/// ```c
/// static bel_status *model_fn(bel_model_context *ctx, bel_estimator_spec *spec)
/// {
///     bel_graph *g = bel_context_graph(ctx);
///     bel_value *logits = bel_dense(g, bel_context_feature(ctx, "x"), 10, "logits");
///     spec->predictions = bel_softmax(g, logits);
///     if (bel_context_labels(ctx) != NULL) {
///         bel_value *labels = bel_context_labels(ctx);
///         bel_value *losses = bel_softmax_cross_entropy(g, logits, labels);
///         spec->loss = bel_mean(g, losses);
///         bel_metric_accuracy(ctx, spec, "accuracy", labels, bel_arg_max(g, logits, 1), NULL);
///     }
///     spec->optimizer = (bel_optimizer){.kind = BEL_OPTIMIZER_ADAM, .learning_rate = 0.001};
///     return NULL;
/// }
/// ```
///
/// One training loop stands behind every call: workers compute gradients, parameter servers sum
/// them and update, in this process or in many. The bits of the result depend on data, seed and
/// settings, not on how threads, towers, workers and shards share out the replicas
/// (docs/determinism.md).
///
/// **Functions of the program.** A model function and the input functions are called by whoever
/// needs their graph or data, in every process of a job, and must answer the same each time, from
/// their arguments and what their `user` points to. They run on the thread that called the library;
/// in a master that trains also on a second thread at the same time. They return NULL or an error,
/// whose ownership passes on, and which ends the call with the mode in front.
///
/// **Thread rule.** An estimator is used by one call at a time. A process runs one training at a
/// time, since requests to stop and traces are the whole process's.
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

/// Makes a dataset for a mode and hands it over in *out_dataset: the library destroys it. Called
/// for each graph that is built for that mode, or more often; each call makes a dataset of its own.
/// Every worker gets the whole: which batches it reads follows from the position, so that
/// the dataset must not depend on rank or size (bel_estimator_rank), or the same run gives other
/// bits. Parameters come from bel_estimator_param. Returns NULL, or an error with *out_dataset
/// unset.
typedef bel_status *bel_input_fn(void *user, const bel_estimator *estimator, bel_mode mode,
                                 bel_dataset **out_dataset);

/// Which of two values of a metric is better. AUTO: as the metric's name says. The lower one of
/// loss, log_loss, error, error_rate, perplexity, and mean_squared_error, root_mean_squared_error,
/// mean_absolute_error, which are also mse, rmse and mae; the higher one of accuracy, auc,
/// precision, recall, f1, r2, and top_k with k or a number. Of other names AUTO is an error
/// (INVALID_ARGUMENT) that asks for one of the two.
typedef enum bel_goal { BEL_GOAL_AUTO, BEL_GOAL_MIN, BEL_GOAL_MAX } bel_goal;

/// Ends training when evaluations get no better. The decision is the master's, made once for all
/// processes, from the evaluations of the whole run, so that one that is resumed stops where one
/// that was never interrupted does. A job that it has ended is not trained further by the same
/// call.
typedef struct bel_early_stopping {
    int patience;       ///< evaluations in a row without a better one; 0: off
    const char *metric; ///< NULL: "loss"
    bel_goal goal;      ///< which value of it is better [AUTO]
    double min_delta;   ///< better is what differs by more [0]
    const char *eval;   ///< the name of the evaluation (bel_eval_spec.name); NULL: the one without
} bel_early_stopping;

/// Keeps the checkpoint whose evaluation had the best value of a metric, beside those that
/// keep_checkpoint_max keeps: it goes by that rule once there is a better one. Of equal ones the
/// earliest is the best, NaN never is. An evaluated version that is the best so far is saved if it
/// is not yet. The master decides, from the evaluations of the whole run, so that one that was
/// killed and resumed keeps the same checkpoint; earlier evaluations count where their checkpoint
/// is still there. Which one it is stands in model_dir/best.json (docs/formats/checkpoint.md) and
/// in bel_checkpoint_open_best; it stays also in later runs that do not keep the best.
typedef struct bel_keep_best {
    const char *metric; ///< NULL: off
    bel_goal goal;      ///< which value of it is better [AUTO]
    const char *eval;   ///< as in bel_early_stopping
} bel_keep_best;

/// A variable that has another name in the checkpoint. With a `*` at the end of both it stands for
/// all names that begin so: "encoder/*" and "bert/*"; at the end of one alone it is an error.
typedef struct bel_rename {
    const char *from; ///< there
    const char *to;   ///< here
} bel_rename;

/// Values to begin with from a checkpoint of another training, in place of initial ones. A new run
/// reads them; one that goes on from a checkpoint of its own does not, and says so. Tables count as
/// variables: their rows begin with the values of those there, and one that is not there as it
/// always does; a table of another width is DATA_LOSS, as a variable of another shape. The
/// optimizer's slots begin anew. What FTRL trains is refused, as it would replace the values in the
/// first step.
typedef struct bel_warm_start {
    const char *checkpoint;       ///< its folder, or a model's, whose newest it is; NULL: none
    const char *const *variables; ///< patterns (bel_multiplier) of names here; NULL: all variables
    int variable_count;
    const bel_rename *names; ///< others have the same name there; of several that fit the last
    int name_count;
    bool averages; ///< moving averages where the checkpoint has them
} bel_warm_start;

/// Sets the values a variable begins with: `values`, F32 of `shape` in C order, hold what its
/// initializer or the warm start has made. What it makes must follow from its arguments and `user`,
/// or the same run gives other bits. Called by whoever begins a new run, once for each variable, in
/// their order, on the thread that called the library. NULL, or an error, which ends the call.
typedef bel_status *bel_init_fn(void *user, const bel_estimator *estimator, const char *variable,
                                const bel_shape *shape, float *values);

/// On what to train, and until when. Read during the call alone, as is bel_eval_spec.
typedef struct bel_train_spec {
    bel_input_fn *input_fn;
    void *input_user; ///< `user` of its calls
    int64_t
        max_steps; ///< the step at which training ends, counted from the first run on, so that a
                   ///< run that goes on has the same number; 0: until the input ends
    int64_t steps; ///< in place of max_steps: so many steps from where this call begins. Not for
                   ///< the processes of a job, which may be started again in between. 0: off
    double max_seconds; ///< ends well when training has taken so long in this call; 0: no limit [0]
    bel_early_stopping early_stopping; ///< zero: none
    bel_keep_best keep_best;           ///< zero: none
    const bel_hook *const *hooks;      ///< hook.h; called in this order
    int hook_count;                    ///< up to BEL_MAX_HOOKS
    bel_warm_start warm_start;         ///< zero: none
    bel_init_fn *init_fn;              ///< behind the warm start; NULL: none
    void *init_user;                   ///< `user` of its calls
    /// The program's own loop of steps (replica.h), in place of steps of the model function, which
    /// then serves evaluation and prediction alone; NULL: none.
    const struct bel_loop *loop;
} bel_train_spec;

/// A digest of 32 hex digits, and its closing 0.
enum { BEL_RESULT_TEXT = 33 };

/// Numbers of an evaluation, and of training. Owns nothing.
typedef struct bel_result {
    int64_t global_step;     ///< EVAL: of the checkpoint; training: of the last version
    int64_t evaluation_step; ///< of the version whose evaluation this is: global_step, or before it
                             ///< where training was interrupted; -1: there was no evaluation
    double loss;            ///< EVAL: mean over examples; training without evaluations: of the last
                            ///< step; NaN where an evaluation was asked for and there was none
    double batch_mean_loss; ///< EVAL: mean of the batches' means, as TensorFlow reports it
    int64_t examples;       ///< EVAL: how many were evaluated
    int metric_count;       ///< EVAL: as the model function has added them
    struct {
        char name[64];
        double value;
    } metrics[BEL_MAX_METRICS];
    double train_seconds;         ///< time in training steps
    double examples_per_second;   ///< of training
    bool interrupted;             ///< ended by a signal or bel_request_stop, after saving
    char digest[BEL_RESULT_TEXT]; ///< of the last checkpoint
} bel_result;

enum { BEL_MAX_EVALS = 16 };

/// Which evaluated versions are kept apart from the checkpoints that come and go.
typedef enum bel_export_kind {
    BEL_EXPORT_LATEST, ///< each that was evaluated
    BEL_EXPORT_BEST,   ///< each that was better than all before, of this run and earlier ones
    BEL_EXPORT_FINAL,  ///< the last of a run that ends well
} bel_export_kind;

/// True when `now` is better than `best`.
typedef bool bel_compare_fn(void *user, const bel_result *best, const bel_result *now);

/// Keeps versions as model_dir/export/<name>/<step>/: the checkpoint (its files are not copied, but
/// shared with it, and read by whatever reads checkpoints), evaluation.json with the result, and
/// the model for other programs as bel_export writes it, which has the values once in each of two
/// files. Where that cannot be written a warning says so, and the rest is kept.
typedef struct bel_exporter {
    size_t size;      ///< sizeof(bel_exporter): what lies behind counts as 0
    const char *name; ///< letters, digits, _ and -; no two of a job are alike
    bel_export_kind kind;
    int keep;                  ///< the newest so many stay; 0: 1 of BEST, else 5
    const char *metric;        ///< BEST: NULL: "loss"
    bel_goal goal;             ///< BEST: which value of it is better [AUTO]
    bel_compare_fn *is_better; ///< BEST, in place of metric; NULL: by metric
    void *user;                ///< of is_better
} bel_exporter;

enum { BEL_MAX_EXPORTERS = 8 };

/// When and on what to evaluate. Several specs, up to BEL_MAX_EVALS, give several evaluations, each
/// with a name of its own. An evaluator of a cluster evaluates all of them together, as checkpoints
/// come, at the pace of the smallest start_delay_secs and throttle_secs among them.
typedef struct bel_eval_spec {
    bel_input_fn *input_fn;
    void *input_user;
    int64_t steps;           ///< batches; 0: all of the input
    const char *name;        ///< NULL: "eval" folder; else "eval_<name>"
    int64_t every_steps;     ///< evaluate every N steps; 0: at checkpoints [0]
    double throttle_secs;    ///< at checkpoints, at most every N seconds; 0: at each
    double start_delay_secs; ///< at checkpoints, not before so long after the start; 0: at once
    bel_result *out_result;  ///< gets this spec's last evaluation; NULL: not wanted
    const bel_exporter *const *exporters; ///< run by the process that evaluates
    int exporter_count;                   ///< up to BEL_MAX_EXPORTERS
} bel_eval_spec;

/// --- The estimator ------------------------------------------------------------------------------

/// Makes an estimator of copies of config and params, owned by the caller. The function must stay
/// until the estimator is destroyed. Touches no files, and reads the environment for the task that
/// this process has in a job (BELFRY_TASK, TF_CONFIG). INVALID_ARGUMENT: a setting is out of range
/// (named), or the task cannot be read. FAILED_PRECONDITION: the processor lacks what kernels need
/// (named).
BEL_API bel_status *bel_estimator_create(bel_model_fn *model_fn, const bel_run_config *config,
                                         const bel_param *params, int param_count,
                                         bel_estimator **out_estimator) BEL_MUST_USE;

/// Frees an estimator; accepts NULL. No call on it may be running.
BEL_API void bel_estimator_destroy(bel_estimator *estimator);

/// The settings as they are used: model_dir resolved and, in a cluster, the job's counts in place
/// of the program's. Lives as long as the estimator.
BEL_API const bel_run_config *bel_estimator_config(const bel_estimator *estimator);

/// This process's part in the job, from its creation on. Rank: of a worker its index among the
/// `size` workers, 0 for a master that trains and for a process alone, -1 for others. Local rank
/// and size: the same among the workers of this job on this process's host, which the launcher
/// names (or an address of TF_CONFIG); size is also told to processes that are no workers. Chief:
/// the process that saves and speaks for the job, the master. Sizes may change while a job runs
/// (`belfry jobs scale`); these are the numbers that it was started with, and a worker that is
/// added later has ranks behind them.
BEL_API bel_role bel_estimator_role(const bel_estimator *estimator);
BEL_API int bel_estimator_rank(const bel_estimator *estimator);
BEL_API int bel_estimator_size(const bel_estimator *estimator);
BEL_API int bel_estimator_local_rank(const bel_estimator *estimator);
BEL_API int bel_estimator_local_size(const bel_estimator *estimator);
BEL_API bool bel_estimator_is_chief(const bel_estimator *estimator);

/// Replicas whose batches make a step: the towers of all workers, in all their turns. A step is
/// made of so many batches; with async and bounded aggregation an update has one or a few of them.
BEL_API int bel_estimator_replicas(const bel_estimator *estimator);

/// The text of a parameter as given to the estimator, or `otherwise` (which may be NULL). It lives
/// as long as the estimator. From any thread.
BEL_API const char *bel_estimator_param(const bel_estimator *estimator, const char *name,
                                        const char *otherwise);

/// The parameter as a number, a whole number, or yes and no (true, false, 1, 0); `otherwise` where
/// it is not given. INVALID_ARGUMENT: it is none; *out_value is not set.
BEL_API bel_status *bel_estimator_param_number(const bel_estimator *estimator, const char *name,
                                               double otherwise, double *out_value) BEL_MUST_USE;
BEL_API bel_status *bel_estimator_param_int(const bel_estimator *estimator, const char *name,
                                            int64_t otherwise, int64_t *out_value) BEL_MUST_USE;
BEL_API bel_status *bel_estimator_param_bool(const bel_estimator *estimator, const char *name,
                                             bool otherwise, bool *out_value) BEL_MUST_USE;

/// Trains, evaluates along the way and at the end, and saves: a whole job, or this process's part
/// of one. Without a task in the environment (BELFRY_TASK, TF_CONFIG) it does the following, in
/// order.
///
/// 1. **Locks** model_dir, which is made if it is missing. FAILED_PRECONDITION: another run trains
///    there.
/// 2. **Builds.** Calls input function and model function in TRAIN, then in EVAL for each of the
///    `eval_count` specs (0, with evals NULL: no evaluation). Whatever is wrong with them shows
///    here, before anything is trained.
/// 3. **Resumes** from the newest checkpoint in model_dir that is not damaged, in the middle of an
///    epoch, too, to the bits of a run that was never stopped. FAILED_PRECONDITION: it was made
///    with other settings, data or model (listed); config.allow_changes takes them. DATA_LOSS:
///    there are checkpoints, and all are damaged. Without any the initial values (also those of
///    train->warm_start and init_fn) become ckpt-00000000, and step 0 begins.
/// 4. **Trains** until version max_steps, or where the input ends if that comes first; does not
///    where the checkpoint is there already. INVALID_ARGUMENT: neither would ever end it; the input
///    has no example, or with drop_remainder not enough for a step.
/// 5. **Saves** every save_checkpoints_steps versions or, where these are 0, when
///    save_checkpoints_secs have passed; removes old checkpoints (keep_checkpoint_max), but not the
///    best one of train->keep_best. Training
///    goes on meanwhile. Where a save is due while the one before goes on, training waits for that,
///    or puts off one that is due by time.
/// 6. **Evaluates** each spec: with every_steps at each multiple of it, else with each checkpoint
///    that is saved, the first one at once and then at most every throttle_secs. Moving averages,
///    if the optimizer keeps them, are evaluated in place of the variables. Training goes on
///    meanwhile. An evaluation that a stop or a kill cut off is made up for where training goes on
///    from it, if steps alone say that it was due.
/// 7. **Ends**: saves the last version, if that is not done, and evaluates each spec that has not
///    seen it. Event files and report.html are written along the way and here.
/// 8. **Returns** NULL with *out_result (NULL: not wanted): the evaluation of the last version by
///    the first spec (of others see bel_eval_spec.out_result), loss NaN where there is none, the
///    figures of training, and the digest of the last checkpoint. Without specs loss is the last
///    step's.
///
/// bel_request_stop cuts 4 short: the step is finished, its version saved and not evaluated, and
/// the call returns NULL with result.interrupted and the last evaluation that there was, that of
/// result.evaluation_step (of a run before this one without batch_mean_loss and examples, which are
/// NaN and 0); the same call goes on from there. The library
/// installs no signal handlers: a program that is to save on Ctrl-C calls bel_request_stop in a
/// handler of its own, and on SIGTERM bel_request_leave, as the command does. Killed at any moment,
/// it goes on from the newest complete checkpoint.
///
/// Errors beside those above end training at once, and *out_result is not set; checkpoints that are
/// complete stay. Of the input and model functions: theirs. ABORTED: the loss is not finite; the
/// step is not saved, nor any after it. DATA_LOSS: data cannot be read, or an evaluation has no
/// example. OUT_OF_RANGE: an index in the data (a label …). DEADLINE_EXCEEDED: no step for
/// stall_timeout_secs. RESOURCE_EXHAUSTED: memory or disk. An evaluation that fails ends the job
/// when its version is saved.
///
/// **As a process of a cluster** (docs/cluster-yaml.md) it plays the role that the task names, and
/// counts of workers and shards come from there, and of towers if it has them. A master does all of
/// the above, with the steps computed elsewhere; its result is the job's, and members that are lost
/// are replaced (docs/protocol.md). A worker builds in TRAIN, an evaluator in EVAL as checkpoints
/// come, a parameter server calls none of the program's functions; each returns when the job ends,
/// a worker with nothing but the step in *out_result. CANCELLED there: the job failed, and the
/// master says why. Where a worker's step does not end with the job, the process ends with an exit
/// code and a message, as nobody can take back a thread that hangs in user code. A process that a
/// supervisor has started gets SIGINT when that ends.
BEL_API bel_status *bel_train_and_evaluate(bel_estimator *estimator, const bel_train_spec *train,
                                           const bel_eval_spec *evals, int eval_count,
                                           bel_result *out_result) BEL_MUST_USE;

/// bel_train_and_evaluate as the whole of a program's work: what main returns. SIGINT asks for a
/// stop (bel_request_stop), SIGTERM and, unless it is ignored, SIGHUP ask to leave
/// (bel_request_leave), and so does a notice that this machine is to go (docs/operations.md); a
/// second signal ends the process at once, unless a supervisor has started it. An error is one line
/// on stderr, or with BELFRY_LOG_FORMAT=json an object, so that a supervisor's message has it. A
/// crash is named, with the step. The result is the exit code: 0; bel_status_exit_code of the
/// error; 128 + the signal's number for a run that was stopped and saved, and for a process that
/// has left. *out_result is as bel_train_and_evaluate sets it in the process that speaks for the
/// job, and zero, with an empty digest, in others and after errors (NULL: not wanted). Call it on
/// the first thread, before others are started.
///
/// ```c
/// int code = bel_run_job(estimator, &train, &eval, 1, &result);
/// if (result.digest[0] != '\0') printf("loss %.4f\n", result.loss);
/// bel_estimator_destroy(estimator);
/// return code;
/// ```
BEL_API int bel_run_job(bel_estimator *estimator, const bel_train_spec *train,
                        const bel_eval_spec *evals, int eval_count, bel_result *out_result);

/// bel_train_and_evaluate without evaluations: the same locking, resuming, saving, ends, errors and
/// roles. In *out_result (NULL: not wanted) loss is that of the last step of this run (NaN where
/// there was none), batch_mean_loss is NaN, evaluation_step -1, and there are no metrics.
BEL_API bel_status *bel_train(bel_estimator *estimator, const bel_train_spec *train,
                              bel_result *out_result) BEL_MUST_USE;

/// Evaluates `checkpoint` (a folder), or the newest good one in model_dir when NULL, on
/// `eval->steps` batches or all of the input; of `eval` the fields when to evaluate are not read.
/// Uses the towers of all workers of the process and their threads, with the same result whatever
/// their number, and reads model_dir without locking it, so it may run beside a training. Variables
/// are moving averages where config.averages is set and the checkpoint has them. Sets *out_result
/// (not NULL) with loss, metrics, examples, global_step and the checkpoint's digest, and adds an
/// event to model_dir/evaluate, or evaluate_<name>, which no training reads; where that cannot be
/// written, a warning says so. Errors: NOT_FOUND, there is no checkpoint, or it lacks a variable of
/// EVAL; DATA_LOSS, it is damaged or has another shape, or the input has no example; those of input
/// and model function; INVALID_ARGUMENT, the input repeats forever and eval->steps is 0.
BEL_API bel_status *bel_evaluate(bel_estimator *estimator, const bel_eval_spec *eval,
                                 const char *checkpoint, bel_result *out_result) BEL_MUST_USE;

/// A prediction of one example: "predictions", or the name of an output.
typedef struct bel_row {
    const char *name;
    bel_tensor value; ///< without the batch dimension
} bel_row;

/// One example's predictions: its number, counted from 0 over the examples that came through, and
/// its rows, spec.predictions first where there are any, then the outputs in their order. They live
/// during the call. NULL, or an error, which ends bel_predict with it.
typedef bel_status *bel_predict_fn(void *user, int64_t example, const bel_row *rows, int count);

/// Predicts every example of the input, and calls `each` with them in the input's order, on the
/// calling thread. Checkpoint, averages, towers and errors as with bel_evaluate; writes nothing.
/// The dataset needs no label. An input without examples gives no call and no error.
BEL_API bel_status *bel_predict(bel_estimator *estimator, bel_input_fn *input_fn, void *input_user,
                                const char *checkpoint, bel_predict_fn *each,
                                void *user) BEL_MUST_USE;

/// --- A predictor of a model and a checkpoint ----------------------------------------------------

/// A feature as the model function gets it, of one example: shape without the batch. A dimension
/// below 0 is open: features whose open dimensions have one number agree in it.
typedef struct bel_feature {
    const char *name;
    bel_dtype dtype; ///< any but STRING
    bel_shape shape;
} bel_feature;

/// Builds the model in PREDICT for these features, loads a checkpoint as bel_predict does, and
/// keeps both as a predictor (predictor.h), which the caller owns. Its inputs are the features, in
/// their order, each with the batch in front, of one example at least; its outputs are those of
/// bel_predict, in their order, with the batch in front: `predictions` first where there are any.
/// Batches of the same shape have the same bits, those of bel_predict. The estimator must outlive
/// it; a checkpoint that is saved later is seen by a new predictor only. Errors: those of
/// bel_predict; INVALID_ARGUMENT, a feature that cannot be.
BEL_API bel_status *bel_estimator_predictor(bel_estimator *estimator, const bel_feature *features,
                                            int feature_count, const char *checkpoint,
                                            bel_predictor **out_predictor) BEL_MUST_USE;

/// --- Export -------------------------------------------------------------------------------------

/// How a model is written for other programs. Zero is the default of every field.
typedef struct bel_export_options {
    size_t size; ///< sizeof(bel_export_options): what lies behind counts as 0
    int opset;   ///< of ONNX, 13 to 17; 0: 17
    /// Values stand in weights.safetensors alone, to which model.onnx points; always where they
    /// take more than 1 GiB. [false]
    bool external_data;
    /// The model takes ids and looks up their places by itself, comparing each with all keys: for
    /// tables of up to 65,536 of them, else INVALID_ARGUMENT. false: it takes places. [false]
    bool inline_tables;
    /// In place of the model its training, as one replica: the folder, a new one, gets what
    /// belfry/learner.h loads, and the others of these options are passed over. [false]
    bool training;
} bel_export_options;

/// Writes the model of a checkpoint (a folder; NULL: the newest in model_dir) into `folder`, which
/// is made, or replaced where it is an earlier export: model.onnx, the graph of PREDICT with its
/// values; weights.safetensors, the same values by the names of variables; signature.json, inputs
/// and outputs and what they mean (docs/formats/export.md). Variables are moving averages where
/// config.averages is set and the checkpoint has them. Features are those of the training. Options
/// may be NULL. Errors: those of bel_predict; UNIMPLEMENTED: an operation of the graph cannot leave
/// the job (it is named); FAILED_PRECONDITION: the checkpoint is of a version that did not keep
/// what features are; ALREADY_EXISTS: the folder is something else.
BEL_API bel_status *bel_export(bel_estimator *estimator, const char *checkpoint,
                               const bel_export_options *options, const char *folder) BEL_MUST_USE;

/// Asks the training of this process to save and end at the next step border (in a cluster: the
/// whole job); before training it ends the next one at once. The request is forgotten when the
/// training that it ended returns. Safe in signal handlers and on any thread.
BEL_API void bel_request_stop(void);

/// Asks that the job goes on without this process (a spot machine that is about to go): it leaves
/// at a step border with nothing lost, its part saved first where it holds parameters or is the
/// master, and bel_train_and_evaluate returns CANCELLED. Whoever started it is to start it again.
/// Where the job has but one process, or processes are not started again, and where all of them are
/// asked at once, it is bel_request_stop. Safe in signal handlers and on any thread.
BEL_API void bel_request_leave(void);

/// --- Version ------------------------------------------------------------------------------------

#define BEL_VERSION_MAJOR 0
#define BEL_VERSION_MINOR 1
#define BEL_VERSION_PATCH 0
BEL_API const char *bel_version(void); ///< Of the library: "0.1.0". Static.

#ifdef __cplusplus
}
#endif

#endif
