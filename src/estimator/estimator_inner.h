// The estimator object, for the rooms that run it.
#ifndef BELFRY_ESTIMATOR_ESTIMATOR_INNER_H
#define BELFRY_ESTIMATOR_ESTIMATOR_INNER_H

#include "belfry/estimator.h"

struct bel_estimator {
    bel_model_fn *model_fn;
    bel_run_config config; // texts owned by the estimator
    int *towers_of;        // by worker, always set
    bel_param *params;     // names and values owned
    int param_count;
    int replica_count; // sum of towers_of
    int thread_count;  // of each tower, resolved
};

#endif
