// Sums of metrics over an evaluation, and the resulting values.
#ifndef BELFRY_ESTIMATOR_METRICS_H
#define BELFRY_ESTIMATOR_METRICS_H

#include "belfry/estimator.h"
#include "model/spec.h"
#include "ps/layout/step_stats.h"
#include "report/details.h"

// The name of bel_predictions_set's value among predictions.
#define BEL_PREDICTIONS "predictions"

// Maximum of scalars among the summaries of a model: the series left by metrics.
enum { BEL_MAX_SCALARS = BEL_MAX_SERIES - BEL_MAX_METRICS };

// Whether a name is free: not used by a summary, a metric or the library.
bool bel_spec_name_is_free(const bel_estimator_spec *spec, const char *name);

// Adds a metric to a spec. The context's graph fails if its name is taken or there are too many.
void bel_metric_add(bel_model_context *context, bel_estimator_spec *spec, bel_metric metric);

// An area under a curve is exact for up to this number of distinct scores. With more, neighbors
// count as equal.
enum { BEL_METRIC_SCORES = 1 << 18 };

typedef struct bel_metric_score {
    float score;
    double no, yes; // weights of its examples
} bel_metric_score;

typedef struct bel_metric_sums {
    const bel_metric *metric; // borrowed
    double sum, weight;
    double *state; // OWN
    int64_t state_count;
    bel_metric_score *scores; // AUC
    size_t count, capacity;
    bool undefined; // a score is NaN, so the area is too
} bel_metric_sums;

void bel_metric_sums_init(bel_metric_sums *sums, const bel_metric *metric);
void bel_metric_sums_deinit(bel_metric_sums *sums);

// Adds a batch's values of bel_metric.sum and .weight (NULL if the metric lacks one).
void bel_metric_sums_add(bel_metric_sums *sums, const bel_tensor *sum, const bel_tensor *weight,
                         int64_t examples);

double bel_metric_sums_value(bel_metric_sums *sums);

// Returns the value of a metric of the first kinds from the mean: itself, its root or e^mean.
double bel_metric_of_mean(bel_metric_kind kind, double mean);

// Computes the curve of an AUC; no points if the area is 0 or undefined because a side is missing.
void bel_metric_sums_roc(bel_metric_sums *sums, bel_roc *out_roc);

#endif
