// Sums of metrics over an evaluation, and the values that follow.
#ifndef BELFRY_ESTIMATOR_METRICS_H
#define BELFRY_ESTIMATOR_METRICS_H

#include "belfry/estimator.h"
#include "estimator/details.h"
#include "ps/layout/step_stats.h"

// The name of spec.predictions among predictions.
#define BEL_PREDICTIONS "predictions"

// Scalars among the summaries of a model: what its metrics leave of the series.
enum { BEL_MAX_SCALARS = BEL_MAX_SERIES - BEL_MAX_METRICS };

// False: a summary, a metric or the library itself has this name.
bool bel_spec_name_is_free(const bel_estimator_spec *spec, const char *name);

// Adds a metric to a spec; the context's graph fails where its name is taken or there are too many.
void bel_metric_add(bel_model_context *context, bel_estimator_spec *spec, bel_metric metric);

// Up to this many different scores an area under the curve is exact. Where there are more,
// neighbours count as equal.
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
    bool undefined; // a score is NaN, so the area is
} bel_metric_sums;

void bel_metric_sums_init(bel_metric_sums *sums, const bel_metric *metric);
void bel_metric_sums_deinit(bel_metric_sums *sums);

// Adds a batch's values of bel_metric.sum and .weight (NULL where the metric has none).
void bel_metric_sums_add(bel_metric_sums *sums, const bel_tensor *sum, const bel_tensor *weight,
                         int64_t examples);

double bel_metric_sums_value(bel_metric_sums *sums);

// Of an AUC; no points where the area is 0 or undefined for want of both sides.
void bel_metric_sums_roc(bel_metric_sums *sums, bel_roc *out_roc);

#endif
