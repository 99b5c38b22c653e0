// Results of a model function, as the functions of belfry/model.h collect them.
//
// Programs see an opaque type: the struct may change with every version.
#ifndef BELFRY_MODEL_SPEC_H
#define BELFRY_MODEL_SPEC_H

#include "belfry/model.h"
#include "optim/optimizers.h"

// Result of a metric from its sums over the entire evaluation. These sums do not depend on which
// tower ran which batch.
typedef enum bel_metric_kind {
    BEL_METRIC_MEAN,      // sum / weight; NaN if the weight is 0
    BEL_METRIC_ROOT_MEAN, // its root
    BEL_METRIC_EXP_MEAN,  // e to its power
    BEL_METRIC_AUC,       // area under the curve of the rows of `sum`: bel_metric_auc
    BEL_METRIC_OWN,       // result of a function of the program: bel_metric_own
} bel_metric_kind;

// A batch's contribution to a metric; both values are added over the batches, in double.
typedef struct bel_metric {
    const char *name; // borrowed; 63 bytes of it are shown
    bel_metric_kind kind;
    bel_value *sum;    // scalar F32; AUC: [3, n]: scores, their weights as no, and as yes; OWN:
                       // F32 of any closed shape
    bel_value *weight; // scalar F32; NULL: `sum` is a mean over the batch's examples, weighted by
                       // their number; AUC, OWN: NULL
    bel_metric_fn *result; // OWN
    void *user;            // for `result`
} bel_metric;

// Named prediction.
typedef struct bel_output {
    const char *name; // lives as long as the graph
    bel_value *value; // [batch, …] of any type, a row for each example
} bel_output;

// Value that a step function returns to the loop that runs it.
typedef struct bel_return {
    const char *name; // borrowed
    bel_value *value; // F32 of a closed shape
    bel_return_kind kind;
} bel_return;

typedef enum bel_summary_kind {
    BEL_SUMMARY_SCALAR,
    BEL_SUMMARY_HISTOGRAM,
    BEL_SUMMARY_IMAGE,
} bel_summary_kind;

// Value of the training graph for event files.
typedef struct bel_summary {
    const char *name; // borrowed
    bel_summary_kind kind;
    bel_value *value; // SCALAR: scalar F32
    int most;         // IMAGE: maximal number per batch
} bel_summary;

struct bel_estimator_spec {
    bel_value *loss, *loss_weight, *predictions; // NULL: unset
    bel_metric metrics[BEL_MAX_METRICS];
    int metric_count;
    bel_optimizers optimizers;
    bool has_optimizer;                       // optimizers.main is set
    bel_summary summaries[BEL_MAX_SUMMARIES]; // TRAIN
    int summary_count;
    bel_output outputs[BEL_MAX_OUTPUTS]; // PREDICT
    int output_count;
    bel_value *confusion; // EVAL: F32 [classes, classes], a batch's counts; NULL: unset
    bel_return returns[BEL_MAX_RETURNS]; // TRAIN, of a step function (replica.h)
    int return_count;
    bel_status *error; // first error of a call that has no graph; owned
};

#endif
