// A saved model, opened to be used and not trained: a checkpoint, the input that the model is built
// for, its graph and the values of its variables. For evaluation, prediction and export.
#ifndef BELFRY_ESTIMATOR_SAVED_H
#define BELFRY_ESTIMATOR_SAVED_H

#include "checkpoint/checkpoint.h"
#include "estimator/model.h"
#include "predictor/forward.h"
#include "ps/table/rows.h"

// Zero, but for estimator, averages and stage_memory, before it is opened. What points into it is
// borrowed.
typedef struct bel_saved {
    const bel_estimator *estimator;
    bool averages; // in place of the values, where the checkpoint has them
    bel_input *input;
    bel_built *built;
    bel_ckpt_reader *reader;
    size_t stage_memory; // for values, which are then read as they are needed; 0: they are here
    float **values;      // by graph variable; NULL where they are read as they are needed
    bel_staged_source *sources;
    bel_rows rows;
} bel_saved;

// `checkpoint` is its folder; NULL: the newest one. Without an input of its own the model gets that
// of the input function. Close it also after an error. NOT_FOUND: there is no checkpoint; else the
// errors of the functions of the program and of reading.
bel_status *bel_saved_open(bel_saved *saved, bel_mode mode, bel_input_fn *input_fn,
                           void *input_user, const char *checkpoint) BEL_MUST_USE;

// The same in PREDICT for these features. INVALID_ARGUMENT: a feature that cannot be.
bel_status *bel_saved_open_features(bel_saved *saved, const bel_feature *features, int count,
                                    const char *checkpoint) BEL_MUST_USE;

void bel_saved_close(bel_saved *saved);

bel_forward_config bel_saved_forward(bel_saved *saved);

#endif
