// Sums of metrics over an evaluation, and the values that follow.
#ifndef BELFRY_ESTIMATOR_METRICS_H
#define BELFRY_ESTIMATOR_METRICS_H

#include "belfry/estimator.h"

// Up to this many different scores an area under the curve is exact. Where there are more,
// neighbours count as equal.
enum { BEL_METRIC_SCORES = 1 << 18 };

typedef struct bel_metric_score {
    float score;
    double no, yes; // weights of its examples
} bel_metric_score;

typedef struct bel_metric_sums {
    bel_metric_kind kind;
    double sum, weight;
    bel_metric_score *scores; // AUC
    size_t count, capacity;
    bool undefined; // a score is NaN, so the area is
} bel_metric_sums;

void bel_metric_sums_init(bel_metric_sums *sums, bel_metric_kind kind);
void bel_metric_sums_deinit(bel_metric_sums *sums);

// Adds a batch's values of bel_metric.sum and .weight (NULL where the kind has none).
void bel_metric_sums_add(bel_metric_sums *sums, const bel_tensor *sum, const bel_tensor *weight);

double bel_metric_sums_value(bel_metric_sums *sums);

#endif
