// Results of an evaluation besides numbers, for the report: a confusion matrix, and for each area
// under a curve the receiver operating characteristic (ROC) with precision. They are in the
// evaluation's event file as tables of numbers, so that a report finds them whichever process
// evaluated, and after a resume.
#ifndef BELFRY_ESTIMATOR_DETAILS_H
#define BELFRY_ESTIMATOR_DETAILS_H

#include <stdint.h>

#include "report/event_file.h"

enum { BEL_ROC_POINTS = 200, BEL_MOST_ROCS = 4, BEL_MOST_CONFUSED = 50 };

typedef struct bel_roc {
    char name[64];                    // the metric's name
    double no[BEL_ROC_POINTS];        // false positive rate, ascending
    double yes[BEL_ROC_POINTS];       // true positive rate: recall
    double precision[BEL_ROC_POINTS]; // precision; 1 if nothing is predicted positive
    int count;
} bel_roc;

// All zeroes: empty.
typedef struct bel_details {
    int64_t step;
    int classes;       // 0: no matrix
    double *confusion; // [label][predicted], owned
    bel_roc rocs[BEL_MOST_ROCS];
    int roc_count;
} bel_details;

void bel_details_deinit(bel_details *details); // sets all fields to zero

void bel_details_write(const bel_details *details, bel_event_file *events);

// Adds an event of an evaluation's file. Only details of the newest step are kept, and a START
// removes those that it voids. Ignores other events, and tables that no evaluation writes.
void bel_details_take(bel_details *details, const bel_event *event);

#endif
