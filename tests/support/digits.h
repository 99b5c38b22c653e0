// Training runs on the bundled digits, for tests that compare or interrupt them.
#ifndef BELFRY_TESTS_SUPPORT_DIGITS_H
#define BELFRY_TESTS_SUPPORT_DIGITS_H

#include "belfry/belfry.h"

// Input: examples/data/digits-train.csv (digits-eval.csv in EVAL and PREDICT), shuffled and
// repeated in TRAIN, in batches of *(int64_t *)user.
bel_status *bel_test_digits_input(void *user, const bel_estimator *estimator, bel_mode mode,
                                  bel_dataset **out_dataset);

// Trains dnn with `params` in `model_dir` up to `max_steps`, with the settings of `config` (sets
// model_dir). Evaluates at the end if `evaluate`.
bel_status *bel_test_digits_train(bel_run_config config, const char *model_dir, int64_t batch_size,
                                  int64_t max_steps, const bel_param *params, int param_count,
                                  bool evaluate, bel_result *out_result);

#endif
