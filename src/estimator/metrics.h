// Sums of metrics over an evaluation, and what they come to.
#ifndef BELFRY_ESTIMATOR_METRICS_H
#define BELFRY_ESTIMATOR_METRICS_H

#include "belfry/estimator.h"

// Classes of probabilities that an area under the curve is made of.
enum { BEL_METRIC_CLASSES = 4096 };

typedef struct bel_metric_sums {
    bel_metric_kind kind;
    double sum, weight;
    double *counts; // AUC: no and yes of each class
} bel_metric_sums;

void bel_metric_sums_init(bel_metric_sums *sums, bel_metric_kind kind);
void bel_metric_sums_deinit(bel_metric_sums *sums);

// Adds a batch's values of bel_metric.sum and .weight (NULL where the kind has none).
void bel_metric_sums_add(bel_metric_sums *sums, const float *sum, const float *weight);

double bel_metric_sums_value(const bel_metric_sums *sums);

#endif
