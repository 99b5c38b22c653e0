// What replica 0 sees of a step: histograms and images of the model's summaries, in the event files
// of model_dir/replica_0. Used by the process that plays replica 0, by one thread at a time.
#ifndef BELFRY_ESTIMATOR_OBSERVER_H
#define BELFRY_ESTIMATOR_OBSERVER_H

#include "belfry/estimator.h"
#include "estimator/event_file.h"

#define BEL_OBSERVER_FOLDER "replica_0"

typedef struct bel_observer bel_observer;

// `summaries`, borrowed, in the order in which values come. Opens no file yet.
bel_observer *bel_observer_create(const char *model_dir, const bel_summary *const *summaries,
                                  int count);
void bel_observer_destroy(bel_observer *observer); // accepts NULL

// The values of a step. A step that is not behind the one before voids what was said of it and
// later ones. An error of the file is a warning, and nothing more is written.
void bel_observer_take(bel_observer *observer, int64_t step, const bel_tensor *values);

// The histogram of n numbers in TensorFlow's buckets, neighbours without numbers joined. Its lists
// are memory of `list`, which has room for BEL_HISTOGRAM_ROOM doubles. Returns how many numbers
// are not finite; they are left out.
enum { BEL_HISTOGRAM_ROOM = 4 * 1024 };
int64_t bel_histogram_make(const float *numbers, int64_t n, double *list,
                           bel_histogram *out_histogram);

#endif
