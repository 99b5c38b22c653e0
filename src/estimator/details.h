// What an evaluation found besides numbers, for the report: a confusion matrix, and the receiver
// operating characteristic of each area under a curve.
#ifndef BELFRY_ESTIMATOR_DETAILS_H
#define BELFRY_ESTIMATOR_DETAILS_H

#include <stdint.h>

enum { BEL_ROC_POINTS = 200, BEL_MOST_ROCS = 4, BEL_MOST_CONFUSED = 50 };

typedef struct bel_roc {
    char name[64];              // of the metric
    double no[BEL_ROC_POINTS];  // share of what is no that is said to be yes, ascending
    double yes[BEL_ROC_POINTS]; // share of what is yes
    int count;
} bel_roc;

// All zeroes: nothing was found.
typedef struct bel_details {
    int64_t step;
    int classes;       // 0: no matrix
    double *confusion; // [label][predicted], owned
    bel_roc rocs[BEL_MOST_ROCS];
    int roc_count;
} bel_details;

#endif
