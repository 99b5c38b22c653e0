/// The model function: what it sees, what it answers, and what it adds on the way: losses, outputs,
/// metrics, summaries. Whoever calls it is an estimator (estimator.h, with an example at its head).
///
/// Everything that is added is described, nothing computed: values belong to the context's graph,
/// and mistakes stick to that (graph.h), so calls need no checks. Names are not copied; string
/// literals are the usual ones.
///
/// **Thread rule.** A context and its spec belong to the thread that called the function.
#ifndef BELFRY_MODEL_H
#define BELFRY_MODEL_H

#include "belfry/ops.h"
#include "belfry/optimizer.h"
#include "belfry/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A model function with settings and parameters; opaque.
typedef struct bel_estimator bel_estimator;

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

/// The estimator whose model this is: settings, the job, and this process's part in it.
BEL_API const bel_estimator *bel_context_estimator(const bel_model_context *context);

/// Examples of a full batch, as the dataset's batch stage has it. A graph is built for batches of
/// any size (the last may be shorter), so this is for numbers beside it, such as a learning rate.
BEL_API int64_t bel_context_batch_size(const bel_model_context *context);

/// The feature [batch, …] of this name, in the type that the dataset gives it. Error: there is
/// none; the message lists those there are. The label is no feature.
BEL_API bel_value *bel_context_feature(bel_model_context *context, const char *name);

/// True when there is such a feature.
BEL_API bool bel_context_has_feature(const bel_model_context *context, const char *name);

/// The only feature, whatever its name. Error: there are several, or none.
BEL_API bel_value *bel_context_only_feature(bel_model_context *context);

/// The field "label", [batch, …] in the dataset's type (I64 [batch] from CSV and IDX); NULL, and no
/// error, where the dataset has none. Always NULL in PREDICT. The shorter form of bel_context_label
/// for models with one label.
BEL_API bel_value *bel_context_labels(bel_model_context *context);

/// A field that the dataset names as a label (bel_dataset_labels), [batch, …] in its type. NULL,
/// and no error, in PREDICT. Error: there is no such label; the message lists those there are.
BEL_API bel_value *bel_context_label(bel_model_context *context, const char *name);

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
    BEL_METRIC_MEAN,      ///< sum / weight; NaN without weight
    BEL_METRIC_ROOT_MEAN, ///< its root
    BEL_METRIC_AUC,       ///< area under the curve of the rows of `sum`: bel_metric_auc
    BEL_METRIC_OWN,       ///< what a function of the program makes of them: bel_metric_own
} bel_metric_kind;

/// The value of a metric from its sums over the evaluation, `count` numbers in the order of the
/// value's elements. Called once at the end, on the evaluating thread.
typedef double bel_metric_fn(void *user, const double *sums, int64_t count);

/// What a batch says of a metric; both values are added up over the batches, in double. Made by the
/// functions below, or by hand.
typedef struct bel_metric {
    const char *name; ///< Not copied: it outlives the estimator's call. 63 bytes of it are shown.
    bel_metric_kind kind;
    bel_value *sum;    ///< scalar F32; AUC: [3, n]: scores, and what they weigh as no and as yes;
                       ///< OWN: F32 of any closed shape
    bel_value *weight; ///< scalar F32; NULL: `sum` is a mean over the batch's examples and counts
                       ///< by these; AUC, OWN: NULL
    bel_metric_fn *result; ///< OWN
    void *user;            ///< of `result`
} bel_metric;

enum { BEL_MAX_METRICS = 16, BEL_MAX_SUMMARIES = 48, BEL_MAX_OUTPUTS = 16, BEL_MAX_RETURNS = 16 };

/// A prediction with a name of its own (bel_output_add).
typedef struct bel_output {
    const char *name; ///< Not copied: it outlives the estimator's call.
    bel_value *value; ///< [batch, …] of any type, a row for each example
} bel_output;

/// How a value of all replicas becomes one.
typedef enum bel_return_kind {
    BEL_RETURN_MEAN, ///< by the replicas' examples
    BEL_RETURN_SUM,
    BEL_RETURN_REPLICAS, ///< of each replica, one behind the other; of one without examples zeros
} bel_return_kind;

/// What a step function returns to the loop that runs it (bel_return_add).
typedef struct bel_return {
    const char *name; ///< Not copied: it outlives the estimator's call.
    bel_value *value; ///< F32 of a closed shape
    bel_return_kind kind;
} bel_return;

typedef enum bel_summary_kind {
    BEL_SUMMARY_SCALAR,
    BEL_SUMMARY_HISTOGRAM,
    BEL_SUMMARY_IMAGE,
} bel_summary_kind;

/// A value of the training graph that event files get (bel_summary_scalar and its like).
typedef struct bel_summary {
    const char *name; ///< Not copied: it outlives the estimator's call.
    bel_summary_kind kind;
    bel_value *value; ///< SCALAR: scalar F32
    int most;         ///< IMAGE: so many of the batch
} bel_summary;

/// What the model function answers, zero when it is called. Needed: TRAIN loss and optimizer; EVAL
/// loss; PREDICT predictions, or an output. Metrics and loss_weight are for EVAL, where there are
/// any. INVALID_ARGUMENT of the call that trains, evaluates or predicts names what is missing or of
/// another shape.
typedef struct bel_estimator_spec {
    bel_value *loss;        ///< scalar F32: mean over the examples of the batch (+ penalties)
    bel_value *predictions; ///< [batch, …] of any type, a row for each example
    bel_metric metrics[BEL_MAX_METRICS];
    int metric_count;
    bel_optimizer optimizer;
    /// Optimizers of variables of their own, such as FTRL for "wide/*" beside ADAGRAD for the rest.
    /// A pattern that matches no trainable variable and no table is an error.
    bel_optimizer_part optimizer_parts[BEL_MAX_OPTIMIZER_PARTS];
    int optimizer_part_count;
    /// Scalar F32: what the loss is the mean over, such as the sum of its weights
    /// (bel_weighted_mean); an evaluation weights the batches' losses by it. NULL: their examples.
    bel_value *loss_weight;
    bel_summary summaries[BEL_MAX_SUMMARIES]; ///< TRAIN
    int summary_count;
    bel_output outputs[BEL_MAX_OUTPUTS]; ///< PREDICT
    int output_count;
    bel_value *confusion; ///< EVAL: F32 [classes, classes], what a batch adds; NULL: none
    bel_return returns[BEL_MAX_RETURNS]; ///< TRAIN, of a step function (replica.h)
    int return_count;
} bel_estimator_spec;

/// Builds the graph of the context's mode and fills in `spec`. NULL; or an error, for mistakes that
/// are not in the graph, such as a parameter out of range.
typedef bel_status *bel_model_fn(bel_model_context *context, bel_estimator_spec *spec);

/// --- Losses and predictions of several heads ----------------------------------------------------

/// Adds `factor` · `loss` to spec->loss (NULL: it becomes that). `loss`, scalar F32, is a mean over
/// the examples of the batch; without the factor it is shown under `name`: a summary in TRAIN, in
/// EVAL a metric, its mean over the examples. Errors: as of a summary and a metric; the factor is
/// not finite.
BEL_API void bel_loss_add(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                          bel_value *loss, double factor);

/// A prediction beside spec->predictions, or in place of it: `value` [batch, …] under `name`. Has
/// no effect in TRAIN and EVAL. Errors: the name is taken, empty, or "predictions", which is that
/// of spec->predictions; more than BEL_MAX_OUTPUTS.
BEL_API void bel_output_add(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                            bel_value *value);

/// Returns `value` (F32 of a closed shape) to the loop that runs the step (replica.h), for all
/// replicas as `kind` says. Numbers travel with the step statistics, so this is for losses, counts,
/// rewards, some samples, and not for parameters: 65,536 numbers a step at most. Has no effect but
/// in a step function. Errors: the name is empty or taken; another type or an open shape; too many.
BEL_API void bel_return_add(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                            bel_value *value, bel_return_kind kind);

/// --- Metrics ------------------------------------------------------------------------------------
///
/// Each function adds one metric to `spec`. In TRAIN it counts where config.train_metrics asks for
/// metrics of training steps: of a step's batches, under the same name in the event files of
/// training (areas under curves and metrics of the program's own are left out there). `weights`
/// (F32, of the shape of what is weighted: labels, or values) say how much an example counts; NULL:
/// once. An example whose weight is 0 is not looked at: it may be NaN, or its label be out of
/// range. A metric over nothing, as where all weights are 0, is NaN,
/// which no other value is worse than. Errors: the name is taken (by another, or by the
/// library: "loss", "global_step", "learning_rate", "examples_per_second", "global_step/sec"); more
/// than BEL_MAX_METRICS; types and shapes that do not go together, also where they could be
/// broadcast.

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
/// predicted; F1: their harmonic mean. NaN where there is nothing to take a share of. Shares are
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
/// probability (F32 [batch]) than one that is no; labels [batch] as above. NaN where all are the
/// same, or a probability is NaN. Exact for up to 2^18 different probabilities, which are
/// kept until the end of the evaluation; of more, neighbours count as equal.
BEL_API void bel_metric_auc(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                            bel_value *labels, bel_value *probabilities, bel_value *weights);

/// A metric of the program's own: `sums`, F32 of any closed shape (counts of a confusion matrix,
/// moments, …), is what a batch adds to the state; the state, in double, is that over all batches
/// of all replicas; `result` makes the value of it. It must stay as long as the estimator is used.
BEL_API void bel_metric_own(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                            bel_value *sums, bel_metric_fn *result, void *user);

/// --- Summaries ----------------------------------------------------------------------------------

/// A number of a training step, such as a gradient's norm or a share of dead units: `value`, scalar
/// F32, is written to the event files of training under `name` every config.save_summary_steps
/// steps, as the mean over all replicas of the step, by their examples. Has no effect in EVAL and
/// PREDICT. Errors: another type or shape; the name is empty or taken; more than 16 of these, of
/// which each bel_loss_add takes one, or than BEL_MAX_SUMMARIES of all kinds.
BEL_API void bel_summary_scalar(bel_model_context *context, bel_estimator_spec *spec,
                                const char *name, bel_value *value);

/// How often numbers of which size come in `value`, F32 of any shape: activations, gradients
/// (bel_gradients), variables. In the buckets that TensorFlow has; numbers that are not finite are
/// left out and counted as `name`/not_finite where there are any. Written to the event files of
/// model_dir/replica_0 every config.save_summary_steps steps: of replica 0, from its batch. Those
/// steps compute it by a program of its own; others cost nothing, and no bit of the training
/// changes. A file that cannot be written is a warning. Has no effect in EVAL and PREDICT. Errors:
/// another type; the name is taken; more than BEL_MAX_SUMMARIES of all kinds.
BEL_API void bel_summary_histogram(bel_model_context *context, bel_estimator_spec *spec,
                                   const char *name, bel_value *value);

/// The first `most` (1 to 64) images of replica 0's batch, as PNG: `value` [batch, c, h, w] with 1
/// (grey), 3 (RGB) or 4 (RGBA) channels, U8, or F32 from 0 (dark) to 1; what lies outside counts as
/// the end of the range. Tags are `name`/0, `name`/1 … Where, when and errors as above.
BEL_API void bel_summary_image(bel_model_context *context, bel_estimator_spec *spec,
                               const char *name, bel_value *value, int most);

/// How often which class was taken for which, in report.html: a table of labels and what was
/// predicted, both I64 [batch] from 0 to below `classes` (2 to 50; another label or prediction ends
/// the evaluation with OUT_OF_RANGE). Each example counts once, whatever its weight; summed over
/// the evaluation, in whose event file it lies (docs/formats/events.md). Has no effect in TRAIN and
/// PREDICT. Errors: other types or shapes; a second one.
BEL_API void bel_summary_confusion(bel_model_context *context, bel_estimator_spec *spec,
                                   bel_value *labels, bel_value *predicted, int64_t classes);

#ifdef __cplusplus
}
#endif

#endif
