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
/// flags, not on how many threads, towers, workers or shards take part.
#ifndef BELFRY_ESTIMATOR_H
#define BELFRY_ESTIMATOR_H

#include "belfry/dataset.h"
#include "belfry/ops.h"
#include "belfry/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/// --- The model function -------------------------------------------------------------------------

typedef enum bel_mode { BEL_MODE_TRAIN, BEL_MODE_EVAL, BEL_MODE_PREDICT } bel_mode;

/// What a model function sees. Valid during the call only.
typedef struct bel_model_context bel_model_context;

BEL_API bel_graph *bel_context_graph(bel_model_context *context);
BEL_API bel_mode bel_context_mode(const bel_model_context *context);

/// The feature [batch, …]; NULL with a sticky error that lists the features there are.
BEL_API bel_value *bel_context_feature(bel_model_context *context, const char *name);

/// True when there is such a feature.
BEL_API bool bel_context_has_feature(const bel_model_context *context, const char *name);

/// The only feature, whatever its name; an error when there are several.
BEL_API bel_value *bel_context_only_feature(bel_model_context *context);

/// Labels [batch]; always NULL in PREDICT.
BEL_API bel_value *bel_context_labels(bel_model_context *context);

/// A parameter of the model as given to the estimator, or `otherwise`. A value that is no number
/// (or no list of whole numbers) is a sticky error naming the parameter.
BEL_API const char *bel_context_param(const bel_model_context *context, const char *name,
                                      const char *otherwise);
BEL_API double bel_context_param_number(bel_model_context *context, const char *name,
                                        double otherwise);
/// A list such as "512,512"; returns its length, at most `capacity`.
BEL_API int bel_context_param_list(bel_model_context *context, const char *name,
                                   const char *otherwise, int64_t *out_numbers, int capacity);

/// The same for numbers ("0.1,0.01"): at most `capacity` of them; more are a sticky error.
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

/// Of a batch; both are added up over the batches.
typedef struct bel_metric {
    const char *name;
    bel_metric_kind kind;
    bel_value *sum;    ///< scalar F32; AUC: [3, n]: scores, and what they weigh as no and as yes
    bel_value *weight; ///< scalar F32; AUC: NULL
} bel_metric;

enum { BEL_MAX_METRICS = 16 };

/// What the model function answers. Needed: TRAIN loss and optimizer; EVAL loss; PREDICT
/// predictions.
typedef struct bel_estimator_spec {
    bel_value *loss;        ///< scalar: mean over the examples of the batch (+ penalties)
    bel_value *predictions; ///< [batch, …]
    bel_metric metrics[BEL_MAX_METRICS];
    int metric_count;
    bel_optimizer optimizer;
    /// Scalar F32: what the loss is the mean over, such as the sum of its weights
    /// (bel_weighted_mean); an evaluation weights the batches' losses by it. NULL: their examples.
    bel_value *loss_weight;
} bel_estimator_spec;

typedef bel_status *bel_model_fn(bel_model_context *context, bel_estimator_spec *spec);

/// Adds the mean of `values` (any shape), weighted by `weights` of the same shape; NULL counts each
/// value once. Sticky errors: name taken ("loss" and "global_step" are reserved), too many.
BEL_API void bel_metric_mean(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                             bel_value *values, bel_value *weights);

/// In the following, weights (F32, shape of the labels) say how much an example counts; NULL: once.

/// Share of `predicted` that equals `labels`, both of one type and shape, e.g. I64 [batch].
BEL_API void bel_metric_accuracy(bel_model_context *context, bel_estimator_spec *spec,
                                 const char *name, bel_value *labels, bel_value *predicted,
                                 bel_value *weights);

/// Share of labels (I64 [batch]) whose score is among the k highest of scores (F32 [batch,
/// classes]). Equal scores count in favour of the label.
BEL_API void bel_metric_top_k(bel_model_context *context, bel_estimator_spec *spec,
                              const char *name, bel_value *labels, bel_value *scores, int64_t k,
                              bel_value *weights);

/// Of yes and no: labels and predicted of one shape, BOOL or any numbers, where all but 0 is yes.
/// Precision: share of what was predicted as yes that is yes; recall: share of what is yes that was
/// predicted; F1: their harmonic mean. 0 where there is nothing to take a share of.
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
/// same. Exact for up to 2^18 different probabilities; of more, neighbours count as equal.
BEL_API void bel_metric_auc(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                            bel_value *labels, bel_value *probabilities, bel_value *weights);

/// --- Settings -----------------------------------------------------------------------------------

/// AUTO: through shared memory on one host, over gRPC between hosts.
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

/// How to run. Zero-initialise with bel_run_config_init, which sets the defaults in brackets.
typedef struct bel_run_config {
    const char *model_dir;   ///< checkpoints, events, report; created if missing
    uint64_t seed;           ///< [1]
    int worker_count;        ///< workers in this process [1]
    int tower_count;         ///< towers of a worker; a CPU tower is a share of the cores [1]
    const int *towers_of;    ///< towers of each worker, if they differ; NULL: tower_count each
    int shard_count;         ///< parameter-server shards in this process [1]
    int thread_count;        ///< threads of a tower; 0: cores / towers of this machine [0]
    bel_executor executor;   ///< [SYNC]
    bel_precision precision; ///< [F32]
    int64_t save_checkpoints_steps;       ///< 0: by time [0]
    double save_checkpoints_secs;         ///< 0: off; ignored when steps are set [600]
    int keep_checkpoint_max;              ///< 0: keep all [5]
    double keep_checkpoint_every_n_hours; ///< keep one for each N hours besides; 0: off [0]
    int64_t save_summary_steps;           ///< events; 0: off [100]
    int64_t log_step_count_steps; ///< progress lines when stderr is no terminal; 0: off [100]
    bool report;                  ///< write report.html [true]
    bool allow_changes;           ///< resume although settings that determine the bits changed
    bool averages;                ///< bel_evaluate, bel_predict: moving averages, if there [true]
    int64_t activation_memory; ///< bytes of a tower's values; computes some again; 0: no limit [0]
    int64_t table_memory;      ///< bytes of a table's rows on a shard; 0: no limit [0]
    double stall_timeout_secs; ///< no progress for so long is an error [600]
    bel_lane_choice lane;      ///< how workers and shards of a cluster exchange [AUTO]
    bel_aggregation aggregation; ///< [SYNC]
    int replicas_to_aggregate;   ///< workers; 0: all of them with SYNC, else 1 [0]
    int max_staleness;           ///< BOUNDED [0]
    bool elastic_rescale; ///< of a cluster: replicas and learning rate follow the number of workers
    int metrics_port;     ///< HTTP port of the master's metrics; 0: none, -1: a free one [0]
    const char *metrics_address; ///< where it listens; NULL: 127.0.0.1
    const char *trace_file;      ///< Chrome trace of all processes, written at the end; NULL: none
    bel_average average;         ///< what replicas' gradients are weighted by [EXAMPLES]
    /// Leaves out what does not fill a step of all replicas at the end of the input, and says how
    /// much; false: the last step has what is left. [false]
    bool drop_remainder;
} bel_run_config;

BEL_API void bel_run_config_init(bel_run_config *config);

typedef struct bel_param {
    const char *name;
    const char *value;
} bel_param;

/// Makes a dataset for a mode. The trainer destroys what it is given.
typedef bel_status *bel_input_fn(void *user, bel_mode mode, bel_dataset **out_dataset);

typedef struct bel_train_spec {
    bel_input_fn *input_fn;
    void *input_user;
    int64_t max_steps; ///< absolute; 0: until the input ends
} bel_train_spec;

enum { BEL_RESULT_TEXT = 33 };

/// Numbers of an evaluation or of training.
typedef struct bel_result {
    int64_t global_step;
    double loss;            ///< EVAL: mean over examples; training: of the last step; NaN where an
                            ///< evaluation was asked for and there is none at global_step
    double batch_mean_loss; ///< EVAL: mean of the batches' means, as TensorFlow reports it
    int64_t examples;
    int metric_count;
    struct {
        char name[64];
        double value;
    } metrics[BEL_MAX_METRICS];
    double train_seconds;         ///< time in training steps
    double examples_per_second;   ///< of training
    bool interrupted;             ///< ended by a signal or bel_request_stop, after saving
    char digest[BEL_RESULT_TEXT]; ///< of the last checkpoint
} bel_result;

/// When and on what to evaluate. Several specs give several evaluations, each with its own name.
typedef struct bel_eval_spec {
    bel_input_fn *input_fn;
    void *input_user;
    int64_t steps;          ///< batches; 0: all of the input
    const char *name;       ///< NULL: "eval" folder; else "eval_<name>"
    int64_t every_steps;    ///< evaluate every N steps; 0: at checkpoints [0]
    double throttle_secs;   ///< at checkpoints, at most every N seconds
    bel_result *out_result; ///< gets this spec's last evaluation; NULL: not wanted
} bel_eval_spec;

/// --- The estimator ------------------------------------------------------------------------------

typedef struct bel_estimator bel_estimator;

/// Copies config and params. INVALID_ARGUMENT: a setting is out of range (named).
/// FAILED_PRECONDITION: the processor lacks what kernels need (named).
BEL_API bel_status *bel_estimator_create(bel_model_fn *model_fn, const bel_run_config *config,
                                         const bel_param *params, int param_count,
                                         bel_estimator **out_estimator) BEL_MUST_USE;
BEL_API void bel_estimator_destroy(bel_estimator *estimator);

/// Trains, evaluating along the way and at the end; resumes from the newest checkpoint in
/// model_dir. `out_result` holds the last evaluation (of the first spec; of the others see
/// bel_eval_spec) and the training figures.
/// In a process of a cluster (BELFRY_TASK or TF_CONFIG in the environment, docs/cluster-yaml.md)
/// this plays the process's role, and worker and shard counts come from there: the master's result
/// is the job's; a worker returns when the job ends, a parameter server too, without calling any of
/// the program's functions. CANCELLED there: the job failed, and the master says why. A worker
/// whose step does not end with the job ends the process; the master's own says why before. Errors:
/// those of input and model function; FAILED_PRECONDITION: the checkpoint was made with other
/// settings (listed); ABORTED: the loss is not finite (nothing is saved from then on);
/// DEADLINE_EXCEEDED: no progress; RESOURCE_EXHAUSTED: memory, disk.
BEL_API bel_status *bel_train_and_evaluate(bel_estimator *estimator, const bel_train_spec *train,
                                           const bel_eval_spec *evals, int eval_count,
                                           bel_result *out_result) BEL_MUST_USE;

BEL_API bel_status *bel_train(bel_estimator *estimator, const bel_train_spec *train,
                              bel_result *out_result) BEL_MUST_USE;

/// Evaluates `checkpoint` (a folder), or the newest when NULL. NOT_FOUND without one.
BEL_API bel_status *bel_evaluate(bel_estimator *estimator, const bel_eval_spec *eval,
                                 const char *checkpoint, bel_result *out_result) BEL_MUST_USE;

/// One example's prediction; `row` lives during the call. Return an error to stop.
typedef bel_status *bel_predict_fn(void *user, int64_t example, const bel_tensor *row);

/// Predicts every example of the input in order.
BEL_API bel_status *bel_predict(bel_estimator *estimator, bel_input_fn *input_fn, void *input_user,
                                const char *checkpoint, bel_predict_fn *each,
                                void *user) BEL_MUST_USE;

/// Asks training to save and end at the next step border; before training it ends the next one at
/// once. Safe in signal handlers.
BEL_API void bel_request_stop(void);

/// --- Packages -----------------------------------------------------------------------------------

/// A model in a shared object of its own (`belfry train_and_evaluate --package my_model.so`):
///
/// ```c
/// BEL_PACKAGE("my_model", "what it is", model_fn)
/// ```
typedef struct bel_package {
    int abi; ///< BEL_PACKAGE_ABI of the headers it was compiled with
    const char *name;
    const char *description;
    bel_model_fn *model_fn;
} bel_package;

enum { BEL_PACKAGE_ABI = 4 };

#define BEL_PACKAGE(package_name, package_description, function)                                   \
    BEL_API extern const bel_package bel_package_entry;                                            \
    const bel_package bel_package_entry = {BEL_PACKAGE_ABI, package_name, package_description,     \
                                           function};

/// The models that come with Belfry: "linear", "dnn", "cnn", "resnet", "gru", "lstm", "wide_deep".
/// NULL: no such model.
BEL_API const bel_package *bel_model_find(const char *name);
BEL_API const bel_package *bel_model_at(int index); ///< NULL behind the last

/// --- Version ------------------------------------------------------------------------------------

#define BEL_VERSION_MAJOR 0
#define BEL_VERSION_MINOR 1
#define BEL_VERSION_PATCH 0
BEL_API const char *bel_version(void); ///< "0.1.0"

#ifdef __cplusplus
}
#endif

#endif
