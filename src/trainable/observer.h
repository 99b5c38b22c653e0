// Observer of replica 0: writes histograms and images of the model's summaries to event files in
// model_dir/replica_0. Used by the process that plays replica 0, by one thread at a time.
#ifndef BELFRY_ESTIMATOR_OBSERVER_H
#define BELFRY_ESTIMATOR_OBSERVER_H

#include "belfry/estimator.h"
#include "model/spec.h"
#include "report/event_file.h"

#define BEL_OBSERVER_FOLDER "replica_0"

typedef struct bel_observer bel_observer;

// `summaries`, borrowed, are in the order of the values. Opens no file yet.
bel_observer *bel_observer_create(const char *model_dir, const bel_summary *const *summaries,
                                  int count);
void bel_observer_destroy(bel_observer *observer); // accepts NULL

// Takes the values of a step. A step that is not after the previous one voids values of it and
// later ones. An error of the file is a warning and stops further writes.
void bel_observer_take(bel_observer *observer, int64_t step, const bel_tensor *values);

// Makes the histogram of n numbers in TensorFlow's buckets, with empty neighbors joined. Its lists
// are memory of `list`, which has room for BEL_HISTOGRAM_ROOM doubles. Leaves out numbers that are
// not finite; returns how many.
enum { BEL_HISTOGRAM_ROOM = 4 * 1024 };
int64_t bel_histogram_make(const float *numbers, int64_t n, double *list,
                           bel_histogram *out_histogram);

#endif
