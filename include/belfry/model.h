/// Model function: its context, its results, and the losses, outputs, metrics and summaries that it
/// adds. An estimator calls it (estimator.h begins with an example).
///
/// Calls here describe values and compute nothing. Values belong to the context's graph, and
/// mistakes stick to it (graph.h), so calls need no checks. Names are not copied; use string
/// literals.
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

/// Model function with settings and parameters; opaque.
typedef struct bel_estimator bel_estimator;

/// --- The model function -------------------------------------------------------------------------

/// Purpose of a graph.
typedef enum bel_mode { BEL_MODE_TRAIN, BEL_MODE_EVAL, BEL_MODE_PREDICT } bel_mode;

/// Context of a model function. It and its graph belong to the library and are valid only during
/// the call. Errors of the functions below stick to the graph (graph.h).
typedef struct bel_model_context bel_model_context;

/// Returns the graph to build, which already has the batch's fields as inputs; never NULL.
BEL_API bel_graph *bel_context_graph(bel_model_context *context);

/// Returns the mode of the graph.
BEL_API bel_mode bel_context_mode(const bel_model_context *context);

/// Returns the estimator of this model: settings, the job, and this process's part in it.
BEL_API const bel_estimator *bel_context_estimator(const bel_model_context *context);

/// Returns the number of examples in a full batch, as set by the dataset's batch stage. A graph is
/// built for batches of any size (the last may be shorter), so use this only for numbers outside
/// the graph, such as a learning rate.
BEL_API int64_t bel_context_batch_size(const bel_model_context *context);

/// Returns the feature [batch, …] of this name, in the dataset's type. Error: no such feature; the
/// message lists the existing ones. The label is no feature.
BEL_API bel_value *bel_context_feature(bel_model_context *context, const char *name);

/// Returns true if there is such a feature.
BEL_API bool bel_context_has_feature(const bel_model_context *context, const char *name);

/// Returns the only feature, whatever its name. Error: there are several, or there is no feature.
BEL_API bel_value *bel_context_only_feature(bel_model_context *context);

/// Returns the field "label", [batch, …] in the dataset's type (I64 [batch] from CSV and IDX);
/// NULL, and no error, if the dataset has none. Always NULL in PREDICT. A shorter bel_context_label
/// for models with one label.
BEL_API bel_value *bel_context_labels(bel_model_context *context);

/// Returns a field that the dataset names as a label (bel_dataset_labels), [batch, …] in its type.
/// NULL, and no error, in PREDICT. Error: no such label; the message lists the existing ones.
BEL_API bel_value *bel_context_label(bel_model_context *context, const char *name);

/// Returns true if there is such a label; false in PREDICT.
BEL_API bool bel_context_has_label(const bel_model_context *context, const char *name);

/// Returns the text of a parameter as given to the estimator, or `otherwise` (which may be NULL) if
/// it is unset. It lives as long as the estimator. A warning names a parameter that no graph of a
/// training reads.
BEL_API const char *bel_context_param(const bel_model_context *context, const char *name,
                                      const char *otherwise);

/// Returns the parameter as a number, or `otherwise` if it is unset. Error: it is no number; the
/// result is `otherwise`.
BEL_API double bel_context_param_number(bel_model_context *context, const char *name,
                                        double otherwise);

/// Parses the parameter, or the text `otherwise` (not NULL), as a list of integers such as
/// "512,512"; "" is an empty list. Returns the number of integers. Error: an item is no integer, or
/// there are more than `capacity`; the result is 0.
BEL_API int bel_context_param_list(bel_model_context *context, const char *name,
                                   const char *otherwise, int64_t *out_numbers, int capacity);

/// The same for real numbers ("0.1,0.01").
BEL_API int bel_context_param_numbers(bel_model_context *context, const char *name,
                                      const char *otherwise, double *out_numbers, int capacity);

/// Sets *out_optimizer, whose size the caller has set, to what the parameters describe, with the
/// names and defaults of the command's flags: "optimizer", "learning_rate", "momentum", … (belfry
/// train_and_evaluate --help, Optimizer). Sticky errors: an invalid text (the parameter is named);
/// a parameter sets a field beyond the size.
BEL_API void bel_context_optimizer(bel_model_context *context, bel_optimizer *out_optimizer);

/// Returns the value of a metric from its sums over the evaluation, `count` numbers in the order of
/// the value's elements. Called once at the end, on the evaluating thread.
typedef double bel_metric_fn(void *user, const double *sums, int64_t count);

enum { BEL_MAX_METRICS = 16, BEL_MAX_SUMMARIES = 48, BEL_MAX_OUTPUTS = 256, BEL_MAX_RETURNS = 16 };

/// Reduction of a value over all replicas.
typedef enum bel_return_kind {
    BEL_RETURN_MEAN, ///< weighted by the replicas' examples
    BEL_RETURN_SUM,
    BEL_RETURN_REPLICAS, ///< concatenated; zeros for a replica without examples
} bel_return_kind;

/// --- Results of the model function --------------------------------------------------------------

/// Results of the model function; opaque, and empty when the function is called. Required: TRAIN
/// loss and optimizer; EVAL loss; PREDICT predictions, or an output. Metrics and the loss's weight
/// are optional, for EVAL. INVALID_ARGUMENT of the call that trains, evaluates or predicts names a
/// value that is missing or of another shape. Names that the functions below get are not copied:
/// they must outlive the estimator's call.
typedef struct bel_estimator_spec bel_estimator_spec;

/// Builds the graph of the context's mode and fills in `spec`. Returns NULL, or an error for
/// mistakes outside the graph, such as a parameter out of range.
typedef bel_status *bel_model_fn(bel_model_context *context, bel_estimator_spec *spec);

/// Sets the loss, scalar F32: the mean over the examples of the batch, and penalties.
BEL_API void bel_loss_set(bel_estimator_spec *spec, bel_value *loss);

/// Sets the divisor in the loss's mean, scalar F32, such as the sum of its weights
/// (bel_weighted_mean); an evaluation weights the batches' losses by it. Unset: the number of
/// examples.
BEL_API void bel_loss_weight_set(bel_estimator_spec *spec, bel_value *weight);

/// Sets the predictions: [batch, …] of any type, a row for each example.
BEL_API void bel_predictions_set(bel_estimator_spec *spec, bel_value *predictions);

/// Trains the variables and tables whose names match a pattern (bel_multiplier) with a copy of
/// `optimizer`. `variables` NULL: those that match no other pattern; required in TRAIN, and a
/// second call replaces it. With patterns, such as FTRL for "wide/*" beside ADAGRAD for the rest,
/// the last matching one applies. clip_global_norm, moving averages and mean_by_contributors cover
/// all variables and belong to the optimizer without a pattern. Errors, INVALID_ARGUMENT: an unset
/// size; more than BEL_MAX_OPTIMIZER_PARTS; in TRAIN also: a pattern matches nothing that is
/// trained; a field is out of range (named).
BEL_API void bel_optimizer_use(bel_estimator_spec *spec, const char *variables,
                               const bel_optimizer *optimizer);

/// --- Losses and predictions of several heads ----------------------------------------------------

/// Adds `factor` · `loss` to the loss (sets it if unset). `loss`, scalar F32, is a mean over the
/// examples of the batch. Without the factor it is shown under `name`: a summary in TRAIN; in EVAL
/// a metric, its mean over the examples. Errors: as for a summary and a metric; the factor is not
/// finite.
BEL_API void bel_loss_add(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                          bel_value *loss, double factor);

/// Adds a prediction besides those of bel_predictions_set, or instead of them: `value` [batch, …]
/// under `name`. Has no effect in TRAIN and EVAL. Errors: the name is taken, empty, or
/// "predictions", which is that of bel_predictions_set; more than BEL_MAX_OUTPUTS.
BEL_API void bel_output_add(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                            bel_value *value);

/// Returns `value` (F32 of a closed shape) to the loop that runs the step (replica.h), reduced over
/// all replicas as `kind` says. Numbers travel with the step statistics: at most 65,536 numbers a
/// step, for losses, counts, rewards or some samples, not for parameters. Has no effect except in a
/// step function. Errors: the name is empty or taken; another type or an open shape; too many.
BEL_API void bel_return_add(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                            bel_value *value, bel_return_kind kind);

/// --- Metrics ------------------------------------------------------------------------------------
///
/// Each function adds one metric to `spec`. In TRAIN it applies only if config.train_metrics is
/// set: to a step's batches, under the same name in the event files of training (without areas
/// under curves and custom metrics). `weights` (F32, of the shape of the weighted labels or values)
/// are the weights of examples; NULL: 1. An example of weight 0 is ignored: it may be NaN, or its
/// label out of range. A metric over nothing, as with only zero weights, is NaN, which is the worst
/// value. Errors: the name is taken (by another metric, or by the library: "loss", "global_step",
/// "learning_rate", "examples_per_second", "global_step/sec"); more than BEL_MAX_METRICS; types and
/// shapes that differ, even if they could be broadcast.

/// Adds the mean of `values` (F32, any shape).
BEL_API void bel_metric_mean(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                             bel_value *values, bel_value *weights);

/// Adds the share of `predicted` that equals `labels`, both of one type and shape, e.g. I64
/// [batch].
BEL_API void bel_metric_accuracy(bel_model_context *context, bel_estimator_spec *spec,
                                 const char *name, bel_value *labels, bel_value *predicted,
                                 bel_value *weights);

/// Adds the share of labels (I64 [batch]) whose score is among the k highest of scores (F32 [batch,
/// classes]). Ties count in favor of the label. Errors: scores of another rank, or of fewer than k
/// classes. A label out of range ends the step with OUT_OF_RANGE.
BEL_API void bel_metric_top_k(bel_model_context *context, bel_estimator_spec *spec,
                              const char *name, bel_value *labels, bel_value *scores, int64_t k,
                              bel_value *weights);

/// The next three metrics compare labels and predicted of one shape, BOOL or any numbers; all
/// except 0 is yes. They are computed over the entire evaluation, not as means of batches, and NaN
/// if their divisor is 0.
///
/// Adds precision: the share of predicted yes that is yes.
BEL_API void bel_metric_precision(bel_model_context *context, bel_estimator_spec *spec,
                                  const char *name, bel_value *labels, bel_value *predicted,
                                  bel_value *weights);
/// Adds recall: the share of yes that was predicted as yes.
BEL_API void bel_metric_recall(bel_model_context *context, bel_estimator_spec *spec,
                               const char *name, bel_value *labels, bel_value *predicted,
                               bel_value *weights);
/// Adds F1, the harmonic mean of precision and recall.
BEL_API void bel_metric_f1(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                           bel_value *labels, bel_value *predicted, bel_value *weights);

/// Adds the root of the mean of (predicted - labels)², both F32 of one shape.
BEL_API void bel_metric_root_mean_squared_error(bel_model_context *context,
                                                bel_estimator_spec *spec, const char *name,
                                                bel_value *labels, bel_value *predicted,
                                                bel_value *weights);

/// Adds the perplexity of `losses`, negative natural logarithms of probabilities (F32, any shape):
/// e to the power of their mean.
BEL_API void bel_metric_perplexity(bel_model_context *context, bel_estimator_spec *spec,
                                   const char *name, bel_value *losses, bel_value *weights);

/// Adds the area under the receiver operating characteristic: how often a positive example has a
/// higher probability (F32 [batch]) than a negative one. Labels [batch] as above. NaN if all labels
/// are the same, or a probability is NaN. Exact for up to 2^18 different probabilities, which are
/// kept until the end of the evaluation; beyond, neighbors count as equal.
BEL_API void bel_metric_auc(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                            bel_value *labels, bel_value *probabilities, bel_value *weights);

/// Adds a custom metric. `sums`, F32 of any closed shape (counts of a confusion matrix, moments,
/// …), is a batch's contribution to the state. The state, in double, is the sum over all batches of
/// all replicas, and `result` computes the metric's value from it. `result` must stay valid as long
/// as the estimator is used.
BEL_API void bel_metric_own(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                            bel_value *sums, bel_metric_fn *result, void *user);

/// --- Summaries ----------------------------------------------------------------------------------

/// Adds a number of a training step, such as a gradient's norm or a share of dead units. The mean
/// of `value`, scalar F32, over all replicas of the step, weighted by their examples, is written to
/// the event files of training under `name` every config.save_summary_steps steps. Has no effect in
/// EVAL and PREDICT. Errors: another type or shape; the name is empty or taken; more than 16 of
/// these, including one for each bel_loss_add, or more than BEL_MAX_SUMMARIES of all kinds.
BEL_API void bel_summary_scalar(bel_model_context *context, bel_estimator_spec *spec,
                                const char *name, bel_value *value);

/// Adds a histogram of the numbers of `value`, F32 of any shape: activations, gradients
/// (bel_gradients), variables. It has TensorFlow's buckets. Numbers that are not finite are left
/// out; `name`/not_finite counts them if there are any. Written to the event files of
/// model_dir/replica_0 every config.save_summary_steps steps, from replica 0's batch. Only those
/// steps compute it, by a separate program, and it changes no bit of the training. A failed write
/// is a warning. Has no effect in EVAL and PREDICT. Errors: another type; the name is taken; more
/// than BEL_MAX_SUMMARIES of all kinds.
BEL_API void bel_summary_histogram(bel_model_context *context, bel_estimator_spec *spec,
                                   const char *name, bel_value *value);

/// Adds the first `most` (1 to 64) images of replica 0's batch, as PNG: `value` [batch, c, h, w]
/// with 1 (gray), 3 (RGB) or 4 (RGBA) channels, U8, or F32 clamped to 0 (dark) … 1. Tags are
/// `name`/0, `name`/1 … Files, steps and errors as with bel_summary_histogram.
BEL_API void bel_summary_image(bel_model_context *context, bel_estimator_spec *spec,
                               const char *name, bel_value *value, int most);

/// Adds a confusion matrix to report.html: counts of labels and predicted classes, both I64 [batch]
/// from 0 to below `classes` (2 to 50). A label or prediction out of range ends the evaluation with
/// OUT_OF_RANGE. Each example counts once, whatever its weight. The matrix is summed over the
/// evaluation and stored in its event file (docs/formats/events.md). Has no effect in TRAIN and
/// PREDICT. Errors: other types or shapes; a second one.
BEL_API void bel_summary_confusion(bel_model_context *context, bel_estimator_spec *spec,
                                   bel_value *labels, bel_value *predicted, int64_t classes);

#ifdef __cplusplus
}
#endif

#endif
