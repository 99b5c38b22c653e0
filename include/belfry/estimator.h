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
#include "belfry/ops.h"
#include "belfry/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/// --- The model function -------------------------------------------------------------------------

/// What a graph is built for.
typedef enum bel_mode { BEL_MODE_TRAIN, BEL_MODE_EVAL, BEL_MODE_PREDICT } bel_mode;

/// What a model function sees. It and the graph in it belong to the library and are valid during
/// the call only. Errors of the functions below stick to the graph (graph.h).
typedef struct bel_model_context bel_model_context;

/// The graph to build, with the batch's fields already in it as inputs; never NULL.
BEL_API bel_graph *bel_context_graph(bel_model_context *context);

/// What it is built for.
BEL_API bel_mode bel_context_mode(const bel_model_context *context);

/// The feature [batch, …] of this name, in the type that the dataset gives it. Error: there is
/// none; the message lists those there are. The label is no feature.
BEL_API bel_value *bel_context_feature(bel_model_context *context, const char *name);

/// True when there is such a feature.
BEL_API bool bel_context_has_feature(const bel_model_context *context, const char *name);

/// The only feature, whatever its name. Error: there are several, or none.
BEL_API bel_value *bel_context_only_feature(bel_model_context *context);

/// The field "label", [batch, …] in the dataset's type (I64 [batch] from CSV and IDX); NULL, and no
/// error, where the dataset has none. Always NULL in PREDICT.
BEL_API bel_value *bel_context_labels(bel_model_context *context);

/// The text of a parameter as given to the estimator, or `otherwise` (which may be NULL). It lives
/// as long as the estimator. A parameter that no graph of a training asks for is named in a
/// warning.
BEL_API const char *bel_context_param(const bel_model_context *context, const char *name,
                                      const char *otherwise);

/// The parameter as a number, or `otherwise` where it is not given. Error: it is no number; the
/// result is `otherwise`.
BEL_API double bel_context_param_number(bel_model_context *context, const char *name,
                                        double otherwise);

/// The parameter, or the text `otherwise` (not NULL), as a list of whole numbers such as "512,512",
/// "" for none. Returns how many were set. Error: a piece is no whole number, or there are more
/// than `capacity`; the result is 0.
BEL_API int bel_context_param_list(bel_model_context *context, const char *name,
                                   const char *otherwise, int64_t *out_numbers, int capacity);

/// The same for numbers ("0.1,0.01").
BEL_API int bel_context_param_numbers(bel_model_context *context, const char *name,
                                      const char *otherwise, double *out_numbers, int capacity);

/// The optimizer that the parameters describe, under the names and with the defaults of the
/// command's flags: "optimizer", "learning_rate", "momentum", … (belfry train_and_evaluate --help,
/// Optimizer). A text that is none of its setting is a sticky error that names the parameter.
BEL_API bel_optimizer bel_context_optimizer(bel_model_context *context);

/// What becomes of a metric's sums over the whole evaluation. Sums over batches do not depend on
/// which tower ran which batch.
typedef enum bel_metric_kind {
    BEL_METRIC_MEAN,      ///< sum / weight; 0 without weight
    BEL_METRIC_ROOT_MEAN, ///< its root
    BEL_METRIC_AUC,       ///< area under the curve of the rows of `sum`: bel_metric_auc
} bel_metric_kind;

/// What a batch says of a metric; both values are added up over the batches, in double. Made by the
/// functions below, or by hand.
typedef struct bel_metric {
    const char *name; ///< Not copied: it outlives the estimator's call. 63 bytes of it are shown.
    bel_metric_kind kind;
    bel_value *sum;    ///< scalar F32; AUC: [3, n]: scores, and what they weigh as no and as yes
    bel_value *weight; ///< scalar F32; AUC: NULL
} bel_metric;

enum { BEL_MAX_METRICS = 16 };

/// What the model function answers, zero when it is called. Needed: TRAIN loss and optimizer; EVAL
/// loss; PREDICT predictions. Metrics and loss_weight are for EVAL, where there are any.
/// INVALID_ARGUMENT of the call that trains, evaluates or predicts names what is missing or of
/// another shape.
typedef struct bel_estimator_spec {
    bel_value *loss;        ///< scalar F32: mean over the examples of the batch (+ penalties)
    bel_value *predictions; ///< [batch, …] of any type, a row for each example
    bel_metric metrics[BEL_MAX_METRICS];
    int metric_count;
    bel_optimizer optimizer;
    /// Scalar F32: what the loss is the mean over, such as the sum of its weights
    /// (bel_weighted_mean); an evaluation weights the batches' losses by it. NULL: their examples.
    bel_value *loss_weight;
} bel_estimator_spec;

/// Builds the graph of the context's mode and fills in `spec`. NULL; or an error, for mistakes that
/// are not in the graph, such as a parameter out of range.
typedef bel_status *bel_model_fn(bel_model_context *context, bel_estimator_spec *spec);

/// --- Metrics ------------------------------------------------------------------------------------
///
/// Each function adds one metric to `spec`; in TRAIN that has no effect. `weights` (F32, of the
/// shape of what is weighted: labels, or values) say how much an example counts; NULL: once. An
/// example whose weight is 0 is not looked at: it may be NaN, or its label be out of range. Where
/// all weights are 0 a metric is 0. Errors: the name is taken ("loss" and "global_step" are
/// reserved); more than BEL_MAX_METRICS; types and shapes that do not go together, also where they
/// could be broadcast.

/// The mean of `values` (F32, any shape).
BEL_API void bel_metric_mean(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                             bel_value *values, bel_value *weights);

/// Share of `predicted` that equals `labels`, both of one type and shape, e.g. I64 [batch].
BEL_API void bel_metric_accuracy(bel_model_context *context, bel_estimator_spec *spec,
                                 const char *name, bel_value *labels, bel_value *predicted,
                                 bel_value *weights);

/// Share of labels (I64 [batch]) whose score is among the k highest of scores (F32 [batch,
/// classes]). Equal scores count in favour of the label. Errors: scores of another rank, or of
/// fewer than k classes. A label out of range ends the step with OUT_OF_RANGE.
BEL_API void bel_metric_top_k(bel_model_context *context, bel_estimator_spec *spec,
                              const char *name, bel_value *labels, bel_value *scores, int64_t k,
                              bel_value *weights);

/// Of yes and no: labels and predicted of one shape, BOOL or any numbers, where all but 0 is yes.
/// Precision: share of what was predicted as yes that is yes; recall: share of what is yes that was
/// predicted; F1: their harmonic mean. 0 where there is nothing to take a share of. Shares are
/// those of the whole evaluation, not means of the batches' shares.
BEL_API void bel_metric_precision(bel_model_context *context, bel_estimator_spec *spec,
                                  const char *name, bel_value *labels, bel_value *predicted,
                                  bel_value *weights);
BEL_API void bel_metric_recall(bel_model_context *context, bel_estimator_spec *spec,
                               const char *name, bel_value *labels, bel_value *predicted,
                               bel_value *weights);
BEL_API void bel_metric_f1(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                           bel_value *labels, bel_value *predicted, bel_value *weights);

/// Root of the mean of (predicted - labels)², both F32 of one shape.
BEL_API void bel_metric_root_mean_squared_error(bel_model_context *context,
                                                bel_estimator_spec *spec, const char *name,
                                                bel_value *labels, bel_value *predicted,
                                                bel_value *weights);

/// Area under the receiver operating characteristic: how often an example that is yes has a higher
/// probability (F32 [batch]) than one that is no; labels [batch] as above. 0 where all are the
/// same, NaN where a probability is NaN. Exact for up to 2^18 different probabilities, which are
/// kept until the end of the evaluation; of more, neighbours count as equal.
BEL_API void bel_metric_auc(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                            bel_value *labels, bel_value *probabilities, bel_value *weights);

/// --- Settings -----------------------------------------------------------------------------------

/// How workers and shards of a cluster exchange. AUTO: through shared memory on one host, over gRPC
/// between hosts.
typedef enum bel_lane_choice { BEL_LANE_AUTO, BEL_LANE_SHM, BEL_LANE_GRPC } bel_lane_choice;

/// How a tower runs the calls of its program, with the same bits. SYNC: one after another, the
/// tiles of each, or of a few that do not depend on each other, on all threads. ASYNC: each as soon
/// as what it needs is there; faster where a model has branches of which none fills the threads,
/// and takes more memory.
typedef enum bel_executor { BEL_EXECUTOR_SYNC, BEL_EXECUTOR_ASYNC } bel_executor;

/// In what type a replica keeps activations from its forward pass to its backward pass. BF16: in
/// half the memory, rounded to 8 bits of mantissa; whatever is computed, and parameters, gradients,
/// losses and statistics are F32 all the same, and so is evaluation.
typedef enum bel_precision { BEL_PRECISION_F32, BEL_PRECISION_BF16 } bel_precision;

/// Who computes the products of MatMul and Gemm and of their gradients. BELFRY: the same bits on
/// every processor. OPENBLAS: libopenblas.so.0, which must be there, one thread a call; the bits
/// hold for any assignment, threads and shards, but for one version of it and one core type, which
/// a checkpoint records and all workers must share. Convolutions, recurrent layers and attention
/// are Belfry's own with both.
typedef enum bel_products { BEL_PRODUCTS_BELFRY, BEL_PRODUCTS_OPENBLAS } bel_products;

/// How replicas count in an update, and in batch statistics that are kept.
typedef enum bel_average {
    BEL_AVERAGE_EXAMPLES, ///< each by its examples: the gradient is the mean over all examples
    BEL_AVERAGE_REPLICAS, ///< each once: the gradient is the mean of the replicas' means
} bel_average;

/// When the reports of workers become an update.
typedef enum bel_aggregation {
    /// Those of replicas_to_aggregate workers that computed on the same version, averaged. All
    /// workers: the bits of the result do not depend on timing. Fewer: the others are backups; the
    /// first reports count, the same ones on all parameter servers, and later ones are dropped.
    /// More than there are: every worker plays several replicas a step, one after another.
    BEL_AGGREGATE_SYNC,
    /// Each report as it comes, on whatever version it was computed (or replicas_to_aggregate of
    /// them together).
    BEL_AGGREGATE_ASYNC,
    /// The same, but a worker waits while more of its reports were used than of the slowest
    /// worker's and max_staleness beyond (Ho et al. 2013, stale synchronous parallel).
    BEL_AGGREGATE_BOUNDED,
} bel_aggregation;

/// How to run. Set by bel_run_config_init to the defaults in brackets (0, NULL or false where none
/// is given), then changed. bel_estimator_create copies it with its texts and lists, and says which
/// setting is out of range.
typedef struct bel_run_config {
    const char *model_dir;   ///< checkpoints, events, report; created if missing; must be set
    uint64_t seed;           ///< [1]
    int worker_count;        ///< workers in this process [1]
    int tower_count;         ///< towers of a worker; a CPU tower is a share of the cores [1]
    const int *towers_of;    ///< towers of each worker, if they differ; NULL: tower_count each
    int shard_count;         ///< parameter-server shards in this process [1]
    int thread_count;        ///< threads of a tower; 0: cores / towers of this machine [0]
    bel_executor executor;   ///< [SYNC]
    bel_precision precision; ///< [F32]
    bel_products products;   ///< [BELFRY]
    int64_t save_checkpoints_steps;       ///< 0: by time [0]
    double save_checkpoints_secs;         ///< 0: off; ignored when steps are set [600]
    int keep_checkpoint_max;              ///< 0: keep all [5]
    double keep_checkpoint_every_n_hours; ///< keep one for each N hours besides; 0: off [0]
    int64_t save_summary_steps;           ///< events; 0: off [100]
    int64_t log_step_count_steps;         ///< progress, at most once a second; 0: off [100]
    bool report;                          ///< write report.html [true]
    bool allow_changes;        ///< resume although settings that determine the bits changed
    bool averages;             ///< bel_evaluate, bel_predict: moving averages, if there [true]
    int64_t activation_memory; ///< bytes of a tower's values; computes some again; 0: no limit [0]
    int64_t table_memory;      ///< bytes of a table's rows on a shard; 0: no limit [0]
    double stall_timeout_secs; ///< without a step this long, the job fails [600]
    bel_lane_choice lane;      ///< how workers and shards of a cluster exchange [AUTO]
    bel_aggregation aggregation; ///< [SYNC]
    int replicas_to_aggregate;   ///< workers; 0: all of them with SYNC, else 1 [0]
    int max_staleness;           ///< BOUNDED [0]
    bool elastic_rescale; ///< of a cluster: replicas and learning rate follow the number of workers
    int metrics_port;     ///< HTTP port of the master's metrics; 0: none, -1: a free one [0]
    const char *metrics_address; ///< where it listens; NULL: 127.0.0.1
    const char *trace_file;      ///< Chrome trace of all processes, written at the end; NULL: none
    /// Text for model_dir/job.yaml, written by the process that trains (in a cluster the master)
    /// when the folder is locked and what is in it fits; NULL: none.
    const char *job_file;
    bel_average average; ///< what replicas' gradients are weighted by [EXAMPLES]
    /// Leaves out what does not fill a step of all replicas at the end of the input, and says how
    /// much; false: the last step has what is left. [false]
    bool drop_remainder;
    /// Workers note in model_dir/audit which records each step has read, 16 bytes a record, for
    /// `belfry inspect --audit`. Only where all workers count in every update. [false]
    bool audit_input;
} bel_run_config;

/// Sets every field to its default. model_dir is left NULL, which bel_estimator_create refuses.
BEL_API void bel_run_config_init(bel_run_config *config);

/// A parameter of the model: bel_context_param.
typedef struct bel_param {
    const char *name;
    const char *value;
} bel_param;

/// Makes a dataset for a mode and hands it over in *out_dataset: the library destroys it. Called
/// for each graph that is built for that mode, or more often; each call makes a dataset of its own.
/// Returns NULL, or an error with *out_dataset unset.
typedef bel_status *bel_input_fn(void *user, bel_mode mode, bel_dataset **out_dataset);

/// On what to train, and until when. Read during the call alone, as is bel_eval_spec.
typedef struct bel_train_spec {
    bel_input_fn *input_fn;
    void *input_user; ///< `user` of its calls
    int64_t
        max_steps; ///< the step at which training ends, counted from the first run on, so that a
                   ///< run that goes on has the same number; 0: until the input ends
} bel_train_spec;

/// A digest of 32 hex digits, and its closing 0.
enum { BEL_RESULT_TEXT = 33 };

/// Numbers of an evaluation, and of training. Owns nothing.
typedef struct bel_result {
    int64_t global_step;    ///< EVAL: of the checkpoint; training: of the last version
    double loss;            ///< EVAL: mean over examples; training: of the last step; NaN where an
                            ///< evaluation was asked for and there is none at global_step
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

/// When and on what to evaluate. Several specs, up to BEL_MAX_EVALS, give several evaluations, each
/// with a name of its own.
typedef struct bel_eval_spec {
    bel_input_fn *input_fn;
    void *input_user;
    int64_t steps;          ///< batches; 0: all of the input
    const char *name;       ///< NULL: "eval" folder; else "eval_<name>"
    int64_t every_steps;    ///< evaluate every N steps; 0: at checkpoints [0]
    double throttle_secs;   ///< at checkpoints, at most every N seconds; 0: at each
    bel_result *out_result; ///< gets this spec's last evaluation; NULL: not wanted
} bel_eval_spec;

/// --- The estimator ------------------------------------------------------------------------------

/// A model function with settings and parameters; opaque.
typedef struct bel_estimator bel_estimator;

/// Makes an estimator of copies of config and params, owned by the caller. The function must stay
/// until the estimator is destroyed. Touches no files. INVALID_ARGUMENT: a setting is out of range
/// (named). FAILED_PRECONDITION: the processor lacks what kernels need (named).
BEL_API bel_status *bel_estimator_create(bel_model_fn *model_fn, const bel_run_config *config,
                                         const bel_param *params, int param_count,
                                         bel_estimator **out_estimator) BEL_MUST_USE;

/// Frees an estimator; accepts NULL. No call on it may be running.
BEL_API void bel_estimator_destroy(bel_estimator *estimator);

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
///    there are checkpoints, and all are damaged. Without any the initial values become
///    ckpt-00000000, and step 0 begins.
/// 4. **Trains** until version max_steps, or where the input ends if that comes first; does not
///    where the checkpoint is there already. INVALID_ARGUMENT: neither would ever end it; the input
///    has no example, or with drop_remainder not enough for a step.
/// 5. **Saves** every save_checkpoints_steps versions or, where these are 0, when
///    save_checkpoints_secs have passed; removes old checkpoints (keep_checkpoint_max). Training
///    goes on meanwhile. Where a save is due while the one before goes on, training waits for that,
///    or puts off one that is due by time.
/// 6. **Evaluates** each spec: with every_steps at each multiple of it, else with each checkpoint
///    that is saved, the first one at once and then at most every throttle_secs. Moving averages,
///    if the optimizer keeps them, are evaluated in place of the variables. Training goes on
///    meanwhile. An evaluation that a stop or a kill cut off is made up for at the next start where
///    steps alone say that it was due, but not in a cluster.
/// 7. **Ends**: saves the last version, if that is not done, and evaluates each spec that has not
///    seen it. Event files and report.html are written along the way and here.
/// 8. **Returns** NULL with *out_result (NULL: not wanted): the evaluation of the last version by
///    the first spec (of others see bel_eval_spec.out_result), loss NaN where there is none, the
///    figures of training, and the digest of the last checkpoint. Without specs loss is the last
///    step's.
///
/// bel_request_stop cuts 4 short: the step is finished, its version saved and not evaluated, and
/// the call returns NULL with result.interrupted; the same call goes on from there. The library
/// installs no signal handlers: a program that is to save on Ctrl-C or SIGTERM calls
/// bel_request_stop in handlers of its own, as the command does. Killed at any moment, it goes on
/// from the newest complete checkpoint.
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
/// supervisor has started gets SIGTERM when that ends.
BEL_API bel_status *bel_train_and_evaluate(bel_estimator *estimator, const bel_train_spec *train,
                                           const bel_eval_spec *evals, int eval_count,
                                           bel_result *out_result) BEL_MUST_USE;

/// bel_train_and_evaluate without evaluations: the same locking, resuming, saving, ends, errors and
/// roles. In *out_result (NULL: not wanted) loss is that of the last step of this run (NaN where
/// there was none), batch_mean_loss is NaN, and there are no metrics.
BEL_API bel_status *bel_train(bel_estimator *estimator, const bel_train_spec *train,
                              bel_result *out_result) BEL_MUST_USE;

/// Evaluates `checkpoint` (a folder), or the newest good one in model_dir when NULL, on
/// `eval->steps` batches or all of the input; of `eval` the fields when to evaluate are not read.
/// Uses the towers of worker 0 and their threads, and reads model_dir without locking it, so it may
/// run beside a training. Variables are moving averages where config.averages is set and the
/// checkpoint has them. Sets *out_result (not NULL) with loss, metrics, examples, global_step and
/// the checkpoint's digest, and adds an event to model_dir; where that cannot be written, a warning
/// says so. Errors: NOT_FOUND, there is no checkpoint, or it lacks a variable of EVAL; DATA_LOSS,
/// it is damaged or has another shape, or the input has no example; those of input and model
/// function; INVALID_ARGUMENT, the input repeats forever and eval->steps is 0.
BEL_API bel_status *bel_evaluate(bel_estimator *estimator, const bel_eval_spec *eval,
                                 const char *checkpoint, bel_result *out_result) BEL_MUST_USE;

/// One example's prediction: its number, counted from 0 over the examples that came through, and
/// its row of spec.predictions, without the batch dimension, which lives during the call. NULL, or
/// an error, which ends bel_predict with it.
typedef bel_status *bel_predict_fn(void *user, int64_t example, const bel_tensor *row);

/// Predicts every example of the input, and calls `each` with them in the input's order, on the
/// calling thread. Checkpoint, averages, towers and errors as with bel_evaluate; writes nothing.
/// The dataset needs no label. An input without examples gives no call and no error.
BEL_API bel_status *bel_predict(bel_estimator *estimator, bel_input_fn *input_fn, void *input_user,
                                const char *checkpoint, bel_predict_fn *each,
                                void *user) BEL_MUST_USE;

/// Asks the training of this process to save and end at the next step border (in a cluster: the
/// whole job); before training it ends the next one at once. The request is forgotten when the
/// training that it ended returns. Safe in signal handlers and on any thread.
BEL_API void bel_request_stop(void);

/// --- Packages -----------------------------------------------------------------------------------

/// A model in a shared object of its own (`belfry train_and_evaluate --package my_model.so`):
///
/// ```c
/// BEL_PACKAGE("my_model", "what it is", model_fn)
/// ```
typedef struct bel_package {
    int abi;                 ///< BEL_PACKAGE_ABI of the headers it was compiled with
    const char *name;        ///< of the model; remembered in checkpoints
    const char *description; ///< one line
    bel_model_fn *model_fn;
} bel_package;

/// Rises when packages must be compiled again; a package of another number is refused when it is
/// loaded.
enum { BEL_PACKAGE_ABI = 5 };

/// Exports the package of a shared object, once in it.
#define BEL_PACKAGE(package_name, package_description, function)                                   \
    BEL_API extern const bel_package bel_package_entry;                                            \
    const bel_package bel_package_entry = {BEL_PACKAGE_ABI, package_name, package_description,     \
                                           function};

/// A model that comes with Belfry, by name ("linear", "dnn", "cnn", "resnet", "wide_deep", "gru",
/// "lstm": docs/models.md), or by index from 0 on. NULL: there is none, or the index is behind the
/// last. Static.
BEL_API const bel_package *bel_model_find(const char *name);
BEL_API const bel_package *bel_model_at(int index);

/// --- Version ------------------------------------------------------------------------------------

#define BEL_VERSION_MAJOR 0
#define BEL_VERSION_MINOR 1
#define BEL_VERSION_PATCH 0
BEL_API const char *bel_version(void); ///< Of the library: "0.1.0". Static.

#ifdef __cplusplus
}
#endif

#endif
