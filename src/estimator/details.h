// What an evaluation finds besides numbers, for the report: a confusion matrix, and the receiver
// operating characteristic (ROC) of each area under a curve, with precision. They lie in the
// evaluation's event file as tables of numbers, so that a report finds them whichever process has
// evaluated, and after a resume.
#ifndef BELFRY_ESTIMATOR_DETAILS_H
#define BELFRY_ESTIMATOR_DETAILS_H

#include <stdint.h>

#include "estimator/event_file.h"

enum { BEL_ROC_POINTS = 200, BEL_MOST_ROCS = 4, BEL_MOST_CONFUSED = 50 };

typedef struct bel_roc {
    char name[64];                    // of the metric
    double no[BEL_ROC_POINTS];        // share of what is no that is said to be yes, ascending
    double yes[BEL_ROC_POINTS];       // share of what is yes: recall
    double precision[BEL_ROC_POINTS]; // share of what is said to be yes that is; 1 of nothing
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

void bel_details_deinit(bel_details *details); // leaves it all zeroes

void bel_details_write(const bel_details *details, bel_event_file *events);

// An event of an evaluation's file. Those of the newest step stay; what a START voids is forgotten;
// events of other things, and tables that no evaluation writes, are passed over.
void bel_details_take(bel_details *details, const bel_event *event);

#endif
